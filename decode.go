package payvault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// The codes that the interface documents (§7).
const (
	codeSuccess    = "0"
	codeValidation = "2"
	rcodeSuccess   = "000"
)

var (
	errNotCode = errors.New("not a result code")
	// errUnreadable is a whole answer that cannot be read, and could not be the next time.
	errUnreadable = fmt.Errorf("%w", ErrMalformedResponse)
)

// resultCode is the text of a code or rcode; "" if there is none. If a hostile or broken answer has it twice,
// the one that is not success counts.
type resultCode string

// UnmarshalJSON reads a string, a number or null.
func (c *resultCode) UnmarshalJSON(b []byte) error {
	if *c == "" && string(b) == `"`+rcodeSuccess+`"` { // nearly always
		*c = rcodeSuccess
		return nil
	}
	text := numberText(b)
	switch {
	case bytes.ContainsAny(text, `{}[]"\`) || string(text) == "true" || string(text) == "false":
		return errNotCode
	case *c == "" || *c == codeSuccess || *c == rcodeSuccess:
		*c = resultCode(text)
	}
	return nil
}

// flexText is a text of the service that is shown to people only: whatever else stands there is kept as it is.
type flexText string

// UnmarshalJSON accepts anything.
func (t *flexText) UnmarshalJSON(b []byte) error {
	text, err := jsonText(b)
	if err != nil {
		text = string(b)
	}
	*t = flexText(text)
	return nil
}

// flexTexts is a list of such texts, or a single one.
type flexTexts []string

// UnmarshalJSON accepts anything.
func (t *flexTexts) UnmarshalJSON(b []byte) error {
	var list []flexText
	if json.Unmarshal(b, &list) != nil {
		list = make([]flexText, 1)
		_ = list[0].UnmarshalJSON(b) // never fails
	}
	*t = make(flexTexts, len(list))
	for i, text := range list {
		(*t)[i] = string(text)
	}
	return nil
}

// reply is the success shape of an operation.
type reply interface {
	// code is the result code, and success the one that means success.
	code() (code, success string)
	// missing names a documented value that the caller cannot do without and that is not there.
	missing() string
}

// platformReply is the success envelope of platform operations (interface §4).
type platformReply[T any] struct {
	Code         resultCode `json:"code"`
	TotalPages   Int        `json:"totalPages"`
	TotalRecords Int        `json:"totalRecords"`
	Data         *T         `json:"data"`
}

func (r *platformReply[T]) code() (string, string) { return string(r.Code), codeSuccess }

// missing asks the record: one that has just been created is of no use without its ID.
func (r *platformReply[T]) missing() string {
	record, ok := any(r.Data).(interface{ missing() string })
	if !ok {
		return ""
	}
	if r.Data == nil {
		return "data"
	}
	if field := record.missing(); field != "" {
		return "data." + field
	}
	return ""
}

// ignored is the data of operations for which none is documented.
type ignored struct{}

// UnmarshalJSON accepts anything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// readReply decodes a success; anything else is an error that matches ErrMalformedResponse and names the place.
func readReply(body []byte, into reply) error {
	if json.Unmarshal(body, into) != nil {
		return malformedError(body, into)
	}
	switch code, success := into.code(); {
	case code == "":
		return fmt.Errorf("%w: no result code", ErrMalformedResponse)
	case code != success:
		return fmt.Errorf("%w: another result code than %s", ErrMalformedResponse, success)
	case into.missing() != "":
		return fmt.Errorf("%w: %s is missing", ErrMalformedResponse, into.missing())
	}
	return nil
}

// malformedError tells where a body that cannot be decoded goes wrong. It shows nothing of the body, which the errors
// of encoding/json do.
func malformedError(body []byte, into any) error {
	if !json.Valid(body) {
		return fmt.Errorf("%w: not JSON, or cut off", ErrMalformedResponse)
	}
	if len(body) > 1<<20 {
		return fmt.Errorf("%w: a value cannot be read", errUnreadable) // finding it decodes the body again and again
	}
	path, t := locate(body, reflect.TypeOf(into).Elem(), "")
	if path == "" {
		path = "the body"
	}
	return fmt.Errorf("%w: %s cannot be read as %s", errUnreadable, strings.TrimPrefix(path, "."), typeName(t))
}

// locate finds the innermost value that does not decode into its type.
func locate(raw json.RawMessage, t reflect.Type, path string) (string, reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return path, t
	}
	switch t.Kind() {
	case reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(raw, &members)
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if member := members[name]; member != nil && !decodes(member, field.Type) {
				return locate(member, field.Type, path+"."+name)
			}
		}
	case reflect.Slice:
		var elements []json.RawMessage
		_ = json.Unmarshal(raw, &elements)
		for i, element := range elements {
			if !decodes(element, t.Elem()) {
				return locate(element, t.Elem(), path+"["+strconv.Itoa(i)+"]")
			}
		}
	}
	return path, t
}

func decodes(raw json.RawMessage, t reflect.Type) bool {
	return json.Unmarshal(raw, reflect.New(t).Interface()) == nil
}

func typeName(t reflect.Type) string {
	switch {
	case strings.Contains(t.Name(), "["), t.Name() == "" && t.Kind() == reflect.Struct:
		return "an object"
	case t.Kind() == reflect.Slice && t.Name() == "":
		return "an array"
	}
	return t.Name()
}
