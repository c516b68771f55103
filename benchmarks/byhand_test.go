package benchmarks

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"example.com/payvault"
)

// The client written by hand uses the same JSON package as payvault. Only marshal and unmarshal call this package.

func marshal(v any) ([]byte, error) { return json.Marshal(v) }

func unmarshal(text []byte, v any) error { return json.Unmarshal(text, v) }

// The client written by hand has the same limits for each attempt as payvault has by default.
const (
	attemptTimeout = time.Minute
	maxAnswer      = 8 << 20
)

// byHand is the client that a careful engineer writes with net/http for the work of the benchmarks. Like payvault, it
// has deadlines, a limit for the size of an answer, connections for many callers, and bulk work with ordered results.
// Unlike payvault, it never retries, and does not find out whether a request was sent.
type byHand struct {
	base, auth string
	http       *http.Client
}

func newByHand(base string, transport http.RoundTripper) *byHand {
	return &byHand{
		base: base,
		auth: "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+apiKey)),
		http: &http.Client{Transport: transport},
	}
}

// post sends a value as JSON, and decodes the answer into out.
func (c *byHand) post(ctx context.Context, path string, in, out any) error {
	text, err := marshal(in)
	if err != nil {
		return err
	}
	return c.send(ctx, http.MethodPost, path, bytes.NewReader(text), int64(len(text)), "application/json", out)
}

func (c *byHand) send(
	ctx context.Context, method, path string, body io.Reader, size int64, kind string, out any,
) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if body != nil {
		req.ContentLength = size
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", c.auth)
	req.Header.Set("User-Agent", "byhand/1.0")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	text.Grow(int(min(max(resp.ContentLength, 0), maxAnswer)) + bytes.MinRead)
	switch _, err := text.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1)); {
	case err != nil:
		return err
	case text.Len() > maxAnswer:
		return errors.New("the answer is too large")
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return unmarshal(text.Bytes(), out)
}

// tokenizeRequest has every documented field of the operation.
type tokenizeRequest struct {
	MerchantID          string   `json:"merchant_id"`
	ProfileID           string   `json:"profile_id,omitzero"`
	DeveloperID         string   `json:"developer_id,omitzero"`
	LocID               string   `json:"loc_id,omitzero"`
	VendorID            int64    `json:"vendor_id,omitzero"`
	CardholderName      string   `json:"cardholder_name,omitzero"`
	AVSAddress          string   `json:"avs_address,omitzero"`
	AVSZip              string   `json:"avs_zip,omitzero"`
	EmailAddress        []string `json:"email_address,omitzero"`
	CardNumber          string   `json:"card_number,omitzero"`
	ExpDate             string   `json:"exp_date,omitzero"`
	CVV2                string   `json:"cvv2,omitzero"`
	CardID              string   `json:"card_id,omitzero"`
	CardSwipe           string   `json:"card_swipe,omitzero"`
	ClientIP            string   `json:"client_ip,omitzero"`
	TRNumber            string   `json:"tr_number,omitzero"`
	DDANumber           string   `json:"dda_number,omitzero"`
	TypeID              string   `json:"type_id,omitzero"`
	PayloadWalletOnePay string   `json:"payload_wallet_one_pay,omitzero"`
	PayloadWalletTwoPay string   `json:"payload_wallet_two_pay,omitzero"`
	SingleUse           bool     `json:"single_use,omitzero"`
	EchoFields          string   `json:"echo_fields,omitzero"`
	SessionID           string   `json:"session_id,omitzero"`
	UserID              int64    `json:"user_id,omitzero"`
	ReportData          string   `json:"report_data,omitzero"`
}

type tokenizeResponse struct {
	RCode      string `json:"rcode"`
	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id"`
	CardID     string `json:"card_id"`
	CardNumber string `json:"card_number"`
	EchoFields string `json:"echo_fields"`
}

func (c *byHand) tokenize(ctx context.Context, in *tokenizeRequest) (out tokenizeResponse, err error) {
	err = c.post(ctx, "/pg/tokenize", in, &out)
	if err == nil && out.RCode != "000" {
		err = fmt.Errorf("rcode %s: %s", out.RCode, out.RMsg)
	}
	return out, err
}

// envelope is the JSON form of the answers to operations under /platform. Only pages have totalPages.
type envelope[T any] struct {
	Code       int    `json:"code"`
	Message    string `json:"message"`
	TotalPages int    `json:"totalPages"`
	Data       T      `json:"data"`
}

func (e *envelope[T]) err() error {
	if e.Code != 0 {
		return fmt.Errorf("code %d: %s", e.Code, e.Message)
	}
	return nil
}

