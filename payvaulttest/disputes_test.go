package payvaulttest_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const (
	pdf        = "%PDF-1.4\nevidence\n%%EOF\n"
	respond    = "/platform/dispute/1/respond"
	noDefence  = `{"cbr_response_type":"ND"}`
	withoutPDF = "PK\x03\x04"
)

func newDispute(t *testing.T, kind payvaulttest.DisputeKind) api {
	t.Helper()
	a := newAPI(t)
	a.srv.Disputes.Seed(payvaulttest.Dispute{ID: 1, Kind: kind})
	return a
}

// answer returns a form that has only the part disputeResponse.
func answer(text string) form {
	return form("").part("disputeResponse", "", text)
}

// TestDisputeRespond checks that the server stores the response to a dispute, with the size and the checksum of the
// file, and refuses a second response.
func TestDisputeRespond(t *testing.T) {
	t.Parallel()
	a := newDispute(t, "")
	large := pdf + strings.Repeat("x", 3<<20)
	send := func() reply {
		return a.postForm(t, respond, form("").part("file", "proof.pdf", large).part("disputeResponse", "", `{
			"message":"Ünser","cbr_response_type":"CP","amt_tran":125.50,"batch_date":"2026-01-16","reference_number":"REF",
			"cbr_ce_type":"X","cbr_id_type":"Y","reason_desc":"Z"}`))
	}
	assert.JSONEq(t, `{"code":0,"message":"Success"}`, send().body)
	dispute, ok := a.srv.Disputes.Get(1)
	require.True(t, ok)
	assert.Equal(t, &payvaulttest.DisputeResponse{
		Message: "Ünser", Type: "CP", AmtTran: payvault.MustParseAmount("125.50"), BatchDate: "2026-01-16",
		ReferenceNumber: "REF", EvidenceType: "X", AllocationType: "Y", Reason: "Z",
		FileName: "proof.pdf", FileSize: int64(len(large)), FileSHA256: sha256.Sum256([]byte(large)),
	}, dispute.Response)
	parts := a.srv.Requests()[0].Parts
	require.Len(t, parts, 2)
	assert.Equal(t, []string{"file", "proof.pdf", "application/pdf"},
		[]string{parts[0].Name, parts[0].FileName, parts[0].ContentType})
	assert.Equal(t, large[:1<<20], string(parts[0].Content()), "the beginning is kept")
	dispute.Response.Message = "changed"
	again, _ := a.srv.Disputes.Get(1)
	assert.Equal(t, "Ünser", again.Response.Message, "a copy")

	send().refused(t, http.StatusConflict)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpDisputesRespond))
}

// TestDisputeForms checks which forms each kind of dispute accepts, and that a refused form changes nothing. A dispute
// that has accepted a form accepts no second one.
func TestDisputeForms(t *testing.T) {
	t.Parallel()
	const first, retrieval = payvaulttest.DisputeFirstTime, payvaulttest.DisputeRetrieval
	long := func(n int) string { return `{"cbr_response_type":"OT","message":"` + strings.Repeat("ü", n) + `"}` }
	file := func(content string) form { return form("").part("file", "a.pdf", content) }
	for name, test := range map[string]struct {
		kind   payvaulttest.DisputeKind
		form   form
		status int
		field  string
	}{
		"a type":           {first, answer(noDefence), 200, ""},
		"5000 characters":  {first, answer(long(5000)), 200, ""},
		"5001 characters":  {first, answer(long(5001)), 400, "disputeResponse.message"},
		"a file":           {first, file(pdf).part("disputeResponse", "", noDefence), 200, ""},
		"no type":          {first, answer(`{"message":"m"}`), 400, "disputeResponse.cbr_response_type"},
		"an unknown field": {first, answer(`{"cbr_response_type":"ND","note":"x"}`), 400, "disputeResponse.note"},
		"20 digits": {
			first, answer(`{"cbr_response_type":"CP","amt_tran":123456789012345678.55}`), 400, "disputeResponse.amt_tran",
		},
		"the answer twice": {first, answer(noDefence).part("disputeResponse", "", "{}"), 400, "disputeResponse"},
		"another part":     {first, answer(noDefence).part("note", "", "x"), 400, "note"},
		"no PDF":           {first, file(withoutPDF).part("disputeResponse", "", noDefence), 400, "file"},
		"an empty file":    {first, file("").part("disputeResponse", "", noDefence), 400, "file"},

		"file and message": {retrieval, file(pdf).part("disputeResponse", "", `{"message":"m"}`), 200, ""},
		"no message":       {retrieval, file(pdf), 400, "disputeResponse.message"},
		"no file":          {retrieval, answer(`{"message":"m"}`), 400, "file"},

		"a dispute of another kind": {payvaulttest.DisputeOther, answer(noDefence), 409, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newDispute(t, test.kind)
			got := a.postForm(t, respond, test.form)
			assert.Equal(t, test.status, got.status, got.body)
			if test.field != "" {
				got.refused(t, test.status, test.field)
			}
			dispute, _ := a.srv.Disputes.Get(1)
			assert.Equal(t, test.status == http.StatusOK, dispute.Response != nil)
			if dispute.Response != nil {
				a.postForm(t, respond, test.form).refused(t, http.StatusConflict)
			}
		})
	}
}

// endless is a Reader that never returns io.EOF.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestBrokenForms checks that the server refuses a form that is too large, a form that is cut off, and a body that is
// not a form. It accepts a file of 63 MiB.
func TestBrokenForms(t *testing.T) {
	t.Parallel()
	a := newDispute(t, payvaulttest.DisputeFirstTime)
	a.post(t, respond, noDefence).refused(t, http.StatusUnsupportedMediaType)
	send := func(body io.Reader) reply {
		r := a.request(t, http.MethodPost, respond, "x")
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Body, r.ContentLength = io.NopCloser(body), -1
		return a.send(t, r)
	}
	head := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n%PDF-"
	send(io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, 64<<20))).
		refused(t, http.StatusRequestEntityTooLarge)
	for _, body := range []string{
		string(answer(noDefence)) + head, // the second part is cut off
		"--b\r\nContent-Disposition: form-data\r\n\r\n{}\r\n--b--\r\n",
		"--b\r\n\r\n{}\r\n--b--\r\n",
	} {
		send(strings.NewReader(body)).refused(t, http.StatusBadRequest)
	}
	assert.Empty(t, a.srv.AllCommits())
	rest := "\r\n" + string(answer(noDefence)) + "--b--\r\n"
	large := send(io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, 63<<20), strings.NewReader(rest)))
	assert.Equal(t, http.StatusOK, large.status, large.body)
}

// TestUnknownDisputes checks that a request gets status 404 if no dispute has the ID, or if the dispute belongs to
// another merchant.
func TestUnknownDisputes(t *testing.T) {
	t.Parallel()
	a := newDispute(t, payvaulttest.DisputeFirstTime)
	a.srv.Disputes.Seed(payvaulttest.Dispute{ID: math.MaxInt64})
	for _, id := range []string{"2", "x", "99999999999999999999"} {
		path := fmt.Sprintf("/platform/dispute/%s/respond", id)
		a.postForm(t, path, answer(noDefence)).refused(t, http.StatusNotFound)
	}
	a.second(t).postForm(t, respond, answer(noDefence)).refused(t, http.StatusNotFound)
}
