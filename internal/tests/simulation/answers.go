package simulation

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
)

// answer is an answer of the service, before it is written as HTTP/1.1 or HTTP/2.
type answer struct {
	status int
	reason string
	header [][2]string
	body   []byte
	echo   string // the text that a malformed status line or header contains
}

// answer makes the answer that the step describes, and records it.
func (x *exchange) answer() answer {
	d := newDie(x.step.Pick)
	d.echoes = x.kind.secrets()
	a := answer{status: x.step.Status, reason: http.StatusText(x.step.Status)}
	if a.echo = printable(d.echo()); d.chance(10) {
		a.reason = printable(d.echo())
	}
	x.run.strike("status: " + strconv.Itoa(a.status/100) + "xx")
	x.run.strike("body: " + x.step.Body)
	a.header = [][2]string{
		{"Content-Type", "application/json"}, {headerAnswer, x.label()}, {"X-Echo", printable(d.echo())},
	}
	if x.step.RetryAfter != "" {
		a.header = append(a.header, [2]string{"Retry-After", x.step.RetryAfter})
		x.holdBack()
	}
	if a.status/100 == 3 {
		a.header = append(a.header, [2]string{"Location", basePath + elsewhere + "?number=" + canaryCard})
	}
	x.run.note(x.unit, func(n *record) {
		if a.status == http.StatusTooManyRequests {
			n.turned++
		}
		if x.decidesNothing() {
			n.forbidden++
		}
		switch x.step.Body {
		case "mutated", "endless", "repeated page", "empty page":
			n.mutated = true
		}
		n.said = n.said || x.saysSuccess()
	})
	a.body = x.content(d)
	return a
}

// decidesNothing reports whether the SDK may treat the answer as a refusal that does not concern the batch, such as a
// refused key. The SDK does so after status 401, and after status 403 with a code that refuses. After another 4xx
// status, except 408 and 429, it may do so if the body is complete, is not empty, and may lack a result code.
func (x *exchange) decidesNothing() bool {
	switch status := x.step.Status; {
	case status == http.StatusUnauthorized:
		return true
	case status == http.StatusForbidden:
		return slices.Contains([]string{"refusal", "validation", "mutated"}, x.step.Body)
	case status/100 != 4 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests:
		return false
	}
	switch x.step.Body {
	case "refusal", "validation":
		return false
	case "nothing": // the body is empty, but with these faults the SDK reads a copy of the answer as the body
		return x.step.Framing == "until close" && x.step.After == "duplicate"
	}
	return x.step.Cut == ""
}

// saysSuccess reports whether the SDK may treat the answer as a success. For Validate, messages about fields are a
// success, even with status 400 or 422.
func (x *exchange) saysSuccess() bool {
	status := x.step.Status
	switch x.step.Body {
	case "validation", "refusal": // these bodies may have code 2 and messages about fields
		return x.kind.Op == payvault.OpApplicationsValidate && (status/100 == 2 || status == 400 || status == 422)
	case "nothing", "text":
		return false
	}
	return status/100 == 2 && x.step.Perform
}

// holdBack records how long Retry-After makes the client wait, if the client certainly receives this answer.
func (x *exchange) holdBack() {
	seconds, err := strconv.Atoi(x.step.RetryAfter)
	s, plan := &x.step, &x.run.Calls[x.call]
	status := s.Status == http.StatusTooManyRequests || s.Status == http.StatusServiceUnavailable
	arrives := s.Wait+s.Drip == 0 && s.Cut+s.Framing+s.After == "" && s.Info == nil &&
		x.run.Caller == callerPlain && x.run.Wire == wireHTTP1 && len(x.run.Dials) == 0
	if err == nil && seconds > 0 && status && arrives {
		now := time.Now()
		wait := time.Duration(seconds) * time.Second
		until := now.Add(wait)
		// stays is true if the caller certainly waits for this answer. A walk that fetches ahead may end earlier, with the
		// error of another page.
		fetchesAhead := plan.Form == formWalk && plan.Width > 1
		stays := plan.End == 0 && plan.Leave == 0 && plan.Panic == "" && !fetchesAhead
		all := s.Status == http.StatusTooManyRequests && wait <= x.run.Client.MaxRetryAfter && x.paced() && stays
		x.run.note(x.unit, func(n *record) {
			n.notBefore = until
			if all {
				x.run.held[x.kind.Op] = [2]time.Time{now, until}
			}
		})
	}
}

