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
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// assertForm checks that the multipart form of a request has this disputeResponse and this file. If content is nil, the
// form must have no file.
func assertForm(t *testing.T, got service.Seen, response, fileName string, content []byte) {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	require.NoError(t, err)
	assert.Equal(t, "multipart/form-data", mediaType)
	form, err := multipart.NewReader(bytes.NewReader(got.Body), params["boundary"]).ReadForm(1 << 22)
	require.NoError(t, err)
	require.Len(t, form.Value, 1)
	assert.JSONEq(t, response, strings.Join(form.Value["disputeResponse"], ""))
	if content == nil {
		assert.Empty(t, form.File)
		return
	}
	require.Len(t, form.File, 1)
	require.Len(t, form.File["file"], 1)
	part := form.File["file"][0]
	assert.Equal(t, fileName, part.Filename)
	assert.Equal(t, "application/pdf", part.Header.Get("Content-Type"))
	assert.Len(t, part.Header, 2)
	file, err := part.Open()
	require.NoError(t, err)
	sent, err := io.ReadAll(file)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(content, sent), "other content")
}

// retrieval returns the minimal response to a dispute, with the given file.
func retrieval(file *payvault.File) *payvault.DisputeRespondRequest {
	return &payvault.DisputeRespondRequest{Message: "Example answer to a retrieval dispute", Evidence: file}
}

func evidence() []byte { return []byte(calls.Fixture("disputes/evidence.pdf")) }

// respond calls Disputes.Respond and returns the request that the server received.
func respond(t *testing.T, request *payvault.DisputeRespondRequest) service.Seen {
	t.Helper()
	server := service.Answer(t, http.StatusOK, `{"code":0}`)
	require.NoError(t, service.Client(t, server.URL).Disputes.Respond(t.Context(), 5002, request))
	require.Len(t, server.Seen(), 1)
	return server.Seen()[0]
}

// TestDisputesRespond checks the multipart form for four types of dispute response: two with a file, two without.
func TestDisputesRespond(t *testing.T) {
	t.Parallel()
	large := append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("0123456789abcdef\r\n--"), 1<<16)...)
	late := append(bytes.Repeat([]byte(" "), 1024-len("%PDF-")), "%PDF-2.0"...)
	many := strings.Repeat("ß", payvault.MaxDisputeMessage)
	for kind, content := range map[payvault.DisputeResponseType][]byte{
		payvault.DisputeOther: nil, payvault.DisputeCompellingEvidence: large, payvault.DisputeAllocation: late,
		payvault.DisputeNoLongerDisputed: nil,
	} {
		request := &payvault.DisputeRespondRequest{Type: kind, Message: many}
		if content != nil {
			request.Evidence = payvault.FileFromBytes("a.pdf", content)
		}
		want := `{"cbr_response_type":"` + string(kind) + `","message":"` + many + `"}`
		assertForm(t, respond(t, request), want, "a.pdf", content)
	}
}

// TestDisputesRespond_invalid checks which dispute responses are refused before anything is sent.
func TestDisputesRespond_invalid(t *testing.T) {
	t.Parallel()
	type response = payvault.DisputeRespondRequest
	file := func(name string, content io.ReaderAt, size int64) *response {
		return &response{Type: "OT", Evidence: &payvault.File{Name: name, Content: content, Size: size}}
	}
	pdf := func(content string, size int64) *response { return file("a.pdf", strings.NewReader(content), size) }
	noDay := payvault.Date{Year: 2026, Month: time.February, Day: 30}
	long := "%PDF-" + strings.Repeat("x", 2000)
	for _, test := range []struct {
		request      *response
		at, problems string
	}{
		{&response{Evidence: pdf("%PDF-", 5).Evidence}, "message", "is required without cbr_response_type"},
		{&response{Message: "text"}, "file", "is required without cbr_response_type"},
		{&response{Type: "CP", BatchDate: noDay}, "batch_date", calls.BadDate},
		{pdf(strings.Repeat(" ", 1020)+"%PDF-", 1025), "file", "is not a PDF"},
		{pdf("", 0), "file", "is empty"},
		{pdf("%PDF-", -1), "file", "is empty"},
		{file("a.pdf", nil, 5), "file", "is empty"},
		{file("a.pdf", (*os.File)(nil), 5), "file", "is empty"},
		{file("", nil, 0), "file", "has no name, is empty"},
		{file("dir/", strings.NewReader("%PDF-"), 5), "file", "has no name"},
		{pdf("%PDF-", 6), "file", "cannot be read"},
		{pdf(long, int64(len(long))+1), "file", "is shorter than its size says"},
	} {
		err := nowhere(t).Disputes.Respond(t.Context(), 5002, test.request)
		want := service.Fields{test.at: strings.Split(test.problems, ", ")}
		service.AssertInvalid(t, err, payvault.OpDisputesRespond, want)
	}
}

// TestOpenFile checks that the file that OpenFile returns can be uploaded several times until the caller closes it. A
// missing file and a directory are errors.
func TestOpenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "charge 証拠.pdf")
	require.NoError(t, os.WriteFile(path, evidence(), 0o600))
	file, err := payvault.OpenFile(path)
	require.NoError(t, err)
	assert.Equal(t, "charge 証拠.pdf", file.Name)
	assert.Equal(t, int64(len(evidence())), file.Size)
	for range 2 { // an upload must not close the file
		assertForm(t, respond(t, retrieval(file)), find(payvault.OpDisputesRespond).MinimalJSON, file.Name, evidence())
	}
	require.NoError(t, file.Close())
	err = nowhere(t).Disputes.Respond(t.Context(), 5002, retrieval(file))
	closed := service.Fields{"file": {"cannot be read: file already closed"}}
	service.AssertInvalid(t, err, payvault.OpDisputesRespond, closed)

	missing, err := payvault.OpenFile(path + ".missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Nil(t, missing)
	directory, err := payvault.OpenFile(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	assert.Nil(t, directory)
	require.NoError(t, payvault.FileFromBytes("evidence.pdf", evidence()).Close())
	require.NoError(t, (*payvault.File)(nil).Close())
}

// TestFileFromReader checks that the file that FileFromReader returns can be uploaded several times, and that its Close
// removes the temporary file.
func TestFileFromReader(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	unsized := io.MultiReader(bytes.NewReader(evidence()))
	file, err := payvault.FileFromReader("a.pdf", unsized)
	require.NoError(t, err)
	for range 2 {
		assertForm(t, respond(t, retrieval(file)), find(payvault.OpDisputesRespond).MinimalJSON, "a.pdf", evidence())
	}
	assert.Len(t, files(t, directory), 1)
	require.NoError(t, file.Close())
	assert.Empty(t, files(t, directory))
}

// TestFileFromReader_failed checks that FileFromReader returns the errors of the reader and of package os, and that it
// leaves no temporary file after an error or a panic.
func TestFileFromReader_failed(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	breaking := io.MultiReader(strings.NewReader("%PDF-"), iotest.ErrReader(fs.ErrPermission))
	file, err := payvault.FileFromReader("a.pdf", breaking)
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.Nil(t, file)
	assert.Panics(t, func() { _, _ = payvault.FileFromReader("a.pdf", nil) })
	assert.Empty(t, files(t, directory))

	t.Setenv("TMPDIR", filepath.Join(directory, "missing"))
	file, err = payvault.FileFromReader("a.pdf", strings.NewReader("%PDF-"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Nil(t, file)
}

// files returns the files of a directory.
func files(t *testing.T, directory string) []os.DirEntry {
	t.Helper()
	found, err := os.ReadDir(directory)
	require.NoError(t, err)
	return found
}