// customerPage uses payvault.Customer, so that both rivals decode the same type.
type customerPage = envelope[[]payvault.Customer]

func (c *byHand) page(ctx context.Context, number int) (*customerPage, error) {
	var out customerPage
	path := "/platform/vault/customer?count=" + strconv.Itoa(pageSize) + "&page=" + strconv.Itoa(number)
	err := c.send(ctx, http.MethodGet, path, nil, 0, "", &out)
	return &out, errors.Join(err, out.err())
}

// customers yields the customers of all pages. The first page says how many pages there are. After the first page, up
// to inFlight pages are requested at a time.
func (c *byHand) customers(ctx context.Context, inFlight int) iter.Seq2[*payvault.Customer, error] {
	pages := func(yield func(*customerPage, error) bool) {
		first, err := c.page(ctx, 0)
		if yield(first, err) {
			others := count(first.TotalPages-1, func(i int) int { return i + 1 })
			inOrder(ctx, inFlight, inFlight, others, c.page)(yield)
		}
	}
	return func(yield func(*payvault.Customer, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Data {
				if !yield(&page.Data[i], nil) {
					return
				}
			}
		}
	}
}

type card struct {
	CardNumber string `json:"card_number"`
	ExpDate    string `json:"exp_date"`
	CardID     string `json:"card_id,omitzero"`
}

func (c *byHand) submit(ctx context.Context, cards []card) (requestID string, err error) {
	var out envelope[struct {
		RequestID string `json:"request_id"`
	}]
	err = c.post(ctx, "/platform/aus/add", map[string][]card{"data": cards}, &out)
	return out.Data.RequestID, errors.Join(err, out.err())
}

// submitAll sends a stream of cards, 100 in a request. Like SubmitAll, it starts later batches while it waits for the
// oldest batch.
func (c *byHand) submitAll(ctx context.Context, cards iter.Seq[card], inFlight int) iter.Seq2[string, error] {
	return inOrder(ctx, inFlight, 2*inFlight-1, chunks(cards, payvault.MaxAccountUpdaterCards), c.submit)
}

// count returns a stream of n items.
func count[T any](n int, item func(int) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := 0; i < n && yield(item(i)); i++ {
		}
	}
}

// chunks splits a stream into slices. The argument size is the length of each slice; the last slice may be shorter.
func chunks[T any](stream iter.Seq[T], size int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		var chunk []T
		for item := range stream {
			if chunk = append(slices.Grow(chunk, size-len(chunk)), item); len(chunk) == size {
				if !yield(chunk) {
					return
				}
				chunk = nil
			}
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// inOrder runs up to inFlight jobs at a time and yields their results in the order of the jobs. The argument ahead
// limits the number of started jobs whose results are not yielded yet.
func inOrder[J, R any](
	ctx context.Context, inFlight, ahead int, jobs iter.Seq[J], do func(context.Context, J) (R, error),
) iter.Seq2[R, error] {
	type result struct {
		value R
		err   error
	}
	return func(yield func(R, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		queue, slots, left := make(chan chan result, ahead-1), make(chan struct{}, inFlight), make(chan struct{})
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		defer close(left)
		running.Go(func() {
			defer close(queue)
			for job := range jobs {
				done := make(chan result, 1)
				select {
				case queue <- done:
				case <-left:
					return
				}
				slots <- struct{}{}
				running.Go(func() {
					value, err := do(ctx, job)
					<-slots
					done <- result{value, err}
				})
			}
		})
		for done := range queue {
			if r := <-done; !yield(r.value, r.err) {
				return
			}
		}
	}
}

// respond answers a dispute with a file. It streams the file and sends an exact Content-Length.
func (c *byHand) respond(ctx context.Context, id int64, message, path string) error {
	text, err := marshal(map[string]string{"message": message})
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var around bytes.Buffer
	form := multipart.NewWriter(&around) // a form in memory: writing to it cannot fail
	_ = form.WriteField("disputeResponse", string(text))
	_, _ = form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", info.Name())}, "Content-Type": {"application/pdf"},
	})
	before := around.Len()
	_ = form.Close()
	body := io.MultiReader(bytes.NewReader(around.Bytes()[:before]), file, bytes.NewReader(around.Bytes()[before:]))
	var out envelope[struct{}]
	err = c.send(ctx, http.MethodPost, "/platform/dispute/"+strconv.FormatInt(id, 10)+"/respond", body,
		int64(around.Len())+info.Size(), form.FormDataContentType(), &out)
	return errors.Join(err, out.err())
}
