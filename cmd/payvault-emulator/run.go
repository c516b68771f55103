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
	"net/netip"
	"os"

	"example.com/payvault/payvaulttest"
)

// The exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

//go:embed seed.json
var defaultSeed []byte

// The flags follow.
const usage = `Usage: payvault-emulator [flags]

Runs the emulator of the payment service until SIGINT or SIGTERM. It prints its process ID first and
its address last, when it is ready. A script has to build it first, since go run does not pass SIGTERM
on and would leave it running:

  go build -o payvault-emulator ./cmd/payvault-emulator
  ./payvault-emulator -addr 127.0.0.1:8700 & emulator=$!
  kill "$emulator"; wait "$emulator"

Flags:
`

type settings struct {
	addr        string
	basePath    string
	seedFile    string
	allowRemote bool
}

// run serves until the context ends and returns the exit code.
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
	describe(stdout, srv)
	<-ctx.Done()
	return exitOK
}

// parse reads the flags; the flag package reports what is wrong with them.
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
	flags.StringVar(&set.seedFile, "seed", "", "start with the records of this JSON `file`")
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
	return srv, nil
}

// isLoopback tells whether an address is loopback for sure: no host at all means every interface.
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
	file, err := os.Open(name) //nolint:gosec // the user's own file
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
