package urlpath

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// fill calls Fill with a template that has one parameter for each segment.
func fill(base *url.URL, segments ...string) (*url.URL, error) {
	return Fill(base, strings.Repeat("/{name}", len(segments)), segments...)
}

// TestFillTemplate checks that Fill replaces the parameters of a template. If a value is missing or refused, the error
// has the name of the parameter.
func TestFillTemplate(t *testing.T) {
	t.Parallel()
	base := parse(t, "https://service.test/base")
	u, err := Fill(base, "/webhook/{webhook_id}/event/{event}", "a/b", "done")
	require.NoError(t, err)
	assert.Equal(t, "https://service.test/base/webhook/a%2Fb/event/done", u.String())
	assert.Equal(t, []string{"webhook_id", "event"}, Params("/webhook/{webhook_id}/event/{event}"))
	assert.Empty(t, Params("/pg/tokenize"))

	_, err = Fill(base, "/webhook/{webhook_id}/event/{event}", "a")
	require.ErrorContains(t, err, "event")
	_, err = Fill(base, "/webhook/{webhook_id}", "..")
	require.ErrorContains(t, err, "webhook_id")
}

// TestFill checks the URL that Fill returns for many base paths and segments.
func TestFill(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		base     string
		segments []string
		want     string
	}{
		"no path":           {"https://service.test", []string{"pg", "tokenize"}, "https://service.test/pg/tokenize"},
		"root":              {"https://service.test/", []string{"pg", "tokenize"}, "https://service.test/pg/tokenize"},
		"prefix":            {"https://service.test/base", []string{"pg"}, "https://service.test/base/pg"},
		"prefix with slash": {"https://service.test/base/", []string{"pg"}, "https://service.test/base/pg"},
		"escaped prefix": {
			"https://service.test/a%2Fb%20c/%E4%B8%96",
			[]string{"x"},
			"https://service.test/a%2Fb%20c/%E4%B8%96/x",
		},
		"prefix, escaped slash":  {"https://service.test/a%2F", []string{"x"}, "https://service.test/a%2F/x"},
		"prefix, both slashes":   {"https://service.test/a%2F/", []string{"x"}, "https://service.test/a%2F/x"},
		"prefix, escaped letter": {"https://service.test/%61", []string{"a/b"}, "https://service.test/%61/a%2Fb"},
		"slash":                  {"https://service.test", []string{"a/b", "c"}, "https://service.test/a%2Fb/c"},
		"leading slash":          {"https://service.test", []string{"/a"}, "https://service.test/%2Fa"},
		"query":                  {"https://service.test", []string{"x?y=1"}, "https://service.test/x%3Fy=1"},
		"fragment":               {"https://service.test", []string{"x#y"}, "https://service.test/x%23y"},
		"percent":                {"https://service.test", []string{"100%"}, "https://service.test/100%25"},
		"escaped already": {
			"https://service.test",
			[]string{"%2e%2e", "%2F"},
			"https://service.test/%252e%252e/%252F",
		},
		"climbing":            {"https://service.test", []string{"../../x"}, "https://service.test/..%2F..%2Fx"},
		"climbing, backslash": {"https://service.test", []string{`..\x`}, "https://service.test/..%5Cx"},
		"three dots":          {"https://service.test", []string{"..."}, "https://service.test/..."},
		"space":               {"https://service.test", []string{" "}, "https://service.test/%20"},
		"plus":                {"https://service.test", []string{"a+b"}, "https://service.test/a+b"},
		"semicolon and comma": {"https://service.test", []string{"a;b,c"}, "https://service.test/a%3Bb%2Cc"},
		"line break":          {"https://service.test", []string{"a\r\nHost: x"}, "https://service.test/a%0D%0AHost:%20x"},
		"zero byte":           {"https://service.test", []string{"a\x00"}, "https://service.test/a%00"},
		"not UTF-8":           {"https://service.test", []string{"\xff"}, "https://service.test/%FF"},
		"not ASCII":           {"https://service.test", []string{"世"}, "https://service.test/%E4%B8%96"},
		"other host": {
			"https://service.test",
			[]string{"//evil.test", "@evil.test"},
			"https://service.test/%2F%2Fevil.test/@evil.test",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := parse(t, test.base)
			before := *base
			u, err := fill(base, test.segments...)
			require.NoError(t, err)
			assert.Equal(t, test.want, u.String())
			assert.Equal(t, before, *base, "the base stays as it is")
		})
	}
}

