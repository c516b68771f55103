// Package faulty has HTTP handlers that fail in the ways in which servers and networks fail.
package faulty

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The JSON before and after the padding of an oversized body.
const (
	oversizeBegin = `{"code":0,"rcode":"000","message":"Success","data":{"padding":"`
	oversizeEnd   = `"}}`
	// MinOversize is the smallest possible size of an oversized body, in bytes.
	MinOversize = int64(len(oversizeBegin) + len(oversizeEnd))
)

// Send returns a handler that sends the given answer. It ignores the error if the client has disconnected.
func Send(status int, header http.Header, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		start(w, status, header, len(body))
		_, _ = w.Write(body)
	})
}

// Wait returns a handler that reads the whole request, waits for d, and then calls next.
func Wait(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drain(r)
		pause(r.Context(), d)
		next.ServeHTTP(w, r)
	})
}

// Cut returns a handler that announces the length of the whole body, sends only the first half, and calls [Abort].
func Cut(status int, header http.Header, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start(w, status, header, len(body))
		write(w, r, body[:len(body)/2])
		flush(w)
		Abort()
	})
}

// Drip returns a handler that reads the whole request, and then sends a body byte by byte, with a pause after each
// byte.
func Drip(status int, header http.Header, body []byte, interval time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drain(r)
		start(w, status, header, len(body))
		for i := range body {
			write(w, r, body[i:i+1])
			flush(w)
			pause(r.Context(), interval)
		}
	})
}

// Oversize returns a handler that answers with JSON of the given size in bytes, but at least MinOversize. If the size
// is 0, the JSON never ends.
func Oversize(header http.Header, size int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start(w, http.StatusOK, header, -1)
		write(w, r, []byte(oversizeBegin))
		padding := []byte(strings.Repeat("x", 32<<10))
		for left := size - MinOversize; left > 0 || size == 0; left -= int64(len(padding)) {
			if size > 0 {
				padding = padding[:min(left, int64(len(padding)))]
			}
			write(w, r, padding)
		}
		write(w, r, []byte(oversizeEnd))
	})
}

// write sends a piece of a body. It aborts the request if the client has disconnected or the server is closed.
func write(w io.Writer, r *http.Request, piece []byte) {
	if _, err := w.Write(piece); err != nil || r.Context().Err() != nil {
		Abort()
	}
}

func flush(w http.ResponseWriter) {
	if http.NewResponseController(w).Flush() != nil {
		Abort()
	}
}

// pause waits for d. It aborts the request if ctx ends first, because the client has disconnected or the server is
// closed.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		Abort()
	}
}

// drain reads the rest of the body of a request. While a part of the body is unread, [net/http] does not notice that
// the client has disconnected.
func drain(r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		Abort()
	}
}

// Abort closes the connection, or on HTTP/2 resets the stream, without finishing the answer.
func Abort() { panic(http.ErrAbortHandler) }

// Reset closes the connection with a TCP reset. On HTTP/2 it resets only the stream, so that other requests on the
// connection continue.
func Reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		Abort()
	}
	wire := conn
	if secure, ok := conn.(*tls.Conn); ok {
		wire = secure.NetConn()
	}
	if tcp, ok := wire.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = wire.Close()
}

// start sends the status and the header. It sends a Content-Length only if length is not negative.
func start(w http.ResponseWriter, status int, header http.Header, length int) {
	for name, values := range header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if _, given := w.Header()["Content-Type"]; !given {
		w.Header()["Content-Type"] = nil // otherwise net/http would guess a type
	}
	if length >= 0 && status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	w.WriteHeader(cmp.Or(status, http.StatusOK))
}
