package payvaulttest

import (
	"net/http"
	"path"
	"slices"
	"sync"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// A handler answers the requests of a server.
type handler struct {
	*shared

	mux *http.ServeMux

	mu         sync.Mutex
	operations []string // names of the operations, sorted
}

func newHandler(s *shared) *handler {
	h := &handler{shared: s, mux: http.NewServeMux()}
	for _, o := range s.state.document.Operations {
		action := s.state.actions[payvault.Operation(o.ID)]
		if action == nil {
			action = func(*call) (any, error) {
				return nil, refuse(http.StatusNotImplemented,
					"no constructor in payvaulttest, such as newInvoices, registers an action for %s", o.ID)
			}
		}
		h.add(route{op: o, action: action})
	}
	return h
}

// add adds a route. It panics if the method or path is invalid, or if the route conflicts with an earlier route.
func (h *handler) add(to route) {
	h.mux.HandleFunc(to.op.Method+" "+h.basePath+to.op.Path, func(w http.ResponseWriter, r *http.Request) {
		h.exchange(w, r, to)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, to.op.ID)
	slices.Sort(h.operations)
}

// allOperations returns the names of the operations that the server knows.
func (h *handler) allOperations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.operations)
}

// ServeHTTP answers one request. It does not clean the path: a path with // or .. matches no operation.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := h.mux.Handler(r)
	if pattern == "" || path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath() {
		h.exchange(w, r, route{op: &openapi.Operation{Method: "other", Path: "none"}})
		return
	}
	h.mux.ServeHTTP(w, r)
}
