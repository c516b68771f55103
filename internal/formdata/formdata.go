// Package formdata builds multipart/form-data bodies whose length is known, that can be sent again, and whose
// memory does not depend on the size of the file in them.
package formdata

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/textproto"
	"strings"
	"unicode"
)

// File is the file part of a body. Content is read with ReadAt only, and never closed.
type File struct {
	Field, Name, ContentType string
	Content                  io.ReaderAt
	Size                     int64
}

// Body is a form: its text fields, then at most one file.
type Body struct {
	contentType    string
	prefix, suffix []byte
	file           io.ReaderAt
	size           int64
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
		b.file, b.size = file.Content, file.Size
	}
	n := buf.Len()
	_ = w.Close()
	b.prefix, b.suffix = buf.Bytes()[:n:n], buf.Bytes()[n:]
	return b
}

// CleanName makes a file name safe for a header: control characters and bytes that are not UTF-8 become "_", and
// only what follows the last slash or backslash stays.
func CleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
}

// ContentType is the value of the Content-Type header, with its boundary.
func (b *Body) ContentType() string { return b.contentType }

// Len is the exact length in bytes.
func (b *Body) Len() int64 { return int64(len(b.prefix)) + b.size + int64(len(b.suffix)) }

// Open returns a new reader over the whole body.
func (b *Body) Open() io.Reader {
	prefix, suffix := bytes.NewReader(b.prefix), bytes.NewReader(b.suffix)
	return io.MultiReader(prefix, io.NewSectionReader(b.file, 0, b.size), suffix)
}
