package payvault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/govalues/decimal"

	"example.com/payvault/internal/answer"
)

var errNotAmount = errors.New("not a decimal number of at most 19 digits")

// Amount is an exact decimal number, such as an amount of money in units of its currency (12.50). It holds up to 19
// digits. It keeps trailing zeros, as in 12.50, if they fit. On the wire it is a JSON number. The exception is a field
// of [ApplicationData], such as CardVolume, which is sent as a text. The zero value is 0.
//
// Compare amounts with [Amount.Equal] and [Amount.Cmp]. With ==, and as keys of a map, 10.9 and 10.90 differ, because
// == compares their digits. To ask whether an amount is 0, use a.Equal(Amount{}): a == Amount{} is true only for an
// amount that was never set. The JSON option omitzero leaves out an amount that was never set, and writes every 0 that
// was set.
//
// [Amount.Decimal] is for arithmetic. Add money with [decimal.Decimal.AddExact], and tell it how many digits after the
// point must stay. [decimal.Decimal.Add] rounds off digits after the point if the sum has more than 19 digits.
type Amount struct {
	d     decimal.Decimal
	isSet bool // tells a 0 that was set from the zero value, for the option omitzero
}

// NewAmount returns value / 10^scale: NewAmount(1250, 2) is 12.50. A scale outside 0 to 19 is an error.
func NewAmount(value int64, scale int) (Amount, error) {
	d, err := decimal.New(value, scale)
	if err != nil {
		return Amount{}, errNotAmount
	}
	return AmountOf(d), nil
}

// ParseAmount reads a decimal number such as "12.50". A number that an Amount cannot hold exactly is an error.
func ParseAmount(s string) (Amount, error) {
	d, isExact := answer.Decimal(s)
	if !isExact {
		return Amount{}, errNotAmount
	}
	return AmountOf(d), nil
}

// MustParseAmount is ParseAmount for constants. It panics if ParseAmount returns an error.
func MustParseAmount(s string) Amount {
	a, err := ParseAmount(s)
	if err != nil {
		panic("payvault: MustParseAmount: " + err.Error())
	}
	return a
}

// AmountOf returns d as an Amount.
func AmountOf(d decimal.Decimal) Amount { return Amount{d, true} }

// Decimal returns a as a [decimal.Decimal], for arithmetic.
func (a Amount) Decimal() decimal.Decimal { return a.d }

// Equal reports whether a and b are the same number, such as 10.9 and 10.90.
func (a Amount) Equal(b Amount) bool { return a.d.Equal(b.d) }

// Cmp returns -1 if a is less than b, 0 if they are the same number, and +1 if a is greater than b.
func (a Amount) Cmp(b Amount) int { return a.d.Cmp(b.d) }

// Format writes the number as [decimal.Decimal.Format] does. Verb %v writes all digits of the number, and %.2f rounds
// to two digits after the point. A verb for other types, such as %d, writes an error text, as it does for a string.
func (a Amount) Format(f fmt.State, verb rune) { a.d.Format(f, verb) }

// String returns the number with all of its digits after the point, and without an exponent.
func (a Amount) String() string { return a.d.String() }

// MarshalText returns the text of [Amount.String], for YAML and XML. An amount that was never set is written as 0, and
// so it is read back as a 0 that was set.
func (a Amount) MarshalText() ([]byte, error) { return a.d.AppendText(nil) }

// UnmarshalText reads a number as [ParseAmount] does.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAmount(string(text))
	return err
}

// MarshalBinary returns the bytes of [Amount.MarshalText], for gob and CBOR.
func (a Amount) MarshalBinary() ([]byte, error) { return a.MarshalText() }

// UnmarshalBinary reads a number as [Amount.UnmarshalText] does.
func (a *Amount) UnmarshalBinary(text []byte) error { return a.UnmarshalText(text) }

// MarshalBSON always returns an error. Without this method the BSON encoder would store an empty document, because it
// calls no other method of Amount. Store the text of [Amount.String] instead.
func (a Amount) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return a.d.AppendText(nil) }

// grouped matches an amount with commas between thousands. It requires a decimal point: without one, a single comma may
// be a decimal comma.
var grouped = regexp.MustCompile(`^-?\d{1,3}(,\d{3})+\.\d+$`)

// UnmarshalJSON reads a JSON number, or a quoted number such as "12.50" or "1,234.50". A value that means "none", such
// as null or an empty string, is read as Amount{}. Any other value is an error, such as "12.50 USD" or "1,50". A number
// that an Amount cannot hold exactly is an error too.
func (a *Amount) UnmarshalJSON(b []byte) error { return answer.Unfit[Amount](a.read(b)) }

// UnmarshalJSONFrom is like UnmarshalJSON, but its error has the JSON pointer of the value.
func (a *Amount) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return answer.UnmarshalFrom(dec, a) }

func (a *Amount) read(b []byte) (err error) {
	if jsontext.Value(b).Kind() == '0' { // a JSON number, which needs no regular expression
		*a, err = ParseAmount(string(b))
		return err
	}
	text := answer.Trimmed(b)
	if text == "" {
		*a = Amount{}
		return nil
	}
	if grouped.MatchString(text) {
		text = strings.ReplaceAll(text, ",", "")
	}
	*a, err = ParseAmount(text)
	return err
}
