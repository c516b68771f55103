// Package urlpath puts the path of a request together. It is the only place that does.
package urlpath

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrSegment is returned for a value that servers and proxies would drop or resolve.
var ErrSegment = errors.New(`must not be empty, "." or ".."`)

// Check reports whether text can be one segment of a path.
func Check(segment string) error {
	if segment == "" || segment == "." || segment == ".." {
		return ErrSegment
	}
	return nil
}

// Params returns the names in braces of a template such as /webhook/{webhook_id}/event/{event}.
func Params(template string) []string {
	var names []string
	for segment := range strings.SplitSeq(template, "/") {
		if name, ok := param(segment); ok {
			names = append(names, name)
		}
	}
	return names
}

func param(segment string) (string, bool) {
	name, ok := strings.CutPrefix(segment, "{")
	return strings.TrimSuffix(name, "}"), ok
}

// Fill returns a copy of base whose path has the segments of the template appended, with the values in place of its
// parameters. Each value is escaped, so that whatever its text is, it stays one segment.
func Fill(base *url.URL, template string, values ...string) (*url.URL, error) {
	u, root, rootEscaped := *base, base.Path, base.EscapedPath()
	if strings.HasSuffix(rootEscaped, "/") { // and not %2F, which belongs to the last segment
		root, rootEscaped = root[:len(root)-1], rootEscaped[:len(rootEscaped)-1]
	}
	path := append(make([]byte, 0, 128), root...)
	escaped := append(make([]byte, 0, 128), rootEscaped...)
	for segment := range strings.SplitSeq(strings.TrimPrefix(template, "/"), "/") {
		text := segment
		if name, ok := param(segment); ok {
			if len(values) == 0 {
				return nil, fmt.Errorf("%s: %w", name, ErrSegment)
			}
			text, values = values[0], values[1:]
			if err := Check(text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		path = append(append(path, '/'), text...)
		escaped = append(append(escaped, '/'), url.PathEscape(text)...)
	}
	u.Path = string(path)
	u.RawPath = u.Path // said even where it says nothing new: without it net/url would escape "!" in the base's path
	if string(escaped) != u.Path {
		u.RawPath = string(escaped)
	}
	return &u, nil
}
