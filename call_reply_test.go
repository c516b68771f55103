package payvault_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
)

var (
	// anything matches the JSON pointers that TestReading skips. They belong to result codes, to values that may have any
	// type or are not read, to whole records, and to all saved fields except those with index 0 and 6.
	anything = regexp.MustCompile(`^/(code|rcode|message)$|/(plan|relatedBusinesses)(/|$)|fields/\d+/value(/|$)|` +
		`^(/data)?(/app|/fields)?(/\d+)?$|^/data/fields/([1-57-9]|\d\d)`)
	// informs matches the JSON pointers that are in Unread if their values are missing. The caller does not need these
	// values.
	informs = regexp.MustCompile(`^/card_id$|^/data/fields/\d+/key$`)
	element = regexp.MustCompile(`/\d+$`)
)

// eachValue calls visit for value and for each value inside it. visit gets the JSON pointer of a value, the value, and
// a function that replaces it.
func eachValue(place string, value any, put func(any), visit func(place string, value any, put func(any))) {
	switch node := value.(type) {
	case map[string]any:
		for name, member := range node {
			eachValue(place+"/"+name, member, func(v any) { node[name] = v }, visit)
		}
	case []any:
		for i, element := range node {
			eachValue(place+"/"+strconv.Itoa(i), element, func(v any) { node[i] = v }, visit)
		}
	}
	visit(place, value, put)
}

// otherForm is a JSON value that a service may send in place of a documented value, and the meaning of that JSON value.
type otherForm struct {
	json string
	is   meaning
}

type meaning string

const (
	same       meaning = "the same value"
	none       meaning = "no value"
	literal    meaning = "a number whose digits are kept as text"
	lost       meaning = "a number that has lost digits, so that it is no ID"
	unreadable meaning = "a value that cannot be read"
)

// otherForms returns the other forms in which a service may send a documented value.
func otherForms(value any) (forms []otherForm) {
	add := func(is meaning, texts ...string) {
		for _, text := range texts {
			forms = append(forms, otherForm{text, is})
		}
	}
	const text, object = `"` + garbageCanary + `"`, `{"` + garbageCanary + `":[1]}`
	add(none, `null`, `{ }`, `[]`, `false`, `""`)
	switch value := value.(type) {
	case json.Number:
		number := value.String()
		add(same, `"`+number+`"`)
		if !strings.Contains(number, ".") {
			add(same, number+".0", `"`+number+`.0"`)
			add(lost, number+"e0", `"`+number+`e0"`)
		}
		add(unreadable, text, object)
	case bool:
		if value {
			add(same, `"true"`, `"t"`, `"Y"`, `"yes"`, `"on"`, `"1"`, `1`)
		} else {
			add(same, `"false"`, `"f"`, `"N"`, `"no"`, `"off"`, `"0"`, `0`)
		}
		add(unreadable, text, object)
	case string:
		add(unreadable, object)
		if _, err := time.Parse(time.DateOnly, value); err == nil {
			add(same, `"`+value+`T10:20:30Z"`, strings.ReplaceAll(value, "-", ""))
			add(unreadable, text)
		} else if _, err := time.Parse(time.RFC3339, value); err == nil {
			add(same, `"`+strings.Replace(value, "T", " ", 1)+`"`)
			add(unreadable, text)
		} else {
			add(lost, `16500000000.10`, `8.61e+17`, `true`)
			add(literal, `16500000000`)
		}
	}
	return forms
}

// in returns f with the meaning that it has in a field of the given name. A number that has lost digits is unreadable
// in an ID or a secret. In any other field it is read as the same integer or as a text.
func (f otherForm) in(name string) otherForm {
	switch isInteger := strings.HasSuffix(strings.Trim(f.json, `"`), "e0"); {
	case f.is != lost:
	case calls.NumberID.Covers("", name), calls.NumberSecret.Covers("", name):
		f.is = unreadable
	case isInteger:
		f.is = same
	default:
		f.is = literal
	}
	return f
}

