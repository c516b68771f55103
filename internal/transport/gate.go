package transport

import (
	"io"
	"sync"
)

// gate keeps net/http from reading an upload after its attempt has ended, which it does on HTTP/2: the content is the
// caller's to change from then on.
type gate struct {
	Upload

	mu     sync.Mutex
	closed bool
}

// close waits for a read that is under way.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Open returns a reader that fails once the gate is closed.
func (g *gate) Open() io.Reader { return gatedReader{g, g.Upload.Open()} }

type gatedReader struct {
	gate   *gate
	source io.Reader
}

func (r gatedReader) Read(p []byte) (int, error) {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	if r.gate.closed {
		return 0, io.ErrClosedPipe
	}
	return r.source.Read(p)
}
