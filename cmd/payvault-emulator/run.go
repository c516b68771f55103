package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"example.com/payvault/payvaulttest"
)

// The exit codes of the program.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

const pageTimeout = time.Minute

//go:embed seed.json
var defaultSeed []byte

// usage is the beginning of the help text. The list of flags follows it.
const usage = `Usage: payvault-emulator [flags]

Runs the emulator of the payment service until SIGINT or SIGTERM. It prints its process ID first and
its address last, when it is ready. A script has to build it first, since go run does not pass SIGTERM
on and would leave it running:

  go build -o payvault-emulator ./cmd/payvault-emulator
  ./payvault-emulator -addr 127.0.0.1:8700 & emulator=$!
  kill "$emulator"; wait "$emulator"

With -inspect 127.0.0.1:8701, http://127.0.0.1:8701/ shows what it gets, holds and breaks, and injects faults
at a click. The same as JSON, masked:

  curl http://127.0.0.1:8701/connection                                 its address and keys, and a first request
  curl 'http://127.0.0.1:8701/requests?failed=true'                     the newest; also operation=, search=
  curl -N http://127.0.0.1:8701/events                                  the same as they come, as server-sent events
  curl http://127.0.0.1:8701/state                                      records, commits and faults
  curl 'http://127.0.0.1:8701/presets?operation=payees.delete&times=2'  the faults of the page, as JSON and as Go
  curl -d '{"kind":"drop after commit","operation":"invoices.send","skip":2,"times":1}' http://127.0.0.1:8701/faults
  curl http://127.0.0.1:8701/faults                                     those that wait, with what is left of them
  curl -X DELETE http://127.0.0.1:8701/faults/1                         disarm one
  curl -X DELETE http://127.0.0.1:8701/faults                           disarm all, the limit of -rate too
  curl -X PUT 'http://127.0.0.1:8701/bodies?shown=true'                 show the bodies of requests to come, unmasked
  curl -X DELETE http://127.0.0.1:8701/requests                         forget the requests and deliveries so far
  curl -X POST http://127.0.0.1:8701/reset                              to the records and IDs of the start; no faults

A client may have its answer a moment before the request is in the list: wait until "pending" of /state is empty, or
until "total" of /requests is what you expect.

A fault lets "skip" requests pass first. Of several that fit a request, the one armed first strikes, and only that one.

Flags:
`

type settings struct {
	addr        string
	basePath    string
	seedFile    string
	allowRemote bool
	inspect     string
	rate        float64
	retryAfter  string
}

// run runs the emulator until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage
	}
	srv, err := start(set, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "payvault-emulator:", err)
		return exitFailed
	}
	defer srv.Close()
	page, err := inspect(ctx, set.inspect, srv)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "payvault-emulator:", err)
		return exitFailed
	}
	defer func() { _ = page.Close() }()
	describe(stdout, srv, page.Addr)
	<-ctx.Done()
	return exitOK
}

// inspect serves the web page about the emulator srv. The page has the address addr, which must be loopback, even with
// -allow-remote. If addr is empty, inspect serves nothing and returns an unused http.Server.
func inspect(ctx context.Context, addr string, srv *payvaulttest.Server) (*http.Server, error) {
	if addr == "" {
		return &http.Server{ReadHeaderTimeout: time.Minute}, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("-inspect must be host:port, such as 127.0.0.1:8701: %w", err)
	}
	if !isLoopback(addr) {
		return nil, fmt.Errorf("-inspect %s is not a loopback address", addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-inspect: %w", err)
	}
	page := &http.Server{
		Addr:              listener.Addr().String(),
		Handler:           payvaulttest.Inspect(srv),
		ReadHeaderTimeout: pageTimeout,
		ReadTimeout:       pageTimeout,
		WriteTimeout:      pageTimeout, // event streams set their own deadlines
		IdleTimeout:       pageTimeout,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { _ = page.Serve(listener) }()
	return page, nil
}

// parse reads the flags. If they are invalid, it prints the problem and returns an error. For -h it prints the help and
// returns an error that matches flag.ErrHelp.
func parse(args []string, stderr io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("payvault-emulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&set.addr, "addr", "127.0.0.1:8700", "listen on this `host:port`")
	flags.StringVar(&set.basePath, "base-path", "", "serve below this `path`")
	flags.StringVar(&set.seedFile, "seed", "", "start with only the records of this JSON `file` and its accounts, if any")
	flags.StringVar(&set.inspect, "inspect", "", "show requests, records and faults on this loopback `host:port`")
	flags.Float64Var(&set.rate, "rate", 0, "permit this `number` of requests a second and answer 429 to others; 0 for all")
	flags.StringVar(&set.retryAfter, "retry-after", "", "send this Retry-After `header` with a 429 of -rate")
	flags.BoolVar(&set.allowRemote, "allow-remote", false, "listen on and notify addresses that are not loopback")
	if err := flags.Parse(args); err != nil {
		return settings{}, fmt.Errorf("parse the flags: %w", err)
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "unexpected argument: %s\n", flags.Arg(0))
		flags.Usage()
		return settings{}, errors.New("unexpected argument")
	}
	return set, nil
}

func start(set settings, stderr io.Writer) (*payvaulttest.Server, error) {
	if _, _, err := net.SplitHostPort(set.addr); err != nil {
		return nil, fmt.Errorf("-addr must be host:port: %w", err)
	}
	if !set.allowRemote && !isLoopback(set.addr) {
		return nil, fmt.Errorf("%s is not a loopback address; -allow-remote permits it", set.addr)
	}
	if set.retryAfter != "" && set.rate == 0 {
		return nil, errors.New("-retry-after needs -rate")
	}
	seed, err := readSeed(set.seedFile)
	if err != nil {
		return nil, err
	}
	opts := []payvaulttest.Option{
		payvaulttest.WithAddr(set.addr),
		payvaulttest.WithBasePath(set.basePath),
		payvaulttest.WithSeed(seed),
		payvaulttest.WithLogger(slog.New(slog.NewTextHandler(stderr, nil))),
		payvaulttest.WithRequestHistory(0),
	}
	if set.allowRemote {
		opts = append(opts, payvaulttest.WithRemoteNotifications())
	}
	srv, err := payvaulttest.Start(opts...)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if set.rate != 0 {
		limit := payvaulttest.Fault{Kind: payvaulttest.PermitRate, Rate: set.rate, RetryAfter: set.retryAfter}
		if _, err := srv.Inject(limit); err != nil {
			srv.Close()
			return nil, fmt.Errorf("-rate: %w", err)
		}
	}
	return srv, nil
}

// isLoopback reports whether the host of an address is localhost or a loopback IP address. An address without a host is
// not loopback: it means every interface.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func readSeed(name string) (payvaulttest.Seed, error) {
	if name == "" {
		return loadSeed(bytes.NewReader(defaultSeed))
	}
	file, err := os.Open(name) //nolint:gosec // the user chooses the file
	if err != nil {
		return payvaulttest.Seed{}, fmt.Errorf("open the seed: %w", err)
	}
	defer func() { _ = file.Close() }()
	return loadSeed(file)
}

func loadSeed(r io.Reader) (payvaulttest.Seed, error) {
	seed, err := payvaulttest.LoadSeed(r)
	if err != nil {
		return payvaulttest.Seed{}, fmt.Errorf("load the seed: %w", err)
	}
	return seed, nil
}
