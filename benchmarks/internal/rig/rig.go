// Package rig has what the packages with benchmarks share. It does not import payvault, so package transactions can use
// it with an earlier build of payvault too.
package rig

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Measure calls the function work b.N times, and fails at its first error. It reports the allocations, and the CPU time
// that the process uses for one call of work. This time includes garbage collection on other processors, and excludes
// the time of other programs.
func Measure(b *testing.B, work func() error) {
	b.Helper()
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		if err := work(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail with these arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Canned is a transport that answers each request from memory. The answer costs the same time for every client.
type Canned struct {
	body   string
	header http.Header
}

// NewCanned returns a transport that answers each request with status 200 and the given JSON.
func NewCanned(body string) Canned {
	return Canned{body, http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}}
}

// RoundTrip answers a request. It refuses a request without a deadline, because every client promises to set one.
func (c Canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, ok := req.Context().Deadline(); !ok {
		return nil, errors.New("no deadline")
	}
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: req,
	}, nil
}
