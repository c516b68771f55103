package payvaulttest

import (
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	dripInterval = 10 * time.Millisecond
	bombBytes    = 64 << 20
)

// The JSON around the padding of an oversized body.
const (
	oversizeBegin = `{"code":0,"rcode":"000","message":"Success","data":{"padding":"`
	oversizeEnd   = `"}}`
	minOversize   = int64(len(oversizeBegin) + len(oversizeEnd))
)

// strike lets the fault of the exchange do its work if this is the stage for it. It reports whether
// the request is answered; a fault that drops the connection does not return.
func (x *exchange) strike(at stage) bool {
	if x.fault == nil || x.fault.stage() != at {
		return false
	}
	f := x.fault
	switch f.Kind {
	case ResetConnection, DropDuringRead:
		x.reset()
	case DropBeforeCommit, DropAfterCommit:
		abort()
	case Hang:
		x.drain()
		x.hang()
	case Delay:
		end := time.Now().Add(f.Delay)
		x.drain()
		x.wait(time.Until(end))
		return false
	default:
		x.misanswer(f)
	}
	return true
}

// misanswer sends the answer of a fault.
func (x *exchange) misanswer(f *Fault) {
	header := jsonHeader()
	switch f.Kind {
	case Respond:
		x.respond(f.Status, f.Header, []byte(f.Body))
	case RateLimit:
		if f.RetryAfter != "" {
			header.Set("Retry-After", f.RetryAfter)
		}
		x.respond(http.StatusTooManyRequests, header, x.codeBody(http.StatusTooManyRequests, "Too many requests"))
	case Redirect:
		x.respond(cmp.Or(f.Status, http.StatusTemporaryRedirect), http.Header{"Location": {f.Location}}, nil)
	case EmptyBody:
		x.respond(f.Status, f.Header, nil)
	case OtherCode:
		x.respond(f.Status, header, x.codeBody(f.Code, f.Message))
	case MalformedJSON:
		x.respond(http.StatusOK, header, []byte(`{"code":0,"rcode":"000","message":"Success",,}`))
	case TruncatedJSON:
		x.truncate()
	case CutBody:
		x.cut()
	case OversizedBody:
		x.oversize(x.w, header, f.Size)
	case GzipBomb:
		x.bomb(header, cmp.Or(f.Size, bombBytes))
	case SlowDrip:
		x.drip(cmp.Or(f.Delay, dripInterval))
	}
}

// codeBody is a platform answer or a tokenize answer with a code.
func (x *exchange) codeBody(code int, message string) []byte {
	if x.match.tokenize {
		return encode(tokenizeResponse{RCode: threeDigits(code), RMsg: message})
	}
	return encode(envelope{Code: code, Message: message})
}

func threeDigits(code int) string {
	digits := strconv.Itoa(code)
	return strings.Repeat("0", max(0, 3-len(digits))) + digits
}

// wholeAnswer is the answer that a fault damages.
func (x *exchange) wholeAnswer() answer {
	switch {
	case x.fault.Body != "":
		return answer{status: cmp.Or(x.fault.Status, http.StatusOK), body: []byte(x.fault.Body)}
	case x.answer.body != nil:
		return x.answer
	case x.match.tokenize:
		return answer{status: http.StatusOK, body: encode(tokenizeResponse{RCode: "000", RMsg: "Success"})}
	default:
		return answer{status: http.StatusOK, body: encode(success(struct{}{}))}
	}
}

func (x *exchange) truncate() {
	whole := x.wholeAnswer()
	x.respond(whole.status, jsonHeader(), whole.body[:len(whole.body)/2])
}

func (x *exchange) cut() {
	whole := x.wholeAnswer()
	x.start(whole.status, jsonHeader(), len(whole.body))
	x.write(x.w, whole.body[:len(whole.body)/2])
	x.flush()
	abort()
}

func (x *exchange) drip(interval time.Duration) {
	x.drain()
	whole := x.wholeAnswer()
	x.start(whole.status, jsonHeader(), len(whole.body))
	for i := range whole.body {
		x.write(x.w, whole.body[i:i+1])
		x.flush()
		x.wait(interval)
	}
}

// oversize writes JSON with one long text; without a size it ends with the connection only.
func (x *exchange) oversize(w io.Writer, header http.Header, size int64) {
	x.start(http.StatusOK, header, -1)
	x.write(w, []byte(oversizeBegin))
	padding := []byte(strings.Repeat("x", 32<<10))
	for left := size - minOversize; left > 0 || size == 0; left -= int64(len(padding)) {
		if size > 0 && left < int64(len(padding)) {
			padding = padding[:left]
		}
		x.write(w, padding)
	}
	x.write(w, []byte(oversizeEnd))
}

func (x *exchange) bomb(header http.Header, size int64) {
	header.Set("Content-Encoding", "gzip")
	zip := gzip.NewWriter(x.w)
	x.oversize(zip, header, size)
	if zip.Close() != nil {
		abort()
	}
}

// write sends a piece of a body; when the client is gone, so is the request.
func (x *exchange) write(w io.Writer, piece []byte) {
	if _, err := w.Write(piece); err != nil || x.r.Context().Err() != nil {
		abort()
	}
}

func (x *exchange) flush() {
	if http.NewResponseController(x.w).Flush() != nil {
		abort()
	}
}

// wait pauses; it aborts the request when the client is gone or the server is closed.
func (x *exchange) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
		abort()
	}
}

// drain reads what is left of a body that was refused: [net/http] does not notice that a client is
// gone while there is more to read.
func (x *exchange) drain() {
	if _, err := io.Copy(io.Discard, x.r.Body); err != nil {
		abort()
	}
}

func (x *exchange) hang() {
	<-x.r.Context().Done()
	abort()
}

// abort closes the connection, or on HTTP/2 resets the stream, without an answer.
func abort() { panic(http.ErrAbortHandler) }

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// reset closes the connection with a reset; HTTP/2 resets the stream only, so that other requests
// on the connection are not affected.
func (x *exchange) reset() {
	if conn, ok := x.r.Context().Value(connKey{}).(net.Conn); ok && x.r.ProtoMajor == 1 {
		resetConn(conn)
	}
	abort()
}

func resetConn(conn net.Conn) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
