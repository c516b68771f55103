// Package formdata builds multipart/form-data bodies. A body has a known length, can be sent again, and does not hold
// the file in memory.
package formdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"runtime"
	"strings"
	"unicode"
)

// File is the file part of a body. Content is read with ReadAt only, and never closed. After each read that got bytes
// of the file, the reader of the body calls Progress, unless Progress is nil. The parameter read is the number of bytes
// of the file that this reader has read.
type File struct {
	Field, Name, ContentType string
	Content                  io.ReaderAt
	Size                     int64
	Progress                 func(read int64)
}

// Body is a form: its text fields, then at most one file.
type Body struct {
	contentType    string
	prefix, suffix []byte
	file           File
}

// New builds a body. The fields are pairs of a name and a text; file may be nil.
func New(fields [][2]string, file *File) *Body {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf) // writing to a bytes.Buffer cannot fail
	for _, field := range fields {
		_ = w.WriteField(field[0], field[1])
	}
	b := &Body{contentType: w.FormDataContentType()}
	if file != nil {
		_, _ = w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition(file.Field, CleanName(file.Name))},
			"Content-Type":        {file.ContentType},
		})
		b.file = *file
	}
	n := buf.Len()
	_ = w.Close()
	b.prefix, b.suffix = buf.Bytes()[:n:n], buf.Bytes()[n:]
	return b
}

// CleanName makes a file name safe for a header. It removes everything up to the last slash or backslash. It writes "_"
// for each character that cannot be printed, and for each byte that is not UTF-8.
//
// It also writes "_" for quotes, semicolons, equal signs and percent signs. If a file name has an escaped quote, undici
// 7.30 refuses the form, and formidable 3.5 reads a wrong name. The OWASP Core Rule Set 3.3 refuses quotes, semicolons
// and equal signs, also as %22, %27, %3B and %3D.
func CleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) || strings.ContainsRune(`"';=%`, r) {
			return '_'
		}
		return r
	}, name)
}

// ContentType returns the value of the Content-Type header, with its boundary.
func (b *Body) ContentType() string { return b.contentType }

// Len returns the exact length in bytes.
func (b *Body) Len() int64 { return int64(len(b.prefix)) + b.file.Size + int64(len(b.suffix)) }

// Open returns a new reader for the whole body. If the file cannot be read to its end, the reader fails with a
// [FileError] before the end of the form, so that the receiver never gets a form that looks complete.
func (b *Body) Open() io.Reader {
	prefix, suffix := bytes.NewReader(b.prefix), bytes.NewReader(b.suffix)
	file := &fileReader{content: io.NewSectionReader(b.file.Content, 0, b.file.Size), file: b.file}
	return io.MultiReader(prefix, file, suffix)
}

// FileError is returned when the file of a body cannot be read to its end.
type FileError struct {
	reason string // has no data of the file and no path
	err    error
}

// Error returns the reason, without data of the file.
func (e *FileError) Error() string { return e.reason }

// Unwrap returns the error of ReadAt, an error with the value of a panic in ReadAt or Progress, or
// [io.ErrUnexpectedEOF] if the file has become shorter.
func (e *FileError) Unwrap() error { return e.err }

// Format writes the text of Error under every verb.
func (e *FileError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

// fileReader reads the file of a body, up to [File.Size].
type fileReader struct {
	content *io.SectionReader
	file    File
	read    int64 // number of bytes that were read
}

// Read reads from the file, and then calls Progress if it got bytes. It turns a panic of ReadAt or Progress into an
// error, because net/http reads a body in its own goroutine, where a panic would end the process.
func (r *fileReader) Read(p []byte) (n int, err error) {
	reason := "the file cannot be read: panic in ReadAt"
	defer func() {
		if value := recover(); value != nil {
			n, err = 0, panicError(reason, value)
		}
	}()
	n, err = r.content.Read(p)
	r.read += int64(n)
	switch {
	case err == io.EOF && r.read < r.file.Size: //nolint:errorlint // a reader returns io.EOF itself
		err = &FileError{"the file has become shorter", io.ErrUnexpectedEOF}
	case err != nil && err != io.EOF: //nolint:errorlint // likewise
		err = &FileError{"the file cannot be read", err}
	}
	if n > 0 && r.file.Progress != nil {
		reason = "the upload has stopped: panic in Progress"
		r.file.Progress(r.read)
	}
	return n, err
}

// panicError returns a [FileError] with a reason. If value is a [runtime.Error], its text is added to the reason. The
// text of any other value may hold data, so only Unwrap returns it.
func panicError(reason string, value any) error {
	err, ok := value.(error)
	if !ok {
		err = fmt.Errorf("panic: %v", value)
	}
	if broken, ok := errors.AsType[runtime.Error](err); ok {
		reason += ": " + broken.Error()
	}
	return &FileError{reason, err}
}
