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

const pdf = "%PDF-1.4\nevidence\n%%EOF\n"

func newDispute(t *testing.T, kind payvaulttest.DisputeKind) (api, string, payvault.DisputeID) {
	t.Helper()
	a := newAPI(t)
	dispute := a.srv.Disputes.Seed(payvaulttest.Dispute{Kind: kind})
	return a, fmt.Sprintf("/platform/dispute/%d/respond", dispute.ID), dispute.ID
}

// TestDisputeFirstTime checks that a response with all fields and a file is stored.
func TestDisputeFirstTime(t *testing.T) {
	t.Parallel()
	a, path, id := newDispute(t, "")
	got := a.postForm(t, path, newForm().part(t, "file", "proof.pdf", pdf).part(t, "disputeResponse", "", `{
		"message":"Ünser","cbr_response_type":"CP","amt_tran":125.50,"batch_date":"2026-01-16","reference_number":"REF",
		"cbr_ce_type":"X",
		"cbr_id_type":"Y","reason_desc":"Z"}`))
	assert.JSONEq(t, `{"code":0,"message":"Success"}`, got.body)

	dispute, ok := a.srv.Disputes.Get(id)
	require.True(t, ok)
	assert.Equal(t, &payvaulttest.DisputeResponse{
		Message: "Ünser", Type: "CP", AmtTran: payvault.MustParseAmount("125.50"), BatchDate: "2026-01-16",
		ReferenceNumber: "REF", EvidenceType: "X",
		AllocationType: "Y", Reason: "Z", FileName: "proof.pdf", FileSize: int64(len(pdf)),
		FileSHA256: sha256.Sum256([]byte(pdf)),
	}, dispute.Response)
	dispute.Response.Message = "changed"
	again, _ := a.srv.Disputes.Get(id)
	assert.Equal(t, "Ünser", again.Response.Message, "a copy")
}

// TestDisputeIsAnsweredOnce checks that a second answer is refused.
func TestDisputeIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
	answer := func() reply {
		return a.postForm(t, path, newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"ND"}`))
	}
	answer().ok(t)
	answer().refused(t, http.StatusConflict)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpDisputesRespond))
}

// TestDisputeTypes checks that each documented type of response is accepted.
func TestDisputeTypes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ND", "CP", "CE", "OT", "ID"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
			a.postForm(t, path, newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"`+kind+`"}`)).ok(t)
		})
	}
	a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
	a.postForm(t, path, newForm().part(t, "disputeResponse", "", `{"message":"no type"}`)).
		refused(t, http.StatusBadRequest, "disputeResponse.cbr_response_type")
}

// TestDisputeRetrieval checks that a retrieval dispute needs a message and a file.
func TestDisputeRetrieval(t *testing.T) {
	t.Parallel()
	a, path, _ := newDispute(t, payvaulttest.DisputeRetrieval)
	message := `{"message":"here it is"}`
	a.postForm(t, path, newForm().part(t, "disputeResponse", "", message)).refused(t, http.StatusBadRequest, "file")
	a.postForm(t, path, newForm().part(t, "file", "a.pdf", pdf)).refused(t, http.StatusBadRequest,
		"disputeResponse.message")
	a.postForm(t, path, newForm().part(t, "file", "a.pdf", pdf).part(t, "disputeResponse", "", `{}`)).
		refused(t, http.StatusBadRequest, "disputeResponse.message")
	a.postForm(t, path, newForm().part(t, "file", "a.pdf", pdf).part(t, "disputeResponse", "", `{"message":""}`)).
		refused(t, http.StatusBadRequest, "disputeResponse.message")
	a.postForm(t, path, newForm().part(t, "disputeResponse", "", message).part(t, "file", "a.pdf", pdf)).ok(t)
}

