package benchmarks

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/client/sdk"
)

// curve is work of four sizes, each twice the one before.
type curve struct {
	what string
	from int
	work func(size int) (func() error, error)
}

// curves are the dimensions in which the work of a client grows.
func curves() []curve {
	return []curve{
		{"pages of 100 customers", 4, func(size int) (func() error, error) {
			server := pager(size, 100, 0)
			c, err := sdk.NewClient("http://127.0.0.1", handled{server})
			return func() error { return walk(c, 8, size, 100, 0) }, err
		}},
		{"cards of SubmitAll", 10_000, func(size int) (func() error, error) {
			c, err := sdk.NewClient("http://127.0.0.1", client.Canned(submitAnswer))
			return func() error {
				n := 0
				for b := range c.AccountUpdater.SubmitAll(context.Background(), cards(size), nil) {
					if n++; b.Err != nil {
						return b.Err
					}
				}
				return checkCount(n*payvault.MaxAccountUpdaterCards, size)
			}, err
		}},
		{"callers of 200 tokenize calls", 8, func(size int) (func() error, error) {
			call, err := sdk.New("http://127.0.0.1", client.Canned(floor.Answer))
			return func() error {
				_, err := burst(call, size, 200)
				return err
			}, err
		}},
		{"KB of an answer", 64, func(size int) (func() error, error) {
			body := `{"code":0,"data":{"message":"` + strings.Repeat("x", size<<10) + `"}}`
			c, err := sdk.NewClient("http://127.0.0.1", client.Canned(body))
			return func() error {
				_, err := c.Webhooks.AddEvent(context.Background(), "w1", "transaction_status_updated")
				return err
			}, err
		}},
		{"KB of an upload", 1024, func(size int) (func() error, error) {
			c, err := sdk.NewClient("http://127.0.0.1", client.Canned(`{"code":0}`))
			file := payvault.FileFromBytes("e.pdf", append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("x"), size<<10)...))
			return func() error {
				return c.Disputes.Respond(context.Background(), 7, &payvault.DisputeResponse{Message: "m", Evidence: file})
			}, err
		}},
	}
}

// Growth measures work that doubles.
func Growth(rounds int) (Section, error) {
	s := Section{
		Title: "growth",
		Head:  []string{"size", "CPU time", "÷ half the size", "allocations", "÷ half the size", "bytes", "÷ half the size"},
	}
	for _, c := range curves() {
		var variants []Variant
		for size, i := c.from, 0; i < 4; i++ {
			work, err := c.work(size)
			if err != nil {
				return s, err
			}
			variants = append(variants, Each(fmt.Sprintf("%d %s", size, c.what), work))
			size *= 2
		}
		stats, err := Race(rounds, 50*time.Millisecond, variants...)
		if err != nil {
			return s, err
		}
		var steepest, most float64
		for i, st := range stats {
			if i == 0 {
				s.row(st.Name, seconds(median(st.CPU)), "", int(st.Allocs), "", int(st.Bytes), "")
				continue
			}
			half := stats[i-1]
			slower, more := ratio(st.CPU, half.CPU), st.Allocs/half.Allocs
			steepest, most = max(steepest, slower), max(most, more)
			s.row(st.Name, seconds(median(st.CPU)), slower, int(st.Allocs), more, int(st.Bytes), st.Bytes/half.Bytes)
		}
		// Proportional work takes 2.00 on average, a little more or less in one run.
		s.atMost("CPU time when doubled, "+c.what, 2.1, steepest, "")
		s.atMost("allocations when doubled, "+c.what, 2.02, most, "")
	}
	return s, nil
}
