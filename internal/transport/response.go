package transport

import (
	"bytes"
	"io"
	"maps"
	"net/http"
)

// This file reads the response of an attempt into memory, within the size limit.

// takeResponse sets c.result from a response, with its body. It returns an error if the body of a success cannot be
// read. If the body of a failure cannot be read, the status alone is enough, and takeResponse sets BodyIncomplete.
func (c *call) takeResponse(resp *http.Response, trace *attemptTrace) (err error) {
	r := &c.result
	r.Status, r.Header = resp.StatusCode, resp.Header
	r.Delivery = deliveryWithResponse(r.Status, trace)
	r.Unsure = r.Unsure || c.mayHaveResent(trace)
	r.Body, err = readBody(resp, c.maxBytes(resp))
	if err == nil {
		return nil
	}
	isFailure := r.Status >= http.StatusBadRequest
	if isFailure {
		r.BodyIncomplete = true
		return nil
	}
	r.Delivery = Unknown
	return c.client.config.Disown(err)
}

// maxBytes returns the largest number of bytes of a response body that are read. If the call may make another attempt
// after the response, only mostAtOnce bytes are read, because the response is probably dropped. If no attempt follows
// after all, for example because the budget is spent, the caller gets those bytes. isRetryableStatus needs the Delivery
// of the response.
func (c *call) maxBytes(resp *http.Response) int64 {
	limit := c.client.config.MaxResponseBytes
	if c.hasAttemptLeft() && c.isRetryableStatus(resp.StatusCode) {
		return min(limit, mostAtOnce)
	}
	return limit
}

// responseForEngine returns a copy of the last response for the engine. It has no body, because c.result has the body.
// It has no Location header, so that http.Client follows no redirect.
func (c *call) responseForEngine(req *http.Request) *http.Response {
	header := c.result.Header
	if header.Get("Location") != "" {
		header = maps.Clone(header)
		delete(header, "Location")
	}
	return &http.Response{StatusCode: c.result.Status, Header: header, Body: http.NoBody, Request: req}
}

// mostAtOnce limits the bytes that are allocated because Content-Length announces them. It also limits the bytes that
// are read of a response after which the call may make another attempt.
const mostAtOnce = 1 << 20

// readBody reads and closes the body. For a body over the limit it returns ErrTooLarge with the bytes up to the limit,
// or with none if Content-Length announces more. It reads any other body to its end, so that net/http can use the
// connection again.
func readBody(resp *http.Response, limit int64) (body []byte, err error) {
	if resp.Body == nil { // a hand-made RoundTripper may return a nil body
		return nil, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the connection: no deadline ends a read of it
		return nil, nil
	}
	if resp.ContentLength > limit {
		return nil, ErrTooLarge
	}
	capped := io.LimitReader(resp.Body, max(limit+1, limit)) // limit+1 may overflow
	if n := resp.ContentLength; n > 0 && n <= mostAtOnce {
		buf := bytes.NewBuffer(make([]byte, 0, n+bytes.MinRead))
		_, err = buf.ReadFrom(capped)
		body = buf.Bytes()
	} else {
		body, err = io.ReadAll(capped)
	}
	if int64(len(body)) > limit {
		return body[:limit], ErrTooLarge
	}
	return body, err
}
