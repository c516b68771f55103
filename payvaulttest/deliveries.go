package payvaulttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"example.com/payvault"
)

const (
	deliveryTimeout = 5 * time.Second
	deliveryQueue   = 1024
	deliveryHistory = 10_000
)

// Delivery is one attempt to notify a webhook. There are no retries.
type Delivery struct {
	WebhookID payvault.WebhookID
	Event     string
	Status    int   // of the answer; 0 if there was none
	Err       error // why there was no answer
}

// A notification is the body of a delivery. Its shape is the emulator's own choice.
type notification struct {
	Event      string              `json:"event"`
	WebhookID  payvault.WebhookID  `json:"webhook_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	OccurredAt time.Time           `json:"occurred_at"`
	Data       any                 `json:"data"`
}

// A job is a delivery that is waiting.
type job struct {
	url      string
	body     []byte
	delivery Delivery
}

// A dispatcher delivers notifications one after the other, in the order of their events, from a
// goroutine of its own.
type dispatcher struct {
	client *http.Client
	queue  chan job
	done   chan struct{}

	mu      sync.Mutex
	pending int
	settled chan struct{} // closed while nothing is pending
	history []Delivery
}

func newDispatcher(ctx context.Context, remote bool) *dispatcher {
	dialer := &net.Dialer{Control: loopbackOnly}
	if remote {
		dialer.Control = nil
	}
	d := &dispatcher{
		client: &http.Client{
			Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       deliveryTimeout,
		},
		queue:   make(chan job, deliveryQueue),
		done:    make(chan struct{}),
		settled: make(chan struct{}),
	}
	close(d.settled)
	go d.run(ctx)
	return d
}

// loopbackOnly refuses a connection by the address that it really goes to, whatever its name.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address of a notification URL: %w", err)
	}
	if !host.Addr().Unmap().IsLoopback() {
		return errors.New("the notification URL is not on loopback")
	}
	return nil
}

// post queues a delivery; it never waits. One that cannot be encoded, or that the queue has no room
// for, has failed.
func (d *dispatcher) post(url string, n notification) {
	body, err := json.Marshal(n)
	j := job{url, body, Delivery{WebhookID: n.WebhookID, Event: n.Event, Err: err}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.enqueue(j) {
		return
	}
	if err == nil {
		j.delivery.Err = errors.New("too many deliveries are waiting")
	}
	d.remember(j.delivery)
}

func (d *dispatcher) enqueue(j job) bool {
	select {
	case d.queue <- j:
		if d.pending == 0 {
			d.settled = make(chan struct{})
		}
		d.pending++
		return true
	default:
		return false
	}
}

func (d *dispatcher) run(ctx context.Context) {
	defer close(d.done)
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-d.queue:
			j.delivery.Status, j.delivery.Err = d.send(ctx, j)
			d.finish(j.delivery)
		}
	}
}

func (d *dispatcher) send(ctx context.Context, j job) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url, bytes.NewReader(j.body))
	if err != nil {
		return 0, fmt.Errorf("build a notification: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("deliver a notification: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	return resp.StatusCode, nil
}

func (d *dispatcher) finish(delivery Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(delivery)
	d.pending--
	if d.pending == 0 {
		close(d.settled)
	}
}

func (d *dispatcher) remember(delivery Delivery) {
	d.history = append(d.history, delivery)
	if len(d.history) > deliveryHistory {
		d.history = d.history[1:]
	}
}

// Deliveries returns the deliveries that are finished, in their order; the last 10,000 of them.
func (s *Server) Deliveries() []Delivery {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	return slices.Clone(s.events.history)
}

// WaitDeliveries waits until every delivery that was due when it was called is finished. It returns
// early with an error when the context ends or the server is closed.
func (s *Server) WaitDeliveries(ctx context.Context) error {
	s.events.mu.Lock()
	settled := s.events.settled
	s.events.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-s.events.done:
		return errors.New("payvaulttest: the server is closed")
	case <-ctx.Done():
		return fmt.Errorf("payvaulttest: wait for deliveries: %w", ctx.Err())
	}
}