// TestReading takes each documented answer that contains the result of its call. It replaces the values of the answer,
// one at a time, by each form that otherForms returns. It skips records in lists, and values whose pointers match the
// pattern anything. A readable form must be read, unless it means "no value" and the caller needs the value. With an
// unreadable form, an operation that only reads must fail. Any other operation must fail only if the caller needs the
// value. The error or the log must have the JSON pointer of the unreadable value. Each answer is read a second time,
// with a null in a list. Only the tolerant pass of package answer reads such an answer.
func TestReading(t *testing.T) {
	t.Parallel()
	for _, o := range calls.Table() {
		if o.Result == "-" {
			continue
		}
		t.Run(string(o.Op), func(t *testing.T) {
			t.Parallel()
			var want reading
			documented := o.Answer()
			want.read(t, &o, documented)
			require.NoError(t, want.err)
			decoder := json.NewDecoder(strings.NewReader(documented))
			decoder.UseNumber()
			var answer any
			require.NoError(t, decoder.Decode(&answer))
			eachValue("", answer, nil, func(place string, value any, put func(any)) {
				_, isRecord := value.(map[string]any)
				if anything.MatchString(place) || isRecord && element.MatchString(place) {
					return
				}
				name := path.Base(place)
				for _, form := range otherForms(value) {
					form = form.in(name)
					put(json.RawMessage(form.json))
					text, err := json.Marshal(answer)
					require.NoError(t, err)
					put(value)
					for _, body := range []string{string(text), `{"later":[null],` + string(text)[1:]} {
						var got reading
						got.read(t, &o, body)
						got.check(t, &o, place, form, want.result)
					}
				}
			})
		})
	}
}

// reading is the result of a call with a given answer.
type reading struct {
	result string // result of the call in its wire form
	unread []string
	err    error
	log    bytes.Buffer
}

// read makes a call whose answer is body.
func (r *reading) read(t *testing.T, o *calls.Operation, body string) {
	t.Helper()
	client := answering(t, http.StatusOK, body, payvault.WithLogger(slog.New(slog.NewTextHandler(&r.log, nil))))
	var response payvault.Response
	result, err := o.Do(t.Context(), client, calls.Documented(), o.Full, payvault.WithResponse(&response))
	if r.err, r.unread = err, response.Unread; err == nil {
		wire, err := payvault.MarshalWire(result)
		require.NoError(t, err)
		r.result = string(wire)
	}
}

// check compares the result of read with want, the result of the documented answer. In the answer that was read, form
// replaces the value whose JSON pointer is place.
func (r *reading) check(t *testing.T, o *calls.Operation, place string, form otherForm, want string) {
	t.Helper()
	what := place + " as " + form.json
	isNeeded := path.Base(place) == o.NeededID
	isRead := o.Replay == payvault.ReplayRead
	switch {
	case form.is == unreadable:
		if isRead || isNeeded {
			require.ErrorIs(t, r.err, payvault.ErrMalformedResponse, what)
			require.ErrorContains(t, r.err, place, what)
			require.ErrorContains(t, r.err, "cannot be read", what)
			service.AssertHidden(t, r.err, garbageCanary)
			assert.Equal(t, !isRead, errors.Is(r.err, payvault.ErrOutcomeUnknown), what)
		} else {
			require.NoError(t, r.err, what)
			assert.Contains(t, r.log.String(), "level=WARN", what)
			assert.Contains(t, r.log.String(), "unread="+place, what)
		}
		if !isRead {
			assert.Equal(t, []string{place}, r.unread, what)
		}
		return
	case form.is == none && isNeeded:
		require.ErrorContains(t, r.err, place+" is missing", what)
		return
	case form.is == none && informs.MatchString(place):
		require.NoError(t, r.err, what)
		assert.Equal(t, []string{place}, r.unread, what)
		return
	}
	require.NoError(t, r.err, what+": if its missing method is right, add NeededID in internal/tests/calls/table.go")
	assert.Empty(t, r.unread, what)
	switch form.is {
	case same:
		notPrimary := strings.NewReplacer(`,"primary":false`, "") // the result may lack primary if it is false
		assert.JSONEq(t, notPrimary.Replace(want), notPrimary.Replace(r.result), what)
	case literal:
		assert.Contains(t, r.result, `"`+form.json+`"`, what)
	case lost, none, unreadable:
	}
}

