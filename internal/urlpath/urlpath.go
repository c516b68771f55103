// Package urlpath puts the path of a request together. It is the only place that does.
package urlpath

import (
	"errors"
	"net/url"
	"strings"
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
	u, escape := *base, base.RawPath != ""
	for _, segment := range segments {
		if err := Check(segment); err != nil {
			return nil, err
		}
		escape = escape || url.PathEscape(segment) != segment
	}
	root, escaped := base.Path, base.EscapedPath()
	if strings.HasSuffix(escaped, "/") { // and not %2F, which belongs to the last segment
		root, escaped = root[:len(root)-1], escaped[:len(escaped)-1]
	}
	u.Path = join(root, segments, func(segment string) string { return segment })
	if escape {
		u.RawPath = join(escaped, segments, url.PathEscape)
	}
	return &u, nil
}

func join(root string, segments []string, encode func(string) string) string {
	path := append(make([]byte, 0, 128), root...) // most need no more memory than this
	for _, segment := range segments {
		path = append(append(path, '/'), encode(segment)...)
	}
	return string(path)
}
