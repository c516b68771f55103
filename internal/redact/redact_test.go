package redact

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const strangerCard = "5105105105105100"

// cleaned is what is left of a text, of one that knows some secrets.
func cleaned(text string, secrets ...string) string { return New(secrets).Clean(text)[0] }

// separators are what may stand between the digits of a card number.
func separators() []string {
	return []string{
		"", " ", "  ", "\t", "\r\n", "\u00a0", "\u202f", "\u2009", "\u2002", "\u2007", "\u3000", // white space
		"\u200b", "\u200c", "\u200d", "\u2060", "\u3164", "\uffa0", "\u115f", "\u034f", "\u17b4", "\u180e", // not seen
		"\U000e0020", "\ufeff", "\u00ad", "\u200f", "\ufe0f\u20e3",
		"-", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212", "\uff0d", "\u30fc", "\ufffd",
		".", "\u00b7", "/", `\`, "_", ":", ", ", " | ", `","`, "***", "%", "&", "+",
		"&nbsp;", "&nbsp", "&#160;", "&#xA0;", "&#160 ", "&ensp;", "&shy;", "&ZeroWidthSpace;", "&hyphen;", "&#x3164;",
		"&ensp;&#8203;", "&amp;amp;nbsp;", "%26nbsp%3B",
		"%20", "%2D", "%2d", "%C2%A0", "%E2%80%AF", "%E3%85%A4", "%25252D", "%u0020", `\u{20}`,
		`\u00a0`, `\u00A0`, `\U000000a0`, `\xa0`, `\xc2\xa0`, `\t`, `\\u00a0`, "%5Cu00a0",
		"\x1b[0m", "\x1b[0m\x1b[1;31m", `\u001b[0m`, "%1B[0m",
		"<br>", "<br/>", "<BR />", "</b><b>", "<!-- x -->", "&lt;br&gt;", "%3Cbr%3E", "<i title='&amp;'>", "<", "<h1>",
		" <b> &nbsp;</b>", `<span class="group" style="margin-left: 0.25em">`,
	}
}

// TestCardNumber: no number with the length of a card number is repeated, however it is written.
func TestCardNumber(t *testing.T) {
	t.Parallel()
	n := strangerCard
	for _, separator := range separators() {
		for _, number := range []string{
			strings.Join([]string{n[:4], n[4:8], n[8:12], n[12:]}, separator), strings.Join(strings.Split(n, ""), separator),
			n[:15] + separator + n[15:],
		} {
			assert.Equal(t, "card [REDACTED] is known", cleaned("card "+number+" is known"), number)
		}
	}
}

// TestCardNumberInOtherDigits: of other scripts, and escaped.
func TestCardNumberInOtherDigits(t *testing.T) {
	t.Parallel()
	for _, digit := range []func(d rune) string{
		func(d rune) string { return string('\uff10' + d) },     // fullwidth
		func(d rune) string { return string('\u0660' + d) },     // Arabic-Indic
		func(d rune) string { return string('\u0966' + d) },     // Devanagari
		func(d rune) string { return string('\U0001d7ce' + d) }, // mathematical
		func(d rune) string { return string('\u2080' + d) },     // subscript
		func(d rune) string { return fmt.Sprintf("%%3%d", d) },
		func(d rune) string { return fmt.Sprintf("&#%d;", '0'+d) },
		func(d rune) string { return fmt.Sprintf("&#x%x;", '0'+d) },
		func(d rune) string { return fmt.Sprintf(`\u003%d`, d) },
		func(d rune) string { return fmt.Sprintf(`\x3%d`, d) },
		func(d rune) string { return url.QueryEscape(string('\uff10' + d)) },
		func(d rune) string { return fmt.Sprintf("&#x%x;", '\uff10'+d) },
		func(d rune) string { return []string{"4", "%31", "&#49;", `\u0031`, "１"}[d%5] },
	} {
		for _, separator := range []string{"", " ", "&nbsp;"} {
			var digits []string
			for _, d := range strangerCard {
				digits = append(digits, digit(d-'0'))
			}
			number := strings.Join(digits, separator)
			assert.Equal(t, "card [REDACTED] is known", cleaned("card "+number+" is known"), number)
		}
	}
}

// TestWhatIsNoCardNumber: up to eleven digits stay, and letters end a number.
func TestWhatIsNoCardNumber(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"order 12345678901 is closed", "field 7 of 12: 4 digits, at 10:15 on 5 May 26", "4111xxxxxx111111 and 51051***5100",
		"on 2026-11-22T10:15:30-05:00", "on 2026-11-22 10:15:30 at noon", "2026-01-01 - 2026-12-31 is too long",
		"sizes are 10, 20, 50, 100, 200, 500 or 999", "id 6f1f8a52-0a3b-4c1d-9e2f-44a655b40000",
		"100% of &lt;größe&gt; \\ — naïve “text” 世界", "&nGt; is longer than it looks",
	} {
		assert.Equal(t, text, cleaned(text))
	}
	for text, want := range map[string]string{
		"order 123456789012 is closed": "order * is closed", "order 1234567890123456789 is closed": "order * is closed",
		"order 12345678901234567890123 is closed": "order * is closed",
		"on 2026-11-32 10:15:30 at noon":          "on * at noon", // clearing too much
		"5105 1051 0510 5100, 10, 20":             "*, 10, 20",
		"5105-1051-0510-5100 of 2026-01-01":       "* of 2026-01-01",
		"5105105105105100 2026-01-01":             "* 2026-01-01",
		"12026-01-01 12345":                       "*",
		"host 192.168.100.200 is down":            "host * is down",
		"id 6f1f8a52-0a3b-4c1d-9e2f-446655440000": "id 6f1f8a52-0a3b-4c1d-9e2f-*",
		"a 5105105105105100, b 4000000000000002":  "a *, b *",
		"%B5105105105105100^DOE/J^251210100000?":  "%B*^DOE/J^*?",
		"%4105105105100 is&nbsp;known":            "%* is&nbsp;known",
		"123456789012&nbsp;3456":                  "*",
	} {
		assert.Equal(t, strings.ReplaceAll(want, "*", Mark), cleaned(text), text)
	}
}

// TestTrack: a swiped card is cleared as a whole and in its parts.
func TestTrack(t *testing.T) {
	t.Parallel()
	const first, second = "%B4111111111111111^DOE/JOHN Q.MR^2512101987654321?", ";4111111111111111=2512101987654321?"
	numbers := []string{
		"4111111111111111", "4111 1111 1111 1111", "4111&nbsp;1111&nbsp;1111&nbsp;1111", "2512101987654321",
	}
	whole := []string{
		first, second, first + second, strings.ToLower(first), strings.Trim(first, "%?"),
		url.QueryEscape(first), url.PathEscape(second), html.EscapeString(first + second),
	}
	names := []string{
		"DOE/JOHN Q.MR", "DOE/JOHN Q", "DOE/JOHN", "JOHN DOE", "DOE JOHN", "Doe, John", "john.doe",
		"JOHN&nbsp;DOE", "John%20Doe", "John Q. Doe", "DOE JOHN Q", `Doe\u002c John`,
	}
	for swipe, texts := range map[string][]string{
		first + second:             slices.Concat(numbers, whole, names),
		first + "\r\n" + second:    append(whole[:2:2], names...),
		first:                      slices.Concat(numbers, whole, names),
		strings.Trim(first, "%?"):  slices.Concat(numbers, whole, names),
		second:                     numbers,
		strings.Trim(second, ";?"): numbers,
		"%B3782 822463 10005^DOE/JOHN^2512101987654321?": {"378282246310005", "JOHN DOE"},
		"%B5000000611^DOE/JOHN^2512?":                    {"5000000611", "5000 000 611", "JOHN DOE"}, // a short number
		"%B4111111111111111^DOE/JOHN A B C D^2512101?": {
			"John Doe", "John A Doe", "John A B Doe", "John A B C D Doe", "Doe, John A. B. C. D.",
		},
		"%B4111111111111111^JO DOE^2512101?":      {"JO DOE", "Jo&nbsp;Doe", "jo-doe"},
		"%B4111111111111111^LI/B^2512101?":        {"LI/B", "B LI", "Li, B."},
		"4111111111111111^GRÖßE/ZOË^2":            {"GRÖßE/ZOË", "zo%C3%AB größe", "Zo&euml; GRÖßE"},
		"%B4111111111111111^ПЕТРОВ/ПЁТР^2512101?": {"Пётр Петров", "Петров, Пётр"},
		"%B4111111111111111^ /^2512101987654321?": numbers,
		"%B4111111111111111^^2512101987654321?":   numbers,
		"%B4111111111111111?":                     numbers[:3],
		"^DOE/JOHN^2512101987654321":              {"^DOE/JOHN^2512101987654321"},
	} {
		for _, text := range texts {
			left := cleaned("swiped "+text+" again", swipe)
			assert.NotRegexp(t, `(?i)1111|9876|378|500|doe|john|\bli\b|gr|zo|пе|пё`, left, "%s of %s", text, swipe)
			assert.Regexp(t, `^swiped .*\[REDACTED\].* again$`, left, "%s of %s", text, swipe)
		}
		const harmless = "No card of Joan Dow, who does not: 25"
		assert.Equal(t, harmless, cleaned(harmless, swipe))
	}
}

// TestSecretInAnotherForm: a long one in any case, with separators and escaped; a short one in all digits.
func TestSecretInAnotherForm(t *testing.T) {
	t.Parallel()
	secrets := []string{"a93", "12345678", "ac", `{"data":"Kq0x+é\u0041=="}`, "TOKEN87654321"}
	for text, want := range map[string]string{
		"cvv a93 and A93":                                "cvv * and *",
		"cvv %6193, a&#57;3":                             "cvv *, *",
		"cvv a 9 3":                                      "cvv a 9 3",
		"account 1234&ensp;5678 closed":                  "account * closed",
		"account %31%32%33%34-5678 closed":               "account * closed",
		"token token 8765-4321":                          "token *",
		"number 87654321":                                "number 87654321",
		"account 1234567 closed":                         "account 1234567 closed",
		`wallet {"data":"Kq0x+é\u0041=="} bad`:           "wallet * bad",
		`wallet {\"data\":\"Kq0x+é\\u0041==\"} bad`:      `wallet {\"*==\"} bad`,
		"wallet DATA KQ0X É A bad":                       "wallet * bad",
		"wallet %7B%22data%22%3A%22Kq0x%2B%C3%A9A bad":   "wallet %7B%22* bad",
		"wallet &quot;data&quot;: Kq0x &eacute;&#65; ok": "wallet &quot;* ok",
	} {
		assert.Equal(t, strings.ReplaceAll(want, "*", Mark), cleaned(text, secrets...), text)
	}
	secrets = []string{"937", "٣٤٥٦"}
	for text, want := range map[string]string{
		"cvv ９３７": "cvv *", "cvv ९३७ and 9٣7": "cvv * and *", "cvv \U0001d7d7\U0001d7d1\U0001d7d5": "cvv *",
		"cvv %EF%BC%9937": "cvv *", "cvv &#xff19;3７": "cvv *", "cvv <b>9</b>37": "cvv <b>*", "cvv ９３８": "cvv ９３８",
		"account 3456 closed": "account * closed",
	} {
		assert.Equal(t, strings.ReplaceAll(want, "*", Mark), cleaned(text, secrets...), text)
	}
}

// TestOverlappingSecrets: a code is the start of the card number, or within it, and must not break up a number.
func TestOverlappingSecrets(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"411", "1111"} {
		left := cleaned("card 4111111111111111 with code "+code, "4111111111111111", code)
		assert.Equal(t, "card [REDACTED] with code [REDACTED]", left)
	}
	for _, number := range []string{"123456789", "123-456 789"} {
		assert.Equal(t, "bad account [REDACTED]", cleaned("bad account "+number, "123456789", "123"))
	}
}

// FuzzClean: as it stands and unescaped a cleaned text holds no twelve digits and no secret; other texts stay.
func FuzzClean(f *testing.F) {
	for _, secret := range []string{
		"4111111111111111", "hunter2-token", "pa%20ss&amp;word", "937", "%B4111111111111111^DOE/JOHN^2512101?",
		`{"a":"\u0041bcdefgh"}`,
	} {
		for _, separator := range []string{
			"", " ", "&nbsp;", "%C2%A0", `\u2013`, "\u3000", "&amp;#8203;", "<br>",
			"&lt;/b>", "\u3164",
		} {
			f.Add("card "+strings.Join(strings.Split(strangerCard, ""), separator)+" and "+secret+separator+"x", secret)
			f.Add(strings.Join(strings.Split(secret, ""), separator), secret)
		}
	}
	f.Add(`0000000\u00000\00000`, "0")
	f.Add("from 2026-01-01 to 2026-12-31: 10, 20, 50, 100 or 5105 1051 0510 5100", "zzz")
	f.Add("No 4 of 5: &lt;größe&gt; 100%", "zzz")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if secret == "" || !utf8.ValidString(text) || !utf8.ValidString(secret) {
			return
		}
		message := cleaned(text, secret)
		const barrier = "Ω" // a letter
		if strings.ContainsAny(secret, barrier+"ω") {
			return
		}
		bare := strings.ReplaceAll(message, Mark, barrier)
		for _, form := range []string{bare, unescaped(bare), untagged(bare)} {
			form, secret := readDigits(form), readDigits(secret)
			assert.NotRegexp(t, `\d{12}`, lettersAndDigits(allowed.ReplaceAllString(form, "x")), "%q", message)
			if len(secret) >= 3 {
				assert.NotContains(t, form, secret, "%q", message)
			}
			if plain := lettersAndDigits(secret); len(plain) >= 8 {
				assert.NotContains(t, lettersAndDigits(form), plain, "%q", message)
			}
		}
		both := func(text string) string { return strings.ToLower(text + unescaped(text) + untagged(text)) }
		if !strings.ContainsFunc(both(text), unicode.IsNumber) && !strings.ContainsAny(both(text), both(secret)) {
			assert.Equal(t, text, message)
		}
	})
}

