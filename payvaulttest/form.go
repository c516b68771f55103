package payvaulttest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
)

// The bytes of a form's part that are kept; a file counts and is summed beyond that.
const maxPartContent = 1 << 20

// The parts that are read; a dispute response has two.
const maxParts = 8

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

// Format implements [fmt.Formatter] without the content.
func (p Part) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Part{Name:%q FileName:%q ContentType:%q Size:%d}", p.Name, p.FileName, p.ContentType, p.Size)
}

// LogValue implements [slog.LogValuer] without the content.
func (p Part) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", p.Name), slog.Int64("size", p.Size))
}

// A sealed value cannot be printed by accident: printing a func shows its address.
type sealed func() []byte

func seal(content []byte) sealed { return func() []byte { return content } }

func (s sealed) size() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s()))
}

func (s sealed) open() []byte {
	if s == nil {
		return nil
	}
	return slices.Clone(s())
}

// bytes is about what the part holds in memory.
func (p Part) bytes() int64 {
	return entryBytes + p.content.size() + int64(len(p.Name)+len(p.FileName)+len(p.ContentType))
}

// readForm reads a multipart form part by part; files are not held in memory.
func readForm(contentType string, body io.Reader) ([]Part, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must be multipart/form-data")
	}
	end := newEnding(params["boundary"])
	body = io.TeeReader(body, end)
	reader := multipart.NewReader(body, params["boundary"])
	var parts []Part
	for {
		next, err := reader.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a form that ends too early
			return parts, checkEnd(body, end)
		}
		if err != nil {
			return parts, formError(err)
		}
		if len(parts) == maxParts {
			return parts, refuse(http.StatusBadRequest, "the form has more than %d parts", maxParts)
		}
		part, err := readPart(next)
		if err != nil {
			return parts, formError(err)
		}
		parts = append(parts, part)
	}
}

func readPart(in *multipart.Part) (Part, error) {
	disposition, _, err := mime.ParseMediaType(in.Header.Get("Content-Disposition"))
	if err != nil || disposition != "form-data" || in.FormName() == "" {
		return Part{}, refuse(http.StatusBadRequest, "a part of the form has no name")
	}
	var head bytes.Buffer
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, &limitedBuffer{&head, maxPartContent}), in)
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

// checkEnd reads what follows the parts and wants the closing boundary to be the end of the body.
func checkEnd(body io.Reader, end *ending) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return formError(err)
	}
	if !end.found {
		return refuse(http.StatusBadRequest, "the form does not end with its boundary")
	}
	if rest := string(end.kept); rest != "" && rest != "\n" && rest != "\r\n" {
		return refuse(http.StatusBadRequest, "something follows the closing boundary of the form")
	}
	return nil
}

// An ending finds the first closing boundary in what is written to it, wherever the writes divide it.
type ending struct {
	boundary []byte // with the end of the line before it
	kept     []byte // the last bytes, in which the boundary may begin; once it is found, what follows
	found    bool
}

func newEnding(boundary string) *ending {
	return &ending{boundary: []byte("\n--" + boundary + "--"), kept: []byte("\n")}
}

// Write implements io.Writer.
func (e *ending) Write(p []byte) (int, error) {
	if e.found {
		const enough = 3 // more than may follow
		e.kept = append(e.kept, p[:min(len(p), max(0, enough-len(e.kept)))]...)
		return len(p), nil
	}
	e.kept = append(e.kept, p...)
	done := len(e.kept) - len(e.boundary) + 1
	if i := bytes.Index(e.kept, e.boundary); i >= 0 {
		e.found, done = true, i+len(e.boundary)
	}
	e.kept = slices.Delete(e.kept, 0, max(0, done))
	return len(p), nil
}

// formError keeps refusals and failures of the connection; what remains is a malformed form.
func formError(err error) error {
	if _, ok := errors.AsType[*refusal](err); ok {
		return err
	}
	if errors.Is(err, errBodyLost) {
		return err
	}
	return refuse(http.StatusBadRequest, "the form is malformed")
}

// A limitedBuffer keeps the first bytes that are written to it and takes the rest without keeping it.
type limitedBuffer struct {
	buffer *bytes.Buffer
	left   int
}

// Write implements io.Writer.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.buffer.Write(p[:n])
	l.left -= n
	return len(p), nil
}
