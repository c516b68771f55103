package payvault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/formdata"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// retrieval returns the minimal answer to a retrieval dispute, with the given file.
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
		service.AssertForm(t, respond(t, request), want, "a.pdf", content)
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
	long := "%PDF-" + strings.Repeat("x", 2000)
	for _, test := range []struct {
		request      *response
		at, problems string
	}{
		{&response{Evidence: pdf("%PDF-", 5).Evidence}, "message", "is required without cbr_response_type"},
		{&response{Message: "text"}, "file", "is required without cbr_response_type"},
		{&response{Type: payvault.DisputeOther, Message: "J\xe4ne"}, "message", notUTF8},
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
		err := service.Client(t, service.Nowhere).Disputes.Respond(t.Context(), 5002, test.request)
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
	minimal := calls.Of(payvault.OpDisputesRespond).MinimalJSON
	for range 2 { // an upload must not close the file
		service.AssertForm(t, respond(t, retrieval(file)), minimal, file.Name, evidence())
	}
	require.NoError(t, file.Close())
	err = service.Client(t, service.Nowhere).Disputes.Respond(t.Context(), 5002, retrieval(file))
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
	minimal := calls.Of(payvault.OpDisputesRespond).MinimalJSON
	for range 2 {
		service.AssertForm(t, respond(t, retrieval(file)), minimal, "a.pdf", evidence())
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

// formEnd ends a multipart form. A service may act on a form with this end, even if bytes of the file are missing.
const formEnd = "--\r\n"

// careless is a service that records the bodies of requests and does not check the forms in them.
type careless struct {
	url     string
	options []payvault.Option // for a client of the service
	got     chan []byte       // the body of each request, as far as it came
}

// forEach runs a test with two services, one over HTTP/1.1 and one over HTTP/2.
func forEach(t *testing.T, test func(t *testing.T, s *careless)) {
	t.Helper()
	for name, isHTTP2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &careless{got: make(chan []byte, 1)}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				s.got <- body
				service.Say(w, http.StatusOK, `{"code":0}`)
			}))
			server.EnableHTTP2 = isHTTP2
			if isHTTP2 {
				server.StartTLS()
				s.options = append(s.options, payvault.WithHTTPClient(server.Client()))
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			s.url = server.URL
			test(t, s)
		})
	}
}

// upload responds to a dispute with a file, and requires that the call fails. It returns the bytes that the service
// received, and the error of the call.
func (s *careless) upload(t *testing.T, ctx context.Context, file *payvault.File) (got []byte, err error) {
	t.Helper()
	err = service.Client(t, s.url, s.options...).Disputes.Respond(ctx, 5002, retrieval(file))
	require.Error(t, err)
	return <-s.got, err
}

// content is a PDF of size bytes. After the SDK has checked the PDF, all reads that begin at the offset from or later
// call the function read.
type content struct {
	size, from int64
	read       func(p []byte, off int64) (int, error)
	done       *atomic.Bool // the check is over: it ends when the last byte is read
}

func (c content) ReadAt(p []byte, off int64) (int, error) {
	if c.done.Load() && off >= c.from {
		return c.read(p, off)
	}
	if off == c.size-1 {
		c.done.Store(true)
	}
	n := copy(p, strings.Repeat(" ", len(p)))
	if off == 0 {
		copy(p, "%PDF-1.7\n")
	}
	return n, nil
}

// newContent returns a file with a content.
func newContent(size, from int64, read func(p []byte, off int64) (int, error)) *payvault.File {
	return &payvault.File{Name: "a.pdf", Content: content{size, from, read, new(atomic.Bool)}, Size: size}
}

// TestUploadOfAFileThatBecomesShorter checks that the service does not receive the end of the form if the file becomes
// shorter before or during the upload, and that the error says why.
func TestUploadOfAFileThatBecomesShorter(t *testing.T) {
	t.Parallel()
	const large = 4 << 20
	for name, file := range map[string]struct{ size, from, end int64 }{ // from the offset from on, the file ends at end
		"small, before the upload": {2000, 0, 1000},
		"emptied before":           {2000, 0, 0},
		"large, before the upload": {large, 0, large - 1},
		"large, amid the upload":   {large, large / 2, large - 1},
	} {
		read := func(p []byte, off int64) (int, error) {
			if left := max(0, file.end-off); left < int64(len(p)) {
				return int(left), io.EOF
			}
			return len(p), nil
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(t *testing.T, s *careless) {
				got, err := s.upload(t, t.Context(), newContent(file.size, file.from, read))
				t.Logf("%d bytes came, which end with %q", len(got), got[max(0, len(got)-40):])
				assert.False(t, bytes.Contains(got, []byte(formEnd)), "a complete form came")
				require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.ErrorContains(t, err, "the file has become shorter")
			})
		})
	}
}

