package transport

import (
	"bytes"
	"io"
	"maps"
	"net/http"
)

// This file reads the response of an attempt into memory, within the size limit.

// takeResponse reads a response and its body into c.result. If the body cannot be read and the status is below 400,
// takeResponse returns an error. With status 400 or above, it only sets BodyIncomplete, because the status says enough.
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

// maxBytes returns the limit for reading a response body. If the status permits another attempt, the body is probably
// not needed, so the limit is at most mostAtOnce. The caller must have set c.result.Delivery, which isRetryableStatus
// needs.
func (c *call) maxBytes(resp *http.Response) int64 {
	limit := c.client.config.MaxResponseBytes
	if c.hasAttemptLeft() && c.isRetryableStatus(resp.StatusCode) {
		return min(limit, mostAtOnce)
	}
	return limit
}

// responseForEngine returns a copy of the last response for the engine. The copy has no body, because the body is in
// c.result, and no Location header, because http.Client would follow a redirect.
func (c *call) responseForEngine(req *http.Request) *http.Response {
	header := c.result.Header
	if header.Get("Location") != "" {
		header = maps.Clone(header)
		delete(header, "Location")
	}
	return &http.Response{StatusCode: c.result.Status, Header: header, Body: http.NoBody, Request: req}
}

// mostAtOnce is the largest buffer that readBody allocates because of a Content-Length. It is also the limit for a body
// that is probably not needed.
const mostAtOnce = 1 << 20

// readBody reads and closes the body:
//   - It reads nothing if the status is 101.
//   - If Content-Length is larger than limit, it returns ErrTooLarge and no bytes.
//   - If the body itself is longer than limit, it returns ErrTooLarge and the part within the limit.
//   - It reads any other body to its end, so that net/http can use the connection again.
func readBody(resp *http.Response, limit int64) (body []byte, err error) {
	if resp.Body == nil { // a hand-made RoundTripper may return a nil body
		return nil, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the open connection: no deadline ends a read
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