// allowed are days, and lists of numbers of two or three digits.
var allowed = regexp.MustCompile(`\b((19|20)\d\d-[01]\d-[0-3]\d|\d{2,3}(, \d{2,3})+)\b`)

// escapes are those of URLs and of strings in programs.
var escapes = regexp.MustCompile(`%[[:xdigit:]]{2}|\\(u[[:xdigit:]]{4}|x[[:xdigit:]]{2}|[abfnrtv])`)

// unescaped reads the escapes of a text, and those that it then has.
func unescaped(text string) string {
	return again(text, func(text string) string {
		return escapes.ReplaceAllStringFunc(html.UnescapeString(text), func(escape string) string {
			read, err := strconv.Unquote(`"` + strings.Replace(escape, "%", `\x`, 1) + `"`)
			if err != nil { // half of a character
				return escape
			}
			return read
		})
	})
}

// again reads a text until nothing changes any more.
func again(text string, read func(string) string) string {
	for next := read(text); next != text; next = read(text) {
		text = next
	}
	return text
}

// tags are those of HTML.
var tags = regexp.MustCompile(`<[^<>]{0,254}>`)

// untagged reads the escapes of a text and drops its tags, and again in what it then has.
func untagged(text string) string {
	return again(text, func(text string) string { return tags.ReplaceAllString(unescaped(text), "") })
}

// readDigits gives the digits of all scripts as those of ASCII.
func readDigits(text string) string {
	return strings.Map(func(r rune) rune {
		digit := rune(0)
		for unicode.IsDigit(r) && unicode.IsDigit(r-digit-1) { // they come in tens
			digit++
		}
		if !unicode.IsDigit(r) {
			return r
		}
		return '0' + digit%10
	}, text)
}

// lettersAndDigits are those of a text, in lower case, numbers that are no digits as zeros.
func lettersAndDigits(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r > unicode.MaxASCII && unicode.IsNumber(r):
			return '0'
		case unicode.IsNumber(r),
			unicode.IsLetter(r) && !unicode.In(r, unicode.Lm, unicode.Other_Default_Ignorable_Code_Point):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
