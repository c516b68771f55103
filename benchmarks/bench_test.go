package benchmarks

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/benchmarks/internal/rig"
)

// The name of each benchmark ends in /impl= and an implementation, so that "benchstat -col /impl" compares the
// implementations of the same work. The two main implementations, called rivals, are payvault and the client written by
// hand. The tests check that both rivals do the same work.

// BenchmarkCall makes one small call. With the network "canned", a transport answers from memory, and the figures are
// the cost of the client alone. With the other networks, the figures include the cost of the server, which runs in the
// same process.
func BenchmarkCall(b *testing.B) {
	for _, network := range []string{"canned", "http1", "tls"} {
		for _, m := range everyone() {
			b.Run("net="+network+"/impl="+m.impl, func(b *testing.B) {
				url, transport := "http://127.0.0.1", http.RoundTripper(rig.NewCanned(m.answer))
				if network != "canned" {
					url, _ = newServer(b, network, answering(m.answer))
					transport = nil
				}
				call, ctx := m.make(b, url, transport), b.Context()
				require.NoError(b, call(ctx)) // connects, and fills the type caches of the JSON packages
				rig.Measure(b, func() error { return call(ctx) })
			})
		}
	}
}

// TestCall checks that payvault and the client written by hand send the same request, and that resty sends a request of
// about the same size.
func TestCall(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"http1", "tls"} {
		var log requests
		for i, m := range everyone() {
			url, connections := newServer(t, network, log.recording(answering(m.answer)))
			require.NoError(t, m.make(t, url, nil)(t.Context()), m.impl)
			assert.EqualValues(t, 1, connections.Load(), m.impl)
			require.Len(t, log.all, i+1, m.impl)
			assert.InDelta(t, len(log.all[0]), len(log.all[i]), 200, m.impl)
		}
		assert.Equal(t, log.all[0], log.all[1])
	}
}

// TestPromises checks that every client sets a deadline, and returns an error for an answer without an ID. Both rivals
// must also return an error for an answer that is too large, and for an answer with a refusal.
func TestPromises(t *testing.T) {
	t.Parallel()
	for _, m := range everyone() {
		require.NoError(t, m.make(t, "http://127.0.0.1", rig.NewCanned(m.answer))(t.Context()), m.impl)
		assert.Error(t, m.make(t, "http://127.0.0.1", rig.NewCanned(`{}`))(t.Context()), m.impl)
	}
	for _, m := range rivals() {
		padded := rig.NewCanned(m.answer + strings.Repeat(" ", maxAnswer))
		assert.ErrorContains(t, m.make(t, "http://127.0.0.1", padded)(t.Context()), "large", m.impl)
		refused := rig.NewCanned(strings.Replace(m.answer, "000", "051", 1))
		assert.ErrorContains(t, m.make(t, "http://127.0.0.1", refused)(t.Context()), "051", m.impl)
	}
}

// BenchmarkPage decodes a page of 100 customers, with encoding/json alone or in a whole call of payvault.
func BenchmarkPage(b *testing.B) {
	body := customers(b, pageSize, 1)
	b.Run("impl=encodingjson", func(b *testing.B) {
		text, page := []byte(body), customerPage{}
		rig.Measure(b, func() error {
			page = customerPage{}
			return json.Unmarshal(text, &page)
		})
		require.Len(b, page.Data, pageSize)
	})
	b.Run("impl=payvault", func(b *testing.B) {
		c, ctx := newPayvault(b, "http://127.0.0.1", rig.NewCanned(body)), b.Context()
		var page *payvault.Page[payvault.Customer]
		rig.Measure(b, func() (err error) {
			page, err = c.Customers.List(ctx, nil)
			return err
		})
		require.Len(b, page.Items, pageSize)
	})
}

// BenchmarkPages lists the customers of 200 pages, 100 on each page. The service takes 20 ms for each page.
func BenchmarkPages(b *testing.B) {
	const pages = 200
	for _, inFlight := range []int{8, 32} {
		for _, m := range rivals() {
			b.Run(fmt.Sprintf("prefetch=%d/impl=%s", inFlight, m.impl), func(b *testing.B) {
				url, _ := newServer(b, "http1", late(20*time.Millisecond, pager(b, pages)))
				records := walk(b, m.impl, url, inFlight)
				rig.Measure(b, func() error { return checkWalk(records, pages) })
			})
		}
	}
}

