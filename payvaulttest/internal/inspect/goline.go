package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
)

// FillIn stands for a value that is not shown, such as a body. A test does not declare it, so that Go with it does not
// compile until the reader has written what is meant.
const FillIn = "fillIn"

// GoLine returns the Go that injects a fault in a test, one field a line. The names of constants are made of their
// texts: "invoices.send" is OpInvoicesSend.
func GoLine(fault any) string {
	var fields []string
	value := reflect.ValueOf(fault)
	for field, v := range value.Fields() {
		text := FillIn
		switch {
		case v.IsZero():
			continue
		case field.Name == "Kind":
			text = "payvaulttest." + camel(v.String())
		case field.Name == "Operation":
			text = strconv.Quote(v.String())
			if isOperation(v.String()) {
				text = "payvault.Op" + camel(v.String())
			}
		case field.Type == reflect.TypeFor[time.Duration]():
			text = duration(time.Duration(v.Int()))
		case field.Name == "RetryAfter" && RetryAfter(v.String()) != mark:
			text = strconv.Quote(v.String())
		case v.CanFloat():
			text = string(Rate(v.Float()))
		case v.CanInt() || v.Kind() == reflect.Bool:
			text = fmt.Sprint(v)
		}
		if Hide(text) != text {
			text = FillIn
		}
		fields = append(fields, "\t"+field.Name+": "+text+",\n")
	}
	return "if _, err := srv.Inject(payvaulttest.Fault{\n" + strings.Join(fields, "") +
		"}); err != nil {\n\tt.Fatal(err)\n}"
}

// isOperation reports whether package payvault has a constant for an operation.
func isOperation(name string) bool {
	return slices.ContainsFunc(payvault.Operations(), func(o payvault.OperationInfo) bool { return string(o.Op) == name })
}

// RetryAfter is a Retry-After header as it is shown: seconds, a date, nothing, or a mark for anything else.
func RetryAfter(text string) string {
	_, isNoNumber := strconv.ParseUint(text, 10, 32)
	_, isNoDate := http.ParseTime(text)
	if text != "" && isNoNumber != nil && isNoDate != nil {
		return mark
	}
	return text
}

// Rate is a rate as it is shown: to nine digits, which are no card number, or nothing if it is zero.
func Rate(rate float64) json.Number {
	if rate == 0 {
		return ""
	}
	return json.Number(strconv.FormatFloat(rate, 'g', 9, 64))
}

func duration(d time.Duration) string {
	if d%time.Millisecond != 0 {
		return fmt.Sprintf("%d * time.Nanosecond", d)
	}
	return fmt.Sprintf("%d * time.Millisecond", d.Milliseconds())
}

// camel makes the name of a constant of its text.
func camel(text string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ._", r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
