package transport

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	_, err := New(testConfig(s)).Do(t.Context(), post(false).upload(7))
	require.NoError(t, err)
	_, err = body.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// TestNothingIsReadAfterTheAttempt, from however many readers net/http has opened.
func TestNothingIsReadAfterTheAttempt(t *testing.T) {
	t.Parallel()
	var attempt tracker
	readers := []watched{
		{strings.NewReader("content"), &attempt}, {strings.NewReader("content"), &attempt},
	}
	head := make([]byte, 3)
	n, err := readers[0].Read(head)
	require.NoError(t, err)
	assert.Equal(t, "con", string(head[:n]))

	attempt.end()
	for _, r := range readers {
		_, err := r.Read(head)
		require.ErrorIs(t, err, io.ErrClosedPipe)
	}
}
