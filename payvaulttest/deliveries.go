package payvaulttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"example.com/payvault"
)

const (
	deliveryTimeout = 5 * time.Second
	deliveryHistory = 10_000
)

// What can be wrong with a delivery before it is sent.
var (
	errNotJSON     = errors.New("encode a notification")
	errBadURL      = errors.New("build a notification")
	errNotLoopback = errors.New("the notification URL is not on loopback")
)

// Delivery is one attempt to notify a webhook. There are no retries.
type Delivery struct {
	WebhookID payvault.WebhookID // the webhook that has the event
	Event     string             // its name
	Status    int                // of the answer; 0 if there was none
	Err       error              // why there was no answer
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
	finished chan struct{}
}

// A queue holds what is waiting for one webhook, in order.
type queue struct {
	jobs []job
	last chan struct{} // closed when the job that was queued last is finished
}

// A dispatcher delivers notifications in the background. Each webhook has a queue and, while there is
// something in it, a worker of its own: its notifications keep their order, and a slow receiver holds
// up no other. No queue has a bound, so that none loses anything.
type dispatcher struct {
	ctx     context.Context //nolint:containedctx // the life of the server
	client  *http.Client
	logger  *slog.Logger
	workers gate
	done    chan struct{}

	mu      sync.Mutex
	queues  map[payvault.WebhookID]*queue // of the webhooks that have a worker
	history []Delivery
}

func newDispatcher(ctx context.Context, remote bool, logger *slog.Logger) *dispatcher {
	dialer := &net.Dialer{Control: loopbackOnly}
	if remote {
		dialer.Control = nil
	}
	return &dispatcher{
		ctx: ctx,
		client: &http.Client{
			Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       deliveryTimeout,
		},
		logger: logger,
		done:   make(chan struct{}),
		queues: map[payvault.WebhookID]*queue{},
	}
}

// loopbackOnly refuses a connection by the address that it really goes to, whatever its name.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address of a notification URL: %w", err)
	}
	if !host.Addr().Unmap().IsLoopback() {
		return errNotLoopback
	}
	return nil
}

// post queues a delivery; it never waits. After the end of the server it does nothing.
func (d *dispatcher) post(url string, n notification) {
	body, err := json.Marshal(n)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotJSON, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting, working := d.queues[n.WebhookID]
	if !working {
		if !d.workers.enter() {
			return
		}
		waiting = &queue{}
		d.queues[n.WebhookID] = waiting
		go d.work(n.WebhookID)
	}
	waiting.last = make(chan struct{})
	waiting.jobs = append(waiting.jobs, job{
		url: url, body: body, delivery: Delivery{WebhookID: n.WebhookID, Event: n.Event, Err: err}, finished: waiting.last,
	})
}

// work empties the queue of a webhook, or ends with the server.
func (d *dispatcher) work(id payvault.WebhookID) {
	defer d.workers.leave()
	for {
		j, ok := d.next(id)
		if !ok || d.ctx.Err() != nil {
			return
		}
		if j.delivery.Err == nil {
			j.delivery.Status, j.delivery.Err = d.send(d.ctx, j)
		}
		d.log(j)
		d.remember(j.delivery)
		close(j.finished)
	}
}

// next takes a job out of the queue of a webhook; when there is none, the worker is no longer known.
func (d *dispatcher) next(id payvault.WebhookID) (job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := d.queues[id]
	if len(waiting.jobs) == 0 {
		delete(d.queues, id)
		return job{}, false
	}
	first := waiting.jobs[0]
	waiting.jobs[0] = job{}
	waiting.jobs = waiting.jobs[1:]
	return first, true
}

// end waits for the workers, whose context has ended.
func (d *dispatcher) end() {
	d.workers.shut()
	close(d.done)
}

func (d *dispatcher) send(ctx context.Context, j job) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url, bytes.NewReader(j.body))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBadURL, err)
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

// log writes the one record of a delivery: no body, and of an error where it was and its class.
func (d *dispatcher) log(j job) {
	delivery := j.delivery
	attrs := []slog.Attr{
		slog.String("webhook_id", string(delivery.WebhookID)),
		slog.String("event", delivery.Event),
		slog.Int("status", delivery.Status),
	}
	if delivery.Err != nil {
		attrs = append(attrs, slog.String("url", bareURL(j.url)), slog.String("error", errorClass(delivery.Err)))
	}
	d.logger.LogAttrs(d.ctx, slog.LevelInfo, "delivery", attrs...)
}

// bareURL is a URL without what may be secret: user, query and fragment.
func bareURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// errorClass tells the kinds of errors apart without their texts, which hold the whole URL.
func errorClass(err error) string {
	timeout, isNet := errors.AsType[net.Error](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	system, isSystem := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, errNotJSON):
		return "not JSON"
	case errors.Is(err, errBadURL):
		return "bad URL"
	case errors.Is(err, errNotLoopback):
		return "not loopback"
	case errors.Is(err, context.Canceled):
		return "server closed"
	case isNet && timeout.Timeout():
		return "timeout"
	case isDNS:
		return "unknown host"
	case isSystem:
		return system.Error() // such as connection refused
	case errors.Is(err, io.EOF):
		return "no answer"
	default:
		return "connection"
	}
}

func (d *dispatcher) remember(delivery Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = append(d.history, delivery)
	if len(d.history) > deliveryHistory {
		d.history = d.history[1:]
	}
}

// Deliveries returns the deliveries that are finished, in the order in which they ended; the last 10,000 of them.
func (s *Server) Deliveries() []Delivery {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	return slices.Clone(s.events.history)
}

// due lists what is closed when the deliveries that are due now are finished: the last of each queue
// is the last of all before it, too.
func (d *dispatcher) due() []chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []chan struct{}
	for _, waiting := range d.queues {
		list = append(list, waiting.last)
	}
	return list
}

// WaitDeliveries waits until every delivery that was due when it was called is finished, whatever
// becomes due meanwhile. It returns early with an error when the context ends or the server is closed.
func (s *Server) WaitDeliveries(ctx context.Context) error {
	for _, finished := range s.events.due() {
		select {
		case <-finished:
		case <-s.events.done:
			return errors.New("payvaulttest: the server is closed")
		case <-ctx.Done():
			return fmt.Errorf("payvaulttest: wait for deliveries: %w", ctx.Err())
		}
	}
	return nil
}
