package redact

import (
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const strangerCard = "5105105105105100"

// cleaned returns the result of Clean for a text, with an Eraser for the given secrets.
func cleaned(text string, secrets ...string) string { return New(secrets).Clean(text) }

// spread returns a card number in three forms: with a separator between groups of four digits, between all digits, and
// before the last digit.
func spread(number, separator string) []string {
	return []string{
		strings.Join([]string{number[:4], number[4:8], number[8:12], number[12:]}, separator),
		strings.Join(strings.Split(number, ""), separator),
		number[:15] + separator + number[15:],
	}
}

// TestCardNumber checks that a card number with each of these separators between its digits is redacted.
func TestCardNumber(t *testing.T) {
	t.Parallel()
	for _, separator := range []string{
		"", " ", "  ", "\t", "\r\n", "\u00a0", "\u202f", "\u2009", "\u2002", "\u2007", "\u3000", // blanks
		"\u200b", "\u200c", "\u200d", "\u2060", "\u3164", "\uffa0", "\u115f", "\u034f", "\u17b4", // invisible characters
		"\U000e0020", "\ufeff", "\u00ad", "\u200f", "\ufe0f\u20e3",
		"-", " - ", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212", "\uff0d", ".", "\u00b7", "\ufffd",
	} {
		for _, number := range spread(strangerCard, separator) {
			assert.Equal(t, "card [REDACTED] is known", cleaned("card "+number+" is known"), number)
		}
	}
}

// TestHidden checks that the whole text is redacted if an escape or a tag hides a card number or a secret.
func TestHidden(t *testing.T) {
	t.Parallel()
	for _, separator := range []string{
		"&nbsp;", "&nbsp", "&#160;", "&#xA0;", "&ensp;", "&shy;", "&hyphen;", "&amp;nbsp;", "&amp;amp;nbsp;",
		"%20", "%2D", "%2d", "%C2%A0", "%2520", "%252520", "%26nbsp%3B",
		`\u00a0`, `\u00A0`, `\u0020`, `\\u00a0`, "%5Cu00a0",
		"<br>", "<BR />", "</b><b>", "<!-- x -->", "&lt;br&gt;", "%3Cbr%3E", " <b> &nbsp;</b>", `<span class="group">`,
		"<x &lt;>", `<a title="1 %3C 2">`, // no tags any more once their escapes are replaced
		"&amp;amp;amp;amp;amp;nbsp;", // more levels of escapes than Clean replaces
	} {
		for _, number := range spread(strangerCard, separator) {
			assert.Equal(t, Mark, cleaned("card "+number+" is known"), number)
		}
	}
	const secret = `{"data":"Kq0x+é=="}`
	for _, text := range []string{
		`{\"data\":\"Kq0x+é==\"}`, `{\\\"data\\\":\\\"Kq0x+é==\\\"}`, url.PathEscape(secret), html.EscapeString(secret),
		`{\u0022data":"Kq0x+\u00e9=="}`, `{"data":<b>"Kq0x+é=="</b>}`,
	} {
		assert.Equal(t, Mark, cleaned("payload "+text+" is bad", secret), text)
	}
	for _, text := range []string{"John&nbsp;Smith", "John%20Smith", "John%C2%A0Smith", `John\u0020Smith`} {
		assert.Equal(t, Mark, cleaned("no customer "+text, "John Smith"), text)
	}
	assert.Equal(t, Mark, cleaned("card &#53;105&#49;05105105100 is known"))
	assert.Equal(t, Mark, cleaned(`<a href="/cards/5105%31051%30510510%30">the card</a> is known`), "within a tag")
}

// TestWhatStays checks that Clean redacts no number of up to eleven digits, no date, and no escape or tag outside a
// number. A letter, a comma or a colon ends a number. Of the two secrets, "ab" is too short to be redacted.
func TestWhatStays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "order 12345678901 is closed", "field 7 of 12: 4 digits, at 10:15 on 5 May 26", "4111xxxxxx111111",
		"on 2026-11-22T10:15:30-05:00", "on 2026-11-22 10:15:30 about noon", "2026-01-01 - 2026-12-31 is too long",
		"on 2026-11-32 10:15:30 at noon", // not a date, but only ten digits up to the colon
		"sizes are 10, 20, 50, 100, 200, 500 or 999", "id 6f1f8a52-0a3b-4c1d-9e2f-44a655b40000",
		"100% of &lt;größe&gt; \\ — naïve “text” 世界", "a <b>bold</b> word &amp; 50%25 more",
	} {
		assert.Equal(t, text, cleaned(text, "ab", "hunter2-token"))
	}
}

// TestWhereANumberEnds checks that a number of twelve or more digits is redacted, and the text around it is not. In the
// table, an asterisk stands for the mark.
func TestWhereANumberEnds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"order 123456789012 is closed": "order * is closed", "order 1234567890123456789 is closed": "order * is closed",
		"order 12345678901234567890123 is closed": "order * is closed",
		"5105 1051 0510 5100, 10, 20":             "*, 10, 20",
		"5105-1051-0510-5100 of 2026-01-01":       "* of 2026-01-01",
		"12026-01-01 12345":                       "*",              // not a date, because its year has five digits
		"host 192.168.100.200 is down":            "host * is down", // no card number, but redacting it does no harm
		"a 5105105105105100, b 4000000000000002":  "a *, b *",
		";5105105105105100=251210100000?":         ";*=*?",
		"%B5105105105105100^DOE/J^251210100000?":  "*", // %B5 is an escape, which hides the first digit
		"123456789012&nbsp;is known":              "*&nbsp;is known",
	} {
		assert.Equal(t, strings.ReplaceAll(want, "*", Mark), cleaned(text), text)
	}
}

