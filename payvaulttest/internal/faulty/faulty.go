// Package faulty has handlers that fail like servers and networks.
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

// The JSON around the padding of an oversized body.
const (
	oversizeBegin = `{"code":0,"rcode":"000","message":"Success","data":{"padding":"`
	oversizeEnd   = `"}}`
	// MinOversize is the least size of an oversized body.
	MinOversize = int64(len(oversizeBegin) + len(oversizeEnd))
)

// Send returns a handler that sends the given answer. It ignores the error if the client is gone.
func Send(status int, header http.Header, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		start(w, status, header, len(body))
		_, _ = w.Write(body)
	})
}

// Wait returns a handler that reads the whole request, waits, and calls next.
func Wait(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drain(r)
		pause(r.Context(), d)
		next.ServeHTTP(w, r)
	})
}

// Cut returns a handler that announces a whole body, sends its first half and closes the connection.
func Cut(status int, header http.Header, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start(w, status, header, len(body))
		write(w, r, body[:len(body)/2])
		flush(w)
		Abort()
	})
}

// Drip returns a handler that sends a body byte by byte.
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

// Oversize returns a handler that answers with JSON with one long text. Without a size the text ends only with the
// connection.
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

// write sends a piece of a body. It aborts the request if the client is gone.
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

// pause aborts the request when the client is gone or the server is closed.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		Abort()
	}
}

// drain reads the rest of a body that was refused: [net/http] does not notice that a client is gone while there is more
// to read.
func drain(r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		Abort()
	}
}

// Abort closes the connection, or on HTTP/2 resets the stream, without an answer.
func Abort() { panic(http.ErrAbortHandler) }

// Reset closes the connection with a reset. On HTTP/2 it resets the stream instead, so that other requests on the
// connection go on.
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

// start sends the status and the header. A length below zero is not announced.
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