const pageSize = 100

// customers returns a page with copies of the first customer in testdata. 100 copies are about 130 KB. The totals are
// those of a list with the given number of pages. The last page of that list has one record less than the others.
func customers(tb testing.TB, copies, pages int) string {
	tb.Helper()
	text, err := os.ReadFile("../testdata/customers/list.response.json")
	require.NoError(tb, err)
	var page map[string]any
	require.NoError(tb, json.Unmarshal(text, &page))
	page["data"] = slices.Repeat(page["data"].([]any)[:1], copies)
	page["totalPages"], page["totalRecords"] = pages, pages*pageSize-1
	text, err = json.Marshal(page)
	require.NoError(tb, err)
	return string(text)
}

// firstOf returns the ID of the first customer of a page.
func firstOf(page int) string { return "PAGE" + strconv.Itoa(page) }

// pager returns a service that answers with pages of customers. The last page has one record less than the others, so
// that a walk ends there. After a full page a walk asks for one more.
func pager(tb testing.TB, pages int) http.Handler {
	tb.Helper()
	full, last := customers(tb, pageSize, pages), customers(tb, pageSize-1, pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("page"))
		body := full
		if page == pages-1 {
			body = last
		}
		answer(w, strings.Replace(body, "CUST2101", firstOf(page), 1))
	})
}

func checkWalk(records iter.Seq2[*payvault.Customer, error], pages int) error {
	return checkOrder(records, pages*pageSize-1, func(customer *payvault.Customer, n int) bool {
		return n%pageSize != 0 || customer.ID == firstOf(n/pageSize)
	})
}

// TestWalk checks that both rivals send the same requests, several at a time, and return the same records.
func TestWalk(t *testing.T) {
	t.Parallel()
	const pages, inFlight = 6, 3
	var sent [2][]string
	var got [2][]*payvault.Customer
	for i, m := range rivals() {
		var log requests
		first := pager(t, pages)
		others := together(inFlight, first)
		url, _ := newServer(t, "http1", log.recording(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("page") == "0" {
				first.ServeHTTP(w, r)
			} else {
				others.ServeHTTP(w, r)
			}
		})))
		for customer, err := range walk(t, m.impl, url, inFlight) {
			require.NoError(t, err, m.impl)
			got[i] = append(got[i], customer)
		}
		sent[i] = slices.Sorted(slices.Values(log.all))
		records := walk(t, m.impl, url, inFlight)
		require.NoError(t, checkWalk(records, pages), m.impl)
		require.Error(t, checkWalk(records, pages+1), m.impl)
		for range records {
			break // the walk must leave no goroutine behind, or TestMain fails
		}
	}
	assert.Len(t, sent[0], pages)
	assert.Equal(t, sent[0], sent[1])
	assert.Equal(t, got[0], got[1])
}

// BenchmarkSubmitAll sends 50,000 cards in 500 requests. The service takes 20 ms for each request.
func BenchmarkSubmitAll(b *testing.B) {
	const requests, inFlight = 500, 32
	for _, m := range rivals() {
		b.Run("impl="+m.impl, func(b *testing.B) {
			url, _ := newServer(b, "http1", late(20*time.Millisecond, updater()))
			ids := submit(b, m.impl, url, requests*payvault.MaxAccountUpdaterCards, inFlight)
			rig.Measure(b, func() error { return checkIDs(ids, requests) })
		})
	}
}

