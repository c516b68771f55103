// Soak makes a great many calls of all operations against an emulator in the same process, with faults among them, and
// checks that nothing is performed twice, nothing is lost, nothing leaks and no secret shows up.
//
//	go run ./internal/soak -calls 1000000
//
// It prints figures while it runs and a verdict at the end, and exits with status 1 if a promise was broken.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(status)
}

type config struct {
	calls, callers, period int
	faults                 float64
	every                  time.Duration
}

// run is main without the process around it. It returns the exit status.
func run(ctx context.Context, args []string, out io.Writer) int {
	var cfg config
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&cfg.calls, "calls", 1_000_000, "calls in all")
	flags.IntVar(&cfg.callers, "callers", 64, "callers at the same time")
	flags.IntVar(&cfg.period, "period", 5000, "calls after which the emulator, which keeps all records, is started anew")
	flags.Float64Var(&cfg.faults, "faults", 0.05, "share of the calls that meet a fault")
	flags.DurationVar(&cfg.every, "every", 5*time.Second, "how often to print figures")
	if flags.Parse(args) != nil || flags.NArg() > 0 || cfg.calls < 1 || cfg.callers < 1 || cfg.period < 1 ||
		cfg.every <= 0 {
		_, _ = fmt.Fprintln(out, "usage: soak [-calls n] [-callers n] [-period n] [-faults share] [-every duration]")
		return 2
	}
	s, err := newSoak(cfg, out)
	if err != nil {
		_, _ = fmt.Fprintln(out, "soak:", err)
		return 1
	}
	s.run(ctx)
	return s.verdict(ctx)
}

// soak is one run.
type soak struct {
	config

	out               io.Writer
	began             time.Time
	addr              string
	watch             *watcher
	merchant, partner *payvault.Client

	faultList []payvaulttest.Fault
	met       atomic.Int64 // faults so far

	done    atomic.Int64
	samples []sample

	mu       sync.Mutex
	classes  map[string]int
	problems []string
}

func newSoak(cfg config, out io.Writer) (*soak, error) {
	s := &soak{
		config: cfg, out: out, began: time.Now(), addr: "127.0.0.1:0", watch: newWatcher(), faultList: faults(),
		classes: map[string]int{},
	}
	srv, err := s.start() // for its address, which stays the same
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	s.addr = strings.TrimPrefix(srv.URL, "http://")
	opts := []payvault.Option{
		payvault.WithLogger(s.watch.logger()), payvault.WithMaxResponseBytes(responseCap),
		payvault.WithRetryPolicy(payvault.RetryPolicy{
			MinBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond,
			MaxRetryAfter: 4 * time.Millisecond,
		}),
	}
	s.merchant, s.partner = srv.Client(opts...), srv.PartnerClient(opts...)
	return s, nil
}

func (s *soak) start() (*payvaulttest.Server, error) {
	return payvaulttest.Start(payvaulttest.WithAddr(s.addr), payvaulttest.WithRequestHistory(0),
		payvaulttest.WithLogger(s.watch.logger()))
}

// run makes the calls, period after period, each against a new emulator at the same address.
func (s *soak) run(ctx context.Context) {
	defer s.merchant.CloseIdleConnections()
	defer s.partner.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	var printing sync.WaitGroup
	printing.Go(func() { s.print(ctx) })
	defer printing.Wait()
	defer cancel()
	for left := s.calls; left > 0 && ctx.Err() == nil; left -= s.period {
		srv, err := s.start()
		if err != nil {
			s.problem("%v", err)
			return
		}
		p := newPeriod(s, srv)
		p.run(ctx, min(left, s.period))
		p.audit()
		s.samples = append(s.samples, takeSample())
		srv.Close()
	}
}

// print prints figures from time to time.
func (s *soak) print(ctx context.Context) {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	var before int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			done := s.done.Load()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			s.printf("%6.0fs %9d calls %7.0f/s  heap %4d MiB  %5d goroutines  %4d sockets\n",
				time.Since(s.began).Seconds(), done, float64(done-before)/s.every.Seconds(), m.HeapAlloc>>20,
				runtime.NumGoroutine(), sockets())
			before = done
		}
	}
}

func (s *soak) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

// problem remembers a broken promise; the first few are enough.
func (s *soak) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) < 20 {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}
