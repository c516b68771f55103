package benchmarks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/client/sdk"
)

// uploads reads the body of each request and notes how it came.
type uploads struct {
	length   atomic.Int64 // Content-Length; -1 for chunked
	received atomic.Int64
	failures atomic.Int64 // how many requests still fail
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	u.length.Store(r.ContentLength)
	u.received.Store(n)
	w.Header().Set("Content-Type", "application/json")
	if err != nil || u.failures.Add(-1) >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, `{"code":0,"message":"Success"}`)
}

// writePDF makes a file that passes for a PDF.
func writePDF(dir string, size int64) (string, error) {
	path := filepath.Join(dir, "evidence.pdf")
	f, err := os.Create(path) //nolint:gosec // a path of the benchmark's own
	if err != nil {
		return "", err
	}
	_, err = f.WriteString("%PDF-1.7\n")
	return path, errors.Join(err, f.Truncate(size), f.Close())
}

// Upload measures the evidence of a dispute.
func Upload(rounds int, size int64) (Section, error) {
	s := Section{
		Title: fmt.Sprintf("upload of a PDF of %d MB", size/1e6),
		Head:  []string{"upload", "MB/s", "÷ io.MultiReader", "allocated, server included", "Content-Length", "bytes that came"},
	}
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := writePDF(dir, size)
	if err != nil {
		return s, err
	}
	var seen uploads
	server := NewServer(HTTP1, &seen)
	defer server.Close()
	c, err := sdk.NewClient(server.URL, server.Transport(), payvault.WithRetryPolicy(payvault.RetryPolicy{
		MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
	}))
	if err != nil {
		return s, err
	}
	byHand := floor.NewClient(server.URL, server.Transport())
	respond := func(failures int64, opts ...payvault.CallOption) func() error {
		return func() error {
			file, err := payvault.OpenFile(path)
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			seen.failures.Store(failures)
			return c.Disputes.Respond(context.Background(), 7, &payvault.DisputeResponse{Message: "see file", Evidence: file}, opts...)
		}
	}
	kinds := []struct {
		name string
		sent int64 // times the file travels
		do   func() error
	}{
		{"io.MultiReader into net/http", 1, func() error { return multiReader(byHand, path, size) }},
		{"Disputes.Respond", 1, respond(0)},
		{"Disputes.Respond, first attempt fails", 2, respond(1, payvault.WithReplay())},
	}
	rates, peaks := make([][]float64, len(kinds)), make([]float64, len(kinds))
	for range rounds {
		for _, i := range rand.Perm(len(kinds)) { //nolint:gosec // an order need not be unpredictable
			kind := kinds[i]
			runtime.GC()
			before, start := allocated(), time.Now()
			if err := kind.do(); err != nil {
				return s, fmt.Errorf("%s: %w", kind.name, err)
			}
			rates[i] = append(rates[i], float64(kind.sent*size)/1e6/time.Since(start).Seconds())
			peaks[i] = max(peaks[i], allocated()-before)
			if seen.length.Load() != seen.received.Load() || seen.received.Load() < size {
				return s, fmt.Errorf("%s: Content-Length %d for %d bytes", kind.name, seen.length.Load(), seen.received.Load())
			}
		}
	}
	for i, kind := range kinds {
		share := ratio(rates[i], rates[0])
		s.row(kind.name, int(median(rates[i])), share, megabytes(peaks[i]), int(seen.length.Load()), int(seen.received.Load()))
		if i > 0 {
			s.atLeast("MB/s ÷ io.MultiReader, "+kind.name, 0.85, share)
			s.atMost("heap, "+kind.name, 1, peaks[i]/1e6, " MB")
		}
	}
	return s, nil
}

// allocated is all that the process has ever allocated, in bytes: what is kept at any time cannot be more.
func allocated() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.TotalAlloc)
}

// multiReader sends the form as one would by hand.
func multiReader(c *floor.Client, path string, size int64) error {
	f, err := os.Open(path) //nolint:gosec // a path of the benchmark's own
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const boundary = "0123456789abcdef0123456789abcdef"
	prefix := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"disputeResponse\"\r\n\r\n{\"message\":\"see file\"}\r\n--" + boundary +
		"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"evidence.pdf\"\r\nContent-Type: application/pdf\r\n\r\n"
	suffix := "\r\n--" + boundary + "--\r\n"
	body := io.MultiReader(bytes.NewReader([]byte(prefix)), io.NewSectionReader(f, 0, size), bytes.NewReader([]byte(suffix)))
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.BaseURL+"/platform/dispute/7/respond", body)
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(prefix)) + size + int64(len(suffix))
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	var out struct{ Code int }
	return c.Send(req, &out)
}
