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

// acceptDispute is an operation that the documentation of the service mentions but does not describe.
const acceptDispute payvault.Operation = "PUT /platform/dispute/{rec_id}/accept"

// handleAccept adds acceptDispute to a server. The operation refuses a request without a note.
func handleAccept(t *testing.T, srv *payvaulttest.Server) {
	t.Helper()
	srv.Handle(http.MethodPut, "/platform/dispute/{rec_id}/accept", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Note string `json:"note"`
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Note == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"code":400,"message":"note is required"}`)
			return
		}
		_, known := srv.Disputes.Get(7) // handlers may use the server
		data := map[string]any{"id": r.PathValue("rec_id"), "known": known}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"code": 0, "message": "Success", "data": data}))
	})
}

// TestHandle checks an operation that Handle adds: the server records and counts its requests, a fault can make them
// fail, and the page of Inspect shows them.
func TestHandle(t *testing.T) {
	t.Parallel()
	i := inspect(t)
	i.srv.Disputes.Seed(payvaulttest.Dispute{ID: 7})
	handleAccept(t, i.srv)
	const path = "/platform/dispute/7/accept"
	accept := func() reply { return i.do(t, http.MethodPut, path, `{"note":"ok"}`) }
	assert.Equal(t, map[string]any{"id": "7", "known": true}, accept().ok(t))
	assert.Equal(t, http.StatusBadRequest, i.do(t, http.MethodPut, path, `{}`).status)
	i.as(payvaulttest.Account{APIKey: "unknown"}).do(t, http.MethodPut, path, `{}`).refused(t, http.StatusUnauthorized)
	i.post(t, path, `{}`).refused(t, http.StatusNotFound)
	assert.Equal(t, 1, i.srv.Commits(acceptDispute))
	i.srv.Handle(http.MethodGet, "/same", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotModified)
	})
	assert.Equal(t, http.StatusNotModified, i.get(t, "/same").status)
	assert.Zero(t, i.srv.Commits("GET /same"), "only 2xx counts")
	assert.Equal(t, acceptDispute, i.srv.Requests()[0].Operation)
	assert.JSONEq(t, `{"note":"ok"}`, string(i.srv.Requests()[0].Body()))
	state := i.ask(t, http.MethodGet, "/state", "")
	assert.Contains(t, state, `"`+string(acceptDispute)+`",`, "among the operations")
	assert.Contains(t, state, `"`+string(acceptDispute)+`":1`, "among the commits")

	inject(t, i.srv, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Operation: acceptDispute, Times: 1})
	err := i.srv.Client().Call(t.Context(), payvault.Request{
		Method: http.MethodPut, Path: []string{"platform", "dispute", "7", "accept"}, Body: map[string]string{"note": "ok"},
	}, nil)
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	assert.Equal(t, 2, i.srv.Commits(acceptDispute))
	got := i.newest(t)
	assert.Equal(t, []any{string(acceptDispute), "drop after commit", true},
		[]any{got["operation"], got["fault"], got["performed"]})
	const curl = "curl -u :merchant-api-key -X PUT -H 'Content-Type: application/json' -d '{}' "
	assert.Equal(t, curl+i.srv.URL+"/platform/dispute/fillIn/accept", got["curl"])

	i.ask(t, http.MethodPost, "/reset", "")
	i.srv.Disputes.Seed(payvaulttest.Dispute{ID: 7})
	accept().ok(t)
	only := i.ask(t, http.MethodGet, "/requests?operation="+url.QueryEscape(string(acceptDispute)), "")
	assert.Contains(t, only, `"matching":1,"total":1`, "a reset forgets neither the operation nor its handler")
}

// TestHandleRefuses checks that Handle panics if the method, the path or the handler is invalid, and if the operation
// exists already.
func TestHandleRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	none := func(http.ResponseWriter, *http.Request) {}
	for name, route := range map[string][2]string{
		"no method":                 {"", "/x"},
		"a path without a slash":    {"GET", "x"},
		"no pattern":                {"GET", "/x/{"},
		"an operation that exists":  {"GET", customers},
		"one that a name would hit": {"DELETE", payees + "/{id}"},
	} {
		assert.Panics(t, func() { a.srv.Handle(route[0], route[1], none) }, name)
	}
	assert.Panics(t, func() { a.srv.Handle("GET", "/x", nil) })
}
