package payvault

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"example.com/payvault/internal/transport"
)

// CallOption changes one call.
type CallOption func(*callOptions)

// callOptions holds the settings of one call.
type callOptions struct {
	response *Response
	replay   bool
	attempts int
	header   http.Header
	problems problems
	gate     *transport.Gate // set by a walk for each of its calls; no CallOption sets it
}

// newCallOptions applies the options of a call, or of a walk of many calls. It returns no error for an invalid option,
// because the call itself returns that error.
func newCallOptions(opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{}
	}
	var o callOptions // declared only here: o is on the heap, and a call without options must not allocate
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// WithResponse stores the raw answer in r when the call ends, even with an error. An iterator stores the answer of the
// page or batch that it is yielding.
func WithResponse(r *Response) CallOption { return func(o *callOptions) { o.response = r } }

// WithReplay states that repeating this call is harmless. The client then repeats the call like a replayable operation:
// after a lost connection, a timeout of an attempt, and statuses 502, 503 and 504. If an attempt is lost and the next
// one is refused, the lost attempt may have performed the operation. The error then has the status and the code of the
// refusal, and also matches [ErrOutcomeUnknown].
func WithReplay() CallOption { return func(o *callOptions) { o.replay = true } }

// WithMaxAttempts limits the attempts of this call to n, the first included. For a walk, such as All or SubmitAll, it
// limits the attempts of each page or batch. An attempt of a walk that gets status 429 does not count. But with n = 1,
// the first 429 ends the walk. If n is below 1, the call fails before anything is sent.
func WithMaxAttempts(n int) CallOption {
	return func(o *callOptions) {
		if n < 1 {
			o.problems.add("WithMaxAttempts", "is not positive")
		}
		o.attempts = n
	}
}

// WithHeader adds a header to the requests of this call. It refuses Authorization, Host, Accept, Accept-Encoding,
// User-Agent (see [WithUserAgent]), Content-* and headers of the connection, such as Connection and Upgrade. It also
// refuses Idempotency-Key and X-Idempotency-Key: the service documents no such header, and net/http may send a request
// with such a header twice.
func WithHeader(key, value string) CallOption {
	key = http.CanonicalHeaderKey(key)
	return func(o *callOptions) {
		if reserved := reservedHeader(key); reserved || !validHeaderName(key) || !validHeaderValue(value) {
			o.problems.add("WithHeader", strconv.Quote(key)+" cannot be set, or not to this value")
			return
		}
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Add(key, value)
	}
}

func reservedHeader(key string) bool {
	switch key {
	case "Authorization", "Host", "Accept", "Accept-Encoding", "User-Agent",
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "Expect",
		"Idempotency-Key", "X-Idempotency-Key":
		return true
	}
	return strings.HasPrefix(key, "Content-")
}

func validHeaderName(name string) bool {
	return name != "" && strings.Trim(name,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

func validHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
}

// Response is the raw answer of the service. Its JSON, XML and YAML do not contain header and body.
type Response struct {
	StatusCode int           // 0 if no response arrived
	Header     http.Header   `json:"-" xml:"-" yaml:"-"` // header of the last response
	Body       []byte        `json:"-" xml:"-" yaml:"-"` // raw bytes, as far as they were read
	Attempts   int           // 0 if no attempt was made
	Duration   time.Duration // time of the whole call, waits included
	// Unread has JSON pointers to values that could not be read in a 2xx answer to a write or to [Client.Call]. It also
	// has pointers to codes of currencies and countries that were completed, such as 36 to 036. A few documented values,
	// such as data and card_id, are in Unread if they are missing and the caller does not need them. An answer with more
	// than 20 unreadable values is an error.
	Unread []string
}

// Format writes status, size, attempts and duration, without header and body, under every verb.
func (r Response) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{StatusCode:%d Body:%d bytes Attempts:%d Duration:%v}", r.StatusCode, len(r.Body), r.Attempts,
		r.Duration)
}

// LogValue logs status, size, attempts and duration, without header and body.
func (r Response) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("status", r.StatusCode), slog.Int("body_bytes", len(r.Body)),
		slog.Int("attempts", r.Attempts), slog.Duration("duration", r.Duration))
}
