package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/temporalpayvault"
)

// jobOf returns the job that submits the cards of a part of the soak.
func (w *world) jobOf(part string) temporalpayvault.Job {
	job := w.job
	job.Source, job.Snapshot, job.HeartbeatTimeout = part, deck{w.settings}.snapshot(part), heartbeat
	return job
}

// execute runs a workflow, and resumes it whenever it pauses.
func (w *world) execute(ctx context.Context, id string, workflow, input, result any) error {
	run, err := w.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, workflow, input)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for wait(ctx, 300*time.Millisecond) {
			if w.update(ctx, id, temporalpayvault.UpdateResume) == nil { // refused unless the workflow is paused
				w.pauses.Add(1)
			}
		}
	}()
	return run.Get(ctx, result)
}

func (w *world) update(ctx context.Context, id, name string) error {
	handle, err := w.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// counts has an element for each batch: how often the service has performed the batch.
type counts []int

func (c counts) twice() (n int) {
	for _, times := range c {
		if times > 1 {
			n++
		}
	}
	return n
}

// performed returns how often the service has performed each batch, and the latest request ID of each batch.
func (w *world) performed(part string) (c counts, ids map[int]string) {
	c, ids = make(counts, (w.cards+batchSize-1)/batchSize), map[int]string{}
	for _, r := range w.emulator.AccountUpdaterRequests.All() {
		if position, ok := strings.CutPrefix(r.Cards[0].CardID, part+"-"); ok {
			first, _ := strconv.Atoi(position)
			c[first/batchSize]++
			ids[first/batchSize] = r.RequestID
		}
	}
	return c, ids
}

// audit compares the batches that the service has performed with the journal of a part. It returns an error if they
// contradict each other, or if a batch is missing or was performed twice.
func (w *world) audit(ctx context.Context, part string) error {
	outcomes, err := w.outcomes(ctx, part)
	if err != nil {
		return err
	}
	found := map[string]int{}
	performed, ids := w.performed(part)
	for i, n := range performed {
		status := outcomes[i].Status
		found[cmp.Or(string(status), "missing")]++
		switch {
		case status == payvault.BatchAccepted && n == 0, status == "", status == payvault.BatchNotSent:
			found["LOST"]++
		case status == payvault.BatchRefused && n > 0:
			found["REFUSED AND PERFORMED"]++
		}
		if status == payvault.BatchAccepted && outcomes[i].RequestID != ids[i] {
			found["ID LOST"]++
		}
	}
	found["PERFORMED TWICE"] = performed.twice()
	say("%s: the journal of %d batches: %v", part, len(performed), found)
	if found["LOST"]+found["REFUSED AND PERFORMED"]+found["PERFORMED TWICE"]+found["ID LOST"] > 0 {
		return errors.New("the audit has failed")
	}
	return nil
}

// outcomes reads the status and the request ID of each batch from the journal of a part.
func (w *world) outcomes(ctx context.Context, part string) (_ map[int]payvault.BatchOutcome, err error) {
	driver, place := "sqlite", w.journal(part)
	if part == partTemporal && w.postgres != "" {
		driver, place = "pgx", w.postgres
	}
	db, err := sql.Open(driver, place)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `SELECT batch, status, request_id FROM payvault_batches WHERE job = $1`,
		deck{w.settings}.snapshot(part).Checksum)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err returns the error
	outcomes := map[int]payvault.BatchOutcome{}
	for rows.Next() {
		var i int
		var o payvault.BatchOutcome
		if err := rows.Scan(&i, &o.Status, &o.RequestID); err != nil {
			return nil, err
		}
		outcomes[i] = o
	}
	return outcomes, rows.Err()
}

// histories returns the events of all runs of a workflow, or of all workflows if id is "". The events of the newest run
// come first. It also returns the number of runs.
func (w *world) histories(ctx context.Context, id string) (events []*historypb.HistoryEvent, runs int, err error) {
	for token := []byte(nil); ; {
		list, err := w.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: token})
		if err != nil {
			return nil, 0, err
		}
		for _, x := range list.GetExecutions() {
			if id != "" && x.GetExecution().GetWorkflowId() != id {
				continue
			}
			runs++
			history := w.client.GetWorkflowHistory(ctx, x.GetExecution().GetWorkflowId(), x.GetExecution().GetRunId(), false,
				enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for history.HasNext() {
				e, err := history.Next()
				if err != nil {
					return nil, 0, err
				}
				events = append(events, e)
			}
		}
		if token = list.GetNextPageToken(); len(token) == 0 {
			return events, runs, nil
		}
	}
}

// weigh prints the sizes of the histories of a job.
func (w *world) weigh(ctx context.Context, id string) error {
	events, runs, err := w.histories(ctx, id)
	size := 0
	for _, e := range events {
		size += proto.Size(e)
	}
	million := 1e6 / float64(w.cards)
	say("%s: %d runs, %d events, %d bytes; for a million cards %.0f and %.1f MB",
		id, runs, len(events), size, float64(len(events))*million, float64(size)*million/1e6)
	return err
}