// content returns the body that step.Body names.
func (x *exchange) content(d die) []byte {
	switch x.step.Body {
	case "success":
		return x.success()
	case "refusal":
		code := pick(d, []string{"7", "1", "051", "-1", "2"})
		if x.kind.rcode {
			return fmt.Appendf(nil, `{"rcode":"%s","rmsg":%s}`, code, quoted(d, d.echo()))
		}
		return fmt.Appendf(nil, `{"code":%q,"message":%s,"data":{"message":%s}}`,
			code, quoted(d, d.echo()), quoted(d, d.echo()))
	case "validation":
		return fmt.Appendf(nil, `{"code":2,"rcode":"2","message":"Request validation failed",`+
			`"data":{"tax_id":[%s,%s],%s:["is required"]}}`,
			quoted(d, d.echo()), quoted(d, d.echo()), quoted(d, d.echo()))
	case "text":
		return []byte("<html><body>502 Bad Gateway " + d.echo() + "</body></html>")
	case "odd code":
		return x.oddCode(d)
	case "both codes":
		return x.bothCodes(d)
	case "mutated":
		return x.mutated(d)
	case "large":
		return slices.Concat(x.success(), bytes.Repeat([]byte(" "), int(x.run.Client.MaxBytes)))
	case "endless":
		return x.run.world.page(x.kind.Op, x.page, x.page+2)
	case "repeated page":
		return x.run.world.page(x.kind.Op, 0, 1<<40)
	case "empty page":
		return fmt.Appendf(nil, `{"code":0,"message":"Success","totalPages":%d,"totalRecords":9,"data":%s}`,
			x.page+d.IntN(5), pick(d, []string{"[]", "null", "{}", "[{}]"}))
	}
	return nil
}

// success returns a correct answer: a page of the list, or the documented answer. If the operation creates an ID, the
// answer has a new one.
func (x *exchange) success() []byte {
	if x.kind.Lists() {
		pages := max(1, x.run.Calls[x.call].Length)
		return x.run.world.page(x.kind.Op, x.page, pages)
	}
	doc, issues := x.run.world.issuing[x.kind.Op]
	if !issues {
		return x.run.world.documents[x.kind.Op]
	}
	id := strconv.FormatInt(500000+x.run.serial.Add(1), 10)
	x.run.note(x.unit, func(n *record) { n.issued = append(n.issued, id) })
	return slices.Concat(doc.before, []byte(id), doc.after)
}

// codePattern matches the JSON field code or rcode with its value. The name may be in upper or lower case.
var codePattern = regexp.MustCompile(`(?i)"r?code":\s*("[^"]*"|[^,}\s]+)`)

// oddCode returns the success document with an unusual result code, or without one. If the step performs the operation,
// the code does not mean failure. Otherwise it does not mean success.
func (x *exchange) oddCode(d die) []byte {
	code := pick(d, []string{
		`7`, `"7"`, `-1`, `1e3`, `null`, `true`, `[]`, `"OK"`, `""`, `{"a":0}`, `"000x"`, `00`, ``,
	})
	if x.step.Perform {
		code = pick(d, []string{`"0"`, `0.0`, `"00"`, `0e5`, `null`, `" 0 "`, `-0`, `""`, `{}`, `"000"`, `0`, ``})
	}
	doc, done := x.success(), false
	return codePattern.ReplaceAllFunc(doc, func(found []byte) []byte {
		if done {
			return found
		}
		done = true
		if code == "" {
			return []byte(`"other":1`)
		}
		name, _, _ := bytes.Cut(found, []byte(":"))
		return append(append(slices.Clone(name), ':'), code...)
	})
}

// bothCodes returns the success document with a second result code, which means failure. A step with this body never
// performs the operation.
func (x *exchange) bothCodes(d die) []byte {
	return codePattern.ReplaceAllFunc(x.success(), func(found []byte) []byte {
		other := `,"code":7`
		if !x.kind.rcode {
			other = pick(d, []string{`,"rcode":"051"`, other})
		}
		return slices.Concat(found, []byte(other))
	})
}

// mutated returns the success document with random changes of its JSON values or of its bytes.
func (x *exchange) mutated(d die) []byte {
	doc := slices.Clone(x.success())
	if around, issues := x.run.world.issuing[x.kind.Op]; issues && d.chance(20) {
		return slices.Concat(around.before, []byte(printable(d.echo())), around.after)
	}
	for range 1 + d.IntN(3) {
		if d.chance(60) {
			doc = d.mutateTree(doc)
		} else {
			doc = d.mutateBytes(doc)
		}
	}
	for _, code := range codePattern.FindAllSubmatch(doc, -1) {
		number, err := strconv.ParseFloat(strings.Trim(string(code[1]), `" `), 64)
		if err != nil || number != 0 {
			x.run.note(x.unit, func(n *record) { n.lied = true })
		}
	}
	return doc
}

func (d die) mutateBytes(doc []byte) []byte {
	if len(doc) == 0 {
		return []byte("null")
	}
	at := d.IntN(len(doc))
	switch d.IntN(7) {
	case 0:
		doc[at] ^= 1 << d.IntN(8)
	case 1:
		return doc[:at]
	case 2:
		return append(doc, pick(d, []string{"garbage", "{}", "\x00", " ", "]", `{"code":0}`})...)
	case 3:
		return slices.Insert(doc, at, d.garbage()...)
	case 4:
		return slices.Delete(doc, at, min(len(doc), at+1+d.IntN(9)))
	case 5:
		return append([]byte("\xef\xbb\xbf"), doc...)
	case 6:
		return append(doc, doc...)
	}
	return doc
}

