package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// span is where a text was found.
type span struct{ from, to int }

func found(texts []string, in string) (spans []span) {
	for from, to := range newTree(texts).find([]byte(in)) {
		spans = append(spans, span{from, to})
	}
	return spans
}

func TestFind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		texts []string
		in    string
		want  []span
	}{
		"none":                     {nil, "abc", nil},
		"empty ones":               {[]string{"", ""}, "abc", nil},
		"in nothing":               {[]string{"a"}, "", nil},
		"one":                      {[]string{"bc"}, "abcd", []span{{1, 3}}},
		"twice the same":           {[]string{"bc", "bc"}, "abcbc", []span{{1, 3}, {3, 5}}},
		"in any case":              {[]string{"Bc"}, "abCBC", []span{{1, 3}, {3, 5}}},
		"over itself":              {[]string{"aa"}, "aaaa", []span{{0, 2}, {1, 3}, {2, 4}}},
		"one the start of another": {[]string{"ab", "abcd"}, "abcd", []span{{0, 2}, {0, 4}}},
		"one the end of another":   {[]string{"cd", "abcd"}, "abcd", []span{{0, 4}}},
		"one within another":       {[]string{"bc", "abcd"}, "abcx", []span{{1, 3}}},
		"one over another":         {[]string{"abcd", "cdef"}, "abcdef", []span{{0, 4}, {2, 6}}},
		"after a false start":      {[]string{"aab"}, "aaab", []span{{1, 4}}},
		"bytes":                    {[]string{"\xff\x00"}, "é\xff\x00", []span{{2, 4}}},
	} {
		assert.Equal(t, test.want, found(test.texts, test.in), name)
	}
}

func TestFind_ends(t *testing.T) {
	t.Parallel()
	for from, to := range newTree([]string{"a"}).find([]byte("aaa")) {
		assert.Equal(t, span{0, 1}, span{from, to})
		break
	}
}

// FuzzFind holds the search against bytes.HasSuffix at every byte.
func FuzzFind(f *testing.F) {
	f.Add("ab,abcd,cd", "abcdab")
	f.Add("aa,a,aaab", "aaaabAAB")
	f.Add("@,`", "[{@`")
	f.Fuzz(func(t *testing.T, list, in string) {
		texts := strings.Split(list, ",")
		folded := func(text string) []byte {
			b := []byte(text)
			for i := range b {
				b[i] |= 0x20
			}
			return b
		}
		var want []span
		for to := range len(in) + 1 {
			longest := 0
			for _, text := range texts {
				if bytes.HasSuffix(folded(in[:to]), folded(text)) {
					longest = max(longest, len(text))
				}
			}
			if longest > 0 && to > 0 {
				want = append(want, span{to - longest, to})
			}
		}
		assert.Equal(t, want, found(texts, in))
	})
}