const unread = "unread" // a value that cannot be read, in the tables of numbers

// numbersRead returns, for each rule that ruleOf names, the text that is read from each JSON number, and from true. The
// constant unread stands for a value that cannot be read.
func numbersRead() map[string]map[string]string {
	id := map[string]string{
		"8.61e+17": unread, "17.5": unread, "true": unread, "17.0": "17", "420": "420", "36": "36", "0": "0",
	}
	return map[string]map[string]string{
		"id": id, "secret": id,
		"mmyy":    {"8.61e+17": "8.61e+17", "true": "true", "420": "0420", "420.0": "0420", "36": "36", "1230": "1230"},
		"iso":     {"8.61e+17": "8.61e+17", "true": "true", "420": "420", "36": "036", "8": "008", "40": "040", "0": "0"},
		"text":    {"8.61e+17": "8.61e+17", "17.5": "17.5", "true": "true", "17.0": "17.0", "420": "420", "36": "36"},
		"integer": {"8.61e+17": "861000000000000000", "17.5": unread, "true": unread, "17.0": "17", "420": "420"},
	}
}

// ruleOf returns the name of the rule of a field. It is text or integer if numbers.go does not list the field. ruleOf
// also checks that numbers.go lists each secret and, with two exceptions, each name that ends in _id.
func ruleOf(t *testing.T, typeName, wire string, of reflect.Type) string {
	t.Helper()
	isNamedID := strings.HasSuffix(wire, "_id") && wire != "type_id" && wire != "tax_id"
	const numbers = "internal/tests/calls/numbers.go"
	require.True(t, !isNamedID || calls.NumberID.Covers(typeName, wire),
		"%s.%s ends in _id: add it to NumberID in "+numbers, typeName, wire)
	isSecret := of == reflect.TypeFor[payvault.Secret]()
	require.Equal(t, isSecret, calls.NumberSecret.Covers(typeName, wire),
		"%s.%s: NumberSecret in "+numbers+" lists each Secret of an answer, and nothing else", typeName, wire)
	switch {
	case isSecret:
		return "secret"
	case calls.NumberID.Covers(typeName, wire):
		return "id"
	case calls.NumberMMYY.Covers(typeName, wire):
		return "mmyy"
	case calls.NumberISO.Covers(typeName, wire):
		return "iso"
	case of.Kind() == reflect.String:
		return "text"
	}
	return "integer"
}

// TestReading_numbers reads numbers into each text, integer and secret of most types of results, one at a time. It
// checks that a number that has lost digits is not read as an ID or a secret, that the lost zeros of dates and codes
// come back, and that all other texts keep the characters of the number. An integer is never rounded.
func TestReading_numbers(t *testing.T) {
	t.Parallel()
	seen, reads := map[string]bool{}, numbersRead()
	skipped := regexp.MustCompile(`Request$|^(AccountUpdaterCard|ApplicationData|SavedField|TokenizeResponse)$`)
	for typeName, typ := range canary.Types() {
		for field := range typ.Fields() {
			wire, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			isNumber := field.Type.Kind() == reflect.Int64 || field.Type.Kind() == reflect.Int
			isValue := isNumber || field.Type.Kind() == reflect.String || field.Type == reflect.TypeFor[payvault.Secret]()
			if wire == "" || wire == "-" || !isValue || skipped.MatchString(typeName) {
				continue
			}
			rule := ruleOf(t, typeName, wire, field.Type)
			seen[rule] = true
			for number, want := range reads[rule] {
				into, what := reflect.New(typ), typeName+"."+wire+": "+number
				places, err := answer.ReadLenient([]byte(`{"`+wire+`":`+number+`}`), into.Interface())
				require.NoError(t, err, what)
				got := into.Elem().FieldByIndex(field.Index).Interface()
				text := fmt.Sprint(got)
				if secret, ok := got.(payvault.Secret); ok {
					text = secret.Reveal()
				}
				if want == unread {
					assert.Zero(t, got, what)
				} else {
					assert.Equal(t, want, text, what)
				}
				isCompleted := rule == "iso" && want != number
				assert.Equal(t, want == unread || isCompleted, len(places) > 0, what)
			}
		}
	}
	assert.Len(t, seen, len(reads))
}