// updater returns a service that answers with the request ID "aus-" plus the CardID of the first card.
func updater() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, id, _ := strings.Cut(string(body), `"card_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		answer(w, `{"code":0,"message":"Success","data":{"request_id":"aus-`+id+`"}}`)
	})
}

func checkIDs(ids iter.Seq2[string, error], requests int) error {
	return checkOrder(ids, requests, func(id string, n int) bool {
		return id == "aus-"+strconv.Itoa(n*payvault.MaxAccountUpdaterCards)
	})
}

// TestSubmitAll checks that both rivals send the same requests, several at a time, and return the right IDs.
func TestSubmitAll(t *testing.T) {
	t.Parallel()
	const cards, batches, inFlight = 1050, 11, 4
	var sent [2][]string
	for i, m := range rivals() {
		var log requests
		url, _ := newServer(t, "http1", log.recording(together(inFlight, updater())))
		require.NoError(t, checkIDs(submit(t, m.impl, url, cards, inFlight), batches), m.impl)
		sent[i] = slices.Sorted(slices.Values(log.all))
	}
	assert.Equal(t, sent[0], sent[1])
}

// BenchmarkCallers makes calls from 64 goroutines at the same time. One operation of the benchmark is 500 calls by each
// goroutine.
func BenchmarkCallers(b *testing.B) {
	const callers, calls = 64, 500
	for _, network := range []string{"http1", "tls"} {
		for _, m := range rivals() {
			b.Run("net="+network+"/impl="+m.impl, func(b *testing.B) {
				url, connections := newServer(b, network, together(callers, answering(m.answer)))
				call := m.make(b, url, nil)
				rig.Measure(b, func() error { return burst(b.Context(), callers, calls, call) })
				b.ReportMetric(float64(connections.Load()), "connections")
			})
		}
	}
}

// TestCallers checks that 32 callers use their connections again. Each caller makes two calls in each of ten rounds.
// The first calls of a round are under way at the same time. On a busy machine net/http opens a few more connections
// than 32. The callers must also return the error of a bad answer.
func TestCallers(t *testing.T) {
	t.Parallel()
	const callers = 32
	for _, m := range rivals() {
		var log requests
		var service atomic.Pointer[http.Handler] // of the present round
		url, connections := newServer(t, "tls", log.recording(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(*service.Load()).ServeHTTP(w, r)
		})))
		call := m.make(t, url, nil)
		for range 10 {
			service.Store(new(together(callers, answering(m.answer))))
			require.NoError(t, burst(t.Context(), callers, 2, call), m.impl)
		}
		assert.Len(t, log.all, 640, m.impl)
		assert.Less(t, connections.Load(), int64(100), m.impl)
		assert.Error(t, burst(t.Context(), 2, 1, m.make(t, url, rig.NewCanned(`{}`))), m.impl)
	}
}

// BenchmarkUpload sends a file of 100 MB. B/op includes the allocations of the server.
func BenchmarkUpload(b *testing.B) {
	const size = 100_000_000
	for _, m := range rivals() {
		b.Run("impl="+m.impl, func(b *testing.B) {
			url, _ := newServer(b, "http1", answering(`{"code":0,"message":"Success"}`))
			send := upload(b, m.impl, url, writePDF(b, size))
			require.NoError(b, send(b.Context()))
			rig.Measure(b, func() error { return send(b.Context()) })
		})
	}
}

// writePDF creates a file that begins like a PDF.
func writePDF(tb testing.TB, size int64) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "evidence.pdf")
	require.NoError(tb, os.WriteFile(path, []byte("%PDF-1.7\n"), 0o600))
	require.NoError(tb, os.Truncate(path, size))
	return path
}

// TestUpload checks that both rivals upload a file with the same request, which has a Content-Length.
func TestUpload(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	path := writePDF(t, size)
	var log requests
	url, _ := newServer(t, "http1", log.recording(answering(`{"code":0,"message":"Success"}`)))
	for _, m := range rivals() {
		require.NoError(t, upload(t, m.impl, url, path)(t.Context()), m.impl)
	}
	require.Len(t, log.all, 2)
	assert.Greater(t, len(log.all[0]), size)
	assert.Contains(t, log.all[0], "Content-Length: ")
	const expect = "Expect: 100-continue\r\n" // only payvault asks the server first
	without := func(request string) string { return strings.Replace(request, expect, "", 1) }
	assert.True(t, without(log.all[0]) == without(log.all[1]), "different forms") // assert.Equal would print both forms
}