// fileError is an error of the caller. It is no pointer, unlike an error of errors.New. So %#v of another value that
// holds a fileError shows its text.
type fileError string

func (e fileError) Error() string { return string(e) }

// TestUploadWithAFunctionThatPanics checks that a panic in ReadAt or Progress of the file becomes an error of the call,
// as an error of ReadAt does. net/http reads an upload in its own goroutine, where the panic would end the process. The
// service must not receive the end of the form, and the error must not show the secret of the panic or of the error.
func TestUploadWithAFunctionThatPanics(t *testing.T) {
	t.Parallel()
	const broken fileError = "a secret of the file"
	whole := func(p []byte, _ int64) (int, error) { return len(p), nil }
	for name, test := range map[string]struct {
		read     func(p []byte, off int64) (int, error)
		progress func(int64)
		want     string
	}{
		"a text":   {func([]byte, int64) (int, error) { panic("a secret of the file") }, nil, "panic in ReadAt"},
		"an error": {func([]byte, int64) (int, error) { panic(broken) }, nil, "panic in ReadAt"},
		"the runtime": {
			func(p []byte, _ int64) (int, error) { return int(p[len(p)]), nil }, nil, "ReadAt: runtime error: index",
		},
		"no panic": {func([]byte, int64) (int, error) { return 0, broken }, nil, "the file cannot be read"},
		"progress": {whole, func(int64) { panic("a secret of the file") }, "the upload has stopped: panic in Progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(t *testing.T, s *careless) {
				file := newContent(4<<20, 2<<20, test.read)
				file.Progress = test.progress
				got, err := s.upload(t, t.Context(), file)
				assert.False(t, bytes.Contains(got, []byte(formEnd)), "a complete form came")
				require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
				require.ErrorContains(t, err, test.want)
				failed, _ := errors.AsType[*formdata.FileError](err)
				assert.NotContains(t, fmt.Sprintf("%v %v %#[2]v", err, failed), "secret")
				if name == "an error" || name == "no panic" {
					assert.ErrorIs(t, err, broken)
				}
			})
		})
	}
}

// TestUploadProgress checks that Progress reports the bytes of the content up to its size, starts anew when the SDK
// repeats the request after a 429, and is not called after the call has returned.
func TestUploadProgress(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		requests := 0
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			requests++
			service.Say(w, map[int]int{1: http.StatusTooManyRequests, 2: http.StatusOK}[requests], `{"code":0}`)
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)

		// The file is large, so that it takes several reads: over HTTP/2 net/http reads up to 512 KiB at a time.
		file := payvault.FileFromBytes("a.pdf", append([]byte("%PDF-"), make([]byte, 4<<20)...))
		var reports []int64
		file.Progress = func(sent int64) { reports = append(reports, sent) } // the race detector sees a late call
		client := service.Client(t, server.URL, payvault.WithHTTPClient(server.Client()))
		require.NoError(t, client.Disputes.Respond(t.Context(), 5002, retrieval(file)))

		var ends []int64 // the last report of each attempt
		for i, sent := range reports {
			if isLast := i == len(reports)-1 || reports[i+1] < sent; isLast {
				ends = append(ends, sent)
			}
		}
		assert.Equal(t, []int64{file.Size, file.Size}, ends)
		assert.Greater(t, len(reports), 10, "reports while the file is sent")
		assert.Less(t, reports[0], file.Size/4)
	}
}

// TestUploadCanceled checks that a call has an unknown outcome if Progress ends the context of the call. The service
// may have got the complete form, because net/http may still read the rest of the form when the context ends.
func TestUploadCanceled(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, s *careless) {
		ctx, cancel := context.WithCancel(t.Context())
		file := payvault.FileFromBytes("a.pdf", append([]byte("%PDF-"), make([]byte, 4<<20)...))
		file.Progress = func(sent int64) {
			if sent > file.Size/2 {
				cancel()
			}
		}
		_, err := s.upload(t, ctx, file)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	})
}
