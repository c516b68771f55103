package payvaulttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/inspect"
	"example.com/payvault/payvaulttest/internal/openapi"
)

var errNotLoopback = errors.New("the notification URL is not on loopback")

// Delivery is one attempt to notify a webhook. The server makes another attempt only if [Server.Redeliver] is called.
type Delivery struct {
	WebhookID payvault.WebhookID // the webhook that is notified
	Event     payvault.Event     // name of the event
	Status    int                // HTTP status of the answer; 0 if there was none
	Err       error              // reason why there was no answer; nil if there was one
}

// A dispatcher makes deliveries in the background. The deliveries of one webhook keep their order, and do not wait for
// those of other webhooks. Any number of deliveries may wait.
type dispatcher struct {
	ctx     context.Context //nolint:containedctx // ends with the server
	client  *http.Client
	logger  *slog.Logger
	feed    *inspect.Feed
	running sync.WaitGroup

	mu      sync.Mutex
	last    map[payvault.WebhookID]chan struct{} // each is closed when the newest delivery of its webhook has ended
	history []Delivery
	again   []func() // again[i] posts the notification of history[i] once more
}

// newDispatcher returns a dispatcher that works until ctx ends. Unless remote is true, the dispatcher notifies only
// loopback addresses.
func newDispatcher(ctx context.Context, remote bool, logger *slog.Logger, feed *inspect.Feed) *dispatcher {
	dialer := &net.Dialer{Control: loopbackOnly}
	if remote {
		dialer.Control = nil
	}
	return &dispatcher{
		ctx: ctx,
		client: &http.Client{
			Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       5 * time.Second,
		},
		logger: logger,
		feed:   feed,
		last:   map[payvault.WebhookID]chan struct{}{},
	}
}

// loopbackOnly refuses a connection to an address outside of loopback. It checks the IP address to which the host name
// was resolved.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil || !host.Addr().Unmap().IsLoopback() {
		return errNotLoopback
	}
	return nil
}

// post starts a delivery of a body in the background. It does nothing if the context of the dispatcher has ended.
func (d *dispatcher) post(url string, body []byte, delivery Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	before, finished := d.last[delivery.WebhookID], make(chan struct{})
	d.last[delivery.WebhookID] = finished
	d.running.Go(func() {
		defer close(finished)
		if before != nil {
			<-before
		}
		if d.ctx.Err() == nil {
			d.deliver(url, body, delivery)
		}
	})
}

// close waits until all deliveries have ended. The caller cancels the context of the dispatcher first, so that
// deliveries that have not begun are dropped.
func (d *dispatcher) close() {
	d.mu.Lock()   // waits until no call of post is running
	d.mu.Unlock() //nolint:staticcheck // see above
	d.running.Wait()
}

// deliver makes a delivery, and logs the delivery without its body and URL.
func (d *dispatcher) deliver(url string, body []byte, delivery Delivery) {
	again := func() { d.post(url, body, Delivery{WebhookID: delivery.WebhookID, Event: delivery.Event}) }
	delivery.Status, delivery.Err = d.send(url, body)
	shown := inspect.Delivery{
		Time: time.Now(), WebhookID: string(delivery.WebhookID), Event: string(delivery.Event), Status: delivery.Status,
	}
	attrs := []slog.Attr{
		slog.String("webhook_id", shown.WebhookID), slog.String("event", shown.Event), slog.Int("status", shown.Status),
	}
	if delivery.Err != nil {
		shown.Error = class(delivery.Err)
		attrs = append(attrs, slog.String("error", shown.Error))
	}
	d.logger.LogAttrs(d.ctx, slog.LevelInfo, "delivery", attrs...)
	d.feed.AddDelivery(shown)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = append(d.history, delivery)
	d.again = append(d.again, again)
}

// class returns the class of an error, as a fixed text. The error's own text might contain the URL, or bytes that the
// receiver sent.
func class(err error) string {
	errno, fromSystem := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, errNotLoopback):
		return errNotLoopback.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case fromSystem:
		return errno.Error() // such as connection refused
	default:
		return "no usable answer"
	}
}

func (d *dispatcher) send(url string, body []byte) (int, error) {
	req, err := http.NewRequestWithContext(d.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("build a notification: %w", err)
	}
	req.Header.Set("Content-Type", openapi.JSON)
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("deliver a notification: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	return resp.StatusCode, nil
}

// repeater returns the function that posts the notification of history[i] once more.
func (d *dispatcher) repeater(i int) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.again[i]
}

// forget clears the history of deliveries.
func (d *dispatcher) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history, d.again = nil, nil
}

func (d *dispatcher) wait(ctx context.Context) error {
	d.mu.Lock()
	due := slices.Collect(maps.Values(d.last)) // the newest delivery of each webhook, which ends last
	d.mu.Unlock()
	for _, finished := range due {
		select {
		case <-finished:
		case <-ctx.Done():
			return fmt.Errorf("payvaulttest: wait for deliveries: %w", ctx.Err())
		}
	}
	if d.ctx.Err() != nil {
		return errors.New("payvaulttest: the server is closed")
	}
	return nil
}
