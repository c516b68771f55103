package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"
)

// copies returns how many times a RoundTripper may send a request.
func copies(caller string) int {
	switch caller {
	case callerHedges, callerHedgesOne, callerRetries:
		return 2
	case callerRedirects:
		return 10
	}
	return 1
}

// copiesUnseen reports whether a RoundTripper may send a copy that the SDK cannot notice: a copy without httptrace
// hooks, or one that is sent after the SDK has received the answer to the other copy. The SDK does not protect against
// such copies.
func copiesUnseen(caller string) bool {
	return caller == callerHedges || caller == callerHedgesOne
}

type roundTripper func(req *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

var errOwn = errors.New("of the caller's own")

// caller returns the RoundTripper of the scenario, which sends requests through base.
func (r *run) caller(base *http.Transport) http.RoundTripper {
	if r.Caller != callerPlain {
		r.strike("caller: " + r.Caller)
	}
	var sent atomic.Int64
	switch r.Caller {
	case callerDeadline:
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(req.Context(), time.Minute)
			context.AfterFunc(req.Context(), cancel)
			return base.RoundTrip(req.WithContext(ctx))
		})
	case callerOwnHooks:
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{}))
			context.AfterFunc(req.Context(), cancel)
			return base.RoundTrip(req.Clone(ctx))
		})
	case callerNoHooks:
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			return base.RoundTrip(withoutHooks(req))
		})
	case callerClient:
		last := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return roundTripper((&http.Client{Transport: base, Timeout: time.Minute, CheckRedirect: last}).Do)
	case callerRedirects:
		return roundTripper((&http.Client{Transport: base, Timeout: time.Minute}).Do)
	case callerHedges, callerHedgesOne:
		return roundTripper(func(req *http.Request) (*http.Response, error) { return r.hedge(base, req) })
	case callerRetries:
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			first, second, err := r.twice(req)
			if err != nil {
				return nil, err
			}
			resp, err := base.RoundTrip(first)
			if err == nil || req.Context().Err() != nil {
				return resp, err
			}
			return base.RoundTrip(second)
		})
	case callerBoth, callerNeither, callerLoses, callerTakes:
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if sent.Add(1)%2 == 0 {
				return base.RoundTrip(req)
			}
			if r.Caller == callerTakes {
				if req.Body != nil {
					_, _ = io.CopyN(io.Discard, req.Body, 5)
				}
				return nil, errOwn
			}
			resp, err := base.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			_ = resp.Body.Close()
			switch r.Caller {
			case callerBoth:
				return resp, errOwn
			case callerNeither:
				return nil, nil //nolint:nilnil // this RoundTripper returns neither
			}
			return nil, errOwn
		})
	case callerNoBody:
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
				resp.Body = nil
			}
			return resp, err
		})
	}
	return base
}

// withoutHooks returns the request with a new context, which has no httptrace hooks and no other values. The new
// context ends when the old one ends.
func withoutHooks(req *http.Request) *http.Request {
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(req.Context(), cancel)
	return req.WithContext(ctx) //nolint:contextcheck // the context must not have the values
}

// twice returns two copies of a request. Their header X-Sim-Attempt tells the service that both belong to one attempt
// of the SDK.
func (r *run) twice(req *http.Request) (first, second *http.Request, err error) {
	attempt := strconv.FormatInt(r.serial.Add(1), 10)
	first, second = req.Clone(req.Context()), req.Clone(req.Context())
	first.Header.Set(headerAttempt, attempt)
	second.Header.Set(headerAttempt, attempt)
	if req.Body == nil {
		return first, second, nil
	}
	body, err := io.ReadAll(req.Body)
	for _, own := range []*http.Request{first, second} {
		own.Body, own.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	}
	return first, second, err
}

// hedge sends a request. If there is no result within 10 ms, it also sends a copy of the request. It returns the first
// result.
func (r *run) hedge(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	first, second, err := r.twice(req)
	if err != nil {
		return nil, err
	}
	if r.Caller == callerHedgesOne {
		first = withoutHooks(first)
	}
	type result struct {
		resp *http.Response
		err  error
	}
	results := make(chan result, 2)
	send := func(one *http.Request) {
		r.serving.Go(func() {
			resp, err := base.RoundTrip(one) //nolint:bodyclose // closed by the client or below
			results <- result{resp, err}
		})
	}
	send(first)
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case got := <-results:
		return got.resp, got.err
	case <-timer.C:
	}
	send(second)
	got := <-results
	r.serving.Go(func() {
		if late := <-results; late.err == nil {
			_ = late.resp.Body.Close()
		}
	})
	return got.resp, got.err
}
