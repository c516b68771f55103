package temporalpayvault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// shelf is a Sink in memory. A page replaces the earlier page at the same position.
type shelf struct {
	mu     sync.Mutex
	pages  map[Position][]string
	ends   map[Position]int
	writes int
	fail   func(n int) error // if not nil, the n-th call of the sink returns the error of fail(n)
}

func newShelf() *shelf { return &shelf{pages: map[Position][]string{}, ends: map[Position]int{}} }

func (s *shelf) WriteCustomers(_ context.Context, at Position, customers []payvault.Customer) error {
	var ids []string
	for _, c := range customers {
		ids = append(ids, c.ID)
	}
	return s.do(func() { s.pages[at] = ids })
}

func (s *shelf) WriteTransactions(_ context.Context, at Position, transactions []payvault.Transaction) error {
	var ids []string
	for _, x := range transactions {
		ids = append(ids, x.PGID)
	}
	return s.do(func() { s.pages[at] = ids })
}

func (s *shelf) EndList(_ context.Context, at Position) error { return s.do(func() { s.ends[at]++ }) }

func (s *shelf) do(write func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.fail != nil {
		if err := s.fail(s.writes); err != nil {
			return err
		}
	}
	write()
	return nil
}

// check checks that a list has the given number of pages and records, without a gap or a repeated record, and that
// EndList was called once.
func (s *shelf) check(t *testing.T, id payvault.SubscriptionID, pages, records int) {
	t.Helper()
	at, seen := Position{Export: "night", Subscription: id}, map[string]bool{}
	for at.Page = 0; at.Page < pages; at.Page++ {
		ids, ok := s.pages[at]
		require.True(t, ok, "%+v", at)
		at.Offset += len(ids)
		for _, id := range ids {
			assert.False(t, seen[id], "%s twice", id)
			seen[id] = true
		}
	}
	assert.Equal(t, records, at.Offset)
	assert.Equal(t, 1, s.ends[at], "its end, at %+v", at)
}

// customers creates n customers at the service.
func customers(t *testing.T, srv *payvaulttest.Server, n int) {
	t.Helper()
	for i := range n {
		_, err := srv.Client().Customers.Create(t.Context(), &payvault.CustomerCreateRequest{
			ID: fmt.Sprintf("c%04d", i), FirmName: "A",
		})
		require.NoError(t, err)
	}
}

// subscriptions adds n subscriptions to the service. Subscription i has 7 × i transactions.
func subscriptions(srv *payvaulttest.Server, n int) (ids []payvault.SubscriptionID) {
	for i := range n {
		sub := payvaulttest.Subscription{MerchantID: srv.Merchant().MerchantID}
		for k := range 7 * i {
			sub.Transactions = append(sub.Transactions, payvaulttest.Transaction{PGID: fmt.Sprintf("t%d-%d", i, k)})
		}
		ids = append(ids, srv.Subscriptions.Seed(sub).ID)
	}
	return ids
}

// nightly returns an export with 10 records a page.
func nightly(ids ...payvault.SubscriptionID) ExportJob {
	return ExportJob{Name: "night", Subscriptions: ids, List: ExportOptions{Count: 10}}
}

// TestExportLists_customers checks that each page is exported and counted once, even if some requests and some calls of
// the sink fail. No payload or log record may have the error text of the sink.
func TestExportLists_customers(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 95)
	busy := payvaulttest.Fault{Operation: payvault.OpCustomersList, Kind: payvaulttest.Respond, Status: 503, Times: 8}
	inject(t, srv, busy)
	sink.fail = func(n int) error {
		if n == 3 || n == 12 { // the third call is for a page, the twelfth for the end of the list
			return errors.New("disk full at 4111111111111111")
		}
		return nil
	}
	env, seen := tapped(&Activities{Client: once(srv), Sink: sink})
	env.ExecuteWorkflow(ExportLists, nightly())
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 10, Records: 95}, result[ExportSummary](t, env))
	sink.check(t, 0, 10, 95)
	assert.Contains(t, seen.seen.String(), "the sink has failed")
	assert.NotContains(t, seen.seen.String(), "41111111")
}

// TestExportLists_filters checks that the values of filters reach the activity, although the JSON of payvault.Filter
// leaves the values out.
func TestExportLists_filters(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 30)
	env, job := newWorkflows(&Activities{Client: srv.Client(), Sink: sink}), nightly()
	job.List.Filters = []Filter{Filter(payvault.Where("customer_id", "EQUALS", srv.Customers.All()[7].ID))}
	env.ExecuteWorkflow(ExportLists, job)
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 1, Records: 1}, result[ExportSummary](t, env))
}

