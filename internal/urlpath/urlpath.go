// Package urlpath builds the paths of requests. No other package does so.
package urlpath

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrSegment is returned for a missing path segment, and for the segments "", "." and "..". Servers and proxies would
// remove or resolve these segments.
var ErrSegment = errors.New(`must not be empty, "." or ".."`)

// Check returns an error if segment cannot be one segment of a path.
func Check(segment string) error {
	if segment == "" || segment == "." || segment == ".." {
		return ErrSegment
	}
	return nil
}

// Params returns the names of the parameters of a template such as /webhook/{webhook_id}/event/{event}.
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

// Fill returns a copy of base with the segments of the template appended to its path. The values replace the parameters
// of the template, in order. Each value is escaped, so that it stays one segment.
func Fill(base *url.URL, template string, values ...string) (*url.URL, error) {
	path := append(make([]byte, 0, 128), base.EscapedPath()...)
	path = bytes.TrimSuffix(path, []byte("/")) // a %2F at the end stays, because it belongs to the last segment
	for segment := range strings.SplitSeq(strings.TrimPrefix(template, "/"), "/") {
		if name, ok := param(segment); ok {
			if len(values) == 0 {
				return nil, fmt.Errorf("%s: %w", name, ErrSegment)
			}
			segment, values = values[0], values[1:]
			if err := Check(segment); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		path = append(append(path, '/'), url.PathEscape(segment)...)
	}
	u, err := *base, error(nil)
	u.RawPath = string(path) // otherwise net/url would escape "!" in the path of base
	u.Path, err = url.PathUnescape(u.RawPath)
	return &u, err
}