// readings returns calls by short names, for the tests of odd answers below.
func readings(t *testing.T) map[string]call {
	t.Helper()
	return map[string]call{
		"create": named(t, "payees.create"), "save": named(t, "applications.save_data"), "list": named(t, "customers.list"),
		"Client.Call": func(c *payvault.Client, opts ...payvault.CallOption) (any, error) {
			var out struct{ N int }
			err := c.Call(t.Context(), request("GET"), &out, opts...)
			return out.N, err
		},
	}
}

// TestReading_goesOn checks that a call succeeds even if a value that the caller does not need is missing or
// unreadable. Unread has the JSON pointer of this value, and all other values are read.
func TestReading_goesOn(t *testing.T) {
	t.Parallel()
	do := readings(t)
	payee := &payvault.Payee{ID: 4}
	for _, test := range []struct {
		call, body string
		want       any
		unread     []string
	}{
		{"create", "\ufeff" + `{"Code":"0","DATA":{"Payee_ID":4,"x":"` + "\xff" + `"},"later":[null,{}]}`, payee, nil},
		{
			"save", `{"code":0,"data":{"fields":[{"key":"a","value":"b\ud83d"}]}}`,
			[]payvault.SavedField{{Key: "a", Value: payvault.NewSecret("\"b\ufffd\"")}},
			nil,
		},
		{"create", `{"code":0,"rcode":{"a":1},"data":{"payee_id":4}}`, payee, []string{"/rcode"}},
		{"create", `{"code":0,"data":{"payee_id":4},"data":"text"}`, payee, []string{"/data"}},
		{"create", `{"code":0,"data":{"payee_id":4,"payee_id":{"a":1}}}`, payee, []string{"/data/payee_id"}},
		{
			"create", `{"code":0,"DATA":{"payee_id":4,"Payee_EMAIL":["a",{"` + garbageCanary + `":1}]}}`,
			&payvault.Payee{ID: 4, Email: []string{"a", ""}},
			[]string{"/DATA/Payee_EMAIL/1"},
		},
		{"Client.Call", `{"code":[],"rcode":"000","N":5}`, 5, nil},
		{"Client.Call", `{"code":0,"rcode":true,"N":5}`, 5, []string{"/rcode"}},
		{"list", `{"code":0,"data":null}`, &payvault.Page[payvault.Customer]{}, nil},
	} {
		assertRead(t, do[test.call], test.body, test.want, test.unread...)
	}
}

// TestReading_malformed checks that each malformed answer makes its call fail with the right reason.
func TestReading_malformed(t *testing.T) {
	t.Parallel()
	do := readings(t)
	for _, test := range []struct {
		call, body, reason string
	}{
		{"create", `{"code":0,"rcode":"051","data":{"payee_id":1}}`, "both success and failure"},
		{"create", `{"code":0,"rcode":"099","data":{"payee_id":1}}`, "both success and failure"},
		{"create", `{"code":0,"rcode":"000","rcode":"051","data":{"payee_id":1}}`, "both success and failure"},
		{"create", `{"code":5,"rcode":"000","data":{"payee_id":1}}`, "both success and failure"},
		{"Client.Call", `{"code":{},"N":5}`, "no result code"},
		{"list", `"text"`, "malformed response: the body cannot be read"},
		{"list", `{"code":0,"rcode":{"code":51},"data":[]}`, "/rcode cannot be read"},
		{"list", `{"code":0,"data":{"customer_id":"A"}}`, "/data cannot be read"},
		{"list", `{"code":0,"data":"","totalRecords":1}`, "/data is missing"},
		{
			"list", `{"code":0,"data":[{"customer_id":"A"},{"customer_id":8.61e+30}]}`,
			"/data/1/customer_id cannot be read: a number that has lost digits",
		},
	} {
		assertUnread(t, do[test.call], test.body, test.reason)
	}
}

