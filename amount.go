package payvault

import (
	"errors"
	"regexp"
	"strings"

	"github.com/govalues/decimal"

	"example.com/payvault/internal/answer"
)

var errNotAmount = errors.New("not a decimal number of at most 19 digits")

// Amount is an exact decimal number, such as an amount of money in units of its currency (12.50). It holds up to 19
// digits, and keeps its scale if that fits into them. On the wire it is a JSON number, and a text in [ApplicationData].
// It can be read from a quoted number too. The zero value is 0. A JSON value that means "none", such as null or an
// empty string, is read as 0. For arithmetic, use [Amount.Decimal].
type Amount struct{ d decimal.Decimal }

// NewAmount returns value / 10^scale: NewAmount(1250, 2) is 12.50. A scale outside 0 to 19 is an error.
func NewAmount(value int64, scale int) (Amount, error) {
	d, err := decimal.New(value, scale)
	if err != nil {
		return Amount{}, errNotAmount
	}
	return Amount{d}, nil
}

// ParseAmount reads a decimal number such as "12.50". A number that does not fit exactly is an error.
func ParseAmount(s string) (Amount, error) {
	d, isExact := answer.Decimal(s)
	if !isExact {
		return Amount{}, errNotAmount
	}
	return Amount{d}, nil
}

// MustParseAmount is ParseAmount for constants. It panics if s is not a number that fits.
func MustParseAmount(s string) Amount {
	a, err := ParseAmount(s)
	if err != nil {
		panic("payvault: MustParseAmount: " + err.Error())
	}
	return a
}

// AmountOf returns d as an Amount.
func AmountOf(d decimal.Decimal) Amount { return Amount{d} }

// Decimal returns the number for arithmetic and comparison.
func (a Amount) Decimal() decimal.Decimal { return a.d }

// String returns the number with all digits of its scale, without an exponent.
func (a Amount) String() string { return a.d.String() }

// MarshalText returns the text of [Amount.String], for YAML and XML.
func (a Amount) MarshalText() ([]byte, error) { return a.d.AppendText(nil) }

// UnmarshalText reads a number as [ParseAmount] does.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAmount(string(text))
	return err
}

// MarshalBinary is [Amount.MarshalText], for gob and CBOR.
func (a Amount) MarshalBinary() ([]byte, error) { return a.MarshalText() }

// UnmarshalBinary is [Amount.UnmarshalText].
func (a *Amount) UnmarshalBinary(text []byte) error { return a.UnmarshalText(text) }

// MarshalBSON fails: BSON looks for no other method, and would store 0. Store the text instead.
func (a Amount) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return a.d.AppendText(nil) }

// grouped matches an amount with commas between thousands. It requires a decimal point, because a single comma may be a
// decimal comma.
var grouped = regexp.MustCompile(`^-?\d{1,3}(,\d{3})+\.\d+$`)

// UnmarshalJSON reads a JSON number, or a quoted number such as "12.50" or "1,234.50". A value that means "none" is 0.
func (a *Amount) UnmarshalJSON(b []byte) (err error) {
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