// TestDisputeMessageIsCountedInCharacters checks that a message may have 5,000 characters, not bytes.
func TestDisputeMessageIsCountedInCharacters(t *testing.T) {
	t.Parallel()
	a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
	response := func(n int) *form {
		return newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"OT","message":"`+strings.Repeat("ü", n)+`"}`)
	}
	a.postForm(t, path, response(5001)).refused(t, http.StatusBadRequest, "disputeResponse.message")
	a.postForm(t, path, response(5000)).ok(t)
}

// TestDisputeFileTypes checks that a PDF is accepted with each of these content types.
func TestDisputeFileTypes(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"", "application/pdf", "application/octet-stream"} {
		a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
		got := a.postForm(t, path, newForm().typedPart(t, "file", "a.pdf", contentType, pdf).part(t, "disputeResponse", "",
			`{"cbr_response_type":"ND"}`))
		got.ok(t)
	}
}

// TestDisputeRefuses checks that an invalid form is refused with the name of the field, and that nothing is stored.
func TestDisputeRefuses(t *testing.T) {
	t.Parallel()
	a, path, id := newDispute(t, payvaulttest.DisputeFirstTime)
	const nd = `{"cbr_response_type":"ND"}`
	for name, test := range map[string]struct {
		form  *form
		field string
	}{
		"unknown type": {
			newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"XX"}`),
			"disputeResponse.cbr_response_type",
		},
		"unknown field": {
			newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"ND","note":"x"}`),
			"disputeResponse.note",
		},
		"a string amount": {
			newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"CP","amt_tran":"1.00"}`),
			"disputeResponse.amt_tran",
		},
		"an amount of 20 digits": {
			newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"CP","amt_tran":123456789012345678.55}`),
			"disputeResponse.amt_tran",
		},
		"a German date": {newForm().part(t, "disputeResponse", "",
			`{"cbr_response_type":"CP","batch_date":"16.1.2026"}`), "disputeResponse.batch_date"},
		"the response twice": {
			newForm().part(t, "disputeResponse", "", nd).part(t, "disputeResponse", "", nd),
			"disputeResponse",
		},
		"the file twice": {newForm().part(t, "file", "a.pdf", pdf).part(t, "file", "b.pdf", pdf).part(t, "disputeResponse",
			"", nd), "file"},
		"another part":  {newForm().part(t, "disputeResponse", "", nd).part(t, "note", "", "x"), "note"},
		"another case":  {newForm().part(t, "disputeresponse", "", nd), "disputeresponse"},
		"no PDF":        {newForm().part(t, "file", "a.pdf", "PK\x03\x04").part(t, "disputeResponse", "", nd), "file"},
		"an empty file": {newForm().part(t, "file", "a.pdf", "").part(t, "disputeResponse", "", nd), "file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.postForm(t, path, test.form).refused(t, http.StatusBadRequest, test.field)
		})
	}
	t.Cleanup(func() {
		dispute, _ := a.srv.Disputes.Get(id)
		assert.Nil(t, dispute.Response)
	})
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestDisputeForms checks that bodies that are no form, too large, or damaged are refused.
func TestDisputeForms(t *testing.T) {
	t.Parallel()
	a, path, _ := newDispute(t, payvaulttest.DisputeFirstTime)
	a.post(t, path, `{"cbr_response_type":"ND"}`).refused(t, http.StatusUnsupportedMediaType)
	large := a.request(t, http.MethodPost, path, "x")
	large.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	head := strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n%PDF-")
	large.Body, large.ContentLength = io.NopCloser(io.MultiReader(head, io.LimitReader(endless{}, 64<<20))), -1
	a.send(t, large).refused(t, http.StatusRequestEntityTooLarge)

	for name, body := range map[string]string{
		"cut short":      "--b\r\nContent-Disposition: form-data; name=\"disputeResponse\"\r\n\r\n{\"cbr_respo",
		"nameless part":  "--b\r\nContent-Disposition: form-data\r\n\r\n{}\r\n--b--\r\n",
		"no disposition": "--b\r\n\r\n{}\r\n--b--\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := a.request(t, http.MethodPost, path, body)
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			a.send(t, r).refused(t, http.StatusBadRequest)
		})
	}
}

// TestDisputeUnknown checks that only existing disputes of the merchant can be answered.
func TestDisputeUnknown(t *testing.T) {
	t.Parallel()
	a, path, _ := newDispute(t, payvaulttest.DisputeOther)
	nd := func() *form { return newForm().part(t, "disputeResponse", "", `{"cbr_response_type":"ND"}`) }
	a.postForm(t, path, nd()).refused(t, http.StatusConflict)
	for _, id := range []payvault.DisputeID{7101, math.MaxInt64} {
		a.srv.Disputes.Seed(payvaulttest.Dispute{ID: id})
	}
	for _, id := range []string{"5", "x", "0", "7101.0", "99999999999999999999"} {
		a.postForm(t, "/platform/dispute/"+id+"/respond", nd()).refused(t, http.StatusNotFound)
	}
	a.second(t).postForm(t, path, nd()).refused(t, http.StatusNotFound)
}

// TestDisputeLargeFile checks that a file of 3 MB is accepted, and that the history keeps its first megabyte.
func TestDisputeLargeFile(t *testing.T) {
	t.Parallel()
	a, path, id := newDispute(t, payvaulttest.DisputeFirstTime)
	large := pdf + strings.Repeat("x", 3<<20)
	a.postForm(t, path, newForm().part(t, "file", "a.pdf", large).part(t, "disputeResponse", "",
		`{"cbr_response_type":"CE"}`)).ok(t)
	dispute, _ := a.srv.Disputes.Get(id)
	assert.Equal(t, int64(len(large)), dispute.Response.FileSize)
	assert.Equal(t, sha256.Sum256([]byte(large)), dispute.Response.FileSHA256)
	assert.Len(t, a.srv.Requests()[0].Parts[0].Content(), 1<<20, "the beginning is kept")
}
