package simulation

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peer is a connection on which the service uses HTTP/2.
type peer struct {
	*line

	run     *run
	framer  *http2.Framer
	streams map[uint32]*inbound // used by the reading goroutine only

	mu     sync.Mutex // guards the fields below and all writes of frames
	header bytes.Buffer
	coder  *hpack.Encoder
	opened uint32 // the last stream that the client has opened
	gone   bool   // a GOAWAY was sent: later streams are left out
}

// inbound is an HTTP/2 stream whose request has not arrived completely.
type inbound struct {
	x        *exchange
	body     []byte
	answered bool
}

const windowSize = 1 << 24

func (r *run) serveHTTP2(l *line) {
	preface := make([]byte, len(http2.ClientPreface))
	for n := 0; n < len(preface); {
		m, err := l.Read(preface[n:])
		if n += m; err != nil {
			return
		}
	}
	if string(preface) != http2.ClientPreface {
		return
	}
	p := &peer{line: l, run: r, framer: http2.NewFramer(l, l), streams: map[uint32]*inbound{}}
	p.coder = hpack.NewEncoder(&p.header)
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: windowSize})
	_ = p.framer.WriteWindowUpdate(0, windowSize)
	for p.read() {
	}
}

// read handles one frame. It reports whether the connection stays open.
func (p *peer) read() bool {
	frame, err := p.framer.ReadFrame()
	if err != nil {
		return false
	}
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			p.write(func() error { return p.framer.WriteSettingsAck() })
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			p.write(func() error { return p.framer.WritePing(true, f.Data) })
		}
	case *http2.MetaHeadersFrame:
		p.open(f)
	case *http2.DataFrame:
		p.data(f)
	case *http2.RSTStreamFrame:
		p.run.trace("service", "stream %d: the client resets it, %v", f.StreamID, f.ErrCode)
		delete(p.streams, f.StreamID)
	}
	return true
}

func (p *peer) write(f func() error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f() == nil
}

func (p *peer) open(f *http2.MetaHeadersFrame) {
	isLeftOut := !p.write(func() error {
		if p.gone {
			return errGone
		}
		p.opened = f.StreamID
		return nil
	})
	if isLeftOut {
		return
	}
	header := http.Header{}
	for _, field := range f.RegularFields() {
		header.Add(field.Name, field.Value)
	}
	path, query, _ := strings.Cut(f.PseudoValue("path"), "?")
	x := p.run.begin(f.PseudoValue("method"), path, query, header)
	if x == nil {
		p.run.serving.Go(func() { p.reply(f.StreamID, []string{":status", "200"}, []byte("{}"), 0) })
		return
	}
	s := &inbound{x: x}
	p.streams[f.StreamID] = s
	if x.early() && !f.StreamEnded() {
		p.run.strike("answer: early")
		s.answered = true
		p.run.serving.Go(func() { p.answer(f.StreamID, x) })
	}
	if f.StreamEnded() {
		p.end(f.StreamID, s)
	}
}

func (p *peer) data(f *http2.DataFrame) {
	s := p.streams[f.StreamID]
	if n := len(f.Data()); n > 0 {
		p.write(func() error { return p.framer.WriteWindowUpdate(0, uint32(n)) }) //nolint:gosec // small
	}
	if s == nil {
		return
	}
	s.body = append(s.body, f.Data()...)
	if f.StreamEnded() {
		p.end(f.StreamID, s)
	}
}

// end answers a request that has arrived completely.
func (p *peer) end(stream uint32, s *inbound) {
	delete(p.streams, stream)
	if s.answered {
		return
	}
	s.x.complete(s.body)
	p.run.serving.Go(func() { p.answer(stream, s.x) })
}

func (p *peer) answer(stream uint32, x *exchange) {
	x.keepHTTP2()
	x.perform()
	step := x.step
	a := x.answer()
	for _, status := range step.Info {
		p.run.strike("answer: informational")
		p.headers(stream, []string{":status", strconv.Itoa(status), "link", "</style.css>"}, false)
	}
	fields := []string{":status", strconv.Itoa(a.status)}
	for _, h := range a.header {
		fields = append(fields, strings.ToLower(h[0]), h[1])
	}
	length := len(a.body)
	switch step.Framing {
	case "gzip", "broken gzip", "gzip bomb":
		a.body = x.zip(a.body)
		fields = append(fields, "content-encoding", "gzip")
		length = len(a.body)
	case "length too short":
		length -= min(length, 1+int(step.Pick%20))
	case "length too long":
		length += 1 + int(step.Pick%2000)
	case "two lengths":
		fields = append(fields, "content-length", strconv.Itoa(length+7))
	case "bad chunks": // HTTP/2 forbids the header Transfer-Encoding
		fields = append(fields, "transfer-encoding", "chunked")
	}
	switch step.Framing {
	case "malformed status":
		fields[1] = "OK " + a.echo
	case "malformed header":
		fields = append(fields, "no header "+a.echo, a.echo)
	}
	// HTTP/2 has no chunks, so "chunked" and "chunked and length" change nothing and are not counted
	if step.Framing != "" && !strings.HasPrefix(step.Framing, "chunked") {
		p.run.strike("framing: " + step.Framing)
	}
	if step.Framing != "until close" {
		fields = append(fields, "content-length", strconv.Itoa(length))
	}
	p.run.trace("service", "call %d: answers %d %s %s %s on stream %d",
		x.call, step.Status, step.Body, step.Framing, step.Cut, stream)
	if step.Cut != "" {
		p.run.strike("cut: " + step.Cut)
		if isUnprocessed := p.cutOff(stream, fields, a.body, &step); isUnprocessed {
			x.run.note(x.unit, func(n *record) {
				n.leftOut++
				// The client does not get the answer. So the request counts as left out, and not as refused too.
				if a.status == http.StatusTooManyRequests {
					n.turned--
				}
				if x.decidesNothing() {
					n.forbidden--
				}
			})
		}
		return
	}
	if step.Drip > 0 {
		p.run.strike("answer: drips")
	}
	if p.reply(stream, fields, a.body, step.Drip) {
		p.after(stream, &step)
	}
}

