package formdata

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bytesFile returns a File with this name and content.
func bytesFile(name, content string) *File {
	return &File{
		Field: "file", Name: name, ContentType: "application/pdf",
		Content: strings.NewReader(content), Size: int64(len(content)),
	}
}

// part is one part of a form, as a server reads it.
type part struct{ name, file, contentType, content string }

func parts(t *testing.T, b *Body) []part {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(b.ContentType())
	require.NoError(t, err)
	require.Equal(t, "multipart/form-data", mediaType)
	r := multipart.NewReader(b.Open(), params["boundary"])
	var parts []part
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts
		}
		require.NoError(t, err)
		content, err := io.ReadAll(p)
		require.NoError(t, err)
		parts = append(parts, part{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), string(content)})
	}
}

// TestForm checks that a form has the expected parts, and has them again when it is read a second time.
func TestForm(t *testing.T) {
	t.Parallel()
	text := [2]string{"disputeResponse", `{"message":"ü"}`}
	for name, test := range map[string]struct {
		fields [][2]string
		file   *File
		want   []part
	}{
		"text": {[][2]string{text}, nil, []part{{name: text[0], content: text[1]}}},
		"text and file": {
			[][2]string{text},
			bytesFile("a.pdf", "%PDF-1.7"),
			[]part{{name: text[0], content: text[1]}, {"file", "a.pdf", "application/pdf", "%PDF-1.7"}},
		},
		"file":       {nil, bytesFile("a.pdf", "%PDF-1.7"), []part{{"file", "a.pdf", "application/pdf", "%PDF-1.7"}}},
		"empty file": {nil, bytesFile("a.pdf", ""), []part{{"file", "a.pdf", "application/pdf", ""}}},
		"two texts": {
			[][2]string{text, {"b", "--\r\n--"}},
			nil,
			[]part{{name: text[0], content: text[1]}, {name: "b", content: "--\r\n--"}},
		},
		"empty text": {[][2]string{{"a", ""}}, nil, []part{{name: "a"}}},
		"binary file": {
			nil, bytesFile("a.pdf", "\x00\xff\r\n--\r\n"),
			[]part{{"file", "a.pdf", "application/pdf", "\x00\xff\r\n--\r\n"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := New(test.fields, test.file)
			assert.Equal(t, test.want, parts(t, b))
			assert.Equal(t, test.want, parts(t, b), "once more")
			require.NoError(t, iotest.TestReader(onlyReader{b.Open()}, allOf(t, b)))
		})
	}
}

type onlyReader struct{ io.Reader }

func allOf(t *testing.T, b *Body) []byte {
	t.Helper()
	all, err := io.ReadAll(b.Open())
	require.NoError(t, err)
	return all
}

// TestFormIsThatOfTheStandardLibrary checks that a form with a text and a file has the bytes that multipart.Writer
// would write, and that two forms have different boundaries.
func TestFormIsThatOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	b := New([][2]string{{"disputeResponse", "{}"}}, bytesFile("a.pdf", "%PDF-"))
	_, params, err := mime.ParseMediaType(b.ContentType())
	require.NoError(t, err)
	boundary := params["boundary"]
	want := "--" + boundary + "\r\n" +
		"Content-Disposition: form-data; name=\"disputeResponse\"\r\n\r\n{}\r\n" +
		"--" + boundary + "\r\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n" +
		"Content-Type: application/pdf\r\n\r\n%PDF-\r\n" +
		"--" + boundary + "--\r\n"
	assert.Equal(t, want, string(allOf(t, b)))
	assert.NotEqual(t, b.ContentType(), New(nil, nil).ContentType(), "each form has a boundary of its own")
}

// TestLengthIsExact checks that Len is the exact number of bytes of the form.
func TestLengthIsExact(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 511, 512, 513, 4096, 100_000} {
		for _, text := range []string{"", "x", strings.Repeat("ü", 5000)} {
			for _, file := range []*File{nil, bytesFile("ü.pdf", strings.Repeat("x", size))} {
				b := New([][2]string{{"disputeResponse", text}}, file)
				all := allOf(t, b)
				assert.EqualValues(t, len(all), b.Len())
			}
		}
	}
}

