package payvaulttest

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const (
	maxJSONBytes  = 1 << 20
	keptBodyBytes = 1 << 20
	// DefaultMaxUpload is the size of a dispute response's form unless [WithMaxUpload] says otherwise.
	DefaultMaxUpload = 64 << 20
)

var errBodyLost = errors.New("the body did not arrive to its end")

// A bodyReader counts a body, keeps its beginning, and enforces the cap on its size.
type bodyReader struct {
	in   io.Reader
	size int64
	left int64
	kept bytes.Buffer
	keep limitedBuffer
	end  bool
}

func newBodyReader(in io.Reader, limit int64) *bodyReader {
	b := &bodyReader{in: in, left: limit}
	b.keep = limitedBuffer{&b.kept, keptBodyBytes}
	return b
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.size += int64(n)
	b.left -= int64(n)
	_, _ = b.keep.Write(p[:n])
	switch {
	case b.left < 0:
		return n, refuse(http.StatusRequestEntityTooLarge, "the body is too large")
	case errors.Is(err, io.EOF):
		b.end = true
		return n, io.EOF
	case err != nil:
		return n, errors.Join(errBodyLost, err)
	}
	return n, nil
}

// checkBody compares what was sent as a body with what the operation takes.
func checkBody(kind bodyKind, r *http.Request, body []byte) error {
	switch {
	case kind == noBody && len(body) > 0:
		return refuse(http.StatusBadRequest, "the operation takes no body")
	case kind == optionalJSON && len(body) == 0:
		return nil
	case kind == jsonBody || kind == optionalJSON:
		return checkJSONType(r.Header.Get("Content-Type"))
	}
	return nil
}

func checkJSONType(contentType string) error {
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	if err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	return nil
}

// checkHeaders looks at the headers that say what is sent and what may be answered.
func checkHeaders(header http.Header) error {
	switch {
	case !acceptsJSON(header.Values("Accept")):
		return refuse(http.StatusNotAcceptable, "send accept: application/json")
	case len(header.Values("Content-Type")) > 1:
		return refuse(http.StatusUnsupportedMediaType, "send one content-type header")
	case len(header.Values("Content-Encoding")) > 0:
		return refuse(http.StatusUnsupportedMediaType, "the body must not be encoded")
	}
	return nil
}

// acceptsJSON tells whether the closest media range of the accept headers allows application/json.
func acceptsJSON(headers []string) bool {
	closeness := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}
	closest, accepts := 0, false
	for text := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		media, params, err := mime.ParseMediaType(text)
		if err == nil && closeness[media] > closest {
			quality, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64)
			closest, accepts = closeness[media], err == nil && quality > 0
		}
	}
	return accepts
}
