// Soak runs SubmitCards on a real server of Temporal against the emulator, kills workers and the server, and audits
// what was performed and what can be read:
//
//	go run ./internal/soak -temporal ./temporal -cards 100000 -workers 2 -kills 6 -faults 0.05
//
// "make temporal-soak" builds the server first.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/temporalpayvault"
)

const (
	queue = "soak"
	batch = payvault.MaxAccountUpdaterCards
	op    = payvault.OpAccountUpdaterSubmit
)

type settings struct {
	temporal, history       string
	cards, workers, kills   int
	faults                  float64
	restart, sealed         bool
	perActivity, activities int

	worker           bool // what follows is of a worker
	address, url, id string
}

func main() {
	var s settings
	flag.StringVar(&s.temporal, "temporal", "temporal", "the program of the development server")
	flag.StringVar(&s.history, "history", "", "file to write the history of the first run to, as JSON")
	flag.IntVar(&s.cards, "cards", 100_000, "how many")
	flag.IntVar(&s.workers, "workers", 2, "processes")
	flag.IntVar(&s.kills, "kills", 6, "workers killed on the way")
	flag.Float64Var(&s.faults, "faults", 0.05, "share of requests that fail")
	flag.BoolVar(&s.restart, "restart", true, "kill the server too")
	flag.BoolVar(&s.sealed, "codec", true, "encrypt payloads")
	flag.IntVar(&s.perActivity, "batches", 50, "batches per activity")
	flag.IntVar(&s.activities, "run", 0, "activities per run; as many as the server wants by default")
	flag.BoolVar(&s.worker, "worker", false, "be a worker")
	flag.StringVar(&s.address, "address", "", "of the server")
	flag.StringVar(&s.url, "url", "", "of the emulator")
	flag.StringVar(&s.id, "key", "", "of the emulator")
	flag.Parse()
	run := s.soak
	if s.worker {
		run = s.work
	}
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// deck makes cards up.
type deck struct{}

func (deck) Snapshot(_ context.Context, ref string) (temporalpayvault.Snapshot, error) {
	n, err := strconv.Atoi(ref)
	return temporalpayvault.Snapshot{Cards: n}, err
}

func (deck) Cards(_ context.Context, _ string, start, end int) (cards []payvault.AccountUpdaterCard, _ error) {
	for i := start; i < end; i++ {
		cards = append(cards, payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(fmt.Sprintf("41111111%08d", i)), ExpDate: "1230", CardID: fmt.Sprint("c-", i),
		})
	}
	return cards, nil
}

func (s *settings) dial(ctx context.Context) (client.Client, error) {
	data, failures := temporalpayvault.NewConverters(nil)
	if s.sealed {
		codec, err := temporalpayvault.NewCodec("soak", map[string][]byte{"soak": bytes.Repeat([]byte("k"), 32)})
		if err != nil {
			return nil, err
		}
		data, failures = temporalpayvault.NewConverters(codec)
	}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return client.DialContext(ctx, client.Options{
		HostPort: s.address, DataConverter: data, FailureConverter: failures, Logger: log.NewStructuredLogger(quiet),
	})
}

func (s *settings) work(ctx context.Context, _ io.Writer) error {
	server, err := s.dial(ctx)
	if err != nil {
		return err
	}
	pv, err := payvault.NewClient(s.url, s.id)
	if err != nil {
		return err
	}
	w := worker.New(server, queue, worker.Options{WorkerStopTimeout: time.Minute})
	temporalpayvault.Register(w, &temporalpayvault.Activities{Client: pv, Cards: deck{}})
	return w.Run(worker.InterruptCh())
}

func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// start starts a program.
func start(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // this program, or the server
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// serve starts the development server, and waits until it answers.
func (s *settings) serve(ctx context.Context, database string) (*exec.Cmd, client.Client, error) {
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, nil, err
	}
	cmd, err := start(ctx, s.temporal, "server", "start-dev", "--headless", "--port", port, "--db-filename", database,
		"--log-level", "never")
	if err != nil {
		return nil, nil, err
	}
	for range 60 {
		c, err := s.dial(ctx)
		if err == nil {
			return cmd, c, nil
		}
		<-time.After(time.Second)
	}
	kill(cmd)
	return nil, nil, errors.New("the server does not answer")
}