// TestOpenedTwice checks that two readers of one form are independent.
func TestOpenedTwice(t *testing.T) {
	t.Parallel()
	b := New([][2]string{{"disputeResponse", "{}"}}, bytesFile("a.pdf", strings.Repeat("%PDF-", 1000)))
	first, second := b.Open(), b.Open()
	half := make([]byte, b.Len()/2)
	_, err := io.ReadFull(first, half) // now the first reader is in the middle of the form
	require.NoError(t, err)
	all, err := io.ReadAll(second)
	require.NoError(t, err)
	rest, err := io.ReadAll(first)
	require.NoError(t, err)
	assert.Equal(t, string(all), string(half)+string(rest))
	assert.Equal(t, all, allOf(t, b))
}

// TestOpenedAtOnce checks that several goroutines can read one form at the same time.
func TestOpenedAtOnce(t *testing.T) {
	t.Parallel()
	b := New([][2]string{{"disputeResponse", "{}"}}, bytesFile("a.pdf", strings.Repeat("%PDF-", 1000)))
	want := allOf(t, b)
	results := make(chan []byte)
	for range 8 {
		go func() {
			all, _ := io.ReadAll(b.Open())
			results <- all
		}()
	}
	for range 8 {
		assert.Equal(t, want, <-results)
	}
}

// closing is the content of a file. It records whether it was closed.
type closing struct {
	io.ReaderAt

	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// post sends a form with net/http and returns the bytes that the server received.
func post(t *testing.T, b *Body) ([]byte, error) {
	t.Helper()
	got := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.Equal(t, b.Len(), r.ContentLength)
		all, err := io.ReadAll(r.Body)
		if err == nil {
			got <- all
		}
	}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, b.Open())
	require.NoError(t, err)
	req.ContentLength = b.Len()
	resp, err := server.Client().Do(req)
	if err != nil {
		return nil, err
	}
	return <-got, resp.Body.Close()
}

// TestContentIsNotClosed checks that the content of a form's file is sent and is not closed.
func TestContentIsNotClosed(t *testing.T) {
	t.Parallel()
	content := &closing{ReaderAt: strings.NewReader("%PDF-")}
	b := New(nil, &File{Field: "file", Name: "a.pdf", Content: content, Size: 5})
	sent, err := post(t, b)
	require.NoError(t, err)
	assert.Equal(t, allOf(t, b), sent)
	assert.False(t, content.closed)
}

// TestContentBeyondTheSize checks that file content beyond Size is not sent.
func TestContentBeyondTheSize(t *testing.T) {
	t.Parallel()
	long := New(nil, &File{Field: "file", Name: "a.pdf", Content: strings.NewReader("%PDF-1.7"), Size: 5})
	assert.EqualValues(t, len(allOf(t, long)), long.Len())
	assert.Equal(t, "%PDF-", parts(t, long)[0].content)
}

// generated is content without an end, computed while it is read.
type generated struct{}

func (generated) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = byte((off + int64(i)) % 256) //nolint:gosec // it fits
	}
	return len(p), nil
}

func large(size int64) *Body {
	return New([][2]string{{"disputeResponse", "{}"}},
		&File{Field: "file", Name: "a.pdf", Content: generated{}, Size: size})
}

func drain(t *testing.T, b *Body) {
	t.Helper()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, onlyReader{b.Open()}, make([]byte, 32<<10))
	require.NoError(t, err)
	require.Equal(t, b.Len(), n)
}

