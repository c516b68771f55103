package answer

import (
	stdjson "encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shout is a type with its own UnmarshalJSON, which stores a text in capital letters and refuses the text canary.
type shout string

func (s *shout) UnmarshalJSON(b []byte) error {
	if Text(b) == "canary" {
		return errors.New("canary is not shouted")
	}
	*s = shout(strings.ToUpper(Trimmed(b)))
	return nil
}

type address struct {
	City string `json:"city"`
}

// document has a field for each way in which Read treats a type.
type document struct {
	Text    string             `json:"text"`
	Number  int64              `json:"number"`
	Small   int8               `json:"small"`
	Flag    bool               `json:"flag"`
	Pointer *bool              `json:"pointer"`
	Texts   []string           `json:"texts"`
	Own     shout              `json:"own"`
	Address address            `json:"address"`
	List    []address          `json:"list"`
	Map     map[string]string  `json:"map"`
	Raw     stdjson.RawMessage `json:"raw"`
	Any     any                `json:"any"`
	Snake   string             `json:"snake_case"`
}

// TestRead checks what Read returns for the documented JSON form of each type of field, and for tolerated forms.
func TestRead(t *testing.T) {
	t.Parallel()
	for want, texts := range map[*document][]string{
		{Text: "a"}: {
			`{"text":"a"}`, `{"TEXT":"a"}`, "\ufeff" + `{"text":"a"}`, `{"text":"b","text":"a"}`, `{"text":"a","x":[{}]}`,
		},
		{Text: "17.50"}: {`{"text":17.50}`}, {Text: "true"}: {`{"text":true}`},
		{Text: "M\ufffdller"}: {"{\"text\":\"M\xfcller\"}", `{"text":"M\ud83dller"}`}, // Latin-1; one half of an emoji
		{Text: ""}: {
			`{"text":null}`, `{"text":false}`, `{"text":""}`, `{"text":[]}`, `{"text":{ }}`, `{"snakecase":"a"}`,
		},
		{Number: 5}: {
			`{"number":5}`, `{"number":"5"}`, `{"number":" 5 "}`, `{"number":5.0}`, `{"number":"5.00"}`, `{"number":5e0}`,
		},
		{Number: -9223372036854775808}: {`{"number":"-9223372036854775808"}`},
		{}: {
			`{"number":null}`, `{"number":""}`, `{"number":false}`, `{"number":[]}`, `{"flag":{}}`, `{"pointer":null}`,
			`null`, `{}`, `""`,
		},
		{Flag: true}: {
			`{"flag":true}`, `{"flag":"true"}`, `{"flag":"Y"}`, `{"flag":1}`, `{"flag":"1"}`, `{"flag":" yes "}`,
		},
		{Flag: false}:           {`{"flag":"N"}`, `{"flag":0}`, `{"flag":"false"}`, `{"flag":""}`, `{"flag":null}`},
		{Pointer: new(true)}:    {`{"pointer":"Y"}`, `{"pointer":true}`},
		{Pointer: new(false)}:   {`{"pointer":"0"}`, `{"pointer":false}`},
		{Pointer: nil}:          {`{"pointer":""}`, `{"pointer":[]}`, `{"pointer":{}}`},
		{Texts: []string{"a"}}:  {`{"texts":["a"]}`, `{"texts":"a"}`},
		{Texts: []string{"17"}}: {`{"texts":17}`, `{"texts":[17]}`},
		{Texts: []string{}}:     {`{"texts":[]}`, `{"texts":""}`, `{"texts":{}}`, `{"texts":false}`},
		{Own: "A"}:              {`{"own":"a"}`, `{"own":" a "}`}, {Own: "TRUE"}: {`{"own":true}`},
		{Address: address{"X"}}:  {`{"address":{"city":"X"}}`, `{"address":{"City":"X"},"text":null}`},
		{Address: address{}}:     {`{"address":null}`, `{"address":""}`, `{"address":[]}`, `{"address":false}`},
		{List: []address{{"X"}}}: {`{"list":[{"city":"X"}]}`}, {List: []address{{"17"}}}: {`{"list":[{"city":17}]}`},
		{Map: map[string]string{"a": "1"}}: {`{"map":{"a":"1"}}`, `{"map":{"a":1}}`},
		{Raw: stdjson.RawMessage(`[1]`)}:   {`{"raw":[1]}`},
	} {
		for _, text := range texts {
			var got document
			require.NoError(t, Read([]byte(text), &got), text)
			assert.Equal(t, *want, got, text)
		}
	}
}

// TestRead_fails checks that Read refuses a text that is not JSON, and a value in a form that it does not tolerate. The
// error has the JSON pointer of the value, but not the value.
func TestRead_fails(t *testing.T) {
	t.Parallel()
	for text, place := range map[string]string{
		`{"text":{"a":1}}`: "/text", `{"text":["a"]}`: "/text", `{"number":"x"}`: "/number", `{"number":1.5}`: "/number",
		`{"number":9223372036854775808}`: "/number", `{"number":1.00000000000000000001}`: "/number",
		`{"small":128}`:   "/small",
		`{"number":true}`: "/number", `{"number":"0x10"}`: "/number", `{"flag":"maybe"}`: "/flag", `{"flag":2}`: "/flag",
		`{"texts":["a",["b"]]}`: "/texts/1", `{"texts":{"a":1}}`: "/texts", `{"own":"canary"}`: "/own",
		`{"address":"X"}`: "/address", `{"address":[{}]}`: "/address", `{"ADDRESS":{"City":{"a":1}}}`: "/ADDRESS/City",
		`{"list":[{},null]}`: "/list/1", `{"list":[{"city":"X"},""]}`: "/list/1", `{"list":[[]]}`: "/list/0",
		`{"list":[{"city":[1]}]}`: "/list/0/city", `{"list":{"city":"X"}}`: "/list", `{"map":{"4111 1111":{"a":1}}}`: "/map",
		`{"map":{"4111111111111111":{"a":1}}}`: "/map", `[{"text":"a"}]`: "", `"text"`: "", `17`: "",
	} {
		err := Read([]byte(text), new(document))
		unreadable, ok := errors.AsType[*PlaceError](err)
		require.True(t, ok, "%s: %v", text, err)
		assert.Equal(t, place, unreadable.Place, text)
		assert.NotContains(t, err.Error(), "canary")
	}
	for data, isNone := range map[string]bool{
		`null`: true, `""`: true, `false`: true, `{}`: true, `{"a":1}`: false, `5`: false,
	} {
		page := struct {
			Data *[]address `json:"data"`
		}{new([]address)}
		err := Read([]byte(`{"data":`+data+`}`), &page)
		assert.Equal(t, isNone, err == nil && page.Data == nil, data)
	}
	for _, text := range []string{
		``, `{`, `{"text":"a"`, `<html>`, `{"text":"a"}}`, "{}\x00", `{"text":nul}`,
		strings.Repeat("[", 20_000),
	} {
		assert.ErrorIs(t, Read([]byte(text), new(document)), ErrNotJSON, "%.20s", text)
	}
}

// TestReadLenient checks that ReadLenient skips up to 20 values that cannot be read, and returns their JSON pointers.
func TestReadLenient(t *testing.T) {
	t.Parallel()
	var got document
	const text = `{"text":["x"],"number":7,"flag":"maybe","list":[null,{"city":"X"}],"own":"canary"}`
	unread, err := ReadLenient([]byte(text), &got)
	require.NoError(t, err)
	assert.Equal(t, []string{"/text", "/flag", "/list/0", "/own"}, unread)
	assert.Equal(t, document{Number: 7, List: []address{{}, {"X"}}}, got)
	_, err = ReadLenient([]byte(`[{}]`), &got)
	require.ErrorAs(t, err, new(*PlaceError), "the whole of it cannot be left out")
	odd := strings.TrimSuffix(strings.Repeat(`[1],`, 21), ",")
	unread, err = ReadLenient([]byte(`{"texts":[`+odd+`]}`), &got)
	require.ErrorIs(t, err, ErrTooMany)
	assert.Len(t, unread, 20)
}

// TestReadLenient_completed checks that ReadLenient names up to 1000 codes that had lost zeros, and that these do not
// count as values that cannot be read.
func TestReadLenient_completed(t *testing.T) {
	t.Parallel()
	type place struct {
		Country string `json:"country" answer:"iso"`
	}
	for codes, named := range map[int]int{21: 41, 1001: 1020} {
		var places []place
		text := `[` + strings.Repeat(`{"country":36},`, codes) + strings.Repeat(`{"country":{"a":1}},`, 20) +
			`{"country":"040"}]`
		unread, err := ReadLenient([]byte(text), &places)
		require.NoError(t, err)
		assert.Equal(t, place{"036"}, places[codes-1])
		assert.Equal(t, place{"040"}, places[codes+20])
		assert.Len(t, unread, named)
	}
}

// within is the value in {"a":[value]}. Its own method UnmarshalJSONFrom reads the tokens around the value.
type within[T any] struct{ value T }

func (w *within[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	_, err1 := dec.ReadToken() // {
	_, err2 := dec.ReadToken() // "a"
	_, err3 := dec.ReadToken() // [
	err4 := json.UnmarshalDecode(dec, &w.value)
	_, err5 := dec.ReadToken() // ]
	_, err6 := dec.ReadToken() // }
	return errors.Join(err1, err2, err3, err4, err5, err6)
}

// TestReadSaved_tokens checks that ReadSaved stays tolerant if a type reads the tokens itself and decodes only an inner
// value: the inner value may be a quoted number, or have a number in place of a text.
func TestReadSaved_tokens(t *testing.T) {
	t.Parallel()
	var scalar within[int]
	require.NoError(t, ReadSaved([]byte(`{"a":["5"]}`), &scalar))
	assert.Equal(t, 5, scalar.value)
	var object within[address]
	require.NoError(t, ReadSaved([]byte(`{"a":[{"city":17}]}`), &object))
	assert.Equal(t, "17", object.value.City)
}

// TestRead_bounds checks that Read and ReadExactly refuse a text with too many lists or values. The limits are higher
// for a text over 8 MiB.
func TestRead_bounds(t *testing.T) {
	t.Parallel()
	lists := func(n int) string { return `{"x":[` + strings.TrimSuffix(strings.Repeat("[],", n), ",") + `]}` }
	for text, want := range map[string]error{
		lists(71_998): nil, lists(71_999): ErrTooMany, `{"x":[` + strings.Repeat("1,", 720_000) + `1]}`: nil,
		`{"x":[` + strings.Repeat("1,", 720_001) + `1]}`: ErrTooMany,
		lists(71_999) + strings.Repeat(" ", 8<<20):       nil,
	} {
		require.ErrorIs(t, Read([]byte(text), new(document)), want)
		require.ErrorIs(t, ReadExactly([]byte(text), new(any)), want)
	}
}

// TestExactNumbers checks that ReadExactly keeps all digits of the numbers in variables of type any.
func TestExactNumbers(t *testing.T) {
	t.Parallel()
	const text = `{"a":[12345678901234567890.10,{"b":1.50}]}`
	want := any(map[string]any{
		"a": []any{stdjson.Number("12345678901234567890.10"), map[string]any{"b": stdjson.Number("1.50")}},
	})
	var got any
	require.NoError(t, ReadExactly([]byte(text), &got))
	assert.Equal(t, want, got)
	for _, text := range []string{`{"a":1,"a":2}`, `{`, `"canary`} {
		err := ReadExactly([]byte(text), new(any))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "canary")
	}
}

// TestReadAsCaller checks that ReadAsCaller reads as encoding/json does, and that numbers in a variable of type any
// keep their digits. An error has the place of the value, with every release of Go, but no name that may be a secret.
func TestReadAsCaller(t *testing.T) {
	t.Parallel()
	type inner struct {
		N    int
		Text int             `json:"text,string"`
		At   time.Time       `json:"at"`
		Raw  []byte          `json:"raw"`
		Num  stdjson.Number  `json:"num"`
		Amt  decimal.Decimal `json:"amt"`
	}
	type outer struct {
		Inner []inner
		Time  map[string]inner
		Any   any
	}
	var got outer
	const text = "\ufeff" + `{"inner":[{"n":1,"num":1.50},null],"any":[12345678901234567890]}`
	require.NoError(t, ReadAsCaller([]byte(text), &got))
	assert.Equal(t, []inner{{N: 1, Num: "1.50"}, {}}, got.Inner)
	assert.Equal(t, []any{stdjson.Number("12345678901234567890")}, got.Any)
	for text, place := range map[string]string{
		`{"inner":[{"n":"canary"}]}`:             "/inner/0/n",
		`{"inner":[{"num":1.50},{"n":1.5}]}`:     "/inner/1/n",
		`{"inner":[{"text":"canary"}]}`:          "/inner/0/text",
		`{"inner":[{"text":5}]}`:                 "/inner/0/text",
		`{"inner":[{},{"at":"canary"}]}`:         "/inner/1/at",
		`{"inner":[{"raw":"*canary"}]}`:          "/inner/0/raw",
		`{"inner":[{"num":"canary"}]}`:           "/inner/0/num",
		`{"inner":[{"amt":"canary"}]}`:           "/inner/0/amt",
		`{"inner":5}`:                            "/inner",
		`{"time":{"a":{},"canary 1":{"n":"x"}}}`: "/time",
		`[]`:                                     "the body",
	} {
		assert.EqualError(t, ReadAsCaller([]byte(text), new(outer)), place+" cannot be read")
	}
}

// TestReadAsCaller_refused checks that the error names no place if JSON v2 refuses a type that encoding/json reads. The
// place of that type need not be the place of the value that cannot be read.
func TestReadAsCaller_refused(t *testing.T) {
	t.Parallel()
	type names map[string]int
	type out struct {
		A struct{ names }
		T time.Time
		N int
	}
	require.NoError(t, ReadAsCaller([]byte(`{"a":{},"n":5}`), new(out)))
	require.EqualError(t, ReadAsCaller([]byte(`{"a":{},"n":"canary"}`), new(out)), "the body cannot be read")
	require.EqualError(t, ReadAsCaller([]byte(`{"t":{}}`), new(out)), "/t cannot be read")
}

// TestPlainNames checks that PlainNames returns the names in a JSON pointer, cut before the first name that may be a
// secret.
func TestPlainNames(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[jsontext.Pointer][]string{
		"": nil, "/data/0/billing_addr1": {"data", "0", "billing_addr1"}, "/a/1234567/b": {"a"}, "/a/x y/b": {"a"},
		"/a/b-c": {"a"}, "/a~1b/c": nil, "/interestCount": {"interestCount"}, "/4111111111111111": nil, "/a/": {"a"},
	} {
		assert.Equal(t, want, PlainNames(pointer), pointer)
	}
}

// TestDecimal checks that Decimal reads a number exactly, or reports that it cannot do so.
func TestDecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"12.50": "12.50", "-0.00": "0.00", "1e2": "100", "1250e-2": "12.50", "0E-5": "0.00000",
		"9999999999999999999": "9999999999999999999", "1.00000000000000000000": "1.000000000000000000",
	} {
		number, isExact := Decimal(text)
		require.True(t, isExact, text)
		assert.Equal(t, want, number.String(), text)
	}
	for _, text := range []string{
		"", "x", "1,5", "99999999999999999999", "1.00000000000000000001", "1e-20", "1e400", "--1", "1e", "0x1",
		strings.Repeat("9", 400),
	} {
		_, isExact := Decimal(text)
		assert.False(t, isExact, text)
	}
}
