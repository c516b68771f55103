package temporalpayvault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
)

// Sink takes the pages of an export. It is called concurrently, but not for the same list, unless a worker that was
// taken for lost is still at work.
//
// A page is given again when a worker was lost: writing it again has to replace what was written before under the same
// number, and then every page is there once. The service may have changed the list meanwhile, so that the page has
// other records, and those after it another Offset. What its errors say is left out of histories and logs: log what you
// need. Only of a [temporal.ApplicationError] the message, cut after 1,000 bytes, and the type are kept; a codec
// encrypts the message, and leaves the type as it is. What fails is tried again until it succeeds; a non-retryable
// ApplicationError has the export pause.
//
// The server is asked before each call whether the worker is still the one at work. A worker that freezes in a call may
// finish it later all the same: a sink to which that matters keeps the latest Started of each list, and returns an
// error for an earlier one.
type Sink interface {
	WriteCustomers(ctx context.Context, at Position, customers []payvault.Customer) error
	WriteTransactions(ctx context.Context, at Position, transactions []payvault.Transaction) error
	// EndList is called when all pages of a list are written, at the position after the last one: the list is complete,
	// and what is there from that page on was written while it was longer. It may be called again, as the others may.
	EndList(ctx context.Context, at Position) error
}

// Position says where a page belongs.
type Position struct {
	Export       string                  // name of the export
	Subscription payvault.SubscriptionID // 0 for customers
	Page         int                     // zero-based
	Offset       int                     // records in the pages of the list before it
	Started      time.Time               // when the server began the activity that writes; a later one's is later
}

// SubscriptionSource gives the workers the subscriptions that an export only refers to. A reference stands for the same
// subscriptions, in the same order, while an export of it runs. Its errors are treated as those of a [Sink].
type SubscriptionSource interface {
	// Count returns how many there are.
	Count(ctx context.Context, ref string) (int, error)
	// Subscriptions returns those from position start to position end, which is not included.
	Subscriptions(ctx context.Context, ref string, start, end int) ([]payvault.SubscriptionID, error)
}

// ExportJob is the input of [ExportLists].
type ExportJob struct {
	Name          string               // for the Sink, which is to tell exports apart by it; may be empty
	Subscriptions string               // reference for the SubscriptionSource; "" to export the customers
	List          payvault.ListOptions // what to list; Page and Prefetch do not count; histories have values of filters

	// 100 if it is not positive. A heartbeat holds those that are refused, so they are 5,000 at most, and 20,000 in all
	// activities in flight.
	ListsPerActivity int
	Concurrency      int           // activities in flight, each with one request; 8 if it is not positive, 1,000 at most
	HeartbeatTimeout time.Duration // a worker that is silent for so long is lost; 30 s if not positive, 1 s at least
	ActivitiesPerRun int           // continues as new after so many; by default when the server suggests it

	State *ExportState // of the runs before: leave it nil
}

// listOptions are those of a list with the values of its filters, which JSON of a [payvault.Filter] leaves out.
type listOptions struct {
	payvault.ListOptions

	Filters []filter
}

type filter struct {
	Field       string
	Conditional payvault.Conditional
	Values      []string
}

func withValues(o payvault.ListOptions) listOptions {
	list := listOptions{ListOptions: o}
	for _, f := range o.Filters {
		list.Filters = append(list.Filters, filter(f))
	}
	return list
}

func (l listOptions) options() payvault.ListOptions {
	o := l.ListOptions
	o.Filters = nil
	for _, f := range l.Filters {
		o.Filters = append(o.Filters, payvault.Filter(f))
	}
	return o
}