// TestExportLists_tooFewPages checks that an export is complete if the service rounds the number of pages down.
func TestExportLists_tooFewPages(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 95)
	client := changed(srv, func(_ int, a *answer) { a.TotalPages = 9 })
	env := newWorkflows(&Activities{Client: client, Sink: sink})
	env.ExecuteWorkflow(ExportLists, nightly())
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 10, Records: 95}, result[ExportSummary](t, env))
	sink.check(t, 0, 10, 95)
}

// TestExportLists_transactions checks that many lists are exported completely, even if every ninth call of the sink
// fails.
func TestExportLists_transactions(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	ids := subscriptions(srv, 12)
	sink.fail = func(n int) error {
		if n%9 == 0 {
			return errCut
		}
		return nil
	}
	env, job := newWorkflows(&Activities{Client: srv.Client(), Sink: sink}), nightly(ids...)
	job.ListsPerActivity, job.Concurrency = 3, 2
	env.ExecuteWorkflow(ExportLists, job)
	s, pages := result[ExportSummary](t, env), 0
	for i, id := range ids {
		n := (7*i + 9) / 10
		sink.check(t, id, n, 7*i)
		pages += n
	}
	assert.Equal(t, ExportSummary{Lists: 12, Done: 12, Pages: pages, Records: 7 * 66}, s)
}

// TestExportLists_badAnswer checks that a page is requested again if it was refused or cannot be read. If this happens
// in each of five attempts without progress, or once if the key is refused, the export must pause. When it is resumed,
// it must continue at the last page that was written.
func TestExportLists_badAnswer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]payvaulttest.Fault{
		"half a page":   {Kind: payvaulttest.Respond, Status: http.StatusOK, Body: `{"code":0,"data":[{"customer_id":`},
		"refused":       {Kind: payvaulttest.OtherCode, Code: 9},
		"HTML":          {Kind: payvaulttest.Respond, Status: http.StatusNotFound, Body: "<h1>Not Found</h1>"},
		"firewall":      {Kind: payvaulttest.Respond, Status: http.StatusForbidden, Body: "<h1>Blocked</h1>"},
		"key forgotten": {Kind: payvaulttest.Respond, Status: http.StatusForbidden, Body: `{"code":403}`},
	} {
		for _, stays := range []bool{false, true} {
			for _, lists := range []int{0, 6} {
				if name == "key forgotten" && !stays {
					continue // the export pauses at the first 403 with a code
				}
				t.Run(fmt.Sprint(name, stays, lists), func(t *testing.T) {
					t.Parallel()
					srv, sink, fault := newServer(t), newShelf(), fault
					customers(t, srv, 95)
					fault.Operation, fault.Skip = payvault.OpCustomersList, 3
					job, want := nightly(), ExportSummary{Lists: 1, Done: 1, Pages: 10, Records: 95}
					if lists > 0 {
						fault.Operation = payvault.OpSubscriptionsTransactions
						job = nightly(subscriptions(srv, lists)...)
						want = ExportSummary{Lists: lists, Done: lists, Pages: 13, Records: 7 * 15}
					}
					if !stays {
						fault.Times = maxBadAnswers - 1
					}
					mend := inject(t, srv, fault)
					env := newWorkflows(&Activities{Client: srv.Client(), Sink: sink})
					var stopped ExportSummary
					if stays {
						env.RegisterDelayedCallback(func() {
							stopped = query[ExportSummary](t, env)
							struck := 1 + maxBadAnswers // the first attempt has made progress
							if name == "key forgotten" {
								struck = 1
							}
							assert.Equal(t, struck, srv.Faults()[0].Struck)
							mend()
							resume(t, env)
						}, time.Hour)
					}
					env.ExecuteWorkflow(ExportLists, job)
					assert.Equal(t, stays, stopped.Paused != "", stopped.Paused)
					assert.Equal(t, want, result[ExportSummary](t, env))
					assert.Len(t, sink.pages, want.Pages)
					assert.Equal(t, want.Pages+want.Lists+1, sink.writes, "only the page before the bad answer is written again")
				})
			}
		}
	}
}