// TestSegmentsThatAreRefused checks that only the segments "", "." and ".." are refused.
func TestSegmentsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, segment := range []string{"", ".", ".."} {
		require.ErrorIs(t, Check(segment), ErrSegment)
		for _, segments := range [][]string{{segment}, {"a", segment}, {segment, "a"}, {"a", segment, "b"}} {
			u, err := fill(parse(t, "https://service.test/base"), segments...)
			require.ErrorIs(t, err, ErrSegment)
			assert.Nil(t, u)
		}
	}
	for _, segment := range []string{"a", "...", " ", "/", "%2e", "..a", "./"} {
		require.NoError(t, Check(segment))
	}
}

// assertOneSegment builds a URL with the segment between two others. It checks that the segment stays one segment, is
// the same after decoding, and changes no other part of the URL.
func assertOneSegment(t *testing.T, base *url.URL, segment string) {
	t.Helper()
	u, err := fill(base, "before", segment, "after")
	require.NoError(t, err)
	text := u.String()
	rest, ok := strings.CutPrefix(text, strings.TrimSuffix(base.String(), "/")+"/before/")
	require.True(t, ok, text)
	rest, ok = strings.CutSuffix(rest, "/after")
	require.True(t, ok, text)
	assert.NotContains(t, rest, "/")
	decoded, err := url.PathUnescape(rest)
	require.NoError(t, err)
	assert.Equal(t, segment, decoded)

	arrived, err := url.ParseRequestURI(u.RequestURI())
	require.NoError(t, err)
	assert.Equal(t, u.EscapedPath(), arrived.EscapedPath())
	assert.Equal(t, u.Path, arrived.Path)
	again := parse(t, text)
	assert.Equal(t, base.Host, again.Host)
	assert.Equal(t, base.Scheme, again.Scheme)
	assert.Empty(t, again.RawQuery)
	assert.Empty(t, again.Fragment)
	assert.Nil(t, again.User)
	assert.False(t, again.ForceQuery)
	assert.Equal(t, text, again.String())
}

// TestEachByteStaysInItsSegment runs assertOneSegment for each possible byte, alone and next to other characters.
func TestEachByteStaysInItsSegment(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://service.test", "https://service.test/a%2Fb/"} {
		for b := range 256 {
			char := string([]byte{byte(b)})
			for _, segment := range []string{
				char, "a" + char, char + "a", "a" + char + "a", char + char, ".." + char,
				char + "..",
			} {
				if Check(segment) == nil {
					assertOneSegment(t, parse(t, base), segment)
				}
			}
		}
	}
}

// FuzzFill runs assertOneSegment for random segments.
func FuzzFill(f *testing.F) {
	for _, segment := range []string{"a", "..", "a/b", "%2e%2e", "x?y=1#z", "\xff\x00", "世", "a;b", "*", ":", "a+b c"} {
		f.Add(segment, false)
		f.Add(segment, true)
	}
	f.Fuzz(func(t *testing.T, segment string, prefix bool) {
		base := parse(t, "https://service.test")
		if prefix {
			base = parse(t, "https://service.test/a%2Fb/%E4%B8%96/")
		}
		if Check(segment) != nil {
			_, err := fill(base, "before", segment)
			require.ErrorIs(t, err, ErrSegment)
			return
		}
		assertOneSegment(t, base, segment)
	})
}