// TestReading_tooMany checks that an answer with more than 20 unreadable values, or with more than 20 saved fields that
// have no key, is malformed, and that 20 unreadable values are not too many.
func TestReading_tooMany(t *testing.T) {
	t.Parallel()
	do := readings(t)
	emails := func(n int) string {
		return `{"code":0,"data":{"payee_id":4,"payee_email":[` + strings.Repeat(`[1],`, n) + `""]}}`
	}
	for name, body := range map[string]string{
		"create": emails(21), "save": `{"code":0,"data":{"fields":[` + strings.Repeat(`{},`, 20) + `{}]}}`,
	} {
		_, err := do[name](answering(t, 200, body))
		require.ErrorContains(t, err, "response: more values than an answer may have")
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown)
		assert.False(t, payvault.SafeToRetry(err))
	}
	var response payvault.Response
	_, err := do["create"](answering(t, 200, emails(20)), payvault.WithResponse(&response))
	require.NoError(t, err)
	assert.Len(t, response.Unread, 20, "so many are left out")
}

// TestReading_label checks that an answer whose Content-Type says Latin-1 or windows-1252 is read as windows-1252, also
// if it is a refusal. An answer that is UTF-8 is read as UTF-8, whatever its label says. In any other answer, bytes
// that are not UTF-8 become U+FFFD.
func TestReading_label(t *testing.T) {
	t.Parallel()
	do := readings(t)
	for _, test := range []struct{ contentType, name, want string }{
		{"application/json; charset=ISO-8859-1", "M\xfcller \x80", "Müller €"},
		{`application/json;charset="windows-1252"`, "M\xfcller \x80", "Müller €"},
		{"text/plain; Charset=Latin1", "M\xfcller", "Müller"},
		{"application/json; charset=ISO_8859-1", "M\xfcller", "Müller"},        // an alias of IANA
		{`application/json; charset="ISO_8859-1:1987"`, "M\xfcller", "Müller"}, // another one
		{"application/json; charset=iso8859-1", "M\xfcller", "Müller"},         // Python
		{"application/json; charset=ISO8859_1", "M\xfcller", "Müller"},         // Java
		{"application/json; charset=l1", "M\xfcller", "Müller"},
		{"application/json; charset=cp819", "M\xfcller", "Müller"},
		{"application/json; charset=cswindows1252", "M\xfcller \x80", "Müller €"},
		{"application/json; charset=cp1252", "M\xfcller \x80", "Müller €"},
		{"application/json; charset=ISO-8859-15", "M\xfcller", "M\ufffdller"},
		{"application/json; charset=iso-8859-1", "Müller", "Müller"},
		{"application/json; charset=utf-8", "M\xfcller", "M\ufffdller"},
		{"application/json", "M\xfcller", "M\ufffdller"},
		{"application/json; charset=iso-8859-1; x", "M\xfcller", "M\ufffdller"}, // not valid, so it has no label
	} {
		status, body := 200, `{"code":0,"message":"`+test.name+`","data":{"payee_id":4,"payee_name":"`+test.name+`"}}`
		client := service.Client(t, service.Nowhere, service.Over(service.RoundTripper(
			func(*http.Request) (*http.Response, error) {
				reply := service.Reply(status, body)
				reply.Header.Set("Content-Type", test.contentType)
				return reply, nil
			})))
		var response payvault.Response
		payee, err := do["create"](client, payvault.WithResponse(&response))
		require.NoError(t, err)
		assert.Equal(t, &payvault.Payee{ID: 4, Name: test.want}, payee, test.contentType)
		assert.Equal(t, body, string(response.Body), "the answer as it came")
		status = 400
		_, err = do["create"](client)
		assert.Equal(t, test.want, service.AsError(t, err).Message, test.contentType)
	}
}