func (p *peer) headers(stream uint32, fields []string, end bool) bool {
	return p.write(func() error {
		p.header.Reset()
		for i := 0; i < len(fields); i += 2 {
			if err := p.coder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
				return err
			}
		}
		return p.framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: stream, BlockFragment: p.header.Bytes(), EndHeaders: true, EndStream: end,
		})
	})
}

const largestFrame = 16 << 10

// reply writes a complete answer and reports whether all writes succeeded.
func (p *peer) reply(stream uint32, fields []string, body []byte, drip time.Duration) bool {
	if !p.headers(stream, fields, len(body) == 0) {
		return false
	}
	size := largestFrame
	if drip > 0 {
		size = min(size, len(body)/10+1)
	}
	for len(body) > 0 {
		n := min(len(body), size)
		if !p.write(func() error { return p.framer.WriteData(stream, n == len(body), body[:n]) }) {
			return false
		}
		if body = body[n:]; drip > 0 {
			<-time.After(drip)
		}
	}
	return true
}

// keepHTTP2 makes a step obey RFC 9113: after the service has performed the operation, it must not state that it did
// not process the stream.
func (x *exchange) keepHTTP2() {
	switch step := &x.step; {
	case !step.Perform:
	case step.Cut == "GOAWAY before":
		step.Cut = "GOAWAY"
	case step.refusesStream():
		step.Code = uint32(http2.ErrCodeInternal)
	}
}

// refusesStream reports whether the step resets the stream and states that it was not processed.
func (s Step) refusesStream() bool {
	return s.Cut == "RST_STREAM" && http2.ErrCode(s.Code) == http2.ErrCodeRefusedStream
}

var errGone = errors.New("a GOAWAY was sent")

// goAway sends a GOAWAY frame with the number of the last stream that the client has opened. But if leaveOut is true
// and the last stream is the given stream, the frame has the number of the stream before it, and goAway returns true.
func (p *peer) goAway(stream uint32, code http2.ErrCode, leaveOut bool) (isLeftOut bool) {
	p.write(func() error {
		last := p.opened
		if isLeftOut = leaveOut && last == stream; isLeftOut {
			last = max(stream, 2) - 2
		}
		p.gone = true
		return p.framer.WriteGoAway(last, code, nil)
	})
	return isLeftOut
}

// cutOff cuts an answer off as the step says. It returns true if it has stated that the stream was not processed. If
// CutAt is more than 300, and the step does not ask for this statement, cutOff first writes the headers and a part of
// the body.
func (p *peer) cutOff(stream uint32, fields []string, body []byte, step *Step) (isUnprocessed bool) {
	if step.CutAt > 300 && step.Cut != "GOAWAY before" && !step.refusesStream() {
		p.headers(stream, fields, false)
		part := body[:len(body)*step.CutAt/1000]
		p.write(func() error { return p.framer.WriteData(stream, false, part[:min(len(part), largestFrame)]) })
	}
	switch code := http2.ErrCode(step.Code); step.Cut {
	case "RST_STREAM":
		p.write(func() error { return p.framer.WriteRSTStream(stream, code) })
		return step.refusesStream()
	case "GOAWAY":
		p.goAway(stream, code, false)
		_ = p.raw.Close()
	case "GOAWAY before":
		isUnprocessed = p.goAway(stream, code, true)
		if step.Pick%2 == 0 {
			_ = p.raw.Close()
		}
	case "end":
		_ = p.raw.Close()
	case "hang":
	default:
		p.cut(step.Cut)
	}
	return isUnprocessed
}

// after causes the fault that follows the answer, such as a closed connection or garbage.
func (p *peer) after(stream uint32, step *Step) {
	if step.After != "" {
		p.run.strike("after: " + step.After)
		p.run.trace("service", "stream %d: after the answer, %s", stream, step.After)
	}
	switch step.After {
	case "close":
		p.goAway(stream, http2.ErrCodeNo, false)
		_ = p.raw.Close()
	case "late close":
		<-time.After(time.Duration(step.Pick%1000) * time.Microsecond)
		_ = p.raw.Close()
	case "late 408": // HTTP/2 has no 408 for idle connections; the service sends a GOAWAY instead
		p.goAway(stream, http2.ErrCodeNo, false)
	case "duplicate":
		p.headers(stream, []string{":status", "200"}, true)
	case "garbage":
		p.write(func() error { _, err := p.Write(newDie(step.Pick).garbage()); return err })
	}
}
