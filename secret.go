package payvault

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/redact"
)

// Secret is a text that must not be seen, such as a card or bank account number, a security code, or a tax or identity
// number. [NewSecret] makes a Secret; the zero value has no text.
//
// A Secret is written as [REDACTED] in fmt, log/slog, JSON, XML, YAML, gob and templates, and by all other code that
// uses [encoding.TextMarshaler] or [fmt.Formatter]. No fmt verb writes the text. A Secret without a text is written as
// an empty text. Dumpers that use reflection do not find the text either, not even in unexported fields of your own
// structs. They find only the length of the text, and which secrets of a process are equal.
//
// [Secret.Reveal] and [MarshalWire] give the text, and calls send it. A text that contains [REDACTED] is refused when a
// Secret is read, and in the body of a request. So [REDACTED] is never stored as a card number. The text is not wiped
// from memory.
//
// Secrets of the same text are equal for [reflect.DeepEqual]. With ==, a secret with a text is equal only to its
// copies, and all secrets without a text are equal.
type Secret struct {
	masked *masked // nil if there is no text
}

const redacted = redact.Mark

var (
	errRedacted  = errors.New("a redacted secret, whose text is lost")
	errNotSecret = errors.New("neither text nor number")
	errNoBSON    = errors.New("has no form in BSON; store its text")
)

// NewSecret returns a secret of the given text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	m, hidden := &masked{tag: maphash.String(tagKey, text)}, []byte(text)
	m.mask(hidden)
	m.text = string(hidden)
	return Secret{m}
}

// masked is a text that is hidden from code that follows pointers, such as dumpers and the diffs that tests print.
type masked struct {
	text string
	tag  uint64 // a hash of the text
}

// block identifies eight bytes of a text by the tag of the text and the position of the first byte.
type block struct {
	tag uint64
	at  int
}

// tagKey and maskKey differ from process to process.
//
//nolint:gochecknoglobals // never changed
var tagKey, maskKey = maphash.MakeSeed(), maphash.MakeSeed()

// mask hides a text, or restores a hidden one. The result depends on the tag, so that one known text does not reveal
// other texts. Hiding only prevents accidents. It is no encryption: whoever can read the memory of the process can read
// the keys too.
func (m *masked) mask(text []byte) {
	var stream uint64
	for i := range text {
		if i%8 == 0 {
			stream = maphash.Comparable(maskKey, block{m.tag, i})
		}
		text[i] ^= byte(stream >> (i % 8 * 8)) //nolint:gosec // one byte of stream
	}
}

// Reveal returns the text.
func (s Secret) Reveal() string { // short enough to be inlined, which saves an allocation for short texts
	if s.masked == nil {
		return ""
	}
	text := []byte(s.masked.text)
	s.masked.mask(text)
	return string(text)
}

// IsZero reports whether the secret has no text.
func (s Secret) IsZero() bool { return s.masked == nil }

// hasMark reports whether a text contains [REDACTED].
func hasMark(text string) bool { return strings.Contains(text, redacted) }

// Format writes the result of MarshalText, in quotes for %q and with the flag #. Package fmt calls Format for all verbs
// except %T and %p, and does not write the text for these two either.
func (s Secret) Format(f fmt.State, verb rune) {
	text, _ := s.MarshalText()
	if verb == 'q' || f.Flag('#') {
		text = strconv.AppendQuote(nil, string(text))
	}
	_, _ = f.Write(text)
}

// MarshalText returns [REDACTED], or nil for a secret without a text. Package encoding/json uses it too.
func (s Secret) MarshalText() ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	return []byte(redacted), nil
}

// MarshalBinary returns the bytes of MarshalText, for gob and CBOR.
func (s Secret) MarshalBinary() ([]byte, error) { return s.MarshalText() }

// UnmarshalBinary reads the text. It fails if the text contains [REDACTED].
func (s *Secret) UnmarshalBinary(text []byte) error { return s.UnmarshalText(text) }

// MarshalBSON always returns an error. Without this method the BSON encoder would store an empty value, because it
// calls no other method of Secret.
func (s Secret) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

// UnmarshalJSON reads a string or the digits of a number. From a value that means "none", such as null, it reads a
// secret without a text. It fails for any other value, and for a text that contains [REDACTED]. It also fails for a
// number with an exponent or with a fraction other than zeros, because such a number may have lost digits.
func (s *Secret) UnmarshalJSON(b []byte) error { return answer.Unfit[Secret](s.read(b)) }

// UnmarshalJSONFrom is like UnmarshalJSON, but its error names the place of the value.
func (s *Secret) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return answer.UnmarshalFrom(dec, s) }

func (s *Secret) read(raw jsontext.Value) error {
	text := answer.Text(raw)
	switch kind := raw.Kind(); {
	case answer.IsNone(raw):
		text = ""
	case kind == '0':
		digits, err := answer.Digits(text)
		if err != nil {
			return err
		}
		text = digits
	case kind != '"':
		return errNotSecret
	}
	return s.UnmarshalText([]byte(text))
}

// UnmarshalText sets the text of the secret. It fails if the text contains [REDACTED].
func (s *Secret) UnmarshalText(text []byte) error {
	if hasMark(string(text)) {
		return errRedacted
	}
	*s = NewSecret(string(text))
	return nil
}