// exported runs one attempt of the activity that exports. The argument before is the last heartbeat of the previous
// attempt, or nil.
func exported(env *testsuite.TestActivityEnvironment, o exportOrder, before *exportReport) (r exportReport, err error) {
	if before != nil {
		env.SetHeartbeatDetails(*before)
	}
	value, err := env.ExecuteActivity(activityExport, o)
	if err != nil {
		return r, err
	}
	return r, value.Get(&r)
}

// TestExport_lostWorker checks that an attempt continues at the page that the last heartbeat of a lost worker names.
func TestExport_lostWorker(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	ids := subscriptions(srv, 6)
	o := exportOrder{Export: "night", List: ExportOptions{Count: 10}, Span: span{To: 6}, Limit: time.Minute}
	o.Subscriptions = ids
	before := exportReport{Left: span{From: 4, To: 6, Page: 2, Offset: 20}, Pages: 8, Records: 62}
	r, err := exported(newAttempts(&Activities{Client: srv.Client(), Sink: sink}), o, &before)
	require.NoError(t, err)
	assert.Equal(t, exportReport{Left: span{From: 6, To: 6}, Pages: 13, Records: 105}, r)
	assert.Len(t, sink.pages, 5)
	assert.Contains(t, sink.pages, Position{Export: "night", Subscription: ids[4], Page: 2, Offset: 20})
}

// TestExport_sinkHangs checks that an attempt asks for a pause if the sink hangs, and reports the last page that was
// written.
func TestExport_sinkHangs(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 95)
	sink.fail = func(n int) error {
		if n == 4 {
			<-t.Context().Done()
		}
		return nil
	}
	o := exportOrder{Export: "night", List: ExportOptions{Count: 10}, Span: span{To: 1}, Limit: 200 * time.Millisecond}
	r, err := exported(newAttempts(&Activities{Client: srv.Client(), Sink: sink}), o, nil)
	require.NoError(t, err)
	assert.Equal(t, exportReport{
		Left: span{To: 1, Page: 2, Offset: 20, Written: 10, Promised: 95}, Pages: 3, Records: 30,
		ending: ending{Stop: "the sink has not answered for 200ms"},
	}, r)
}

// TestExport_workerStops checks that an attempt ends after its current page if its worker stops.
func TestExport_workerStops(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 95)
	stopped := make(chan struct{})
	sink.fail = func(n int) error {
		if n == 4 {
			close(stopped)
		}
		return nil
	}
	env := newAttempts(&Activities{Client: srv.Client(), Sink: sink})
	env.SetWorkerStopChannel(stopped)
	o := exportOrder{Export: "night", List: ExportOptions{Count: 10}, Span: span{To: 1}, Limit: time.Minute}
	r, err := exported(env, o, nil)
	require.NoError(t, err)
	assert.Equal(t, exportReport{
		Left: span{To: 1, Page: 3, Offset: 30, Written: 10, Promised: 95}, Pages: 4, Records: 40,
	}, r)
}

// TestExport_lostAfterTheLastPage checks an export whose worker is lost after the last page, while the service refuses
// requests for later pages. EndList must be called.
func TestExport_lostAfterTheLastPage(t *testing.T) {
	t.Parallel()
	for count, before := range map[int]exportReport{
		10: {Left: span{To: 1, Page: 9, Offset: 90, Written: 5}, Pages: 10, Records: 95},
		0:  {Left: span{To: 1, Page: 3, Offset: 75, Written: 20}, Pages: 4, Records: 95}, // a page has 25 records by default
	} {
		srv, sink := newServer(t), newShelf()
		customers(t, srv, 95)
		client := changed(srv, func(page int, a *answer) {
			if page > before.Left.Page {
				*a = answer{status: http.StatusNotFound}
			}
		})
		o := exportOrder{Export: "night", List: ExportOptions{Count: count}, Span: span{To: 1}, Limit: time.Minute}
		r, err := exported(newAttempts(&Activities{Client: client, Sink: sink}), o, &before)
		require.NoError(t, err)
		assert.Equal(t, exportReport{Left: span{From: 1, To: 1}, Pages: before.Pages, Records: 95}, r)
		last := Position{Export: "night", Page: before.Left.Page, Offset: before.Left.Offset}
		assert.Len(t, sink.pages[last], before.Left.Written)
		assert.Equal(t, map[Position]int{{Export: "night", Page: before.Pages, Offset: 95}: 1}, sink.ends)
	}
}

// answer is the answer to a request for a page of a list.
type answer struct {
	Code         int               `json:"code"`
	Records      []json.RawMessage `json:"data"`
	TotalPages   int               `json:"totalPages"`
	TotalRecords int               `json:"totalRecords"`

	status int
}

