package payvaulttest

import (
	"net/http"
	"sync"
	"time"

	"example.com/payvault"
)

// A state has the data that the resources of a server share. The lock mu is held while an action runs.
type state struct {
	accounts accounts
	clock    func() time.Time
	ids      *ids
	document *document

	// The resources set these fields before the server starts.
	actions map[payvault.Operation]action
	empty   []func() // functions that empty the stores
	occur   func(merchant payvault.MerchantID, event payvault.Event, data any) (webhooks int)

	mu      sync.Mutex
	commits map[payvault.Operation]int
	retired map[string]bool // the API keys of retired accounts
}

func newState(accounts accounts, clock func() time.Time, idSeed uint64) *state {
	return &state{
		accounts: accounts,
		clock:    clock,
		ids:      newIDs(idSeed),
		document: theDocument(),
		actions:  map[payvault.Operation]action{},
		commits:  map[payvault.Operation]int{},
		retired:  map[string]bool{},
	}
}

// authenticate returns the account of a request, or a refusal.
func (s *state) authenticate(r *http.Request) (Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts.authenticate(r, s.retired)
}

// commit counts an operation that a handler of [Server.Handle] has performed.
func (s *state) commit(op payvault.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits[op]++
}

// now returns the time of the server's clock, truncated to whole seconds like the timestamps of the service.
func (s *state) now() time.Time { return s.clock().Truncate(time.Second) }
