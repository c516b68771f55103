package payvault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

const (
	strangerCard = "5105105105105100"
	mark         = "[REDACTED]"
)

// refusal returns the error of a tokenization that the service refuses with an answer.
func refusal(t *testing.T, req payvault.TokenizeRequest, answer map[string]any) *payvault.Error {
	t.Helper()
	body, err := json.Marshal(answer)
	require.NoError(t, err)
	req.MerchantID = 1
	client := service.Client(t, service.Nowhere, service.Over(service.Canned(http.StatusOK, string(body))))
	_, err = client.Tokens.Tokenize(t.Context(), &req)
	return service.AsError(t, err)
}

// assertCleared wants one text wherever the service has told another, which no rendering shows.
func assertCleared(t *testing.T, want string, req payvault.TokenizeRequest, text string) {
	t.Helper()
	e := refusal(t, req, map[string]any{
		"rcode": "905", "rmsg": text,
		"data": map[string]any{"message": "as said: " + text},
	})
	inFields := refusal(t, req, map[string]any{"rcode": "2", "data": map[string]any{text: []string{"a", text}}})
	assert.Equal(t, want, e.Message, "message of %q", text)
	assert.Equal(t, "as said: "+want, e.Detail, "detail of %q", text)
	assert.Equal(t, service.Fields{want: {"a", want}}, inFields.Fields, "fields of %q", text)
	refusals := []error{e, inFields}
	if !strings.ContainsAny(text, `{}[]"\`) && len(text) >= 8 { // a code cannot contain these
		inCode := refusal(t, req, map[string]any{"rcode": text})
		assert.Equal(t, want, inCode.Code, "code of %q", text)
		refusals = append(refusals, inCode)
	}
	for _, err := range refusals {
		if want != text {
			service.AssertHidden(t, err, text)
		}
	}
}

// separators are what may stand between the digits of a card number.
func separators() map[string]string {
	return map[string]string{
		"nothing": "", "blank": " ", "two blanks": "  ", "tab": "\t", "line break": "\r\n", "no-break": "\u00a0",
		"narrow": "\u202f", "thin": "\u2009", "en": "\u2002", "figure": "\u2007", "ideographic": "\u3000",
		"zero width": "\u200b", "non-joiner": "\u200c", "joiner": "\u200d", "word joiner": "\u2060",
		"Hangul filler": "\u3164", "halfwidth Hangul filler": "\uffa0", "Hangul initial filler": "\u115f",
		"grapheme joiner": "\u034f", "Khmer vowel": "\u17b4", "Mongolian separator": "\u180e", "tag": "\U000e0020",
		"filler in an entity": "&#x3164;", "filler in percent": "%E3%85%A4",
		"line break in HTML": "<br>", "closed": "<br/>", "with a blank": "<BR />", "bold": "</b><b>", "comment": "<!-- x -->",
		"long tag": `<span class="group" style="margin-left: 0.25em">`, "tag in entities": "&lt;br&gt;",
		"tag in percent":     "%3Cbr%3E",
		"tag with an entity": "<i title='&amp;'>", "half a tag": "<", "tag with a digit": "<h1>",
		"tags and blanks": " <b> &nbsp;</b>",
		"byte order mark": "\ufeff", "soft hyphen": "\u00ad", "right to left": "\u200f", "keycap": "\ufe0f\u20e3",

		"hyphen": "-", "Unicode hyphen": "\u2010", "no-break hyphen": "\u2011", "figure dash": "\u2012",
		"en dash": "\u2013", "em dash": "\u2014", "horizontal bar": "\u2015", "minus": "\u2212",
		"fullwidth hyphen": "\uff0d", "long vowel": "\u30fc", "unreadable": "\ufffd",

		"dot": ".", "middle dot": "\u00b7", "slash": "/", "backslash": `\`, "underscore": "_", "colon": ":",
		"comma": ", ", "bar": " | ", "quotes": `","`, "stars": "***", "percent sign": "%", "ampersand": "&",

		"nbsp": "&nbsp;", "nbsp, open": "&nbsp", "entity": "&#160;", "entity, hex": "&#xA0;", "entity, open": "&#160 ",
		"ensp": "&ensp;", "shy": "&shy;", "zero width entity": "&ZeroWidthSpace;", "hyphen entity": "&hyphen;",
		"two entities": "&ensp;&#8203;", "entity of an entity": "&amp;amp;nbsp;",

		"%20": "%20", "%2D": "%2D", "%2d": "%2d", "%C2%A0": "%C2%A0", "%E2%80%AF": "%E2%80%AF", "plus": "+",
		"percent thrice": "%25252D", "entity in percent": "%26nbsp%3B",

		"escape in %u": "%u0020", "escape in braces": `\u{20}`, "color": "\x1b[0m", "two colors": "\x1b[0m\x1b[1;31m",
		"color in an escape": `\u001b[0m`, "color in percent": "%1B[0m",

		"escape": `\u00a0`, "escape, capital": `\u00A0`, "long escape": `\U000000a0`, "byte": `\xa0`,
		"bytes": `\xc2\xa0`, "letter escape": `\t`, "escape twice": `\\u00a0`, "escape in percent": "%5Cu00a0",
	}
}

// TestError_cardNumber: no number with the length of a card number is repeated, whosever it is and however
// it is written.
func TestError_cardNumber(t *testing.T) {
	t.Parallel()
	for name, separator := range separators() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := strangerCard
			for _, text := range []string{
				strings.Join([]string{n[:4], n[4:8], n[8:12], n[12:]}, separator),
				strings.Join(strings.Split(n, ""), separator),
				n[:15] + separator + n[15:],
			} {
				assertCleared(t, "card "+mark+" is known", payvault.TokenizeRequest{}, "card "+text+" is known")
			}
		})
	}
}

// TestError_cardNumberInOtherDigits: of other scripts, and escaped.
func TestError_cardNumberInOtherDigits(t *testing.T) {
	t.Parallel()
	for name, digit := range map[string]func(d rune) string{
		"fullwidth":           func(d rune) string { return string('\uff10' + d) },
		"Arabic-Indic":        func(d rune) string { return string('\u0660' + d) },
		"Devanagari":          func(d rune) string { return string('\u0966' + d) },
		"mathematical":        func(d rune) string { return string('\U0001d7ce' + d) },
		"subscript":           func(d rune) string { return string('\u2080' + d) },
		"percent":             func(d rune) string { return fmt.Sprintf("%%3%d", d) },
		"entity":              func(d rune) string { return fmt.Sprintf("&#%d;", '0'+d) },
		"entity, hex":         func(d rune) string { return fmt.Sprintf("&#x%x;", '0'+d) },
		"escape":              func(d rune) string { return fmt.Sprintf(`\u003%d`, d) },
		"byte":                func(d rune) string { return fmt.Sprintf(`\x3%d`, d) },
		"fullwidth, percent":  func(d rune) string { return url.QueryEscape(string('\uff10' + d)) },
		"fullwidth, entity":   func(d rune) string { return fmt.Sprintf("&#x%x;", '\uff10'+d) },
		"each in its own way": func(d rune) string { return []string{"4", "%31", "&#49;", `\u0031`, "１"}[d%5] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, separator := range []string{"", " ", "&nbsp;"} {
				var text []string
				for _, d := range strangerCard {
					text = append(text, digit(d-'0'))
				}
				number := strings.Join(text, separator)
				assertCleared(t, "card "+mark+" is known", payvault.TokenizeRequest{}, "card "+number+" is known")
			}
		})
	}
}

// TestError_whatIsNoCardNumber: up to eleven digits stay, and letters end a number.
func TestError_whatIsNoCardNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"order 12345678901 is closed":                   "order 12345678901 is closed",
		"order 123456789012 is closed":                  "order " + mark + " is closed",
		"order 1234567890123456789 is closed":           "order " + mark + " is closed",
		"order 12345678901234567890123 is closed":       "order " + mark + " is closed",
		"field 7 of 12: 4 digits, at 10:15 on 5 May 26": "field 7 of 12: 4 digits, at 10:15 on 5 May 26",
		"4111xxxxxx111111 and 510510******5100":         "4111xxxxxx111111 and 510510******5100",
		"on 2026-11-22T10:15:30-05:00":                  "on 2026-11-22T10:15:30-05:00",
		"on 2026-11-22 10:15:30 at noon":                "on 2026-11-22 10:15:30 at noon",
		"on 2026-11-32 10:15:30 at noon":                "on " + mark + " at noon", // clearing too much
		"2026-01-01 - 2026-12-31 is too long":           "2026-01-01 - 2026-12-31 is too long",
		"sizes are 10, 20, 50, 100, 200, 500 or 999":    "sizes are 10, 20, 50, 100, 200, 500 or 999",
		"5105 1051 0510 5100, 10, 20":                   mark + ", 10, 20",
		"5105-1051-0510-5100 of 2026-01-01":             mark + " of 2026-01-01",
		"5105105105105100 2026-01-01":                   mark + " 2026-01-01",
		"12026-01-01 12345":                             mark,
		"host 192.168.100.200 is down":                  "host " + mark + " is down",
		"id 6f1f8a52-0a3b-4c1d-9e2f-446655440000":       "id 6f1f8a52-0a3b-4c1d-9e2f-" + mark,
		"id 6f1f8a52-0a3b-4c1d-9e2f-44a655b40000":       "id 6f1f8a52-0a3b-4c1d-9e2f-44a655b40000",
		"100% of &lt;größe&gt; \\ — naïve “text” 世界":    "100% of &lt;größe&gt; \\ — naïve “text” 世界",
		"a 5105105105105100, b 4000000000000002":        "a " + mark + ", b " + mark,
		"%B5105105105105100^DOE/J^25121010000000000?":   "%B" + mark + "^DOE/J^" + mark + "?",
		"%4105105105100 is&nbsp;known":                  "%" + mark + " is&nbsp;known",
		"&nGt; is longer than it looks":                 "&nGt; is longer than it looks",
		"123456789012&nbsp;3456":                        mark,
	} {
		assertCleared(t, want, payvault.TokenizeRequest{}, text)
	}
}

// TestError_track: a swiped card is cleared as a whole and in its parts.
func TestError_track(t *testing.T) {
	t.Parallel()
	const first, second = "%B4111111111111111^DOE/JOHN Q.MR^2512101987654321?", ";4111111111111111=2512101987654321?"
	texts := []string{
		"4111111111111111", "4111 1111 1111 1111", "4111&nbsp;1111&nbsp;1111&nbsp;1111", "2512101987654321",
		first, second, first + second, strings.ToLower(first), strings.Trim(first, "%?"),
		url.QueryEscape(first), url.PathEscape(second), html.EscapeString(first + second),
	}
	names := []string{
		"DOE/JOHN Q.MR", "DOE/JOHN Q", "DOE/JOHN", "JOHN DOE", "DOE JOHN", "Doe, John", "john.doe",
		"JOHN&nbsp;DOE", "John%20Doe", "John Q. Doe", "DOE JOHN Q", `Doe\u002c John`,
	}
	for name, test := range map[string]struct {
		swipe string
		texts []string
	}{
		"both tracks":           {first + second, append(texts, names...)},
		"lines of tracks":       {first + "\r\n" + second, append(texts[4:6], names...)},
		"first track":           {first, append(texts, names...)},
		"first without signs":   {"B4111111111111111^DOE/JOHN Q.MR^2512101987654321", append(texts, names...)},
		"second track":          {second, texts[:4]},
		"second without signs":  {"4111111111111111=2512101987654321", texts[:4]},
		"blanks in the number":  {"%B3782 822463 10005^DOE/JOHN^2512101987654321?", []string{"378282246310005", "JOHN DOE"}},
		"number that is short":  {"%B5000000611^DOE/JOHN^2512?", []string{"5000000611", "5000 000 611", "JOHN DOE"}},
		"name without a slash":  {"%B4111111111111111^JO DOE^2512101?", []string{"JO DOE", "Jo&nbsp;Doe", "jo-doe"}},
		"name that is short":    {"%B4111111111111111^LI/B^2512101?", []string{"LI/B", "B LI", "Li, B."}},
		"name with umlauts":     {"4111111111111111^GRÖßE/ZOË^2", []string{"GRÖßE/ZOË", "zo%C3%AB größe", "Zo&euml; GRÖßE"}},
		"name in Cyrillic":      {"%B4111111111111111^ПЕТРОВ/ПЁТР^2512101?", []string{"Пётр Петров", "Петров, Пётр"}},
		"a blank for the name":  {"%B4111111111111111^ /^2512101987654321?", texts[:4]},
		"nothing for the name":  {"%B4111111111111111^^2512101987654321?", texts[:4]},
		"nothing but a number":  {"%B4111111111111111?", texts[:3]},
		"nothing of the number": {"^DOE/JOHN^2512101987654321", []string{"^DOE/JOHN^2512101987654321"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := payvault.TokenizeRequest{CardSwipe: payvault.NewSecret(test.swipe)}
			for _, text := range test.texts {
				e := refusal(t, req, map[string]any{"rcode": "905", "rmsg": "swiped " + text + " again"})
				assert.NotRegexp(t, `(?i)1111|9876|378|500|doe|john|\bli\b|gr|zo|пе|пё`, e.Message, "%s", text)
				assert.Regexp(t, `^swiped .*\[REDACTED\].* again$`, e.Message, "%s", text)
				service.AssertHidden(t, e, text)
			}
			const harmless = "No card of Joan Dow, who does not: 25"
			assert.Equal(t, harmless, refusal(t, req, map[string]any{"rcode": "905", "rmsg": harmless}).Message)
		})
	}
}

// TestError_secretInAnotherForm: long secrets are found in any case, with separators and escaped; short ones
// as they are.
func TestError_secretInAnotherForm(t *testing.T) {
	t.Parallel()
	req := payvault.TokenizeRequest{
		CVV2: payvault.NewSecret("a93"), DDANumber: payvault.NewSecret("12345678"), TRNumber: payvault.NewSecret("ac"),
		PayloadWalletOnePay: payvault.NewSecret(`{"data":"Kq0x+é\u0041=="}`),
		PayloadWalletTwoPay: payvault.NewSecret("TOKEN87654321"),
	}
	for text, want := range map[string]string{
		"cvv a93 and A93":                                "cvv " + mark + " and " + mark,
		"cvv %6193, a&#57;3":                             "cvv " + mark + ", " + mark,
		"cvv a 9 3":                                      "cvv a 9 3",
		"account 1234&ensp;5678 closed":                  "account " + mark + " closed",
		"account %31%32%33%34-5678 closed":               "account " + mark + " closed",
		"token token 8765-4321":                          "token " + mark,
		"number 87654321":                                "number 87654321",
		"account 1234567 closed":                         "account 1234567 closed",
		`wallet {"data":"Kq0x+é\u0041=="} bad`:           "wallet " + mark + " bad",
		`wallet {\"data\":\"Kq0x+é\\u0041==\"} bad`:      `wallet {\"` + mark + `==\"} bad`,
		"wallet DATA KQ0X É A bad":                       "wallet " + mark + " bad",
		"wallet %7B%22data%22%3A%22Kq0x%2B%C3%A9A bad":   "wallet %7B%22" + mark + " bad",
		"wallet &quot;data&quot;: Kq0x &eacute;&#65; ok": "wallet &quot;" + mark + " ok",
	} {
		assert.Equal(t, want, refusal(t, req, map[string]any{"rcode": "905", "rmsg": text}).Message, "%s", text)
	}
}

// TestError_secretInOtherDigits: also a short one.
func TestError_secretInOtherDigits(t *testing.T) {
	t.Parallel()
	req := payvault.TokenizeRequest{CVV2: payvault.NewSecret("937"), DDANumber: payvault.NewSecret("٣٤٥٦")}
	for text, want := range map[string]string{
		"cvv ９３７":                            "cvv " + mark,
		"cvv ९३७ and 9٣7":                    "cvv " + mark + " and " + mark,
		"cvv \U0001d7d7\U0001d7d1\U0001d7d5": "cvv " + mark,
		"cvv %EF%BC%9937":                    "cvv " + mark,
		"cvv &#xff19;3７":                     "cvv " + mark,
		"cvv <b>9</b>37":                     "cvv <b>" + mark,
		"cvv ９３８":                            "cvv ９３８",
		"account 3456 closed":                "account " + mark + " closed",
	} {
		assert.Equal(t, want, refusal(t, req, map[string]any{"rcode": "905", "rmsg": text}).Message, "%s", text)
	}
}

// TestError_spreadNumber: a number that is spread over texts is cleared in each of them.
func TestError_spreadNumber(t *testing.T) {
	t.Parallel()
	n := strangerCard
	e := refusal(t, payvault.TokenizeRequest{},
		map[string]any{"rcode": "905", "rmsg": "card " + n[:8], "data": map[string]any{"message": n[8:]}})
	assert.Equal(t, "card "+mark, e.Message)
	assert.Equal(t, mark, e.Detail)
	e = refusal(t, payvault.TokenizeRequest{}, map[string]any{"rcode": "2", "rmsg": "card", "data": map[string]any{
		"a": []string{"card " + n[:4], n[4:8]}, "b": []string{n[8:12]}, "c": []string{n[12:] + " is known", "in 2 of 3"},
		"d": []string{},
	}})
	assert.Equal(t, service.Fields{
		"a": {"card " + mark, mark}, "b": {mark}, "c": {mark + " is known", "in 2 of 3"},
		"d": {},
	}, e.Fields)
	e = refusal(t, payvault.TokenizeRequest{}, map[string]any{"rcode": "2", "data": map[string]any{
		n[:8]: []string{"first"}, n[8:]: []string{"second"}, n + "1": []string{"third"},
	}})
	assert.Equal(t, service.Fields{mark: {"second", "first", "third"}}, e.Fields,
		"no text is lost to a name that is cleared")
}

// TestError_longTexts: what is too long to be a message is not repeated, not in part either, and changes nothing else.
func TestError_longTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	e := refusal(t, payvault.TokenizeRequest{},
		map[string]any{"rcode": "2", "rmsg": long, "data": map[string]any{"a": []string{"b"}}})
	assert.ErrorIs(t, e, payvault.ErrRejected)
	assert.Empty(t, e.Message)
	assert.Equal(t, service.Fields{"a": {"b"}}, e.Fields)
	e = refusal(t, payvault.TokenizeRequest{},
		map[string]any{"rcode": "2", "rmsg": long[2:], "data": map[string]any{"a": []string{long}}})
	assert.ErrorIs(t, e, payvault.ErrRejected)
	assert.Equal(t, long[2:], e.Message)
	assert.Empty(t, e.Fields)
}

// TestError_manyFields: as many as a line can hold are in the text.
func TestError_manyFields(t *testing.T) {
	t.Parallel()
	data := map[string]any{}
	for i := range 25 {
		data[fmt.Sprintf("field_%02d", i)] = []string{"is odd"}
	}
	e := refusal(t, payvault.TokenizeRequest{}, map[string]any{"rcode": "2", "data": data})
	assert.Len(t, e.Fields, 25)
	assert.True(t, strings.HasSuffix(e.Error(), "; field_19 is odd; and 5 more"), e.Error())
	delete(data, "field_20")
	for i := range 4 {
		delete(data, fmt.Sprintf("field_%02d", i))
	}
	e = refusal(t, payvault.TokenizeRequest{}, map[string]any{"rcode": "2", "data": data})
	assert.True(t, strings.HasSuffix(e.Error(), "; field_24 is odd"), e.Error())
}

// TestError_codeLikeZero: a cleared code is no refusal if it was none before.
func TestError_codeLikeZero(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"000000000000", "0e4111111111111111"} {
		e := refusal(t, payvault.TokenizeRequest{}, map[string]any{"rcode": code})
		assert.NotErrorIs(t, e, payvault.ErrRejected)
		assert.ErrorIs(t, e, payvault.ErrOutcomeUnknown)
		assert.Empty(t, e.Code)
	}
	e := refusal(t, payvault.TokenizeRequest{}, map[string]any{"rcode": strangerCard})
	assert.ErrorIs(t, e, payvault.ErrRejected)
	assert.Equal(t, mark, e.Code)
}

