package inspect

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// GoLine is the line of Go that injects a fault in a test. It leaves out what may be anything, such as a body, and
// names it in a comment. The names of constants are made of their texts: "invoices.send" is OpInvoicesSend.
func GoLine(fault any) string {
	var fields, hidden []string
	value := reflect.ValueOf(fault)
	for field, v := range value.Fields() {
		text := ""
		switch {
		case v.IsZero():
			continue
		case field.Name == "Kind":
			text = "payvaulttest." + camel(v.String())
		case field.Name == "Operation":
			text = "payvault.Op" + camel(v.String())
		case field.Type == reflect.TypeFor[time.Duration]():
			text = duration(time.Duration(v.Int()))
		case field.Name == "RetryAfter":
			text = fmt.Sprintf("%q", v.String())
		case v.CanInt() || v.CanFloat() || v.Kind() == reflect.Bool:
			text = fmt.Sprint(v)
		default:
			hidden = append(hidden, field.Name)
			continue
		}
		fields = append(fields, field.Name+": "+text)
	}
	list := strings.Join(fields, ", ")
	if len(hidden) > 0 {
		list += " /* and " + strings.Join(hidden, ", ") + " */"
	}
	return "if _, err := srv.Inject(payvaulttest.Fault{" + list + "}); err != nil { t.Fatal(err) }"
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