// leaks returns an error if it finds a card in the histories, in the files of the server and of the journals, or in the
// logs. To prove that the search works, it also searches each of them for a text that has to be there.
func (w *world) leaks(ctx context.Context) error {
	events, _, err := w.histories(ctx, "")
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, e := range events {
		raw, err := proto.Marshal(e)
		if err != nil {
			return err
		}
		texts["histories"] = append(texts["histories"], raw...)
	}
	for _, name := range []string{"temporal.db", partTemporal + ".journal", partSQLite + ".journal", "children.log"} {
		files, err := filepath.Glob(filepath.Join(w.dir, name+"*")) // a database may be more than one file
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // the file is made by the program itself
			if err != nil {
				return err
			}
			texts[name] = append(texts[name], text...)
		}
	}
	shown := map[string]string{
		"histories": "payvault.submit", "temporal.db": "payvault.submit", "children.log": "TaskQueue=" + queue,
		partTemporal + ".journal": "made up for", partSQLite + ".journal": "made up for",
	}
	if w.postgres != "" {
		delete(shown, partTemporal+".journal") // Postgres has it
	}
	for name, known := range shown {
		if !bytes.Contains(texts[name], []byte(known)) {
			return fmt.Errorf("%q is not in %s: the search does not see it", known, name)
		}
	}
	for _, secret := range []string{canary, "4111 1111", partTemporal + "-1"} { // numbers of cards, and the ID of a card
		for name, text := range texts {
			if bytes.Contains(text, []byte(secret)) {
				return fmt.Errorf("%q is in %s", secret, name)
			}
		}
	}
	say("no card in %q", slices.Sorted(maps.Keys(texts)))
	input := []byte("made up for " + partTemporal)
	if w.sealed == bytes.Contains(texts["histories"], input) {
		return errors.New("a codec has to hide inputs, and nothing else may")
	}
	return nil
}

const (
	perList  = 25 // transactions per list
	pageSize = 10
)

// export exports all lists while processes are killed and frozen and connections are cut. It checks that no page and no
// record is missing, and that none is counted twice.
func (w *world) export(ctx context.Context) error {
	const part = "export"
	job := temporalpayvault.ExportJob{
		Name: part, HeartbeatTimeout: heartbeat, ListsPerActivity: 20, Concurrency: 8,
		List: temporalpayvault.ExportOptions{Count: pageSize},
	}
	lists := w.cards / batchSize
	w.seed(lists, &job)
	var sum temporalpayvault.ExportSummary
	want := lists * ((perList + pageSize - 1) / pageSize)
	err := w.amid(ctx, part, childWork, want, func(ctx context.Context) error {
		return w.execute(ctx, part, temporalpayvault.ExportLists, job, &sum)
	})
	if err != nil {
		return err
	}
	pages, records := 0, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(w.dir, part+"-*.json"))
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the file is made by the program itself
		if err != nil {
			return err
		}
		var page []payvault.Transaction
		if err := json.Unmarshal(text, &page); err != nil {
			return err
		}
		for _, x := range page {
			records[x.PGID] = true
		}
		pages++
	}
	say("%s: %d lists, %d pages, %d records; in the sink %d pages and %d records; paused %d times",
		part, sum.Done, sum.Pages, sum.Records, pages, len(records), w.pauses.Load())
	if pages != want || len(records) != lists*perList || sum.Pages != pages || sum.Records != len(records) {
		err = errors.Join(err, errors.New("pages are missing, or counted twice"))
	}
	return err
}

// seed adds n subscriptions to the emulator, and their IDs to the export.
func (w *world) seed(n int, job *temporalpayvault.ExportJob) {
	for i := range n {
		sub := payvaulttest.Subscription{MerchantID: w.emulator.Merchant().MerchantID}
		for k := range perList {
			sub.Transactions = append(sub.Transactions, payvaulttest.Transaction{PGID: fmt.Sprint(i, "-", k)})
		}
		job.Subscriptions = append(job.Subscriptions, w.emulator.Subscriptions.Seed(sub).ID)
	}
}

// folder is a sink that writes a file for each page.
type folder string

// WriteCustomers writes a page.
func (f folder) WriteCustomers(_ context.Context, at temporalpayvault.Position, page []payvault.Customer) error {
	return write(string(f), at, page)
}

// WriteTransactions writes a page.
func (f folder) WriteTransactions(_ context.Context, at temporalpayvault.Position, page []payvault.Transaction) error {
	return write(string(f), at, page)
}

// EndList does nothing. A sink has to remove pages only if a list becomes shorter, and no list of the soak does.
func (folder) EndList(context.Context, temporalpayvault.Position) error { return nil }

func write[T any](dir string, at temporalpayvault.Position, page []T) error {
	text, err := json.Marshal(page)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, "part-")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	name := fmt.Sprintf("%s-%d-%d.json", at.Export, at.Subscription, at.Page)
	return errors.Join(err, part.Close(), os.Rename(part.Name(), filepath.Join(dir, name)))
}
