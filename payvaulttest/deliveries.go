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

// Delivery is one attempt to notify a webhook. There are no retries.
type Delivery struct {
	WebhookID payvault.WebhookID // the webhook that has the event
	Event     payvault.Event     // its name
	Status    int                // of the answer; 0 if there was none
	Err       error              // why there was no answer
}

// A dispatcher makes deliveries in the background: one after the other for each webhook, so that they
// keep their order and a slow receiver holds up no other. Any number may wait, so that none is lost.
type dispatcher struct {
	ctx     context.Context //nolint:containedctx // the life of the server
	client  *http.Client
	logger  *slog.Logger
	feed    *inspect.Feed
	running sync.WaitGroup

	mu      sync.Mutex
	last    map[payvault.WebhookID]chan struct{} // closed when the delivery that was posted last is finished
	history []Delivery
}

// newDispatcher returns a dispatcher that lives as long as its context. It notifies loopback only unless remote is set.
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

// loopbackOnly refuses a connection whose address, not its name, is outside of loopback.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil || !host.Addr().Unmap().IsLoopback() {
		return errNotLoopback
	}
	return nil
}

// post starts a delivery of a body; it never waits. After the end of the context it does nothing.
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

// close waits for all deliveries, after the context has ended.
func (d *dispatcher) close() {
	d.mu.Lock()   // what holds it now is not under way any more afterwards
	d.mu.Unlock() //nolint:staticcheck // see above
	d.running.Wait()
}

// deliver makes a delivery and logs it, without body and URL.
func (d *dispatcher) deliver(url string, body []byte, delivery Delivery) {
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
}

// class returns fixed words for an error, because its text may hold the URL or what the receiver sent.
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

// forget drops the deliveries that have ended.
func (d *dispatcher) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = nil
}

func (d *dispatcher) wait(ctx context.Context) error {
	d.mu.Lock()
	due := slices.Collect(maps.Values(d.last)) // the last of each webhook is the last of all before it, too
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
