package operations

import (
	"bytes"
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
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// assertForm wants a form with a disputeResponse and, if content is not nil, a file of this name.
func assertForm(t *testing.T, got service.Seen, response, fileName string, content []byte) {
	t.Helper()
	assert.Equal(t, int64(len(got.Body)), got.Length)
	mediaType, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	require.NoError(t, err)
	assert.Equal(t, "multipart/form-data", mediaType)
	form := multipart.NewReader(bytes.NewReader(got.Body), params["boundary"])
	part, text := nextPart(t, form)
	assert.Equal(t, "disputeResponse", part.FormName())
	assert.Empty(t, part.FileName())
	assert.JSONEq(t, response, text)
	if content != nil {
		part, text = nextPart(t, form)
		assert.Equal(t, "file", part.FormName())
		assert.Equal(t, fileName, part.FileName())
		assert.Equal(t, "application/pdf", part.Header.Get("Content-Type"))
		assert.Len(t, part.Header, 2)
		assert.True(t, text == string(content), "other content")
	}
	_, err = form.NextRawPart()
	assert.Equal(t, io.EOF, err)
}

func nextPart(t *testing.T, form *multipart.Reader) (part *multipart.Part, text string) {
	t.Helper()
	part, err := form.NextRawPart()
	require.NoError(t, err)
	content, err := io.ReadAll(part)
	require.NoError(t, err)
	return part, string(content)
}

// retrieval answers a retrieval dispute.
func retrieval(file *payvault.File) *payvault.DisputeResponse {
	return &payvault.DisputeResponse{Message: "Example answer to a retrieval dispute", Evidence: file}
}

func evidence() []byte { return []byte(calls.Fixture("disputes/evidence.pdf")) }

// respond sends a response to a service, and returns what arrived.
func respond(t *testing.T, request *payvault.DisputeResponse) service.Seen {
	t.Helper()
	server := service.Answer(t, http.StatusOK, `{"code":0}`)
	require.NoError(t, service.Client(t, server.URL).Disputes.Respond(t.Context(), 5002, request))
	require.Len(t, server.Seen(), 1)
	return server.Seen()[0]
}

func TestDisputesRespond(t *testing.T) {
	t.Parallel()
	large := append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("0123456789abcdef\r\n--"), 1<<16)...)
	late := append(bytes.Repeat([]byte(" "), 1024-len("%PDF-")), "%PDF-2.0"...)
	many := strings.Repeat("ß", payvault.MaxDisputeMessage)
	for response, request := range map[string]*payvault.DisputeResponse{
		`{"cbr_response_type":"OT"}`: {Type: payvault.DisputeOther},
		`{"cbr_response_type":"CE"}`: {
			Type: payvault.DisputeCompellingEvidence, Evidence: payvault.FileFromBytes("evidence.pdf", large),
		},
		`{"cbr_response_type":"ID"}`: {
			Type:     payvault.DisputeAllocation,
			Evidence: payvault.FileFromBytes("evidence.pdf", late),
		},
		`{"cbr_response_type":"ND","message":"` + many + `"}`: {Type: payvault.DisputeNoLongerDisputed, Message: many},
	} {
		content := map[payvault.DisputeResponseType][]byte{"CE": large, "ID": late}[request.Type]
		assertForm(t, respond(t, request), response, "evidence.pdf", content)
	}
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
		request := retrieval(payvault.FileFromBytes(name, evidence()))
		assertForm(t, respond(t, request), calls.Fixture("disputes/respond.request.min.json"), sent, evidence())
		assert.Equal(t, name, request.Evidence.Name)
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
		request *payvault.DisputeResponse
		want    service.Fields
	}{
		"retrieval without message": {
			&payvault.DisputeResponse{Evidence: pdf("%PDF-", 5)},
			service.Fields{"message": {required}},
		},
		"retrieval without file": {&payvault.DisputeResponse{Message: "text"}, service.Fields{"file": {required}}},
		"empty":                  {&payvault.DisputeResponse{}, service.Fields{"message": {required}, "file": {required}}},
		"one character too many": {
			&payvault.DisputeResponse{Type: "OT", Message: strings.Repeat("ß", payvault.MaxDisputeMessage+1)},
			service.Fields{"message": {tooLong}},
		},
		"no PDF": {answer(pdf("PK\x03\x04", 4)), service.Fields{"file": {"is not a PDF"}}},
		"header of PDF too late": {
			answer(pdf(strings.Repeat(" ", 1020)+"%PDF-", 1025)),
			service.Fields{"file": {"is not a PDF"}},
		},
		"empty file":      {answer(pdf("", 0)), service.Fields{"file": {"is empty"}}},
		"negative size":   {answer(pdf("%PDF-", -1)), service.Fields{"file": {"is empty"}}},
		"no content":      {answer(&payvault.File{Name: "evidence.pdf", Size: 5}), service.Fields{"file": {"is empty"}}},
		"zero file":       {answer(&payvault.File{}), service.Fields{"file": {"has no name", "is empty"}}},
		"no name":         {answer(payvault.FileFromBytes("dir/", []byte("%PDF-"))), service.Fields{"file": {"has no name"}}},
		"short file":      {answer(pdf("%PDF-", 6)), service.Fields{"file": {"cannot be read"}}},
		"short long file": {answer(pdf(long, int64(len(long))+1)), service.Fields{"file": {"is shorter than its size says"}}},
		"date that is none": {
			&payvault.DisputeResponse{Type: "CP", BatchDate: payvault.Date{Year: 2026, Month: time.February, Day: 30}},
			service.Fields{"batch_date": {calls.BadDate}},
		},
		"nil pointer": {
			answer(&payvault.File{Name: "a.pdf", Content: (*os.File)(nil), Size: 5}),
			service.Fields{"file": {"is empty"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := service.Client(t, service.Nowhere).Disputes.Respond(t.Context(), 5002, test.request)
			service.AssertInvalid(t, err, payvault.OpDisputesRespond, test.want)
		})
	}
}

