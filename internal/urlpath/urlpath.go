// Package urlpath puts the path of a request together. It is the only place that does.
package urlpath

import (
	"bytes"
	"errors"
	"net/url"
)

// ErrSegment is returned for a segment that servers and proxies would drop or resolve.
var ErrSegment = errors.New(`must not be empty, "." or ".."`)

// Check tells whether text can be one segment of a path.
func Check(segment string) error {
	if segment == "" || segment == "." || segment == ".." {
		return ErrSegment
	}
	return nil
}

// Join returns a copy of base whose path has the segments appended. Each segment is escaped, so
// that whatever its text is, it stays one segment.
func Join(base *url.URL, segments ...string) (*url.URL, error) {
	const usual = 128 // bytes of a path, which then need no memory of their own
	plain := append(make([]byte, 0, usual), base.Path...)
	escaped := append(make([]byte, 0, usual), base.EscapedPath()...)
	if bytes.HasSuffix(escaped, []byte("/")) { // and not %2F, which belongs to the last segment
		plain, escaped = plain[:len(plain)-1], escaped[:len(escaped)-1]
	}
	for _, segment := range segments {
		if err := Check(segment); err != nil {
			return nil, err
		}
		plain = append(append(plain, '/'), segment...)
		escaped = append(append(escaped, '/'), url.PathEscape(segment)...)
	}
	u := *base
	u.Path = string(plain)
	if base.RawPath != "" || !bytes.Equal(plain, escaped) {
		u.RawPath = string(escaped)
	}
	return &u, nil
}