// keep drops the records of an answer after the first n.
func (a *answer) keep(n int) { a.Records = a.Records[:min(len(a.Records), n)] }

// changed returns a client of a service whose answers are changed. The function change gets the number of a page and
// the answer of the service.
func changed(srv *payvaulttest.Server, change func(page int, a *answer)) *payvault.Client {
	return through(srv, func(r *http.Request) (*http.Response, error) {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		page, err := strconv.Atoi(r.URL.Query().Get("page"))
		a := answer{status: res.StatusCode}
		err = errors.Join(err, json.NewDecoder(res.Body).Decode(&a))
		change(page, &a)
		text, _ := json.Marshal(a)
		res.StatusCode, res.Body, res.ContentLength = a.status, io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return res, err
	})
}

// TestExport_shorterThanBefore checks that a page that the previous attempt has written is asked for again if it has
// become shorter.
func TestExport_shorterThanBefore(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 95)
	client := changed(srv, func(_ int, a *answer) { a.keep(5) })
	o := exportOrder{
		Export: "night", List: ExportOptions{Count: 10}, Limit: time.Minute,
		Span: span{To: 1, Page: 2, Offset: 20, Written: 10},
	}
	_, err := exported(newAttempts(&Activities{Client: client, Sink: sink}), o, nil)
	require.ErrorContains(t, err, "page 2 is asked for again")
	assert.Empty(t, sink.pages)
}

// TestExportLists_totals checks that an export expects as many records as the latest totalRecords that is not 0. Each
// of totalRecords and totalPages alone must make it ask again for an empty page.
func TestExportLists_totals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(page, times int, a *answer) // times counts the requests for the page
		lacks  []IncompleteList
	}{
		"none after page 3": {func(page, _ int, a *answer) {
			if page > 3 {
				*a = answer{status: http.StatusOK}
			}
		}, []IncompleteList{{Promised: 95, Written: 40, ShortPages: []int{4}}}},
		"too high at first": {func(page, _ int, a *answer) {
			if page < 5 {
				a.TotalPages, a.TotalRecords = 12, 120
			}
		}, nil},
		"no totalRecords": {func(page, times int, a *answer) {
			a.TotalRecords = 0
			if page == 4 && times < maxBadAnswers {
				a.keep(0)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, sink, asked := newServer(t), newShelf(), map[int]int{}
			customers(t, srv, 95)
			client := changed(srv, func(page int, a *answer) {
				asked[page]++
				test.change(page, asked[page], a)
			})
			env := newWorkflows(&Activities{Client: client, Sink: sink})
			env.ExecuteWorkflow(ExportLists, nightly())
			s := result[ExportSummary](t, env)
			assert.Equal(t, test.lacks, s.IncompleteLists)
			if test.lacks == nil {
				sink.check(t, 0, 10, 95)
			}
		})
	}
}

// TestExportLists_shortPages checks that an empty page, or a page shorter than its neighbors, is asked for at least
// five times while the totals promise more records. If the page stays as it is, the export must go on, write the page,
// and say what is missing. After ten such pages, further ones are asked for once.
func TestExportLists_shortPages(t *testing.T) {
	t.Parallel()
	const pages, perPage = 50, 10
	only := func(short, kept int) func(int) int {
		return func(page int) int {
			if page == short {
				return kept
			}
			return perPage
		}
	}
	for name, test := range map[string]struct {
		kept    func(page int) int // number of records that the service sends of a page
		written int                // number of records
		short   []int
	}{
		"an empty page":           {only(9, 0), 490, []int{9}},
		"half a page":             {only(9, 5), 495, []int{9}},
		"a short first page":      {only(0, 5), 495, []int{0}},
		"an empty first page":     {only(0, 0), 490, []int{0}},
		"a short page at the end": {only(49, 7), 497, []int{49}},
		"nothing after page 9": {func(page int) int {
			if page > 9 {
				return 0
			}
			return perPage
		}, 100, pagesFrom(10, pages, 1)},
	} {
		for _, stays := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", stays so: ", stays), func(t *testing.T) {
				t.Parallel()
				srv, sink, asked := newServer(t), newShelf(), map[int]int{}
				customers(t, srv, pages*perPage)
				client := changed(srv, func(page int, a *answer) {
					asked[page]++
					if stays || asked[page] < maxBadAnswers {
						a.keep(test.kept(page))
					}
				})
				env := newWorkflows(&Activities{Client: client, Sink: sink})
				env.ExecuteWorkflow(ExportLists, nightly())
				s := result[ExportSummary](t, env)
				if !stays {
					assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: pages, Records: pages * perPage}, s)
					sink.check(t, 0, pages, pages*perPage)
					return
				}
				assert.Equal(t, []int{1, test.written}, []int{s.Incomplete, s.Records})
				assert.Equal(t, []IncompleteList{{Promised: 500, Written: test.written, ShortPages: test.short}}, s.IncompleteLists)
				for i, page := range test.short {
					if i < maxShortAsked {
						assert.GreaterOrEqual(t, asked[page], maxBadAnswers, "page %d", page)
					} else {
						assert.Equal(t, 1, asked[page], "page %d", page)
					}
				}
				at := Position{Export: "night"}
				for at.Page = range pages { // an empty page is written too: it replaces an earlier one
					require.Contains(t, sink.pages, at)
					assert.Len(t, sink.pages[at], test.kept(at.Page), "page %d", at.Page)
					at.Offset += test.kept(at.Page)
				}
			})
		}
	}
}

