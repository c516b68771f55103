package payvaulttest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"example.com/payvault/internal/openapi"
)

const (
	keptBytes = 1 << 20 // of a body, and of a part
	maxParts  = 8       // a dispute response has two
)

// Part is one part of a multipart form. Its content is shown by [Part.Content] only.
type Part struct {
	Name        string            // of the form field
	FileName    string            // empty if it is not a file
	ContentType string            // as it was sent
	Size        int64             // bytes of the whole content
	SHA256      [sha256.Size]byte // of the whole content

	content sealed
}

// Content returns the content of the part, or its first megabyte.
func (p Part) Content() []byte { return p.content.open() }

// A sealed value cannot be printed by accident: printing a func shows its address.
type sealed func() []byte

func seal(content []byte) sealed { return func() []byte { return content } }

func (s sealed) size() int {
	if s == nil {
		return 0
	}
	return len(s())
}

func (s sealed) open() []byte {
	if s == nil {
		return nil
	}
	return slices.Clone(s())
}

// A bodyReader counts a body, keeps its beginning, and enforces the cap on its size.
type bodyReader struct {
	in   io.Reader
	size int64
	left int64
	kept limitedBuffer
	end  bool // it arrived to its end
	lost bool // it did not, and will not
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.size += int64(n)
	b.left -= int64(n)
	_, _ = b.kept.Write(p[:n])
	b.end = errors.Is(err, io.EOF)
	b.lost = err != nil && !b.end
	if b.left < 0 {
		return n, refuse(http.StatusRequestEntityTooLarge, "the body is too large")
	}
	return n, err //nolint:wrapcheck // io.EOF as it is
}

// readForm reads a multipart form part by part; files are not held in memory.
func readForm(contentType string, body *bodyReader) ([]Part, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != openapi.Form || params["boundary"] == "" {
		_, err := io.Copy(io.Discard, body)
		return nil, errors.Join(refuse(http.StatusUnsupportedMediaType, "the body must be multipart/form-data"), err)
	}
	reader := multipart.NewReader(body, params["boundary"])
	var parts []Part
	for {
		next, err := reader.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a form that ends too early
			_, err = io.Copy(io.Discard, body)
			return parts, err
		}
		if err == nil && len(parts) == maxParts {
			err = refuse(http.StatusBadRequest, "the form has more than %d parts", maxParts)
		}
		var part Part
		if err == nil {
			part, err = readPart(next)
		}
		if r, ok := errors.AsType[*refusal](err); ok {
			return parts, r
		}
		if err != nil {
			return parts, refuse(http.StatusBadRequest, "the form is malformed")
		}
		parts = append(parts, part)
	}
}

func readPart(in *multipart.Part) (Part, error) {
	var head limitedBuffer
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, &head), in)
	if err != nil {
		return Part{}, fmt.Errorf("read a part: %w", err)
	}
	part := Part{
		Name: in.FormName(), FileName: in.FileName(), ContentType: in.Header.Get("Content-Type"),
		Size: n, content: seal(head.Bytes()),
	}
	copy(part.SHA256[:], sum.Sum(nil))
	return part, nil
}

// A limitedBuffer keeps the first bytes that are written to it and takes the rest without keeping it.
type limitedBuffer struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	_, _ = l.Buffer.Write(p[:min(len(p), max(0, keptBytes-l.Len()))])
	return len(p), nil
}