// hostile returns a request with hundreds of secrets that begin alike, one of which repeats itself, and long texts that
// begin like them, or like escapes, again and again.
func hostile() (payvault.CustomerCreateRequest, map[string]string) {
	req := payvault.CustomerCreateRequest{AutoGenerateCustomerID: true, FirmName: "Acme"}
	for i := range 300 {
		req.BillingCards = append(req.BillingCards, payvault.BillingCardRequest{
			CardNumber: payvault.NewSecret(fmt.Sprintf("4111111111111%03d", i)),
			CVV2:       payvault.NewSecret(fmt.Sprintf("%03d", i)),
			TRNumber:   payvault.NewSecret("123456780"), DDANumber: payvault.NewSecret(fmt.Sprintf("00000000%03d", i)),
		})
	}
	req.BillingCards[0].TRNumber = payvault.NewSecret(strings.Repeat("A", 5000) + "B")
	texts := map[string]string{}
	for _, unit := range []string{
		"0", "A", "4 ", "é", "%", "%25", "&", "&amp;", "&ampamp", `\\`, "&#4", "<", "<b", strings.Repeat("A", 4999) + "C",
	} {
		texts[fmt.Sprintf("%.8s", unit)] = strings.Repeat(unit, (64<<10-100)/(len(unit)+strings.Count(unit, `\`)))
	}
	return req, texts
}

// hostileCall answers a request with a text.
func hostileCall(tb testing.TB, req payvault.CustomerCreateRequest, text string) func() error {
	tb.Helper()
	client := service.Client(tb, service.Nowhere, service.Over(service.Canned(http.StatusOK,
		`{"code":7,"message":"`+strings.ReplaceAll(text, `\`, `\\`)+`"}`)))
	return func() error {
		_, err := client.Customers.Create(tb.Context(), &req)
		return err
	}
}

// TestError_hostileText ends at once; it would take seconds if each secret were compared at each place.
func TestError_hostileText(t *testing.T) {
	t.Parallel()
	req, texts := hostile()
	for _, unit := range []string{"0", "A", "&ampamp"} {
		err := hostileCall(t, req, texts[unit])()
		assert.ErrorIs(t, err, payvault.ErrRejected)
	}
}

// BenchmarkError_hostileText shows that no text of 64 KiB takes much longer than another.
func BenchmarkError_hostileText(b *testing.B) {
	req, texts := hostile()
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			call := hostileCall(b, req, text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); !errors.Is(err, payvault.ErrRejected) {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzError_clear: neither as it stands nor with its escapes read does an error hold twelve digits in a row, or the
// secret; and a text that has nothing of either stays as it is.
func FuzzError_clear(f *testing.F) {
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
		answer, err := json.Marshal(map[string]string{"rcode": "905", "rmsg": text})
		require.NoError(t, err)
		client := service.Client(t, service.Nowhere, service.Over(service.Canned(http.StatusOK, string(answer))))
		_, err = client.Tokens.Tokenize(t.Context(),
			&payvault.TokenizeRequest{MerchantID: 1, PayloadWalletOnePay: payvault.NewSecret(secret)})
		message := service.AsError(t, err).Message
		const barrier = "Ω" // a letter
		if strings.ContainsAny(secret, barrier+"ω") {
			return
		}
		bare := strings.ReplaceAll(message, mark, barrier)
		for _, form := range []string{bare, unescaped(bare), untagged(bare)} {
			form, secret := asciiDigits(form), asciiDigits(secret)
			assert.NotRegexp(t, `\d{12}`, lettersAndDigits(noCard.ReplaceAllString(form, "x")), "%q", message)
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

// noCard are days, and lists of numbers of two or three digits.
var noCard = regexp.MustCompile(`\b((19|20)\d\d-[01]\d-[0-3]\d|\d{2,3}(, \d{2,3})+)\b`)

// escapes are those of URLs and of strings in programs.
var escapes = regexp.MustCompile(`%[[:xdigit:]]{2}|\\(u[[:xdigit:]]{4}|x[[:xdigit:]]{2}|[abfnrtv])`)

// unescaped reads the escapes of a text, and those that it then has.
func unescaped(text string) string {
	for {
		read := html.UnescapeString(text)
		read = escapes.ReplaceAllStringFunc(read, func(escape string) string {
			read, err := strconv.Unquote(`"` + strings.Replace(escape, "%", `\x`, 1) + `"`)
			if err != nil { // half of a character
				return escape
			}
			return read
		})
		if read == text {
			return text
		}
		text = read
	}
}

// tags are those of HTML.
var tags = regexp.MustCompile(`<[^<>]{0,254}>`)

// untagged reads the escapes of a text and drops its tags, and again in what it then has.
func untagged(text string) string {
	for {
		read := tags.ReplaceAllString(unescaped(text), "")
		if read == text {
			return text
		}
		text = read
	}
}

// asciiDigits gives the digits of all scripts as those of ASCII.
func asciiDigits(text string) string {
	return strings.Map(func(r rune) rune {
		for _, decades := range unicode.Nd.R16 {
			if lo := rune(decades.Lo); lo <= r && r <= rune(decades.Hi) {
				return '0' + (r-lo)%10
			}
		}
		for _, decades := range unicode.Nd.R32 {
			if lo := rune(decades.Lo); lo <= r && r <= rune(decades.Hi) { //nolint:gosec // characters
				return '0' + (r-lo)%10
			}
		}
		return r
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