func (s *settings) soak(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "payvault-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of a directory for files that do not matter
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.address = free.Addr().String()
	if err := free.Close(); err != nil {
		return err
	}
	emulator := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
	defer emulator.Close()
	database := filepath.Join(dir, "temporal.db")
	server, c, err := s.serve(ctx, database)
	if err != nil {
		return err
	}
	defer func() { kill(server) }()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "soak", TaskQueue: queue},
		temporalpayvault.SubmitCards, temporalpayvault.Job{
			Source: strconv.Itoa(s.cards), BatchesPerActivity: s.perActivity, ActivitiesPerRun: s.activities,
			HeartbeatTimeout: 3 * time.Second, MaxUnknown: 1 << 30,
		})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.harm(ctx, emulator)
	program, err := os.Executable()
	if err != nil {
		return err
	}
	worker := func() (*exec.Cmd, error) {
		return start(ctx, program, "-worker", "-address", s.address, "-url", emulator.URL,
			"-key", emulator.Merchant().APIKey, "-codec="+strconv.FormatBool(s.sealed))
	}
	workers := make([]*exec.Cmd, s.workers)
	for i := range workers {
		if workers[i], err = worker(); err != nil {
			return err
		}
		defer func() { kill(workers[i]) }()
	}
	began := time.Now()
	for n := range s.kills {
		for emulator.Commits(op) < s.cards/batch*(n+1)/(s.kills+1) {
			<-time.After(time.Millisecond)
		}
		i := n % len(workers)
		kill(workers[i])
		if s.restart && n == s.kills/2 {
			kill(server)
			if server, c, err = s.serve(ctx, database); err != nil {
				return err
			}
		}
		if workers[i], err = worker(); err != nil {
			return err
		}
	}
	var sum temporalpayvault.Summary
	if err := c.GetWorkflow(ctx, run.GetID(), "").Get(ctx, &sum); err != nil {
		return err
	}
	took := time.Since(began)
	say(out, "%d cards in %v: %.0f a second; %d batches accepted, %d refused, %d unknown; %d performed\n",
		s.cards, took.Round(time.Millisecond), float64(s.cards)/took.Seconds(),
		sum.Accepted, sum.Refused, sum.Unknown, emulator.Commits(op))
	return errors.Join(audit(out, emulator, sum), s.search(ctx, out, c, run, database))
}

// harm makes a share of the requests fail.
func (s *settings) harm(ctx context.Context, emulator *payvaulttest.Server) {
	if s.faults <= 0 {
		return
	}
	faults := []payvaulttest.Fault{
		{Kind: payvaulttest.DropAfterCommit},
		{Kind: payvaulttest.DropBeforeCommit},
		{Kind: payvaulttest.RateLimit, RetryAfter: "0"},
		{Kind: payvaulttest.Respond, Status: 503, AfterCommit: true},
		{Kind: payvaulttest.Delay, Delay: 2 * time.Second, AfterCommit: true},
	}
	for next := 0; ctx.Err() == nil; {
		if n := emulator.Commits(op); n >= next {
			next = n + int(1/s.faults)
			fault := faults[rand.IntN(len(faults))] //nolint:gosec // no secret
			fault.Operation, fault.Times = op, 1
			_, _ = emulator.Inject(fault)
		}
		<-time.After(time.Millisecond)
	}
}

// audit finds batches that were performed twice, or accepted and not performed.
func audit(out io.Writer, emulator *payvaulttest.Server, sum temporalpayvault.Summary) error {
	performed := make([]int, sum.Batches)
	for _, r := range emulator.AccountUpdaterRequests.All() {
		first, err := strconv.Atoi(strings.TrimPrefix(r.Cards[0].CardID, "c-"))
		if err != nil {
			return err
		}
		performed[first/batch]++
	}
	twice, lost := 0, 0
	for i, n := range performed {
		if n > 1 {
			twice++
		}
		if n == 0 && !slices.Contains(sum.UnknownBatches, i) {
			lost++
		}
	}
	say(out, "performed twice: %d; lost: %d\n", twice, lost)
	if twice > 0 || lost > sum.Refused || sum.Accepted+sum.Refused+sum.Unknown != sum.Batches {
		return errors.New("the audit has failed")
	}
	return nil
}

// search looks for cards in the histories of all runs, and in the files of the database.
func (s *settings) search(
	ctx context.Context, out io.Writer, c client.Client, first client.WorkflowRun, database string,
) error {
	var all historypb.History
	events, size := 0, 0
	for run := first.GetRunID(); run != ""; {
		list := c.GetWorkflowHistory(ctx, first.GetID(), run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		run = ""
		for list.HasNext() {
			e, err := list.Next()
			if err != nil {
				return err
			}
			raw, err := proto.Marshal(e)
			if err != nil {
				return err
			}
			if bytes.Contains(raw, []byte("41111111")) {
				return fmt.Errorf("event %d shows a card", e.GetEventId())
			}
			if all.Events = append(all.Events, e); e.GetWorkflowExecutionContinuedAsNewEventAttributes() != nil {
				run = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
			}
			events, size = events+1, size+len(raw)
		}
		if s.history != "" {
			text, err := protojson.Marshal(&all)
			if err != nil {
				return err
			}
			if err := os.WriteFile(s.history, text, 0o600); err != nil {
				return err
			}
			s.history = ""
		}
	}
	files, err := filepath.Glob(database + "*")
	if err != nil {
		return err
	}
	for _, name := range files {
		raw, err := os.ReadFile(name) //nolint:gosec // its own file
		if err != nil {
			return err
		}
		if bytes.Contains(raw, []byte("41111111")) {
			return errors.New("the database shows a card")
		}
	}
	million := 1e6 / float64(s.cards)
	say(out, "events %d, %d bytes: %.0f and %.1f MB for a million cards; no card in them nor in %d files of the server\n",
		events, size, float64(events)*million, float64(size)*million/1e6, len(files))
	return nil
}