// TestSecrets checks that each secret of at least three bytes is redacted, even if it overlaps another secret.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"cvv 937 and 937":            "cvv * and *",
		"account 123456789 closed":   "account * closed",
		"card 4111111111111111: 411": "card *: *",
		"token a+b/c== (a+b/c==)":    "token * (*)",
		"abcabcab":                   "*ab",
		"bcd, abcd, abc":             "*, *, *",
		"of 12 cards":                "of 12 cards",
	} {
		got := cleaned(text, "937", "123456789", "123", "411", "a+b/c==", "abc", "bcd", "12", "")
		assert.Equal(t, strings.ReplaceAll(want, "*", Mark), got, text)
	}
	assert.Equal(t, Mark, cleaned("RED", "RED"), "a secret within the mark")
}

// TestLongTexts checks that Clean takes less than ten seconds for 64 KiB of repeated text. On a very busy machine a
// single try may take longer, so the fastest of three tries counts.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{
		"4 ", "4", "<", "<b", "%25", "%", "&amp;", `\\`, `\u005c`, "2026-01-01", "a", "-", "\xff",
	} {
		text := strings.Repeat(unit, (64<<10)/len(unit))
		fastest := time.Hour
		for try := 0; try < 3 && fastest >= 10*time.Second; try++ {
			start := time.Now()
			cleaned(text, "aaaaaaab", strings.Repeat("a", 1000), "2026-01-02", strings.Repeat("x", 64<<10))
			fastest = min(fastest, time.Since(start))
		}
		assert.Less(t, fastest, 10*time.Second, unit)
	}
}

// FuzzClean checks that the result of Clean has no twelve digits in a row, even after a reader replaces the escapes or
// removes the tags. The same holds for a secret of three or more bytes, unless it is part of [REDACTED]. A text must
// not change if it does not contain the secret and has only lowercase letters and blanks.
func FuzzClean(f *testing.F) {
	for _, secret := range []string{
		"4111111111111111", "hunter2-token", "pa%20ss&amp;word", "937", "%B4111111111111111^DOE/JOHN^2512101?",
		`{"a":"\u0041bcdefgh"}`,
	} {
		for _, separator := range []string{"", " ", "&nbsp;", "%C2%A0", `\u2013`, "\u3000", "&amp;#8203;", "<br>", "\u3164"} {
			f.Add("card "+strings.Join(strings.Split(strangerCard, ""), separator)+" and "+secret+separator+"x", secret)
			f.Add(strings.Join(strings.Split(secret, ""), separator), secret)
		}
	}
	f.Add(`0000000\u00000\00000`, "0")
	f.Add(`\\u00000000000\u20000`, "0") // after one round of replacements, an escape is left
	f.Add("from 2026-01-01 to 2026-12-31: 10, 20, 50, 100 or 5105 1051 0510 5100", "zzz")
	f.Add("0000000\v00000", "zzz")
	f.Add("No 4 of 5: &lt;größe&gt; 100%", "zzz")
	f.Add("%25252525252534111111111111111", "zzz")
	f.Fuzz(func(t *testing.T, text, secret string) {
		left := cleaned(text, secret)
		isKnown := len(secret) >= 3 && !strings.Contains(Mark, secret)
		for _, form := range readings(left) {
			assert.NotRegexp(t, `\d{12}`, digitsOf(form), "%q", left)
			if isKnown {
				assert.NotContains(t, form, secret, "%q", left)
			}
		}
		isPlain := func(r rune) bool { return unicode.IsLetter(r) || r == ' ' }
		if utf8.ValidString(text) && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz ") == "" &&
			!strings.Contains(text, secret) && strings.IndexFunc(text, isPlain) >= 0 {
			assert.Equal(t, text, left)
		}
	})
}

// readings returns the texts that a reader may get from a text by replacing its escapes, up to eight times, and
// removing its tags.
func readings(text string) []string {
	forms := []string{text}
	for range 8 {
		text = stringEscape.ReplaceAllStringFunc(html.UnescapeString(text), func(escape string) string {
			if read, err := strconv.Unquote(`"` + strings.Replace(escape, "%", `\x`, 1) + `"`); err == nil {
				return read
			}
			return escape // half of a surrogate pair cannot be unquoted
		})
		forms = append(forms, text, regexp.MustCompile(`<[^<>]*>`).ReplaceAllString(text, ""))
	}
	return forms
}

var stringEscape = regexp.MustCompile(`%[[:xdigit:]]{2}|\\(u[[:xdigit:]]{4}|["\\])`)

// digitsOf removes most of the separators that may stand between the digits of a card number, and replaces dates with
// the letter x.
func digitsOf(text string) string {
	text = regexp.MustCompile(`\b(19|20)\d\d-[01]\d-[0-3]\d\b`).ReplaceAllString(text, "x")
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Z, unicode.Pd, unicode.Cf) || r == '.' {
			return -1
		}
		return r
	}, text)
}
