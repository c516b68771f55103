package transport

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type textUpload string

func (u textUpload) Open() io.Reader { return strings.NewReader(string(u)) }
func (u textUpload) Len() int64      { return int64(len(u)) }

type reading step

func (f reading) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestUploadIsLeftAloneAfterItsAttempt: a transport may go on reading after it has answered, as net/http does on
// HTTP/2.
func TestUploadIsLeftAloneAfterItsAttempt(t *testing.T) {
	t.Parallel()
	var body io.Reader
	s := reading(func(req *http.Request) (*http.Response, error) {
		body = req.Body
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	request := post(false)
	request.Body, request.Upload = nil, textUpload("content")
	_, err := New(testConfig(s)).Do(t.Context(), request)
	require.NoError(t, err)
	_, err = body.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// TestGate: after an attempt nobody reads the upload any more, from however many readers net/http has opened.
func TestGate(t *testing.T) {
	t.Parallel()
	g := &body{request: &Request{Upload: textUpload("content")}, taken: new(atomic.Bool)}
	first, second := g.reader(), g.reader()
	head := make([]byte, 3)
	n, err := first.Read(head)
	require.NoError(t, err)
	assert.Equal(t, "con", string(head[:n]))

	g.close()
	for _, r := range []io.Reader{first, second, g.reader()} {
		_, err := r.Read(head)
		require.ErrorIs(t, err, io.ErrClosedPipe)
	}
}
