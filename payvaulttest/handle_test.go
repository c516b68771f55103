package payvaulttest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// acceptDispute is an operation that the interface names but does not document, so it is made with Client.Call.
const acceptDispute payvault.Operation = "PUT /platform/dispute/{rec_id}/accept"

// newAccept returns a server that handles acceptDispute, and a function that makes the call.
func newAccept(t *testing.T) (api, func() (accepted string, err error)) {
	t.Helper()
	a := newAPI(t)
	dispute := a.srv.Disputes.Seed(payvaulttest.Dispute{ID: 7})
	a.srv.Handle(http.MethodPut, "/platform/dispute/{rec_id}/accept", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Why string `json:"why"` // the document has no such field
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Why == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"code":400,"message":"why is required"}`)
			return
		}
		_, known := a.srv.Disputes.Get(dispute.ID) // handlers may use the server
		data := map[string]any{"id": r.PathValue("rec_id"), "known": known}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"code": 0, "message": "Success", "data": data}))
	})
	client := a.srv.Client()
	return a, func() (string, error) {
		var out struct {
			Data json.RawMessage `json:"data"`
		}
		err := client.Call(t.Context(), payvault.Request{
			Method: http.MethodPut, Path: []string{"platform", "dispute", "7", "accept"}, Body: map[string]string{"why": "ok"},
		}, &out)
		return string(out.Data), err
	}
}

// TestHandle checks that an operation of Handle is authenticated, counted and recorded like any other.
func TestHandle(t *testing.T) {
	t.Parallel()
	a, accept := newAccept(t)
	accepted, err := accept()
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"7","known":true}`, accepted)
	assert.Equal(t, 1, a.srv.Commits(acceptDispute))
	require.Len(t, a.srv.Requests(), 1)
	assert.Equal(t, acceptDispute, a.srv.Requests()[0].Operation)
	assert.JSONEq(t, `{"why":"ok"}`, string(a.srv.Requests()[0].Body()))

	const path = "/platform/dispute/7/accept"
	assert.Equal(t, http.StatusBadRequest, a.do(t, http.MethodPut, path, `{}`).status)
	assert.Equal(t, 1, a.srv.Commits(acceptDispute), "the handler refused")
	a.as(payvaulttest.Account{APIKey: "unknown"}).do(t, http.MethodPut, path, `{}`).refused(t, http.StatusUnauthorized)
	a.post(t, path, `{}`).refused(t, http.StatusNotFound)
}

// TestHandleFails checks that faults strike an operation of Handle like any other.
func TestHandleFails(t *testing.T) {
	t.Parallel()
	a, accept := newAccept(t)
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Operation: acceptDispute, Times: 1})
	_, err := accept()
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	assert.Equal(t, 1, a.srv.Commits(acceptDispute))
	inject(t, a.srv, payvaulttest.Fault{Kind: payvaulttest.RateLimit, Operation: acceptDispute, Times: 1})
	_, err = accept()
	require.NoError(t, err, "the client repeats it")
	assert.Equal(t, 2, a.srv.Commits(acceptDispute))
}

// TestHandleOnPage checks that the page shows an operation of Handle like any other: in its list, among the requests,
// and as a target of faults.
func TestHandleOnPage(t *testing.T) {
	t.Parallel()
	a, accept := newAccept(t)
	i := inspected{a, payvaulttest.Inspect(a.srv)}
	assert.Contains(t, i.ask(t, http.MethodGet, "/state", ""), string(acceptDispute))
	fault := i.ask(t, http.MethodPost, "/faults",
		`{"kind":"drop after commit","operation":"`+string(acceptDispute)+`","times":1}`)
	assert.Contains(t, fault, `Operation: \"`+string(acceptDispute)+`\"`, "the Go that does the same")
	_, err := accept()
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	got := i.newest(t)
	assert.Equal(t, []any{string(acceptDispute), "drop after commit", true},
		[]any{got["operation"], got["fault"], got["performed"]})
	const curl = "curl -u :merchant-api-key -X PUT --json '{}' "
	assert.Equal(t, curl+a.srv.URL+"/platform/dispute/fillIn/accept", got["curl"])
	assert.Empty(t, i.ask(t, http.MethodPost, "/reset", ""))
	_, err = accept()
	require.NoError(t, err, "a reset forgets neither the operation nor its handler")
	only := "/requests?operation=" + url.QueryEscape(string(acceptDispute))
	assert.Contains(t, i.ask(t, http.MethodGet, only, ""), `"matching":1,"total":1`)
}

// TestHandleRefuses checks that Handle panics for invalid patterns and for operations that exist.
func TestHandleRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	none := func(http.ResponseWriter, *http.Request) {}
	for name, route := range map[string][2]string{
		"no method":                 {"", "/x"},
		"a path without a slash":    {"GET", "x"},
		"no pattern":                {"GET", "/x/{"},
		"an operation that exists":  {"GET", "/platform/vault/customer"},
		"one that a name would hit": {"DELETE", "/platform/vault/payee/{id}"},
	} {
		assert.Panics(t, func() { a.srv.Handle(route[0], route[1], none) }, name)
	}
	assert.Panics(t, func() { a.srv.Handle("GET", "/x", nil) })
}
