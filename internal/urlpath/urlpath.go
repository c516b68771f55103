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
	var plain, escaped strings.Builder
	plain.WriteString(strings.TrimSuffix(base.Path, "/"))
	escaped.WriteString(strings.TrimSuffix(base.EscapedPath(), "/"))
	for _, segment := range segments {
		if err := Check(segment); err != nil {
			return nil, err
		}
		plain.WriteByte('/')
		plain.WriteString(segment)
		escaped.WriteByte('/')
		escaped.WriteString(url.PathEscape(segment))
	}
	u := *base
	u.Path, u.RawPath = plain.String(), escaped.String()
	return &u, nil
}
