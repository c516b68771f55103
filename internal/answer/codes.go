package answer

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Success and Validation are the documented values of the field code. RCodeSuccess is the documented value of the
// field rcode in a success.
const (
	Success      = "0"
	Validation   = "2"
	RCodeSuccess = "000"
)

// MostSaid is the length of the longest text from an answer that an error may repeat. A longer text is left out: if it
// were cut, it could end with half of a card number, which the SDK would not recognize and redact.
const MostSaid = 64 << 10

// Codes.Check returns one of these errors if an answer is not a success.
var (
	ErrNoCode    = errors.New("no result code")
	ErrOtherCode = errors.New("another result code than that of a success")
	ErrDisagree  = errors.New("it says both success and failure")
)

// Code is the text of a code or an rcode, or "" if there is none. If an answer has the field of the code twice, the
// value that means failure counts.
type Code string

// UnmarshalJSON reads a text or a number. A number such as 5.0 is read as the integer 5. If the code already means
// failure, UnmarshalJSON ignores the value. It also ignores a value that means "none", such as null. A value of any
// other kind is an error, and so is a value that is longer than [MostSaid].
func (c *Code) UnmarshalJSON(b []byte) error {
	raw := jsontext.Value(b)
	isFailure := *c != "" && *c != Success && *c != RCodeSuccess
	switch kind := raw.Kind(); {
	case IsNone(raw), isFailure:
		return nil
	case kind != '"' && kind != '0', len(b) > MostSaid:
		return errOtherKind
	}
	*c = Code(Text(raw))
	if raw.Kind() == '0' && *c != Success {
		if number, isExact := Decimal(string(*c)); isExact && number.IsInt() {
			*c = Code(number.Trunc(0).String())
		}
	}
	return nil
}

// IsZero reports whether a code is the decimal number 0 in any form, such as 0, 000 or 0.0. Such a code does not refuse
// the operation. But it is a success only in the documented form.
func (c Code) IsZero() bool {
	number, err := strconv.ParseFloat(strings.TrimSpace(string(c)), 64)
	return err == nil && number == 0
}

// RCode is the text of an rcode, which is 000 in a success. The number 0 is read as 000, because a JSON number cannot
// be 000.
type RCode Code

// UnmarshalJSON reads a value as [Code.UnmarshalJSON] does, and the number 0 as 000.
func (c *RCode) UnmarshalJSON(b []byte) error {
	if jsontext.Value(b).Kind() == '0' && Code(b).IsZero() { // for example 0.0
		b = []byte(`"` + RCodeSuccess + `"`)
	}
	return (*Code)(c).UnmarshalJSON(b)
}

// Codes has the two codes that an answer may have. A [Decider] says which of them decides about success.
type Codes struct {
	Code  Code  `json:"code"`
	RCode RCode `json:"rcode"`
}

// Decider says which of the two codes of an answer decides whether the answer is a success.
type Decider int

// The values of Decider.
const (
	ByCode Decider = iota
	ByRCode
	ByEither // the code if there is one, else the rcode
)

// Deciding returns the deciding code (own), the other code, and the value of own that means success. Either code may be
// missing.
func (c Codes) Deciding(by Decider) (own, other Code, success string) {
	if by == ByRCode || by == ByEither && c.Code == "" {
		return Code(c.RCode), c.Code, RCodeSuccess
	}
	return c.Code, Code(c.RCode), Success
}

// Disagree reports whether one code means success and the other one failure. own is the deciding code. The service does
// not document the values of the other code. For example:
//
//   - own 0 and other 51 disagree, and so do own 51 and other 000.
//   - own 0 and other 000 agree, and so do own 2 and other 51.
//   - own 0 and other "OK" do not disagree: a text without a digit from 1 to 9 is no failure.
//   - If a code is missing, the codes do not disagree.
func Disagree(own, other Code) bool {
	switch {
	case own == "" || other == "":
		return false
	case own.IsZero():
		return strings.ContainsAny(string(other), "123456789")
	default:
		return other.IsZero()
	}
}

// Check returns nil if the deciding code has the documented value of a success, and the other code does not mean
// failure. Otherwise it returns [ErrNoCode], [ErrDisagree] or [ErrOtherCode].
func (c Codes) Check(by Decider) error {
	switch own, other, success := c.Deciding(by); {
	case own == "":
		return ErrNoCode
	case Disagree(own, other):
		return ErrDisagree
	case string(own) != success:
		return ErrOtherCode
	}
	return nil
}
