package benchmarks

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// variantsOf gives the variants that "go test -bench" runs, for profiles. The report is made by cmd/report.
func variantsOf(tb testing.TB) map[string][]Variant {
	tb.Helper()
	small, err := SmallVariants()
	if err != nil {
		tb.Fatal(err)
	}
	own, err := OwnVariants()
	if err != nil {
		tb.Fatal(err)
	}
	page, err := PageVariants()
	if err != nil {
		tb.Fatal(err)
	}
	groups := map[string][]Variant{"Small": small, "Own": own, "Page": page, "Transactions": TransactionVariants()}
	for name, p := range map[string]Protocol{"HTTP1": HTTP1, "TLS": TLS1, "HTTP2": HTTP2} {
		groups[name], err = variants(makers()[:2], func(m maker) (string, http.RoundTripper) {
			server := NewServer(p, answering(m.answer))
			tb.Cleanup(server.Close)
			return server.URL, server.Transport()
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return groups
}

func benchmark(b *testing.B, group string) {
	b.Helper()
	for _, v := range variantsOf(b)[group] {
		b.Run(v.Name, func(b *testing.B) {
			b.ReportAllocs()
			if err := v.Run(b.N); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkSmall(b *testing.B)        { benchmark(b, "Small") }
func BenchmarkOwn(b *testing.B)          { benchmark(b, "Own") }
func BenchmarkPage(b *testing.B)         { benchmark(b, "Page") }
func BenchmarkTransactions(b *testing.B) { benchmark(b, "Transactions") }
func BenchmarkHTTP1(b *testing.B)        { benchmark(b, "HTTP1") }
func BenchmarkTLS(b *testing.B)          { benchmark(b, "TLS") }
func BenchmarkHTTP2(b *testing.B)        { benchmark(b, "HTTP2") }

// TestVariants checks that each variant does its work.
func TestVariants(t *testing.T) {
	t.Parallel()
	for group, list := range variantsOf(t) {
		for _, v := range list {
			if err := v.Run(2); err != nil {
				t.Errorf("%s: %v", group, err)
			}
		}
	}
}

// TestLoopback makes one call of each client through each protocol.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for _, p := range []Protocol{HTTP1, TLS1, HTTP2} {
		for _, m := range makers() {
			server := NewServer(p, answering(m.answer))
			call, err := m.new(server.URL, server.Transport())
			if err == nil {
				err = call(t.Context())
			}
			if err != nil || server.Connections.Load() != 1 {
				t.Errorf("%s, %s: %v, %d connections", p, m.name, err, server.Connections.Load())
			}
			server.Close()
		}
	}
}

// TestParts runs the larger parts with little work.
func TestParts(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func() (Section, error){
		"pool":    func() (Section, error) { return Pool(1, 4, 8) },
		"pages":   func() (Section, error) { return Pages(1, 4, time.Millisecond) },
		"upload":  func() (Section, error) { return Upload(1, 1<<20) },
		"batches": func() (Section, error) { return Batches(1, 1000, 4, time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := part()
			if err != nil || len(s.Rows) == 0 || len(s.Goals) == 0 && name != "pool" {
				t.Errorf("%+v: %v", s, err)
			}
		})
	}
	t.Run("gate", func(t *testing.T) {
		t.Parallel()
		g := newGate(http.NotFoundHandler())
		server := NewServer(HTTP1, g)
		defer server.Close()
		g.close(3)
		transport := server.Transport()
		get := func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
		if _, err := burst(get, 3, 1); err != nil || server.Connections.Load() != 3 {
			t.Errorf("%v, %d connections", err, server.Connections.Load())
		}
	})
}

func TestRace(t *testing.T) {
	t.Parallel()
	var one, two int
	stats, err := Race(3, time.Millisecond, Each("one", func() error { one++; return nil }), Each("two", func() error { two++; return nil }))
	if err != nil || len(stats) != 2 || stats[0].WallRatio != 1 || stats[1].WallRatio <= 0 || one < 3 || two < 3 {
		t.Errorf("%+v: %v, %d and %d runs", stats, err, one, two)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	s := Section{Title: "part", Head: []string{"a", "b"}}
	s.row("x", 1.234)
	s.atMost("figure", 1, 1.5, "")
	s.atLeast("other", 0.95, 1)
	var out strings.Builder
	WriteGoals(&out, []Section{s})
	s.Write(&out)
	const want = `| part | figure | wanted | measured | reached |
| --- | --- | --- | --- | --- |
| part | figure | ≤ 1 | 1.50 | **no** |
| part | other | ≥ 0.95 | 1 | yes |

### part

| a | b |
| --- | --- |
| x | 1.23 |

`
	if out.String() != want {
		t.Error(out.String())
	}
}
