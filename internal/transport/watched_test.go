package transport

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type reading step

func (f reading) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestUploadIsLeftAloneAfterItsAttempt checks that an upload cannot be read after its attempt. net/http may go on
// reading on HTTP/2 after it has answered.
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

// TestNothingIsReadAfterTheAttempt checks that no reader of the body that net/http has opened can be read after the
// attempt.
func TestNothingIsReadAfterTheAttempt(t *testing.T) {
	t.Parallel()
	var readers []io.Reader
	c := New(testConfig(reading(func(req *http.Request) (*http.Response, error) {
		again, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		readers = []io.Reader{req.Body, again}
		for _, r := range readers {
			if _, err = io.ReadFull(r, make([]byte, 3)); err != nil {
				return nil, err
			}
		}
		return response(http.StatusOK, strings.NewReader(""), 0), nil
	})))
	c.standard, c.onlyHTTP1 = true, true
	_, err := c.Do(t.Context(), post(false).upload(7))
	require.NoError(t, err)
	require.Len(t, readers, 2)
	for _, r := range readers {
		_, err := r.Read(make([]byte, 3))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	}
}
