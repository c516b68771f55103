package payvault_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const respondPath = "/platform/dispute/5002/respond"

// fullResponse is disputes/respond.request.json, with disputes/evidence.pdf.
func fullResponse(t *testing.T) *payvault.DisputeResponse {
	t.Helper()
	return &payvault.DisputeResponse{
		Message:         "Example message of the response to the dispute",
		Type:            payvault.DisputeCreditProcessed,
		AmtTran:         amount("125.50"),
		BatchDate:       payvault.Date{Year: 2026, Month: time.January, Day: 16},
		ReferenceNumber: "REFNUM5001",
		EvidenceType:    "EXAMPLE_CE_TYPE",
		AllocationType:  "EXAMPLE_ID_TYPE",
		Reason:          "Example description of the reason",
		Evidence:        payvault.FileFromBytes("evidence.pdf", evidence(t)),
	}
}

// minimalResponse is disputes/respond.request.min.json: an answer to a retrieval dispute.
func minimalResponse(t *testing.T) *payvault.DisputeResponse {
	t.Helper()
	return &payvault.DisputeResponse{
		Message: "Example answer to a retrieval dispute", Evidence: payvault.FileFromBytes("evidence.pdf", evidence(t)),
	}
}

func evidence(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "disputes", "evidence.pdf"))
	require.NoError(t, err)
	return content
}

// expectForm makes the service take one form with a disputeResponse and, if content is not nil, a file of this name.
func (s *service) expectForm(response, fileName string, content []byte, answer string) *exchange {
	s.t.Helper()
	wantResponse, reply := fixture(s.t, response), fixture(s.t, answer)
	var e *exchange
	e = s.handle(http.MethodPost, respondPath, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(s.t, err)
		assert.Equal(s.t, int64(len(body)), r.ContentLength)
		s.checkHeader(r, r.Header.Get("Content-Type"), e.header)
		s.checkForm(r.Header.Get("Content-Type"), body, wantResponse, fileName, content)
		_, _ = io.WriteString(w, reply)
	})
	return e
}

func (s *service) checkForm(contentType string, body []byte, wantResponse, fileName string, content []byte) {
	mediaType, params, err := mime.ParseMediaType(contentType)
	assert.NoError(s.t, err)
	assert.Equal(s.t, "multipart/form-data", mediaType)
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])

	part, text := s.nextPart(form)
	assert.Equal(s.t, "disputeResponse", part.FormName())
	assert.Empty(s.t, part.FileName())
	assert.JSONEq(s.t, wantResponse, string(text))

	if content != nil {
		part, text = s.nextPart(form)
		assert.Equal(s.t, "file", part.FormName())
		assert.Equal(s.t, fileName, part.FileName())
		assert.Equal(s.t, "application/pdf", part.Header.Get("Content-Type"))
		assert.Len(s.t, part.Header, 2)
		assert.True(s.t, bytes.Equal(content, text), "other content")
	}
	_, err = form.NextRawPart()
	assert.Equal(s.t, io.EOF, err)
}

// nextPart returns an empty part if there is none.
func (s *service) nextPart(form *multipart.Reader) (*multipart.Part, []byte) {
	part, err := form.NextRawPart()
	if !assert.NoError(s.t, err) {
		return &multipart.Part{}, nil
	}
	text, err := io.ReadAll(part)
	assert.NoError(s.t, err)
	return part, text
}

func TestDisputesRespond(t *testing.T) {
	t.Parallel()
	pdf := evidence(t)
	large := append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("0123456789abcdef\r\n--"), 1<<16)...)
	late := append(bytes.Repeat([]byte(" "), 1024-len("%PDF-")), "%PDF-2.0"...)
	many := strings.Repeat("ß", payvault.MaxDisputeMessage)
	tests := map[string]struct {
		request          *payvault.DisputeResponse
		response, answer string
		content          []byte
	}{
		"full":                   {fullResponse(t), "disputes/respond.request.json", "disputes/respond.response.json", pdf},
		"retrieval":              {minimalResponse(t), "disputes/respond.request.min.json", "disputes/respond.response.json", pdf},
		"tolerant":               {minimalResponse(t), "disputes/respond.request.min.json", "disputes/respond.response.tolerant.json", pdf},
		"first-time, type alone": {&payvault.DisputeResponse{Type: payvault.DisputeOther}, `{"cbr_response_type":"OT"}`, `{"code":0}`, nil},
		"large file": {
			&payvault.DisputeResponse{Type: payvault.DisputeCompellingEvidence, Evidence: payvault.FileFromBytes("evidence.pdf", large)},
			`{"cbr_response_type":"CE"}`, `{"code":0}`, large,
		},
		"header of the PDF is late": {
			&payvault.DisputeResponse{Type: payvault.DisputeAllocation, Evidence: payvault.FileFromBytes("evidence.pdf", late)},
			`{"cbr_response_type":"ID"}`, `{"code":0}`, late,
		},
		"longest message": {
			&payvault.DisputeResponse{Type: payvault.DisputeNoLongerDisputed, Message: many},
			`{"cbr_response_type":"ND","message":"` + many + `"}`, `{"code":0}`, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expectForm(test.response, "evidence.pdf", test.content, test.answer)
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))
			require.NoError(t, client.Disputes.Respond(t.Context(), 5002, test.request))
		})
	}
}

