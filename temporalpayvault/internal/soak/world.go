package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/temporalpayvault"
)

const (
	batch    = payvault.MaxAccountUpdaterCards
	opSubmit = payvault.OpAccountUpdaterSubmit

	heartbeat = 3 * time.Second
)

// world is the emulator, the server and the workers.
type world struct {
	*settings

	dir      string
	emulator *payvaulttest.Server
	front    *httptest.Server // of the emulator, where requests are made to fail
	server   *exec.Cmd
	client   client.Client
	workers  []*exec.Cmd
	runs     map[string]string // the first one of each workflow
	logs     *os.File          // of the workers

	harm             atomic.Pointer[[]payvaulttest.Fault] // what requests fail by; nil if none is to
	broken           atomic.Pointer[error]                // of a fault that cannot strike
	requests, faulty atomic.Int64

	killed, frozen, resets, restarted int // workers, workers, activities, the server; since the last harmed
}

// build starts everything. What it has started until then is to be closed also if it fails.
func (s *settings) build(ctx context.Context) (w *world, err error) {
	w = &world{
		settings: s, emulator: payvaulttest.NewServer(payvaulttest.WithRequestHistory(0)), runs: map[string]string{},
	}
	w.front = httptest.NewServer(w)
	inner, err := url.Parse(w.emulator.URL)
	if err != nil {
		return w, err
	}
	s.url, s.key = w.front.URL+inner.Path, w.emulator.Merchant().APIKey
	if w.dir, err = os.MkdirTemp("", "payvault-soak-"); err != nil {
		return w, err
	}
	s.journal = filepath.Join(w.dir, "journal.db")
	if w.logs, err = os.Create(filepath.Join(w.dir, "workers.log")); err != nil {
		return w, err
	}
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return w, err
	}
	s.address = free.Addr().String()
	if err := free.Close(); err != nil {
		return w, err
	}
	if w.client, err = s.newClient(os.Stderr); err != nil {
		return w, err
	}
	if err := w.serve(ctx); err != nil {
		return w, err
	}
	for range s.workers {
		worker := w.child(ctx, childWorker)
		w.workers = append(w.workers, worker)
		if err := worker.Start(); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *world) close() {
	for _, cmd := range append(w.workers, w.server) {
		kill(cmd)
	}
	w.front.Close()
	w.emulator.Close()
	_ = os.RemoveAll(w.dir)
}

func kill(cmd *exec.Cmd) {
	if cmd != nil && cmd.Process != nil {
		_ = cmd.Process.Kill() // SIGKILL
		_ = cmd.Wait()
	}
}

// child is this program in another process.
func (w *world) child(ctx context.Context, as string) *exec.Cmd {
	//nolint:gosec // it is this program
	cmd := exec.CommandContext(context.WithoutCancel(ctx), os.Args[0],
		"-child", as, "-address", w.address, "-url", w.url, "-key", w.key,
		"-journal", w.journal, "-record", w.record, "-codec="+strconv.FormatBool(w.sealed),
		"-cards", strconv.Itoa(w.cards), "-faults", strconv.FormatFloat(w.faults, 'f', -1, 64))
	cmd.Stdout, cmd.Stderr = w.logs, w.logs
	return cmd
}

func (w *world) database() string { return filepath.Join(w.dir, "temporal.db") }

// serve starts the server of Temporal, and waits until it answers.
func (w *world) serve(ctx context.Context) error {
	_, port, err := net.SplitHostPort(w.address)
	if err != nil {
		return err
	}
	//nolint:gosec // the server
	w.server = exec.CommandContext(context.WithoutCancel(ctx), w.temporal,
		"server", "start-dev", "--headless", "--port", port,
		"--db-filename", w.database(), "--log-level", "never")
	w.server.Stderr = os.Stderr
	if err := w.server.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := w.client.CheckHealth(ctx, &client.CheckHealthRequest{})
		if err == nil {
			return nil
		}
		if !wait(ctx, 100*time.Millisecond) {
			return errors.Join(errors.New("the server does not answer"), err)
		}
	}
}

// wait reports whether d has passed before the end of ctx.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ServeHTTP is the service, some of whose requests fail.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.requests.Add(1)
	if list := w.harm.Load(); list != nil && rand.Float64() < w.faults { //nolint:gosec // no secret
		fault := (*list)[int(w.faulty.Add(1)-1)%len(*list)] // in turn, so that few requests see all of them
		fault.Times = 1
		if _, err := w.emulator.Inject(fault); err != nil {
			w.broken.Store(&err)
		}
	}
	w.emulator.ServeHTTP(out, r)
}

// faults are those of an operation. A refusal ends what only reads, so exports have none.
func faults(op payvault.Operation) []payvaulttest.Fault {
	list := []payvaulttest.Fault{
		{Kind: payvaulttest.DropAfterCommit},
		{Kind: payvaulttest.DropBeforeCommit},
		{Kind: payvaulttest.RateLimit, RetryAfter: "1"},
		{Kind: payvaulttest.Respond, Status: http.StatusServiceUnavailable},
		{Kind: payvaulttest.Respond, Status: http.StatusServiceUnavailable, AfterCommit: true},
		{Kind: payvaulttest.Delay, Delay: 2 * time.Second, AfterCommit: true},
	}
	if op == opSubmit {
		refusal := payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Message: "card " + number(7) + declined}
		list = append([]payvaulttest.Fault{refusal}, list...)
	}
	for i := range list {
		list[i].Operation = op
	}
	return list
}

