package simulation

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// http1 is a connection on which the service uses HTTP/1.1.
type http1 struct {
	*line

	run *run

	gaveUp bool // the next request gets a 408, as if both were sent at the same time

	mu   sync.Mutex
	busy bool // a request has arrived and is not answered completely
}

func (r *run) serveHTTP1(l *line) {
	c := &http1{line: l, run: r}
	reader := bufio.NewReader(l)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil || req.Method == "PRI" || !c.serve(req) { // the method PRI begins HTTP/2
			return
		}
		c.setBusy(false)
	}
}

func (c *http1) setBusy(busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = busy
}

// serve answers a request. It reports whether the connection stays open.
func (c *http1) serve(req *http.Request) bool {
	c.setBusy(true)
	x := c.run.begin(req.Method, req.URL.Path, req.URL.RawQuery, req.Header)
	if x == nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		return err == nil
	}
	early := x.early() && !c.gaveUp
	if !early {
		if req.Header.Get("Expect") == "100-continue" {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			c.run.trace("service", "call %d: the request is cut off", x.call)
			return false
		}
		x.complete(body)
	} else if req.ContentLength != 0 {
		c.run.strike("answer: early")
	}
	if c.gaveUp {
		c.run.strike("after: 408 that crosses with a request")
		c.run.trace("service", "call %d: gets a 408 that crosses with it", x.call)
		_, _ = io.WriteString(c, requestTimeout)
		if x.step.Pick%3 > 0 {
			x.performNow()
		}
		return false
	}
	x.perform()
	if !c.answer(x) {
		return false
	}
	if early {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return false
		}
	}
	return c.after(x)
}

// answer writes the answer. It reports whether the connection stays open.
func (c *http1) answer(x *exchange) bool {
	for _, status := range x.step.Info {
		c.run.strike("answer: informational")
		if _, err := fmt.Fprintf(c, "HTTP/1.1 %d Wait\r\nLink: </style.css>\r\n\r\n", status); err != nil {
			return false
		}
	}
	raw, ends := c.frame(x)
	n := len(raw)
	if x.step.Cut != "" {
		n = n * x.step.CutAt / 1000
	}
	c.run.trace("service", "call %d: answers %d %s %s, %d of %d bytes",
		x.call, x.step.Status, x.step.Body, x.step.Framing, n, len(raw))
	if x.step.After == "duplicate" && x.step.Cut == "" && x.step.Status != http.StatusTooManyRequests {
		c.run.strike("after: duplicate")
		c.run.trace("service", "call %d: answers twice", x.call)
		c.run.duplicated.Store(true)
		raw = append(raw, raw...)
		n = len(raw)
	}
	if !c.send(raw[:n], x.step.Drip) {
		return false
	}
	if x.step.Cut != "" {
		c.cut(x.step.Cut)
		return false
	}
	return !ends
}

// frame returns the bytes of an answer. It reports whether the service closes the connection after them.
func (c *http1) frame(x *exchange) (raw []byte, ends bool) {
	a := x.answer()
	if x.step.Cut != "" {
		c.run.strike("cut: " + x.step.Cut)
	}
	if x.step.Drip > 0 {
		c.run.strike("answer: drips")
	}
	framing := x.step.Framing
	if x.step.Status/100 == 1 || x.step.Status == 204 || x.step.Status == 304 {
		a.body, framing = nil, ""
	}
	if framing != "" {
		c.run.strike("framing: " + framing)
	}
	var b bytes.Buffer
	switch framing {
	case "malformed status":
		fmt.Fprintf(&b, "HTTP/1.1 OK %s\r\n", a.echo)
	case "malformed header":
		fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nno header %s\r\n", a.status, a.reason, a.echo)
	default:
		fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, a.reason)
	}
	for _, h := range a.header {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	if a.status == http.StatusSwitchingProtocols { // without Upgrade, net/http treats status 101 as an ordinary answer
		b.WriteString("Upgrade: other\r\nConnection: Upgrade\r\n")
	}
	length := len(a.body)
	switch framing {
	case "gzip", "broken gzip", "gzip bomb":
		a.body = x.zip(a.body)
		length = len(a.body)
		b.WriteString("Content-Encoding: gzip\r\n")
	case "length too short":
		length -= min(length, 1+int(x.step.Pick%20))
	case "length too long":
		length += 1 + int(x.step.Pick%2000)
	case "two lengths":
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length+7)
	}
	switch framing {
	case "chunked", "chunked and length", "bad chunks":
		if framing == "chunked and length" {
			b.WriteString("Content-Length: 3\r\n")
		}
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		size := len(a.body)
		if framing == "bad chunks" {
			size++
		}
		fmt.Fprintf(&b, "%x\r\n%s\r\n0\r\n\r\n", size, a.body)
		if len(a.body) == 0 {
			b.Truncate(b.Len() - 5)
		}
		return b.Bytes(), false
	case "until close":
		b.WriteString("Connection: close\r\n\r\n")
		b.Write(a.body)
		return b.Bytes(), true
	}
	if x.step.After == "close" {
		b.WriteString("Connection: close\r\n")
	}
	if x.step.Status/100 != 1 && x.step.Status != 204 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	b.WriteString("\r\n")
	b.Write(a.body)
	return b.Bytes(), x.step.After == "close"
}

// after causes the fault that follows the answer. It reports whether the connection stays open.
func (c *http1) after(x *exchange) bool {
	wait := time.Duration(x.step.Pick%1000) * time.Duration(x.step.Pick%7) * time.Microsecond
	switch x.step.After {
	case "close":
		c.run.strike("after: close")
		return false
	case "late close":
		c.run.strike("after: late close")
		c.run.serving.Go(func() {
			<-time.After(wait)
			c.run.trace("service", "call %d: closes the connection after its answer", x.call)
			_ = c.raw.Close()
		})
	case "late 408":
		if x.step.Pick%2 == 0 {
			c.gaveUp = true
			return true
		}
		c.run.serving.Go(func() {
			<-time.After(wait)
			c.timeOut(x.step.Pick%3 == 0)
		})
	case "garbage":
		c.run.strike("after: garbage")
		c.run.trace("service", "call %d: garbage after its answer", x.call)
		_, err := c.Write(newDie(x.step.Pick).garbage())
		return err == nil
	}
	return true
}

const requestTimeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// timeOut sends a 408 unless a request has arrived since the last answer. If goesOn is false, it also ends the
// service's side of the connection.
func (c *http1) timeOut(goesOn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy {
		return
	}
	c.run.strike("after: late 408")
	c.run.trace("service", "408 on an idle connection")
	_, _ = io.WriteString(c, requestTimeout)
	if !goesOn {
		c.raw.closeWrite()
	}
}
