package payvault

import (
	"reflect"
	"strconv"
)

// problems collects the problems that local checks find, keyed by wire path.
type problems map[string][]string

func (p *problems) add(path, text string) {
	if *p == nil {
		*p = problems{}
	}
	(*p)[path] = append((*p)[path], text)
}

// require adds a problem if value is the zero value of its type.
func require[T comparable](p *problems, path string, value T) {
	if value == *new(T) {
		p.add(path, "is required")
	}
}

// err returns an *Error that has the problems, or nil if there are none.
func (p *problems) err(op Operation) error {
	if len(*p) == 0 {
		return nil
	}
	return &Error{Op: op, Fields: *p, Delivery: DeliveryNotSent, final: true, cause: ErrInvalidRequest}
}

// merchantError returns the error of an operation that cannot act for another merchant.
func merchantError(op Operation) error {
	return &Error{Op: op, Delivery: DeliveryNotSent, final: true, cause: ErrMerchantNotSupported}
}

// checkExpDate adds a problem for an expiration date that is not of the form MMYY. It accepts an empty text, because
// the service decides whether a date is required.
func checkExpDate(path, text string, p *problems) {
	if text == "" {
		return
	}
	month, err := strconv.ParseUint(text, 10, 16)
	if month /= 100; err != nil || len(text) != 4 || month < 1 || month > 12 {
		p.add(path, "is not of the form MMYY")
	}
}

// checkDate adds a problem for a date that is not in the calendar. It accepts the zero Date, because the service
// decides whether a date is required.
func checkDate(path string, d Date, p *problems) {
	if d != (Date{}) && !d.Valid() {
		p.add(path, errNotDate.Error())
	}
}

// isNil reports whether v is nil, or an interface that holds a nil pointer or a nil function.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
