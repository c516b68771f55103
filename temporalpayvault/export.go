package temporalpayvault

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
)

// ExportJob is the input of [ExportLists].
type ExportJob struct {
	Name string // name of the export for the Sink; may be empty

	// Subscriptions has at most 50,000 subscriptions. Their transactions are exported. If it is empty, the customers are
	// exported.
	Subscriptions []payvault.SubscriptionID
	List          ExportOptions

	ListsPerActivity int           // 100 if it is not positive
	Concurrency      int           // running activities, each with one request at a time; 4 if not positive, 1,000 at most
	CallTimeout      time.Duration // a longer call of the Sink pauses the export; 5 minutes if not positive
	HeartbeatTimeout time.Duration // longest time between heartbeats of an activity; 30 s if not positive, 1 s at least
	ActivitiesPerRun int           // activities until the workflow continues as new; by default the server decides
}

// ExportSummary is the result of [ExportLists], and the answer to [QueryProgress] while the workflow runs.
type ExportSummary struct {
	Lists   int `json:"lists"` // number of lists: subscriptions, or 1 for the customers
	Done    int `json:"done"`  // number of lists that were written to their end
	Pages   int `json:"pages"` // number of pages; a page that was written again counts once
	Records int `json:"records"`

	// Incomplete is the number of lists with fewer written records than their latest totalRecords promised. An export with
	// such a list is incomplete.
	Incomplete      int              `json:"incomplete,omitempty"`
	IncompleteLists []IncompleteList `json:"incomplete_lists,omitempty"` // at most 1,000 entries

	Paused string `json:"paused,omitempty"` // reason of the pause; "" if the export is not paused
}

// exportInput is an export, with the state that a run of the workflow passes to the next run.
type exportInput struct {
	ExportJob

	State struct {
		Summary ExportSummary `json:"summary"`
		dealt
	}
}

const (
	workflowExport = "ExportLists"

	defaultLists = 100
)

// ExportLists is a workflow that walks over all customers, or over the transactions of many subscriptions, and hands
// each page to the [Sink]. It completes when all lists have been written to their end, and not before. It only reads
// from the service, so it may be started again at any time.
//
// A page is short if it is empty, or has fewer records than in an earlier answer, than the next page, or than an
// earlier page of the same attempt. While the totals of the service promise more records or pages, a short page is
// requested again. If it is still short after at least 5 requests, the export goes on. If 10 pages in the lists of an
// activity (see ListsPerActivity) stay short, further short pages are requested only once. A list ends after 100 empty
// pages in a row. [ExportSummary] names the lists whose latest totals promised more records than were written, at most
// 1,000 of them.
//
// The workflow pauses in these cases, and waits for [UpdateResume]. The reason is in [ExportSummary] and in the memo,
// see [MemoPaused].
//
//   - after [UpdatePause],
//   - when the service refuses the API key,
//   - when the service refuses a page or sends an invalid page, and the activity has failed 5 times in a row,
//   - when a request fails a local check of the client, for example because a subscription ID is negative,
//   - when a call of the sink takes longer than CallTimeout, or returns a non-retryable [temporal.ApplicationError],
//   - when the same activity has failed for an hour,
//   - when somebody fails an activity by hand, for example with the CLI of Temporal.
//
// After [UpdateResume] each unfinished list goes on at its last written page, or at an earlier page if an activity was
// failed by hand. The pages from there on are written again.
func ExportLists(ctx workflow.Context, job ExportJob) (*ExportSummary, error) {
	return exportLists(ctx, exportInput{ExportJob: job})
}

// exportLists is one run of the workflow. It returns the summary. It returns an error if the workflow has to continue
// as new, or if it is canceled.
func exportLists(ctx workflow.Context, in exportInput) (*ExportSummary, error) {
	j := &exportRun{exportInput: in}
	j.dealer = dealer{
		dealt: &j.State.dealt, total: max(1, len(in.Subscriptions)), per: orDefault(in.ListsPerActivity, defaultLists),
		concurrency: in.Concurrency, most: in.ActivitiesPerRun,
		mayDeal: func() bool { return true }, resumed: func() {},
	}
	err := j.begin(ctx, in.HeartbeatTimeout, func() (*ExportSummary, error) { return j.summary(), nil })
	if err != nil {
		return nil, err
	}
	done, err := j.run(j.export)
	sum := j.summary()
	switch {
	case err != nil:
		return nil, temporal.NewCanceledError(*sum)
	case !done:
		return nil, workflow.NewContinueAsNewError(ctx, workflowExport, j.exportInput)
	}
	sum.Paused = "" // there is nothing to resume
	return sum, nil
}

// exportRun is the state of one run of the workflow.
type exportRun struct {
	exportInput
	dealer
}

// summary returns the summary so far.
func (j *exportRun) summary() *ExportSummary {
	sum := j.State.Summary
	sum.Lists, sum.Paused = j.total, j.Paused
	return &sum
}

// export returns a function for the range s. The function runs an activity that exports the range, and returns the part
// of the range that is not exported.
func (j *exportRun) export(s span) func(workflow.Context) span {
	o := exportOrder{
		Export: j.Name, List: j.List, Span: s, Limit: orDefault(j.CallTimeout, defaultCallTimeout),
	}
	if len(j.Subscriptions) > 0 {
		o.Subscriptions = j.Subscriptions[s.From:s.To]
	}
	return func(ctx workflow.Context) span {
		var r exportReport
		if !j.perform(ctx, activityExport, &r, o) {
			return s
		}
		sum := &j.State.Summary
		sum.Done += r.Left.From - s.From
		sum.Pages += r.Pages
		sum.Records += r.Records
		sum.Incomplete += r.Incomplete
		sum.IncompleteLists = appendSome(sum.IncompleteLists, r.IncompleteLists)
		j.after(ctx, r.ending)
		return r.Left
	}
}
