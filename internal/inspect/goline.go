package inspect

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// hidden stands for what may be anything, such as a body. A test does not declare it, so that the line does not
// compile until the reader has written what is meant.
const hidden = "fillIn"

// GoLine is the line of Go that injects a fault in a test. The names of constants are made of their texts:
// "invoices.send" is OpInvoicesSend.
func GoLine(fault any) string {
	var fields []string
	value := reflect.ValueOf(fault)
	for field, v := range value.Fields() {
		text := hidden
		switch {
		case v.IsZero():
			continue
		case field.Name == "Kind":
			text = "payvaulttest." + camel(v.String())
		case field.Name == "Operation":
			text = "payvault.Op" + camel(v.String())
		case field.Type == reflect.TypeFor[time.Duration]():
			text = duration(time.Duration(v.Int()))
		case field.Name == "RetryAfter" && isRetryAfter(v.String()):
			text = strconv.Quote(v.String())
		case v.CanInt() || v.CanFloat() || v.Kind() == reflect.Bool:
			text = fmt.Sprint(v)
		}
		if Hide(text) != text {
			text = hidden
		}
		fields = append(fields, field.Name+": "+text)
	}
	return "if _, err := srv.Inject(payvaulttest.Fault{" + strings.Join(fields, ", ") + "}); err != nil { t.Fatal(err) }"
}

// isRetryAfter reports whether a text is what Retry-After may hold: seconds, or a date.
func isRetryAfter(text string) bool {
	_, isNoNumber := strconv.ParseUint(text, 10, 32)
	_, isNoDate := http.ParseTime(text)
	return isNoNumber == nil || isNoDate == nil
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