// harmed does something that takes so many requests of an operation, while some of them fail and workers are killed,
// one after the other: every second one is frozen instead, so that it is taken for lost and goes on later. The server
// is killed once. It is an error if less was done than was meant, since then nothing is proved.
func (w *world) harmed(
	ctx context.Context, out io.Writer, id string, op payvault.Operation, requests int, do func() error,
) error {
	list := faults(op)
	before := w.requests.Load()
	w.faulty.Store(0)
	w.killed, w.frozen, w.resets, w.restarted = 0, 0, 0, 0
	w.harm.Store(&list)
	err := w.amidKills(ctx, id, requests, do)
	w.harm.Store(nil)
	wait(ctx, 2*heartbeat) // one that was frozen may send what it had announced, until its heartbeat is refused
	failed := int(w.faulty.Load()) - len(w.emulator.Faults())
	w.emulator.ClearFaults()
	say(out, "%s: %d requests, %d of them failed, %d workers killed, %d frozen, the server %d times; resets: %d",
		id, w.requests.Load()-before, failed, w.killed, w.frozen, w.restarted, w.resets)
	if broken := w.broken.Load(); broken != nil {
		return errors.Join(err, *broken)
	}
	if w.killed+w.frozen < w.kills || w.restart && w.kills > 0 && w.restarted == 0 {
		err = errors.Join(err, errors.New("it ended before all were killed: give it more -cards"))
	}
	if w.frozen > 0 && w.resets == 0 {
		err = errors.Join(err, errors.New("no activity was reset"))
	}
	if w.faults > 0 && failed == 0 {
		err = errors.Join(err, errors.New("no request failed"))
	}
	return err
}

func (w *world) amidKills(ctx context.Context, id string, requests int, do func() error) error {
	while, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	before := int(w.requests.Load())
	go func() {
		for n := range w.kills {
			for due := before + requests*(n+1)/(w.kills+2); int(w.requests.Load()) < due; {
				wait(while, time.Millisecond)
				if while.Err() != nil {
					break
				}
			}
			if while.Err() != nil {
				break
			}
			if err := w.kill(while, id, n); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	err := do()
	end()
	return errors.Join(err, <-ended)
}

// kill kills and freezes each of the workers in turn. While one is frozen an operator resets the activities of the job,
// from when on the server does not tell their attempts apart.
func (w *world) kill(ctx context.Context, id string, n int) error {
	worker := &w.workers[(n+n/2)%len(w.workers)]
	if n%2 == 1 {
		w.frozen++
		frozen := (*worker).Process.Signal(syscall.SIGSTOP)
		w.resetActivities(ctx, id)
		wait(ctx, 2*heartbeat)
		return errors.Join(frozen, (*worker).Process.Signal(syscall.SIGCONT))
	}
	kill(*worker)
	w.killed++
	if w.restart && n == w.kills/4*2 {
		kill(w.server)
		if err := w.serve(ctx); err != nil {
			return err
		}
		w.restarted++
	}
	*worker = w.child(ctx, childWorker)
	return (*worker).Start()
}

// resetActivities resets those that are at work, of whatever type the job has.
func (w *world) resetActivities(ctx context.Context, id string) {
	for _, name := range []string{"payvault.submit", "payvault.export", "Naive"} {
		_, err := w.client.WorkflowService().ResetActivity(ctx, &workflowservice.ResetActivityRequest{
			Namespace: "default", Execution: &commonpb.WorkflowExecution{WorkflowId: id},
			Activity: &workflowservice.ResetActivityRequest_Type{Type: name},
		})
		if err == nil {
			w.resets++
		}
	}
}

// jobOf is the job of a part of the soak.
func (w *world) jobOf(part string) temporalpayvault.Job {
	job := w.job
	job.Source, job.HeartbeatTimeout, job.MaxUnknown = part+":"+strconv.Itoa(w.cards), heartbeat, w.cards
	return job
}

func (w *world) start(ctx context.Context, id, queue string, workflow, input any) (client.WorkflowRun, error) {
	run, err := w.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: queue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, workflow, input)
	if err != nil {
		return nil, err
	}
	w.runs[id] = run.GetRunID()
	return run, nil
}

// submitted runs a job of the part id while requests fail and workers are killed.
func (w *world) submitted(
	ctx context.Context, out io.Writer, id, queue string, workflow any,
) (sum temporalpayvault.Summary, err error) {
	var took time.Duration
	err = w.harmed(ctx, out, id, opSubmit, w.cards/batch, func() error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		run, err := w.start(ctx, id, queue, workflow, w.jobOf(id))
		if err != nil {
			return err
		}
		return run.Get(ctx, &sum)
	})
	say(out, "%s: %d cards in %v, %.0f a second",
		id, w.cards, took.Round(time.Millisecond), float64(w.cards)/took.Seconds())
	return sum, err
}