// closable is content that counts how often it was closed.
type closable struct {
	*bytes.Reader

	closed int
}

// Close fails.
func (c *closable) Close() error {
	c.closed++
	return errShutdown
}

// TestDisputesRespond_leavesFileOpen: what the SDK has not opened it does not close.
func TestDisputesRespond_leavesFileOpen(t *testing.T) {
	t.Parallel()
	content := &closable{Reader: bytes.NewReader(evidence())}
	request := retrieval(&payvault.File{Name: "evidence.pdf", Content: content, Size: content.Size()})
	respond(t, request)
	require.Error(t, service.Client(t, service.Nowhere).Disputes.Respond(t.Context(), 5002, request))
	require.Error(t, service.Client(t, service.Nowhere).Disputes.Respond(t.Context(), 0, request))
	assert.Zero(t, content.closed)
	assert.Equal(t, errShutdown, request.Evidence.Close())
	assert.Equal(t, 1, content.closed)
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "charge 証拠.pdf")
	require.NoError(t, os.WriteFile(path, evidence(), 0o600))
	file, err := payvault.OpenFile(path)
	require.NoError(t, err)
	assert.Equal(t, "charge 証拠.pdf", file.Name)
	assert.Equal(t, int64(len(evidence())), file.Size)
	for range 2 { // it stays open, and starts anew
		assertForm(t, respond(t, retrieval(file)), calls.Fixture("disputes/respond.request.min.json"), file.Name, evidence())
	}
	require.NoError(t, file.Close())
	err = service.Client(t, service.Nowhere).Disputes.Respond(t.Context(), 5002, retrieval(file))
	service.AssertInvalid(t, err, payvault.OpDisputesRespond, service.Fields{"file": {"cannot be read"}})

	missing, err := payvault.OpenFile(path + ".missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Nil(t, missing)
	directory, err := payvault.OpenFile(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	assert.Nil(t, directory)
	require.NoError(t, payvault.FileFromBytes("evidence.pdf", evidence()).Close())
	require.NoError(t, (*payvault.File)(nil).Close())
}