// TestExportLists_highTotals checks an export of 60 lists whose totals are too high, for example because they count
// deleted records. After 10 short pages the export must not try further short pages again, so it takes less than five
// minutes.
func TestExportLists_highTotals(t *testing.T) {
	t.Parallel()
	const lists = 60
	srv, sink := newServer(t), newShelf()
	job := nightly(subscriptions(srv, lists)...)
	client := changed(srv, func(_ int, a *answer) { a.keep(max(0, len(a.Records)-1)) })
	env := newWorkflows(&Activities{Client: client, Sink: sink})
	began := env.Now()
	env.ExecuteWorkflow(ExportLists, job)
	s := result[ExportSummary](t, env)
	assert.Equal(t, []int{lists, lists - 1}, []int{s.Done, s.Incomplete}, "the first list has no records")
	assert.Less(t, env.Now().Sub(began), 5*time.Minute)
}

// pagesFrom returns the numbers from, from+step, from+2*step and so on that are less than to.
func pagesFrom(from, to, step int) (pages []int) {
	for page := from; page < to; page += step {
		pages = append(pages, page)
	}
	return pages
}

// TestExportLists_manyShortPages checks that a list ends after 100 empty pages in a row, but not after 100 pages that
// have too few records. The summary must have the numbers of promised and written records, and name the first 100 short
// pages.
func TestExportLists_manyShortPages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		count  int                // records per page
		change func(int, *answer) // as in the function changed
		lacks  IncompleteList
		end    Position
	}{
		"empty after page 9": {1, func(page int, a *answer) {
			if page > 9 {
				a.keep(0)
			}
		}, IncompleteList{Promised: 420, Written: 10, ShortPages: pagesFrom(10, 110, 1)}, Position{Page: 10, Offset: 10}},
		"odd pages are short": {2, func(page int, a *answer) {
			if page%2 == 1 {
				a.keep(1)
			}
		}, IncompleteList{Promised: 420, Written: 315, ShortPages: pagesFrom(1, 201, 2)}, Position{Page: 210, Offset: 315}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, sink := newServer(t), newShelf()
			customers(t, srv, 420)
			env, job := newWorkflows(&Activities{Client: changed(srv, test.change), Sink: sink}), nightly()
			job.List.Count = test.count
			env.ExecuteWorkflow(ExportLists, job)
			assert.Equal(t, []IncompleteList{test.lacks}, result[ExportSummary](t, env).IncompleteLists)
			test.end.Export = "night"
			assert.Equal(t, map[Position]int{test.end: 1}, sink.ends)
		})
	}
}

// TestExportLists_continueAsNew checks that an export of six ranges continues as new after three activities, and is
// completed by the next run.
func TestExportLists_continueAsNew(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	job := nightly(subscriptions(srv, 12)...)
	job.ListsPerActivity, job.ActivitiesPerRun = 2, 3
	in := exportInput{ExportJob: job}
	for runs := 1; ; runs++ {
		env := newWorkflows(&Activities{Client: srv.Client(), Sink: sink})
		env.ExecuteWorkflow(workflowExport, in)
		var next *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &next) {
			assert.Equal(t, 12, result[ExportSummary](t, env).Done)
			assert.Equal(t, 2, runs)
			return
		}
		in = exportInput{}
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	}
}