func TestDisputesRespond_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expectForm("disputes/respond.request.json", "evidence.pdf", evidence(t), "disputes/respond.error.json")

	err := srv.client().Disputes.Respond(t.Context(), 5002, fullResponse(t))
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpDisputesRespond, Code: "5", Message: "Example refusal of disputes.respond",
	})
}

func TestDisputesRespond_fileName(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"evidence.pdf":             "evidence.pdf",
		"größe 証拠.pdf":             "größe 証拠.pdf",
		`a"b".pdf`:                 `a"b".pdf`,
		`a"; name="other`:          `a"; name="other`,
		"a\r\nContent-Type: x":     "a__Content-Type: x",
		"a\r\n\r\n--boundary":      "a____--boundary",
		"a\x00b\x7f.pdf":           "a_b_.pdf",
		"a\xff\xfe.pdf":            "a__.pdf",
		"a%22b.pdf":                "a%22b.pdf",
		"../../etc/passwd":         "passwd",
		`C:\Users\jane\charge.pdf`: "charge.pdf",
		"a;b=c,d.pdf":              "a;b=c,d.pdf",
	} {
		t.Run(sent, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expectForm("disputes/respond.request.min.json", sent, evidence(t), "disputes/respond.response.json")
			request := minimalResponse(t)
			request.Evidence.Name = name
			require.NoError(t, srv.client().Disputes.Respond(t.Context(), 5002, request))
			assert.Equal(t, name, request.Evidence.Name)
		})
	}
}

func TestDisputesRespond_invalid(t *testing.T) {
	t.Parallel()
	answer := func(file *payvault.File) *payvault.DisputeResponse {
		return &payvault.DisputeResponse{Type: payvault.DisputeOther, Evidence: file}
	}
	pdf := func(content string, size int64) *payvault.File {
		return &payvault.File{Name: "evidence.pdf", Content: strings.NewReader(content), Size: size}
	}
	const required, tooLong = "is required", "has more than 5,000 characters"
	long := "%PDF-" + strings.Repeat("x", 2000)
	tests := map[string]struct {
		id      payvault.DisputeID
		request *payvault.DisputeResponse
		want    fields
	}{
		"nil":                       {5002, nil, fields{"request": {"is nil"}}},
		"zero ID":                   {0, fullResponse(t), fields{"rec_id": {noID}}},
		"negative ID":               {-5002, fullResponse(t), fields{"rec_id": {"is negative"}}},
		"retrieval without message": {5002, &payvault.DisputeResponse{Evidence: pdf("%PDF-", 5)}, fields{"message": {required}}},
		"retrieval without file":    {5002, &payvault.DisputeResponse{Message: "text"}, fields{"file": {required}}},
		"empty":                     {5002, &payvault.DisputeResponse{}, fields{"message": {required}, "file": {required}}},
		"one character too many": {
			5002, &payvault.DisputeResponse{Type: "OT", Message: strings.Repeat("ß", payvault.MaxDisputeMessage+1)}, fields{"message": {tooLong}},
		},
		"no PDF":                 {5002, answer(pdf("PK\x03\x04", 4)), fields{"file": {"is not a PDF"}}},
		"header of PDF too late": {5002, answer(pdf(strings.Repeat(" ", 1020)+"%PDF-", 1025)), fields{"file": {"is not a PDF"}}},
		"empty file":             {5002, answer(pdf("", 0)), fields{"file": {"is empty"}}},
		"negative size":          {5002, answer(pdf("%PDF-", -1)), fields{"file": {"is empty"}}},
		"no content":             {5002, answer(&payvault.File{Name: "evidence.pdf", Size: 5}), fields{"file": {"is empty"}}},
		"zero file":              {5002, answer(&payvault.File{}), fields{"file": {"has no name", "is empty"}}},
		"no name":                {5002, answer(payvault.FileFromBytes("dir/", []byte("%PDF-"))), fields{"file": {"has no name"}}},
		"short file":             {5002, answer(pdf("%PDF-", 6)), fields{"file": {"cannot be read"}}},
		"short long file":        {5002, answer(pdf(long, int64(len(long))+1)), fields{"file": {"is shorter than its size says"}}},
		"date that is none": {
			5002, &payvault.DisputeResponse{Type: "CP", BatchDate: payvault.Date{Year: 2026, Month: time.February, Day: 30}},
			fields{"batch_date": {badDate}},
		},
		"all at once": {
			0, &payvault.DisputeResponse{
				Message: strings.Repeat("x", 5001), BatchDate: payvault.Date{Year: 2026, Month: 13, Day: 1}, Evidence: pdf("PK", 2),
			},
			fields{"rec_id": {noID}, "message": {tooLong}, "batch_date": {badDate}, "file": {"is not a PDF"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := newService(t).client().Disputes.Respond(t.Context(), test.id, test.request)
			assertInvalid(t, err, payvault.OpDisputesRespond, test.want)
		})
	}
}

func TestDisputesRespond_forMerchant(t *testing.T) {
	t.Parallel()
	client := newService(t).client().ForMerchant(actingFor)
	assertNoMerchant(t, client.Disputes.Respond(t.Context(), 5002, fullResponse(t)), payvault.OpDisputesRespond)
}

func TestDisputesRespond_leavesRequestAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expectForm("disputes/respond.request.json", "evidence.pdf", evidence(t), "disputes/respond.response.json").times(callers)
	client, request := srv.client(), fullResponse(t)
	file := *request.Evidence

	together(func() { assert.NoError(t, client.Disputes.Respond(t.Context(), 5002, request)) })
	assert.Equal(t, file, *request.Evidence)
	assert.Equal(t, fullResponse(t), request)
}

