package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const (
	opSubmit  = payvault.OpAccountUpdaterSubmit
	batchSize = payvault.MaxAccountUpdaterCards
	heartbeat = 3 * time.Second

	databaseAway = 30 * time.Second // longer than the journal itself tries

	partSQLite, partTemporal, partNaive = "sqlite", "temporal", "naive"
)

// world is the environment of the soak: the emulator of the service, the Temporal server, a relay in front of each, and
// the child processes.
type world struct {
	*settings

	emulator  *payvaulttest.Server
	front     *httptest.Server // passes requests to the emulator and makes some fail
	toService *relay
	toServer  *relay
	server    *exec.Cmd
	client    client.Client
	logs      *os.File // logs of the child processes

	mu        sync.Mutex
	processes []*exec.Cmd // child processes of the current part of the soak
	finished  chan struct{}

	requests, faulty, pauses atomic.Int64
	failing                  atomic.Bool
}

// build starts the servers and the relays. The caller has to close w, even if build returns an error.
func (s *settings) build(ctx context.Context) (w *world, err error) {
	w = &world{settings: s, emulator: payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))}
	w.front = httptest.NewServer(w)
	if w.dir, err = os.MkdirTemp("", "payvault-soak-"); err != nil {
		return w, err
	}
	if w.logs, err = os.Create(filepath.Join(w.dir, "children.log")); err != nil {
		return w, err
	}
	front, err := url.Parse(w.front.URL)
	if err != nil {
		return w, err
	}
	if w.toService, err = newRelay(ctx, front.Host); err != nil {
		return w, err
	}
	inner, err := url.Parse(w.emulator.URL)
	if err != nil {
		return w, err
	}
	s.url, s.key = "http://"+w.toService.address()+inner.Path, w.emulator.Merchant().APIKey
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return w, err
	}
	server := free.Addr().String()
	if err := free.Close(); err != nil {
		return w, err
	}
	if w.toServer, err = newRelay(ctx, server); err != nil {
		return w, err
	}
	s.address = w.toServer.address()
	direct := *s
	direct.address = server
	if w.client, err = direct.newClient(os.Stderr); err != nil {
		return w, err
	}
	return w, w.serve(ctx)
}

