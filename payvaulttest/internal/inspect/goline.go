package inspect

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
)

// FillIn is a placeholder for a value that the page does not show. In Go code it is an undeclared name, so the code
// does not compile until the reader replaces it.
const FillIn = "fillIn"

const longText = 200 // characters; Go code has FillIn instead of a longer text

// GoLine returns Go code that injects a fault in a test, with each field on its own line. It derives the names of
// constants from their values: "invoices.send" becomes OpInvoicesSend.
func GoLine(fault any) string {
	var fields []string
	for field, v := range reflect.ValueOf(fault).Fields() {
		if !v.IsZero() {
			fields = append(fields, "\t"+field.Name+": "+goValue(field.Name, v)+",\n")
		}
	}
	return "if _, err := srv.Inject(payvaulttest.Fault{\n" + strings.Join(fields, "") +
		"}); err != nil {\n\tt.Fatal(err)\n}"
}

// goValue returns Go code for the value of a field of a fault.
func goValue(name string, v reflect.Value) string {
	text := fmt.Sprintf("%#v", v)
	duration, isDuration := reflect.TypeAssert[time.Duration](v)
	switch {
	case name == "Kind":
		return "payvaulttest." + camel(v.String())
	case name == "Operation" && isOperation(v.String()):
		return "payvault.Op" + camel(v.String())
	case v.Kind() == reflect.String:
		text = strconv.Quote(v.String())
	case isDuration && duration%time.Millisecond != 0:
		return fmt.Sprintf("%d * time.Nanosecond", duration)
	case isDuration:
		return fmt.Sprintf("%d * time.Millisecond", duration.Milliseconds())
	}
	if len(text) > longText {
		return FillIn
	}
	return text
}

// isOperation reports whether package payvault has a constant for an operation.
func isOperation(name string) bool {
	return slices.ContainsFunc(payvault.Operations(), func(o payvault.OperationInfo) bool { return string(o.Op) == name })
}

// camel derives the name of a constant from its value: "invoices.send" becomes InvoicesSend.
func camel(text string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ._", r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