// MarshalJSON writes the values of filters too.
func (j ExportJob) MarshalJSON() ([]byte, error) {
	type plain ExportJob
	return json.Marshal(struct { //nolint:musttag // a job has the names of Go
		plain

		List listOptions
	}{plain(j), withValues(j.List)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (j *ExportJob) UnmarshalJSON(b []byte) error {
	type plain ExportJob
	job := struct {
		*plain

		List listOptions
	}{plain: (*plain)(j)}
	err := json.Unmarshal(b, &job) //nolint:musttag // as above
	j.List = job.List.options()
	return err
}

// ExportState is what a run of an export hands to the next one when it continues as new.
type ExportState struct {
	Counted bool          `json:"counted"`
	Summary ExportSummary `json:"summary"`
	carried
}

// ExportSummary is the result of [ExportLists], and while it runs the answer to [QueryProgress].
type ExportSummary struct {
	Lists   int `json:"lists"` // to export: subscriptions, or 1 for the customers
	Done    int `json:"done"`  // exported to their end
	Failed  int `json:"failed"`
	Pages   int `json:"pages"` // without those that were written again
	Records int `json:"records"`

	FailedLists []FailedList `json:"failed_lists,omitempty"` // at most 1,000 of them

	Paused      string `json:"paused,omitempty"`       // why; "" if it is not
	LastFailure string `json:"last_failure,omitempty"` // of the last activity to end, tried again; "" if it succeeded
}

// FailedList is a list that the service refuses. The pages before the one that was refused have been written.
type FailedList struct {
	Subscription payvault.SubscriptionID `json:"subscription,omitempty"` // 0 for customers
	Reason       string                  `json:"reason"`                 // text of the error; cut after 200 bytes
}

const defaultLists = 100

// ExportLists is a workflow that walks over all customers, or over the transactions of many subscriptions, and hands
// each page to the [Sink]. It only reads, so it may be started again at any time.
//
// It pauses until it is told to [Resume], with the reason in [ExportSummary], after [Pause], when the service answers
// 401 or 403, when more than 1,000 parts fail each time, and when an activity fails for good. A list that the service
// refuses otherwise is left and counted.
func ExportLists(ctx workflow.Context, job ExportJob) (*ExportSummary, error) {
	if job.State == nil {
		job.State = &ExportState{}
	}
	state, sum := job.State, &job.State.Summary
	err := workflow.SetQueryHandler(ctx, QueryProgress, func() (*ExportSummary, error) { return sum, nil })
	if err != nil {
		return nil, err
	}
	ctx = withActivities(ctx, job.HeartbeatTimeout, 0)
	per, concurrency := job.spans()
	d := &dispatch{
		carried: &state.carried, per: per, concurrency: concurrency, most: job.ActivitiesPerRun,
		paused: &sum.Paused, failure: &sum.LastFailure, resumed: func() {},
	}
	switch {
	case state.Counted:
	case job.Subscriptions == "":
		sum.Lists = 1
	default:
		if err := d.begin(ctx, activityCount, job.Subscriptions, &sum.Lists); err != nil {
			return nil, temporal.NewCanceledError(*sum)
		}
	}
	state.Counted = true
	d.total = sum.Lists
	done, err := d.run(ctx, func(ctx workflow.Context, s span) (left []span) {
		o := exportOrder{Export: job.Name, Subscriptions: job.Subscriptions, List: withValues(job.List), Span: s}
		resumes := d.resumes
		var r exported
		err := perform(startedOnce(ctx), activityExport, o, &r)
		known := err == nil || reported(err, &r)
		if r.At == (span{}) { // it has not said how far it has come
			r.At = s
		}
		if r.At.From < s.To {
			left = []span{r.At}
		}
		sum.add(r)
		d.ended(ctx, s, err, known, left)
		d.stop(ctx, r.Stop, resumes)
		return left
	})
	switch {
	case temporal.IsCanceledError(err):
		return nil, temporal.NewCanceledError(*sum)
	case err != nil || done:
		return sum, err
	}
	return nil, workflow.NewContinueAsNewError(ctx, ExportLists, job)
}

// spans says how many lists a span has, and how many are in flight.
func (j ExportJob) spans() (per, concurrency int) {
	concurrency = min(orDefault(j.Concurrency, defaultConcurrency), maxConcurrency)
	return perActivity(j.ListsPerActivity, defaultLists, concurrency), concurrency
}

func (s *ExportSummary) add(r exported) {
	s.Done += r.Done
	s.Failed += len(r.Failed)
	s.Pages += r.Pages
	s.Records += r.Records
	s.FailedLists = append(s.FailedLists, r.Failed[:min(len(r.Failed), maxListed-len(s.FailedLists))]...)
}

// exportOrder is what a workflow has an activity export.
type exportOrder struct {
	Export        string
	Subscriptions string
	List          listOptions
	Span          span
}

// exported is what an activity has done: its heartbeat, its result, and the details of its failure.
type exported struct {
	At      span         `json:"at"` // what is left, from its page on
	Done    int          `json:"done"`
	Pages   int          `json:"pages"`
	Records int          `json:"records"`
	Failed  []FailedList `json:"failed,omitempty"`
	Stop    string       `json:"stop,omitempty"` // of a result: why the export has to pause
}

// count counts the subscriptions of an export.
func (a *Activities) count(ctx context.Context, ref string) (int, error) {
	if a.Subscriptions == nil {
		return 0, temporal.NewNonRetryableApplicationError("a worker has no Subscriptions in its Activities", TypeSource, nil)
	}
	defer keepAlive(ctx, func() { activity.RecordHeartbeat(ctx) })()
	n, err := a.Subscriptions.Count(ctx, ref)
	if err != nil {
		return 0, silent(err, TypeSource)
	}
	if n < 0 {
		return 0, temporal.NewNonRetryableApplicationError("a source needs 0 subscriptions or more", TypeSource, nil)
	}
	return n, nil
}

// export exports lists. The activity after a lost one goes on after the last page that a heartbeat has told the server
// of, so the one since then is written again.
func (a *Activities) export(ctx context.Context, o exportOrder) (*exported, error) {
	if a.Client == nil || a.Sink == nil || o.Subscriptions != "" && a.Subscriptions == nil {
		return &exported{At: o.Span, Stop: "a worker has no Client, no Sink or no Subscriptions in its Activities"}, nil
	}
	if activity.HasHeartbeatDetails(ctx) {
		return nil, startedAgain[exported](ctx)
	}
	e := &exporter{
		Activities: a, exportOrder: o, exported: exported{At: o.Span}, heartbeat: a.newHeartbeat(ctx),
		started: activity.GetInfo(ctx).StartedTime,
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.refused = cancel
	defer keepAlive(ctx, func() { _ = e.beat(ctx) })()
	stop, err := e.run(ctx)
	done := e.exported
	done.Stop = stop
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil, temporal.IsCanceledError(context.Cause(ctx)): // one that is canceled reports what it has done
	case ok && app.NonRetryable(): // of a source or a sink
		done.Stop = app.Message()
	default:
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) { // amid a request
			err = errHeartbeat(cause)
		}
		return nil, failed(err, done)
	}
	return &done, nil
}

// exporter is one attempt of an activity.
type exporter struct {
	*Activities
	exportOrder
	*heartbeat

	started  time.Time
	exported // which one goroutine changes and another one sends
}

// beat returns when the server knows what this attempt has come to, and that it is the one at work.
func (e *exporter) beat(ctx context.Context) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	e.mu.Lock()
	now := e.exported
	e.mu.Unlock()
	if err := e.send(ctx, now); err != nil {
		return errHeartbeat(err)
	}
	return nil
}

// run exports what is left, and returns why the export has to pause, if it has.
func (e *exporter) run(ctx context.Context) (stop string, err error) {
	ids := []payvault.SubscriptionID{0}
	if e.exportOrder.Subscriptions != "" {
		ids, err = e.Activities.Subscriptions.Subscriptions(ctx, e.exportOrder.Subscriptions, e.At.From, e.At.To)
		if err != nil {
			return "", silent(err, TypeSource)
		}
		if len(ids) != e.At.To-e.At.From {
			return "", temporal.NewApplicationError("the source gives another number of subscriptions", TypeSource)
		}
	}
	for _, id := range ids {
		err := e.list(ctx, id)
		switch {
		case err == nil:
			e.next(1, nil)
		case errors.Is(err, payvault.ErrUnauthorized), errors.Is(err, payvault.ErrForbidden):
			return bounded("the service answers with an error of the key: "+err.Error(), maxMessage), nil
		case isRefusal(err):
			e.next(0, []FailedList{{id, bounded(err.Error(), maxReason)}})
		default:
			return "", Error(err)
		}
	}
	return "", nil
}

// isRefusal reports whether asking for a list again would be of no use.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*payvault.Error](err)
	return (ok || errors.Is(err, payvault.ErrMalformedResponse)) && !payvault.SafeToRetry(err)
}