func (w *world) close() {
	kill(w.server)
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

// serve starts the Temporal server, and waits until it answers.
func (w *world) serve(ctx context.Context) error {
	_, port, err := net.SplitHostPort(w.toServer.target)
	if err != nil {
		return err
	}
	//nolint:gosec // the server
	w.server = exec.CommandContext(context.WithoutCancel(ctx), w.temporal, "server", "start-dev", "--headless",
		"--port", port, "--db-filename", filepath.Join(w.dir, "temporal.db"), "--log-level", "never")
	w.server.Stderr = os.Stderr
	if err := w.server.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := w.client.CheckHealth(ctx, &client.CheckHealthRequest{})
		if err == nil || !wait(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// wait waits for d. It returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ServeHTTP passes a request to the emulator. While w.failing is set, it makes some of the requests fail or take
// longer.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.requests.Add(1)
	if w.failing.Load() && rand.Float64() < w.faults { //nolint:gosec // need not be secure
		faults := []payvaulttest.Fault{
			{Kind: payvaulttest.DropAfterCommit},
			{Kind: payvaulttest.DropBeforeCommit},
			{Kind: payvaulttest.RateLimit, RetryAfter: "1"},
			{Kind: payvaulttest.Respond, Status: http.StatusServiceUnavailable, AfterCommit: true},
			{Kind: payvaulttest.Delay, Delay: 2 * time.Second, AfterCommit: true},
			{Kind: payvaulttest.OtherCode, Code: 7, Message: "card " + number(7) + " is declined"},
		}
		if strings.Contains(r.URL.Path, "transactions") {
			faults = faults[:len(faults)-1] // leave out the refusals, which would pause an export
		}
		fault := faults[int(w.faulty.Add(1))%len(faults)] // each fault in turn, so that a short soak has them all
		fault.Times = 1
		_, _ = w.emulator.Inject(fault)
	}
	w.emulator.ServeHTTP(out, r)
}

// start starts a child process for childWork or childSubmit.
func (w *world) start(ctx context.Context, as string) (*exec.Cmd, error) {
	//nolint:gosec // it is this program
	cmd := exec.CommandContext(context.WithoutCancel(ctx), os.Args[0],
		"-child", as, "-dir", w.dir, "-address", w.address, "-url", w.url, "-key", w.key,
		"-codec="+strconv.FormatBool(w.sealed), "-cards", strconv.Itoa(w.cards), "-postgres", w.postgres,
		"-faults", strconv.FormatFloat(w.faults, 'f', -1, 64))
	cmd.Stdout, cmd.Stderr = w.logs, w.logs
	return cmd, cmd.Start()
}

// mostFailures is the number of consecutive failures of one child after which supervise gives up. A few consecutive
// failures are normal while the Temporal server restarts.
const mostFailures = 50

// supervise starts the child processes, and restarts a child that was killed or has failed. If a child fails
// mostFailures times in a row, supervise cancels the returned context with the error of the child. The function stop
// kills the child processes.
func (w *world) supervise(ctx context.Context, as string) (working context.Context, stop func()) {
	w.processes, w.finished = make([]*exec.Cmd, w.workers), make(chan struct{})
	var running sync.WaitGroup
	var once sync.Once
	ctx, cancel := context.WithCancelCause(ctx)
	for i := range w.workers {
		running.Go(func() {
			failures := 0
			for ctx.Err() == nil {
				w.mu.Lock()
				child, err := w.start(ctx, as)
				w.processes[i] = child
				w.mu.Unlock()
				if err == nil {
					err = child.Wait()
				}
				if err == nil && as == childSubmit {
					once.Do(func() { close(w.finished) })
					return
				}
				if err == nil { // a worker that a deploy has stopped
					continue
				}
				failures++
				if wasKilled := child.ProcessState != nil && !child.ProcessState.Exited(); wasKilled {
					failures = 0
				} else { // as a supervisor waits, for example while the database is away
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
				if failures == mostFailures {
					cancel(fmt.Errorf("child %d fails each time: %w\n%s", i, err, w.lastLogs()))
				}
				wait(ctx, 200*time.Millisecond)
			}
		})
	}
	return ctx, func() {
		cancel(nil)
		for i := range w.workers {
			w.signal(i, syscall.SIGCONT)
			w.signal(i, syscall.SIGKILL)
		}
		running.Wait()
	}
}

// lastLogs returns the last lines of the logs of the children.
func (w *world) lastLogs() string {
	text, _ := os.ReadFile(w.logs.Name())
	return string(text[max(0, len(text)-500):])
}

// orCause returns the cause of ctx if ctx has ended, or else err.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (w *world) signal(i int, s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.processes[i]; p != nil && p.Process != nil {
		_ = p.Process.Signal(s)
	}
}

// quiet calls the function do while the child processes run. It disturbs neither the processes nor the connections.
func (w *world) quiet(ctx context.Context, do func(context.Context) error) error {
	working, stop := w.supervise(ctx, childWork)
	defer stop()
	return orCause(working, do(working))
}

// amid calls the function do while the child processes run. Meanwhile requests fail, processes are killed and frozen,
// and connections are cut. The argument requests is the expected number of requests.
func (w *world) amid(ctx context.Context, part, as string, requests int, do func(context.Context) error) error {
	ctx, stop := w.supervise(ctx, as)
	defer stop()
	w.failing.Store(true)
	defer w.failing.Store(false)
	w.pauses.Store(0)
	before, began, faulty := w.requests.Load(), time.Now(), w.faulty.Load()
	harmed := make(chan error, 1)
	harming, end := context.WithCancel(ctx)
	var done harms
	go func() { harmed <- w.harmAll(harming, part, as, requests, &done) }()
	err := orCause(ctx, do(ctx))
	took := time.Since(began)
	end()
	err = errors.Join(err, <-harmed)
	memory := w.memory()
	wait(ctx, time.Second) // a request of a killed process may still be under way
	w.emulator.ClearFaults()
	say("%s: %d cards in %v, %.0f a second; %d requests, %d made to fail; memory of a process %s",
		part, w.cards, took.Round(time.Millisecond), float64(w.cards)/took.Seconds(),
		w.requests.Load()-before, w.faulty.Load()-faulty, memory)
	if !w.harm {
		return err
	}
	say("%s: %+v", part, done)
	missing := done.Frozen == 0 || done.Cut == 0 || done.Late == 0 ||
		as == childWork && (done.Server == 0 || done.Deployed == 0) || part == partTemporal && done.Away == 0
	if missing || done.Killed < w.kills {
		err = errors.Join(err, errors.New("it ended before enough had happened: give it more -cards"))
	}
	return err
}

// harms counts the disturbances of processes and networks.
type harms struct{ Killed, Frozen, Cut, Late, Server, Deployed, Away int }

// harmAll disturbs the processes and connections, and counts the disturbances in the argument done. It spreads the
// disturbances evenly over the expected number of requests. Even steps kill a process, and odd steps disturb processes
// or connections in other ways. There are exceptions from the middle on. In the parts on Temporal, one even step kills
// the server, and the next even step stops all workers, as a deploy does. In the part of SubmitCards, the even step
// after that locks or stops the journal.
func (w *world) harmAll(ctx context.Context, part, as string, requests int, done *harms) error {
	if !w.harm {
		return nil
	}
	before, steps := int(w.requests.Load()), 2*w.kills+6
	middle := steps / 4 * 2 // an even step
	for step := range steps - 1 {
		for due := before + requests*(step+1)/steps; int(w.requests.Load()) < due; {
			if !wait(ctx, 5*time.Millisecond) {
				return nil
			}
		}
		i := step / 2 % w.workers
		switch {
		case step == middle && as == childWork:
			kill(w.server)
			if err := w.serve(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("the server does not start again: %w", err)
			}
			done.Server++
		case step == middle+2 && as == childWork: // a deploy stops all workers, which supervise starts again
			for i := range w.workers {
				w.signal(i, syscall.SIGTERM)
			}
			done.Deployed++
		case step == middle+4 && part == partTemporal:
			if err := w.takeAway(ctx, part); err != nil {
				return fmt.Errorf("the journal cannot be locked or stopped: %w", err)
			}
			done.Away++
		case step%2 == 0:
			w.signal(i, syscall.SIGKILL)
			done.Killed++
		case step%6 == 1:
			w.signal(i, syscall.SIGSTOP)
			wait(ctx, 2*heartbeat)
			w.signal(i, syscall.SIGCONT)
			done.Frozen++
		case step%6 == 3:
			w.toService.cut()
			w.toServer.cut()
			done.Cut++
		default:
			w.toServer.hold(2 * heartbeat)
			w.toService.hold(heartbeat)
			wait(ctx, 2*heartbeat)
			done.Late++
		}
	}
	return nil
}

// takeAway stops and restarts Postgres by the command that the flags name. Without Postgres it locks the SQLite file of
// a part for databaseAway.
func (w *world) takeAway(ctx context.Context, part string) error {
	if w.postgres == "" {
		return w.lock(ctx, part, databaseAway)
	}
	//nolint:gosec // the user's own command; it has to start Postgres again, even if the job has ended
	return exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", w.away).Run()
}

// lock locks the journal of a part for the duration d, so that no process can read or write it.
func (w *world) lock(ctx context.Context, part string, d time.Duration) error {
	db, err := sql.Open("sqlite", w.journal(part)+"?_pragma=busy_timeout(20000)")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is written
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // as above
	if _, err := conn.ExecContext(ctx, `BEGIN EXCLUSIVE`); err != nil {
		return err
	}
	wait(ctx, d)
	_, err = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	return err
}

// memory returns the peak of the resident memory of the first child process.
func (w *world) memory() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.processes) == 0 || w.processes[0] == nil || w.processes[0].Process == nil {
		return "unknown"
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.processes[0].Process.Pid))
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(peak)
		}
	}
	return "unknown"
}

// relay forwards connections to a target. It can cut or delay the connections.
type relay struct {
	net.Listener

	target string
	held   atomic.Int64 // time until which data is delayed, in Unix nanoseconds

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newRelay(ctx context.Context, target string) (*relay, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	r := &relay{Listener: listener, target: target, conns: map[net.Conn]bool{}}
	if err == nil {
		go r.serve(ctx)
	}
	return r, err
}

func (r *relay) address() string { return r.Addr().String() }

func (r *relay) serve(ctx context.Context) {
	for {
		in, err := r.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		r.conns[in], r.conns[out] = true, true
		r.mu.Unlock()
		go r.pass(in, out)
		go r.pass(out, in)
	}
}

// pass copies data from one connection to the other. After a call of hold, it delays the data.
func (r *relay) pass(from, to net.Conn) {
	defer r.drop(from, to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		<-time.After(time.Until(time.Unix(0, r.held.Load())))
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (r *relay) drop(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(r.conns, c)
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}

// hold delays all data for the duration d.
func (r *relay) hold(d time.Duration) { r.held.Store(time.Now().Add(d).UnixNano()) }