// closable is content that tells whether it was closed.
type closable struct {
	*bytes.Reader

	err    error
	closed int
}

func (c *closable) Close() error { c.closed++; return c.err }

func TestDisputesRespond_leavesFileOpen(t *testing.T) {
	t.Parallel()
	content := &closable{Reader: bytes.NewReader(evidence(t)), err: errors.New("of the content")}
	request := minimalResponse(t)
	request.Evidence = &payvault.File{Name: "evidence.pdf", Content: content, Size: content.Size()}
	srv := newService(t)
	srv.expectForm("disputes/respond.request.min.json", "evidence.pdf", evidence(t), "disputes/respond.response.json")
	srv.expectForm("disputes/respond.request.min.json", "evidence.pdf", evidence(t), "disputes/respond.error.json")
	client := srv.client()

	require.NoError(t, client.Disputes.Respond(t.Context(), 5002, request))
	require.Error(t, client.Disputes.Respond(t.Context(), 5002, request)) // of the service
	require.Error(t, client.Disputes.Respond(t.Context(), 0, request))    // local
	assert.Zero(t, content.closed)
	assert.Equal(t, content.err, request.Evidence.Close())
	assert.Equal(t, 1, content.closed)
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "charge 証拠.pdf")
	require.NoError(t, os.WriteFile(path, evidence(t), 0o600))
	file, err := payvault.OpenFile(path)
	require.NoError(t, err)
	assert.Equal(t, "charge 証拠.pdf", file.Name)
	assert.Equal(t, int64(len(evidence(t))), file.Size)
	srv := newService(t)
	srv.expectForm("disputes/respond.request.min.json", "charge 証拠.pdf", evidence(t), "disputes/respond.response.json").times(2)
	client, request := srv.client(), minimalResponse(t)
	request.Evidence = file

	require.NoError(t, client.Disputes.Respond(t.Context(), 5002, request))
	require.NoError(t, client.Disputes.Respond(t.Context(), 5002, request), "the file is still open and starts anew")

	require.NoError(t, file.Close())
	err = client.Disputes.Respond(t.Context(), 5002, request)
	assertInvalid(t, err, payvault.OpDisputesRespond, fields{"file": {"cannot be read"}})
}

func TestOpenFile_missing(t *testing.T) {
	t.Parallel()
	file, err := payvault.OpenFile(filepath.Join(t.TempDir(), "missing.pdf"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Nil(t, file)
}

func TestOpenFile_directory(t *testing.T) {
	t.Parallel()
	file, err := payvault.OpenFile(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	assert.Nil(t, file)
}

func TestFileFromBytes_close(t *testing.T) {
	t.Parallel()
	file := payvault.FileFromBytes("evidence.pdf", evidence(t))
	assert.Equal(t, int64(554), file.Size)
	require.NoError(t, file.Close())
}

func TestDisputes_wire(t *testing.T) {
	t.Parallel()
	full, minimal := fullResponse(t), minimalResponse(t)
	full.Evidence, minimal.Evidence = nil, nil // a form part of its own
	assertWire(t, *full, fixture(t, "disputes/respond.request.json"))
	assertWire(t, *minimal, fixture(t, "disputes/respond.request.min.json"))
}