// next goes on with the next list.
func (e *exporter) next(done int, failed []FailedList) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Done += done
	e.Failed = append(e.Failed, failed...)
	e.At = span{From: e.At.From + 1, To: e.At.To}
}

// list writes the pages of a list that have not been written.
func (e *exporter) list(ctx context.Context, id payvault.SubscriptionID) error {
	if e.exportOrder.Subscriptions == "" {
		return pages(ctx, e, id, e.Client.Customers.List, e.Sink.WriteCustomers)
	}
	transactions := func(
		ctx context.Context, o *payvault.ListOptions, opts ...payvault.CallOption,
	) (*payvault.Page[payvault.Transaction], error) {
		return e.Client.Subscriptions.Transactions(ctx, id, o, opts...)
	}
	return pages(ctx, e, id, transactions, e.Sink.WriteTransactions)
}

// pages walks from the page that e has come to. It ends with the last page that the service claims.
func pages[T any](
	ctx context.Context, e *exporter, id payvault.SubscriptionID,
	get func(context.Context, *payvault.ListOptions, ...payvault.CallOption) (*payvault.Page[T], error),
	write func(context.Context, Position, []T) error,
) error {
	options := e.List.options()
	var before []T
	for {
		options.Page = e.At.Page
		page, err := get(ctx, &options)
		if err != nil {
			return err
		}
		if err := check(page, before); err != nil {
			return err
		}
		before = page.Items
		if len(page.Items) > 0 {
			if err := e.beat(ctx); err != nil {
				return err
			}
			if err := write(ctx, e.at(id), page.Items); err != nil {
				return silent(err, TypeSink)
			}
			e.wrote(len(page.Items))
		}
		if len(page.Items) == 0 || page.TotalPages > 0 && e.At.Page >= page.TotalPages {
			return e.end(ctx, id)
		}
		if isClosed(activity.GetWorkerStopChannel(ctx)) {
			return errWorkerStops()
		}
	}
}

// at is the position of the page to come.
func (e *exporter) at(id payvault.SubscriptionID) Position {
	return Position{
		Export: e.Export, Subscription: id, Page: e.At.Page, Offset: e.At.Offset, Started: e.started,
	}
}

func (e *exporter) end(ctx context.Context, id payvault.SubscriptionID) error {
	if err := e.beat(ctx); err != nil {
		return err
	}
	if err := e.Sink.EndList(ctx, e.at(id)); err != nil {
		return silent(err, TypeSink)
	}
	return nil
}

func (e *exporter) wrote(records int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Pages++
	e.Records += records
	e.At.Page++
	e.At.Offset += records
}

// check refuses a page on which a walk would never end, or would end early.
func check[T any](page *payvault.Page[T], before []T) error {
	switch {
	case len(page.Items) == 0 && page.Number+1 < page.TotalPages:
		return malformed("page " + strconv.Itoa(page.Number) + " is empty, though more are claimed")
	case len(page.Items) > 0 && reflect.DeepEqual(page.Items, before):
		return malformed("page " + strconv.Itoa(page.Number) + " repeats the one before it")
	}
	return nil
}

func malformed(text string) error {
	return fmt.Errorf("%w: %s", payvault.ErrMalformedResponse, text)
}