// TestMemoryDoesNotDependOnTheSize checks that reading a form with a file of 64 MiB allocates less than 256 KiB, and
// that a file of 1 MiB causes hardly more allocations than a file of one byte.
//
//nolint:paralleltest // it measures the memory of the process
func TestMemoryDoesNotDependOnTheSize(t *testing.T) {
	allocated := func(size int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		drain(t, large(size))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	_ = allocated(1)
	assert.Less(t, allocated(64<<20), uint64(256<<10))
	small := testing.AllocsPerRun(10, func() { drain(t, large(1)) })
	big := testing.AllocsPerRun(10, func() { drain(t, large(1<<20)) })
	assert.InDelta(t, small, big, 16, "none for each of the 32 reads more")
}

// TestCleanName checks the result of CleanName for paths and for unusual names.
func TestCleanName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.pdf":                  "a.pdf",
		"my evidence (1).pdf":    "my evidence (1).pdf",
		"Beweis für März.pdf":    "Beweis für März.pdf",
		"証拠.pdf":                 "証拠.pdf",
		"dir/a.pdf":              "a.pdf",
		"../../etc/passwd":       "passwd",
		`C:\temp\a.pdf`:          "a.pdf",
		`a/b\c.pdf`:              "c.pdf",
		"dir/":                   "",
		"":                       "",
		"a\r\nX-Evil: 1.pdf":     "a__X-Evil: 1.pdf",
		"a\x00\x7f\t.pdf":        "a___.pdf",
		"a\xff\xfe.pdf":          "a__.pdf",
		"\u202efdp.exe":          "_fdp.exe",
		"a\u2028b":               "a_b",
		"a\ufffdb":               "a_b",
		"a\u00a0b":               "a_b",
		`a"b.pdf`:                "a_b.pdf",
		`a';name="x`:             "a__name__x",
		"It%27s a%3Bb.pdf":       "It_27s a_3Bb.pdf",
		strings.Repeat("x", 300): strings.Repeat("x", 300),
	} {
		assert.Equal(t, want, CleanName(name), "%q", name)
	}
}

// assertHarmless checks that this file name adds no part and no header to a form.
func assertHarmless(t *testing.T, name string) {
	t.Helper()
	clean := CleanName(name)
	assert.True(t, utf8.ValidString(clean))
	assert.False(t, strings.ContainsFunc(clean, unicode.IsControl), "%q", clean)
	assert.NotContains(t, clean, "/")
	assert.False(t, strings.ContainsAny(clean, `\"';=%`), "%q", clean)
	assert.Equal(t, clean, CleanName(clean), "once is enough")

	b := New([][2]string{{"disputeResponse", "{}"}}, bytesFile(name, "%PDF-"))
	assert.EqualValues(t, len(allOf(t, b)), b.Len())
	_, params, err := mime.ParseMediaType(b.ContentType())
	require.NoError(t, err)
	r := multipart.NewReader(b.Open(), params["boundary"])
	p, err := r.NextRawPart()
	require.NoError(t, err)
	assert.Equal(t, "disputeResponse", p.FormName())
	p, err = r.NextRawPart()
	require.NoError(t, err)
	assert.Len(t, p.Header, 2, "%v", p.Header)
	disposition, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	require.NoError(t, err, "%q", p.Header)
	assert.Equal(t, "form-data", disposition)
	assert.Len(t, params, 2, "%v", params)
	assert.Equal(t, "file", params["name"])
	assert.Equal(t, "application/pdf", p.Header.Get("Content-Type"))
	content, err := io.ReadAll(p)
	require.NoError(t, err)
	assert.Equal(t, "%PDF-", string(content))
	_, err = r.NextRawPart()
	assert.Equal(t, io.EOF, err)
}

// TestHostileNames runs assertHarmless for file names with each possible byte, and for names that try to add a header
// or a part.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		assertHarmless(t, "a"+string([]byte{byte(b)})+"b")
		assertHarmless(t, string([]byte{byte(b)}))
	}
	for _, name := range []string{
		"", `";name="disputeResponse`, "a\r\n\r\n--boundary--", `\"`, `"\`, "; filename*=UTF-8''x", "\u2028",
		strings.Repeat(`"`, 1000),
	} {
		assertHarmless(t, name)
	}
}

// FuzzCleanName runs assertHarmless for random file names.
func FuzzCleanName(f *testing.F) {
	for _, name := range []string{"a.pdf", `a"b`, "a\r\nb", `..\..\x`, "\xff", "世", "", `"; name="x"`, "%22"} {
		f.Add(name)
	}
	f.Fuzz(assertHarmless)
}

// TestFileOfTheSystem checks that a form with an *os.File has the last element of the path as the file name, and leaves
// the file open.
func TestFileOfTheSystem(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/a.pdf"
	require.NoError(t, os.WriteFile(path, []byte("%PDF-"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	b := New(nil, &File{Field: "file", Name: path, Content: f, Size: 5})
	assert.Equal(t, []part{{name: "file", file: "a.pdf", content: "%PDF-"}}, parts(t, b))
	_, err = f.Stat() // the file must still be open
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = io.ReadAll(b.Open())
	require.ErrorIs(t, err, os.ErrClosed)
}
