// Package bulk tests the functions that make many calls: the iterators over lists, called walks here, and SubmitAll
// with its journal. It also tests what all calls of a client share, single calls too: the rate limits and the retry
// budget.
package bulk

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is a request that the fake service received.
type asked struct {
	*http.Request // nil in fake.seen, which must not keep requests in memory

	nth   int // number of the request, 1 for the first one
	n     int // number of the page or of the batch, from 0
	query string
	at    time.Duration // time since the first request
}

// sleep waits for d, or until the context of the request ends.
func (r asked) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// answer returns the response or the error of a request. If it returns neither, the fake service answers with a
// success.
type answer func(r asked) (*http.Response, error)

// fake is a RoundTripper that takes the place of the service and records the requests.
type fake struct {
	answer answer
	pages  int             // number of pages of its list
	gates  []chan struct{} // if set, a request waits until the channel of its page or batch is closed

	flying atomic.Int64 // requests in flight
	mu     sync.Mutex
	start  time.Time
	seen   []asked
	cards  []int // position of each received card in the stream
}

func (s *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	s.flying.Add(1)
	defer s.flying.Add(-1)
	r, err := s.take(req)
	if err != nil {
		return nil, err
	}
	if s.gates != nil {
		select {
		case <-s.gates[r.n]:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if s.answer != nil {
		if resp, err := s.answer(r); resp != nil || err != nil {
			return resp, err
		}
	}
	if req.Method == http.MethodGet {
		return service.Reply(http.StatusOK, correct(r.n, s.pages)), nil
	}
	body := fmt.Sprintf(`{"code":0,"message":"Success","data":{"request_id":"REQ%d","message":"m"}}`, r.n)
	return service.Reply(http.StatusOK, body), nil
}

// take reads a request and records it.
func (s *fake) take(req *http.Request) (asked, error) {
	var body struct {
		Data []struct {
			CardID int `json:"card_id,string"`
		} `json:"data"`
	}
	if strings.HasSuffix(req.URL.Path, "/aus/add") {
		if err := errors.Join(json.UnmarshalRead(req.Body, &body), req.Body.Close()); err != nil {
			return asked{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.start = time.Now()
	}
	r := asked{Request: req, nth: len(s.seen) + 1, query: req.URL.RawQuery, at: time.Since(s.start)}
	r.n, _ = strconv.Atoi(req.URL.Query().Get("page"))
	for _, card := range body.Data {
		s.cards = append(s.cards, card.CardID)
		r.n = card.CardID / payvault.MaxAccountUpdaterCards
	}
	s.seen = append(s.seen, asked{nth: r.nth, n: r.n, query: r.query, at: r.at})
	return r, nil
}

func (s *fake) asked() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// numbers returns the sorted numbers of the pages or batches that were requested.
func (s *fake) numbers() []int {
	var numbers []int
	for _, r := range s.asked() {
		numbers = append(numbers, r.n)
	}
	return slices.Sorted(slices.Values(numbers))
}

// client returns a client of the fake service. Unless opts has another retry policy, a retry waits only for the rate
// limit or a Retry-After.
func (s *fake) client(t *testing.T, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	quick := payvault.WithRetryPolicy(payvault.RetryPolicy{MinBackoff: 1, MaxBackoff: 1})
	c, err := payvault.NewClient("https://service.test", service.APIKey,
		append([]payvault.Option{service.Over(s), quick}, opts...)...)
	require.NoError(t, err)
	return c
}

// gives returns an answer with this status and body for the given pages or batches. All other requests succeed.
func gives(status int, body string, at ...int) answer {
	return func(r asked) (*http.Response, error) {
		if !slices.Contains(at, r.n) {
			return nil, nil
		}
		return service.Reply(status, body), nil
	}
}

// refusal returns a response with status 429 and this Retry-After header.
func refusal(retryAfter string) (*http.Response, error) {
	resp := service.Reply(http.StatusTooManyRequests, ``)
	resp.Header.Set("Retry-After", retryAfter)
	return resp, nil
}

// newGates returns 100 channels for fake.gates. The first ones are closed already; their number is the parameter open.
func newGates(open int) []chan struct{} {
	gates := make([]chan struct{}, 100)
	for i := range gates {
		if gates[i] = make(chan struct{}); i < open {
			close(gates[i])
		}
	}
	return gates
}

// forEach runs a test for each case, in a bubble of testing/synctest.
func forEach[C any](t *testing.T, cases []C, test func(t *testing.T, c C)) {
	t.Helper()
	for _, c := range cases {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, c) })
		})
	}
}
