package payvaulttest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"example.com/payvault/internal/openapi"
)

const keptBytes = 1 << 20 // of a body, and of a part

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

func (s sealed) open() []byte {
	if s == nil {
		return nil
	}
	return slices.Clone(s())
}

// readForm reads a multipart form part by part; files are not held in memory.
func readForm(contentType string, body io.Reader) ([]Part, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != openapi.Form || params["boundary"] == "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must be multipart/form-data")
	}
	reader := multipart.NewReader(body, params["boundary"])
	var parts []Part
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a form that ends too early
			return parts, nil
		}
		var head limitedBuffer
		sum := sha256.New()
		if err == nil {
			_, err = io.Copy(io.MultiWriter(sum, &head), part)
		}
		if err != nil {
			return parts, refuse(http.StatusBadRequest, "the form is malformed")
		}
		parts = append(parts, Part{
			Name: part.FormName(), FileName: part.FileName(), ContentType: part.Header.Get("Content-Type"),
			Size: head.size, SHA256: [sha256.Size]byte(sum.Sum(nil)), content: seal(head.Bytes()),
		})
	}
}

// A limitedBuffer keeps the first bytes that are written to it, and counts the others.
type limitedBuffer struct {
	bytes.Buffer
	size int64
}

// Write implements io.Writer.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.size += int64(len(p))
	_, _ = l.Buffer.Write(p[:min(len(p), max(0, keptBytes-l.Len()))])
	return len(p), nil
}
