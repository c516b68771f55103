package faults

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"

	"example.com/payvault/internal/tests/service"
)

// The HTTP/2 frames and codes that it takes to refuse a request (RFC 9113 §6, §7).
const (
	clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	frameData      = 0x0
	frameHeaders   = 0x1
	frameRSTStream = 0x3
	frameSettings  = 0x4
	frameGoAway    = 0x7

	flagEndStream = 0x1 // of DATA and HEADERS
	flagAck       = 0x1 // of SETTINGS

	codeNoError       = 0x0
	codeProtocolError = 0x1
	codeInternalError = 0x2
	codeRefusedStream = 0x7
)

// http2Faults strike on a connection that carries HTTP/2. The first stream of a client has number 1.
func http2Faults(t *testing.T) []fault {
	t.Helper()
	certified := service.Unstarted(t, nil)
	certified.StartTLS() // for its certificate only, which is that of all servers of httptest
	t.Cleanup(certified.Close)
	config := &tls.Config{
		Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"},
		MinVersion: tls.VersionTLS12,
	}
	peer := func(name string, performs bool, strike func(p *http2Peer)) fault {
		return fault{
			name: "HTTP/2 " + name, is: lost, tls: true, performs: performs,
			network: peering(func(conn net.Conn, c *cell) {
				(&http2Peer{conn: tls.Server(conn, config), cell: c, strike: strike}).serve()
			}),
		}
	}
	protocolError := peer("PROTOCOL_ERROR", true, func(p *http2Peer) { // after which net/http would send even a POST again
		p.cell.commit()
		p.goAway(1, codeNoError)
		p.reset(codeProtocolError)
	})
	// Net/http has a connection for an attempt of its own by then, which would strike the next call.
	protocolError.once = true
	return []fault{
		protocolError,
		peer("GOAWAY before the stream", false, func(p *http2Peer) { p.goAway(0, codeNoError) }),
		peer("GOAWAY with an error", false, func(p *http2Peer) { p.goAway(0, codeInternalError) }),
		peer("REFUSED_STREAM", false, func(p *http2Peer) {
			p.goAway(1, codeNoError) // so that the next stream gets a new connection
			p.reset(codeRefusedStream)
		}),
		peer("GOAWAY, then connection lost", true, func(p *http2Peer) {
			p.cell.commit()
			p.goAway(1, codeNoError)
			_ = p.conn.Close()
		}),
		{
			name: "HTTP/2 stream reset", is: lost, tls: true, performs: true,
			serve: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		},
	}
}

// http2Peer is a server that reads one request and then strikes.
type http2Peer struct {
	conn   net.Conn
	cell   *cell
	strike func(p *http2Peer)
}

func (p *http2Peer) serve() {
	defer func() { _ = p.conn.Close() }()
	if _, err := io.ReadFull(p.conn, make([]byte, len(clientPreface))); err != nil {
		return
	}
	p.frame(frameSettings, 0, 0, nil)
	for {
		kind, flags, err := p.read()
		switch {
		case err != nil:
			return
		case kind == frameSettings && flags&flagAck == 0:
			p.frame(frameSettings, flagAck, 0, nil)
		case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
			p.strike(p)
		}
	}
}

// read reads a frame and drops its content.
func (p *http2Peer) read() (kind, flags byte, err error) {
	var header [9]byte
	if _, err = io.ReadFull(p.conn, header[:]); err != nil {
		return 0, 0, err
	}
	length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
	_, err = io.CopyN(io.Discard, p.conn, length)
	return header[3], header[4], err
}

func (p *http2Peer) frame(kind, flags byte, stream uint32, content []byte) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(content))<<8|uint32(kind)) //nolint:gosec // a few bytes
	frame = append(frame, flags)
	frame = binary.BigEndian.AppendUint32(frame, stream)
	_, _ = p.conn.Write(append(frame, content...)) // a client that is gone does not matter
}

func (p *http2Peer) goAway(last, code uint32) {
	content := binary.BigEndian.AppendUint32(nil, last)
	p.frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(content, code))
}

func (p *http2Peer) reset(code uint32) {
	p.frame(frameRSTStream, 0, 1, binary.BigEndian.AppendUint32(nil, code))
}
