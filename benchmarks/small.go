package benchmarks

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/client/gogithub"
	"example.com/payvault/benchmarks/client/openaigo"
	"example.com/payvault/benchmarks/client/resty"
	"example.com/payvault/benchmarks/client/sdk"
	"example.com/payvault/benchmarks/client/stripego"
)

// maker makes one of the clients under comparison.
type maker struct {
	name   string
	new    client.New
	answer string
}

const (
	nameFloor = "floor"
	nameSDK   = "payvault"

	nameFloorDeadline = "floor with a deadline"
	nameLoggingOff    = "payvault, Debug disabled by the handler"
)

func makers() []maker {
	return []maker{
		{nameFloor, floor.New, floor.Answer},
		{nameSDK, sdk.New, sdk.Answer},
		{"stripe-go", stripego.New, stripego.Answer},
		{"go-github", gogithub.New, gogithub.Answer},
		{"openai-go", openaigo.New, openaigo.Answer},
		{"resty", resty.New, resty.Answer},
	}
}

// loggingOff is the client with a logger whose handler does not want Debug records.
func loggingOff(baseURL string, transport http.RoundTripper) (client.Call, error) {
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil))
	return sdk.NewWith(baseURL, transport, payvault.WithLogger(logger))
}

// floorDeadline is the floor with what the client does besides: a deadline for each attempt.
func floorDeadline(baseURL string, transport http.RoundTripper) (client.Call, error) {
	call, err := floor.New(baseURL, transport)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return call(ctx)
	}, err
}

// SmallVariants are one small call through each client, over canned transports.
func SmallVariants() ([]Variant, error) { return cannedCalls(makers()) }

// OwnVariants are the floor and payvault, each in two ways.
func OwnVariants() ([]Variant, error) {
	return cannedCalls(append(makers()[:2:2],
		maker{nameLoggingOff, loggingOff, sdk.Answer}, maker{nameFloorDeadline, floorDeadline, floor.Answer}))
}

func cannedCalls(list []maker) ([]Variant, error) {
	return variants(list, func(m maker) (string, http.RoundTripper) { return "http://127.0.0.1", client.Canned(m.answer) })
}

func variants(all []maker, rig func(maker) (string, http.RoundTripper)) ([]Variant, error) {
	list := make([]Variant, len(all))
	for i, m := range all {
		call, err := m.new(rig(m))
		if err != nil {
			return nil, err
		}
		list[i] = Each(m.name, func() error { return call(context.Background()) })
	}
	return list, nil
}

// Small measures one small call over canned transports. The peers, whose larger heaps and code slow down whoever comes after them, race
// for themselves.
func Small(rounds int) (Section, error) {
	s := Section{Title: "one small call, canned transport", Head: raceHead("client")}
	own, err := OwnVariants()
	if err != nil {
		return s, err
	}
	stats, err := Race(rounds, 40*time.Millisecond, own...)
	if err != nil {
		return s, err
	}
	s.race("", stats)
	sdk, logging := find(stats, nameSDK), find(stats, nameLoggingOff)
	s.atMost("time ÷ floor", 1, sdk.CPURatio, "")
	s.atMost("time ÷ floor with a deadline", 1, sdk.CPURatio/find(stats, nameFloorDeadline).CPURatio, "")
	s.atMost("allocations", 33, float64(int(sdk.Allocs+0.5)), "") // the floor's with the answer of the first prototype
	s.atMost("allocations of logging that is disabled", 2, max(0, float64(int(logging.Allocs-sdk.Allocs+0.5))), "")
	s.atMost("time with disabled logging ÷ without", 1.03, logging.CPURatio/sdk.CPURatio, "")
	return s, s.peers(rounds)
}

func (s *Section) peers(rounds int) error {
	all, err := SmallVariants()
	if err != nil {
		return err
	}
	stats, err := Race(rounds, 20*time.Millisecond, all...)
	if err != nil {
		return err
	}
	s.race("beside peers: ", stats)
	for _, m := range makers()[2:] {
		s.atLeast(m.name+"'s time ÷ payvault's", 1.4, find(stats, m.name).CPURatio/find(stats, nameSDK).CPURatio)
	}
	return nil
}

// Loopback measures the same call over the loopback interface. Two connections of one and the same client differ by 3 %, so
// there are several sets of servers and connections.
func Loopback(sets, rounds int) (Section, error) {
	s := Section{Title: "one small call, loopback", Head: raceHead("client")}
	for _, p := range []Protocol{HTTP1, TLS1, HTTP2} {
		var stats []Stat
		for range sets {
			set, err := loopbackSet(p, rounds, makers()[:2])
			if err != nil {
				return s, err
			}
			stats = join(stats, set)
		}
		s.race(string(p)+", ", stats)
		s.atMost("time ÷ floor, "+string(p), 1.03, find(stats, nameSDK).WallRatio, "")
		peers, err := loopbackSet(p, sets*rounds/10, makers())
		if err != nil {
			return s, err
		}
		s.race("beside peers: "+string(p)+", ", peers)
	}
	return s, nil
}

func loopbackSet(p Protocol, rounds int, list []maker) ([]Stat, error) {
	var servers []*Server
	defer func() {
		for _, server := range servers {
			server.Close()
		}
	}()
	calls, err := variants(list, func(m maker) (string, http.RoundTripper) {
		server := NewServer(p, answering(m.answer))
		servers = append(servers, server)
		return server.URL, server.Transport()
	})
	if err != nil {
		return nil, err
	}
	return Race(rounds, 25*time.Millisecond, calls...)
}
