package answer

import (
	"mime"
	"strings"
	"unicode/utf8"
)

// highLatin has the characters of the bytes 0x80 to 0x9f in windows-1252. ISO-8859-1 has control characters there,
// which no text needs. So a text with such a byte is windows-1252, even if it claims to be ISO-8859-1. All other bytes
// are equal to the code points of their characters.
//
//nolint:gochecknoglobals // never changed
var highLatin = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// UTF8 converts the body of an answer to UTF-8 if the body is not UTF-8 and its Content-Type names ISO-8859-1 or
// windows-1252. It knows the names that IANA lists, and cp1252. It ignores - and _ in a name. Any other body is
// returned unchanged, also a UTF-8 body with such a name, because some servers send that.
func UTF8(body []byte, contentType string) []byte {
	if utf8.Valid(body) {
		return body
	}
	_, parameters, _ := mime.ParseMediaType(contentType) // there are no parameters if it is not valid
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(parameters["charset"])) {
	case "iso88591", "iso88591:1987", "isoir100", "latin1", "l1", "ibm819", "cp819", "csisolatin1":
	case "windows1252", "cswindows1252", "cp1252":
	default:
		return body
	}
	text := make([]byte, 0, len(body)+len(body)/8)
	for _, b := range body {
		character := rune(b)
		if b >= 0x80 && b <= 0x9f {
			character = highLatin[b-0x80]
		}
		text = utf8.AppendRune(text, character)
	}
	return text
}
