package contract

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A heldRequest is a request that the SDK made in a run of an operation, and that has not reached the emulator.
type heldRequest struct {
	env     *env
	request *http.Request
	body    []byte
}

var errHeld = errors.New("the request is held")

// A holder keeps the request of one operation back and lets the others pass.
type holder struct {
	contract  *contract
	operation string
	base      http.RoundTripper
	held      *heldRequest
}

// RoundTrip implements [http.RoundTripper].
func (h *holder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = readAll(req.Body); err != nil {
			return nil, err
		}
	}
	if m, err := h.contract.find(req, body); err == nil && m.Route.Operation.OperationID == h.operation {
		h.held = &heldRequest{request: req.Clone(req.Context()), body: body}
		return nil, errHeld
	}
	clone := req.Clone(req.Context())
	clone.Body = io.NopCloser(bytes.NewReader(body))
	return h.base.RoundTrip(clone)
}

// holdRequest prepares an emulator as a call does, and holds the request of the operation.
func holdRequest(t *testing.T, c *contract, operation string, call call) heldRequest {
	t.Helper()
	e := newEnv(t)
	account := e.srv.Merchant()
	if forPartners(operation) {
		account = e.srv.Partner()
	}
	h := &holder{contract: c, operation: operation, base: e.wire.base}
	e.client = e.clientThrough(account, h)
	_, err := call(t.Context(), e)
	require.ErrorIs(t, err, errHeld)
	h.held.env = e
	return *h.held
}

func (r heldRequest) with(m mutant) heldRequest {
	r.request = r.request.Clone(r.request.Context())
	r.body = m.change(r.request, r.body)
	return r
}

func (r heldRequest) message(t *testing.T, c *contract) message {
	t.Helper()
	m, err := c.find(r.request, r.body)
	require.NoError(t, err)
	return m
}

// accepted sends the request and tells whether it was performed. The answer has to follow the document in any case.
func (r heldRequest) accepted(t *testing.T, c *contract) bool {
	t.Helper()
	request := r.request.Clone(t.Context())
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
	request.Body, _ = request.GetBody()
	request.ContentLength = int64(len(r.body))
	resp, err := r.env.wire.base.RoundTrip(request)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	report(t, "the answer", c.checkResponse(r.message(t, c), resp.StatusCode, resp.Header, text))
	code := codeOf(text)
	return resp.StatusCode == http.StatusOK && (code == "0" || code == "000")
}