func (d die) garbage() []byte {
	b := make([]byte, 1+d.IntN(60))
	for i := range b {
		b[i] = byte(d.IntN(256)) //nolint:gosec // any byte will do
	}
	return b
}

// mutateTree replaces, removes or adds one value of a JSON document. It does not change the result code at the top
// level.
func (d die) mutateTree(doc []byte) []byte {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return doc
	}
	tree = d.mutateValue(tree, 0)
	changed, err := json.Marshal(tree)
	if err != nil {
		return doc
	}
	// die.anything returns these numbers as strings, because json.Marshal writes no Go number in this form
	for _, big := range []string{"1e999", "123456789012345678901234567890", "-0.0"} {
		changed = bytes.ReplaceAll(changed, []byte(`"`+big+`"`), []byte(big))
	}
	return changed
}

func (d die) mutateValue(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			if depth > 0 || key != "code" && key != "rcode" {
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			return v
		}
		slices.Sort(keys)
		key := pick(d, keys)
		switch d.IntN(6) {
		case 0:
			delete(v, key)
		case 1:
			v[strings.ToUpper(key)] = d.anything()
		default:
			v[key] = d.mutateValue(v[key], depth+1)
		}
		return v
	case []any:
		if len(v) == 0 || d.chance(20) {
			return append(v, d.anything())
		}
		i := d.IntN(len(v))
		v[i] = d.mutateValue(v[i], depth+1)
		return v
	}
	return d.anything()
}

// anything returns a random JSON value.
func (d die) anything() any {
	switch d.IntN(10) {
	case 0:
		return nil
	case 1:
		return d.chance(50)
	case 2:
		return pick(d, []any{0, -1, 1.5, 1e15, "1e999", "123456789012345678901234567890", "-0.0"})
	case 3:
		return ""
	case 4:
		return strings.Repeat("x", d.IntN(3000))
	case 5:
		return []any{}
	case 6:
		return map[string]any{}
	case 7:
		return []any{nil, 1, "x", map[string]any{"a": nil}}
	case 8:
		var deep any = 1
		for range d.IntN(300) {
			deep = []any{deep}
		}
		return deep
	}
	return d.echo()
}

// echo returns a text that contains a value of the request, unchanged, escaped or with separators.
func (d die) echo() string {
	canary := pick(d, d.echoes)
	switch d.IntN(8) { // for 0 and for 5 to 7, the value stays unchanged
	case 1:
		canary = url.QueryEscape(canary)
	case 2:
		canary = d.apart(canary, pick(d, []string{" ", "-", ".", "\u00a0", "&nbsp;", "%20", "\u2013"}))
	case 3:
		var b strings.Builder
		for _, c := range []byte(canary) {
			fmt.Fprintf(&b, "&#%d;", c)
		}
		canary = b.String()
	case 4:
		var b strings.Builder
		for _, c := range []byte(canary) {
			fmt.Fprintf(&b, "%%%02x", c)
		}
		canary = b.String()
	}
	return pick(d, []string{"", "failed for ", "number="}) + canary + pick(d, []string{"", " is not accepted", "."})
}

// apart puts the separator between groups of four digits of a text that isNumber accepts. It returns other texts
// unchanged.
func (d die) apart(text, separator string) string {
	if !isNumber(text) {
		return text
	}
	var b strings.Builder
	for i, c := range text {
		if i > 0 && i%4 == 0 {
			b.WriteString(separator)
		}
		b.WriteRune(c)
	}
	return b.String()
}

// quoted returns a text as a JSON string, sometimes with every character escaped.
func quoted(d die, text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	if d.chance(80) {
		return string(raw)
	}
	var b strings.Builder
	for _, c := range text {
		if c > 0xffff {
			c = '?'
		}
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return `"` + b.String() + `"`
}

// printable replaces each character that is not printable ASCII with an underscore. The result can be part of a header.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '_'
		}
		return r
	}, text)
}

// zippers has gzip writers to reuse, because a new one allocates about a megabyte.
//
//nolint:gochecknoglobals // nothing lasts in them
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zip compresses a body with gzip. Depending on the framing, the result is correct, damaged, or a gzip bomb instead.
func (x *exchange) zip(body []byte) []byte {
	if x.step.Framing == "gzip bomb" {
		return x.run.world.bomb
	}
	var b bytes.Buffer
	w := zippers.Get().(*gzip.Writer) //nolint:errcheck // the pool holds nothing else
	defer zippers.Put(w)
	w.Reset(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	zipped := b.Bytes()
	if x.step.Framing == "broken gzip" {
		zipped[len(zipped)/2] ^= 0x55
	}
	return zipped
}
