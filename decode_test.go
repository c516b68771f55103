package payvault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

type (
	ctx  = context.Context
	opt  = payvault.CallOption
	call = func(ctx ctx, c *payvault.Client, opts ...opt) (any, error)
)

// readResult is a result with the call that reads it. The body is made around the JSON of its record.
type readResult struct {
	record any    // a zero value of the type whose fields are documented
	body   string // with %s for the record
	at     string // JSON pointer to the record
	needed string // of the record: the member without which there is no result, and its value
	write  bool   // asking again is not free
	call   call
}

func tokenize(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{MerchantID: 1}, o...))
}

func createCustomer(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm"}, o...))
}

func listCustomers(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Customers.List(ctx, nil, o...))
}

func createPayee(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: "Payee"}, o...))
}

func createApplication(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: 1, SalesRep: 2}, o...))
}

func saveData(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return c.Applications.SaveData(ctx, 1, payvault.ApplicationData{LegalName: "Minimal Legal Name"}, o...)
}

func listTransactions(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Subscriptions.Transactions(ctx, 1, nil, o...))
}

func cancel(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.Subscriptions.Cancel(ctx, 1, &payvault.SubscriptionCancelRequest{CustomerID: "C1"}, o...))
}

func submitCard(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
	return valueOf(c.AccountUpdater.Submit(ctx, []payvault.AccountUpdaterCard{card()}, o...))
}

func valueOf[T any](v *T, err error) (any, error) {
	if v == nil {
		return nil, err
	}
	return *v, err
}

// within is a call that gives a part of a result: fields, and elements of lists.
func within(do call, path ...any) call {
	return func(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
		result, err := do(ctx, c, o...)
		if err != nil {
			return nil, err
		}
		v := reflect.ValueOf(result)
		for _, step := range path {
			switch step := step.(type) {
			case string:
				v = v.FieldByName(step)
			case int:
				v = v.Index(step)
			}
		}
		return v.Interface(), nil
	}
}

func readResults() []readResult {
	const data, rows, fields = `{"code":0,"data":%s}`, `{"code":0,"data":[%s]}`, `{"code":0,"data":{"fields":[{"key":`
	return []readResult{
		{payvault.TokenizeResponse{}, `%s`, "", `"rcode":"000","card_id":"CARD1"`, true, tokenize},
		{payvault.Customer{}, data, "/data", `"customer_id":"C1"`, true, createCustomer},
		{payvault.Customer{}, rows, "/data/0", `"x":1`, false, within(listCustomers, "Items", 0)},
		{payvault.Page[payvault.Customer]{}, `%s`, "", `"code":0,"data":[]`, false, listCustomers},
		{payvault.Payee{}, data, "/data", `"payee_id":4`, true, createPayee},
		{
			payvault.Application{}, `{"code":0,"data":{"app":%s}}`, "/data/app", `"app_id":4`, true,
			within(createApplication, "App"),
		},
		{
			payvault.Pricing{}, `{"code":0,"data":{"app":{"app_id":1},"pricing":%s}}`, "/data/pricing", `"x":1`, true,
			within(createApplication, "Pricing"),
		},
		{
			payvault.FieldSettings{}, fields + `"a","settings":%s}]}}`, "/data/fields/0/settings", `"x":1`, true,
			within(saveData, 0, "Settings"),
		},
		{payvault.Ownership{}, fields + `"ownership","value":%s}]}}`, "", `"x":1`, false, within(saveData, 0, "Value")},
		{payvault.Transaction{}, rows, "/data/0", `"x":1`, false, within(listTransactions, "Items", 0)},
		{payvault.Confirmation{}, data, "/data", `"x":1`, true, cancel},
		{payvault.AccountUpdaterRequest{}, data, "/data", `"request_id":"R1"`, true, submitCard},
	}
}

// oddities are what a service may send for a field of a type, with what the value then is. The forms of a value of our
// own are held with its type.
func oddities(of reflect.Type) map[string]any {
	if of.Kind() == reflect.Interface { // nothing is documented of it
		return nil
	}
	switch reflect.Zero(of).Interface().(type) {
	case payvault.Amount:
		return map[string]any{`"12.50"`: amount("12.50"), `"1,234.50"`: amount("1234.50"), `""`: payvault.Amount{}}
	case payvault.Date:
		day := payvault.Date{Year: 2026, Month: time.January, Day: 15}
		return map[string]any{`"2026-01-15T10:20:30Z"`: day, `20260115`: day, `0`: payvault.Date{}, `""`: payvault.Date{}}
	case payvault.Timestamp:
		at := payvault.Timestamp{Time: time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)}
		return map[string]any{`"2026-01-15 10:20:30 UTC"`: at, `0`: payvault.Timestamp{}, `""`: payvault.Timestamp{}}
	case payvault.Secret:
		return map[string]any{`16500000000`: payvault.NewSecret("16500000000"), `""`: payvault.Secret{}}
	case json.RawMessage:
		return map[string]any{`[1.0,"x"]`: json.RawMessage(`[1.0,"x"]`)}
	}
	switch of.Kind() {
	case reflect.String:
		return map[string]any{
			`16500000000`: "16500000000", `1.50`: "1.50", `true`: "true", `false`: "false", `"later value"`: "later value",
		}
	case reflect.Bool:
		return map[string]any{
			`"true"`: true, `"Y"`: true, `"yes"`: true, `"1"`: true, `1`: true,
			`"false"`: false, `"N"`: false, `"no"`: false, `"0"`: false, `0`: false, `""`: false,
		}
	case reflect.Int64, reflect.Int:
		return map[string]any{`"7"`: 7, `7.0`: 7, `"7.0"`: 7, `7e0`: 7, `""`: 0}
	}
	return nil
}

// leaf is a documented field: its path in the record and in the Go value.
type leaf struct {
	names []string
	index [][]int
	of    reflect.Type
}

// leaves finds all fields below a type. Lists have one element, of index 0.
func leaves(of reflect.Type, at leaf) []leaf {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if at.of = of; len(oddities(of)) > 0 || of.Kind() == reflect.Interface {
		return []leaf{at}
	}
	if of.Kind() == reflect.Slice {
		at.names, at.index = append(slices.Clip(at.names), "0"), append(slices.Clip(at.index), nil)
		return leaves(of.Elem(), at)
	}
	var all []leaf
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || name == "data" {
			continue
		}
		below := leaf{append(slices.Clip(at.names), name), append(slices.Clip(at.index), field.Index), nil}
		all = append(all, leaves(field.Type, below)...)
	}
	return all
}

// record is the JSON of a record with one member more.
func (l leaf) record(needed, wire string) string {
	inner := wire
	for i := len(l.names) - 1; i > 0; i-- {
		if l.names[i] == "0" {
			inner = "[" + inner + "]"
		} else {
			inner = `{"` + l.names[i] + `":` + inner + `}`
		}
	}
	return `{` + needed + `,"` + l.names[0] + `":` + inner + `}` // if it is needed it comes twice, and this one counts
}

// in finds the field in a result.
func (l leaf) in(result any) any {
	v := reflect.ValueOf(result)
	for _, index := range l.index {
		v = reflect.Indirect(v)
		if index == nil {
			v = v.Index(0)
		} else {
			v = v.FieldByIndex(index)
		}
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return reflect.Zero(v.Type().Elem()).Interface()
	}
	return reflect.Indirect(v).Interface()
}

// needed reports whether there is no result without the field.
func (l leaf) needed(r *readResult) bool {
	return len(l.names) == 1 && strings.Contains(r.needed, `"`+l.names[0]+`":`) || l.names[0] == "rcode"
}

// TestReading_oddValues: every documented field of every result takes what services really send for it.
func TestReading_oddValues(t *testing.T) {
	t.Parallel()
	for _, r := range readResults() {
		fields := leaves(reflect.TypeOf(r.record), leaf{})
		require.NotEmpty(t, fields)
		for _, field := range fields {
			odd := oddities(field.of)
			if field.needed(&r) {
				delete(odd, `""`)
			} else if odd != nil && field.of != reflect.TypeFor[json.RawMessage]() {
				odd[`null`] = reflect.Zero(field.of).Interface()
			}
			for wire, want := range odd {
				if field.names[0] == "rcode" {
					continue
				}
				body := fmt.Sprintf(r.body, field.record(r.needed, wire))
				var response payvault.Response
				result, err := r.call(t.Context(), answering(t, 200, body), payvault.WithResponse(&response))
				require.NoError(t, err, body)
				assert.Equal(t, reflect.ValueOf(want).Convert(field.of).Interface(), field.in(result), body)
				assert.Empty(t, response.Unread, body)
			}
		}
	}
}

// TestReading_unreadable: what cannot be read fails a read with its place, and leaves a write its result.
func TestReading_unreadable(t *testing.T) {
	t.Parallel()
	for _, r := range readResults() {
		if _, whole := r.record.(payvault.Ownership); whole { // it is there as its text
			continue
		}
		for _, field := range leaves(reflect.TypeOf(r.record), leaf{}) {
			if of := field.of; of == reflect.TypeFor[json.RawMessage]() || of.Kind() == reflect.Interface ||
				field.names[0] == "rcode" {
				continue
			}
			needed := r.needed
			if field.needed(&r) {
				needed = `"rcode":"000"`
			}
			body := fmt.Sprintf(r.body, field.record(needed, `{"a":[1]}`))
			pointer := r.at + "/" + strings.Join(field.names, "/")
			var response payvault.Response
			var log bytes.Buffer
			client := answering(t, 200, body, payvault.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			result, err := r.call(t.Context(), client, payvault.WithResponse(&response))
			if !r.write || field.needed(&r) {
				require.ErrorIs(t, err, payvault.ErrMalformedResponse, body)
				assert.Contains(t, err.Error(), pointer+" cannot be read as ", body)
			} else {
				require.NoError(t, err, body)
				assert.NotNil(t, result, body)
				assert.Contains(t, log.String(), "level=WARN", body)
				assert.Contains(t, log.String(), "unread="+pointer, body)
			}
			if r.write {
				assert.Equal(t, []string{pointer}, response.Unread, body)
			}
		}
	}
}

// TestReading_loosely: what encoding/json takes and JSON v2 refuses loses no answer.
func TestReading_loosely(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"\ufeff" + `{"code":0,"data":{"customer_id":"C1","customer_first_name":"Ann"}}`,
		`{"code":0,"data":{"customer_id":"C0","customer_id":"C1","customer_first_name":"Ann"}}`,
		`{"Code":0,"DATA":{"Customer_ID":"C1","CUSTOMER_FIRST_NAME":"Ann"}}`,
		`{"code":0,"data":{"customer_id":"C1","customer_first_name":"Ann","later":"` + "\xff" + `"}}`,
		`{"code":"0","data":{"customer_id":"C1","customer_first_name":"Ann"},"later":{"a":[null,{}]}}`,
	} {
		got, err := createCustomer(t.Context(), answering(t, 200, body))
		require.NoError(t, err, body)
		assert.Equal(t, payvault.Customer{ID: "C1", FirstName: "Ann"}, got, body)
	}
}

// TestReading_nullRecord: null in a list is no empty record.
func TestReading_nullRecord(t *testing.T) {
	t.Parallel()
	for body, place := range map[string]string{
		`[null]`: "/data/0", `[{"customer_id":"a"}, null]`: "/data/1", `[{"customer_id":"a"},` + "\n\tnull ]": "/data/1",
		`[{"billing_cards":[{},{},null]}]`: "/data/0/billing_cards/2",
	} {
		_, err := listCustomers(t.Context(), answering(t, 200, `{"code":0,"data":`+body+`}`))
		require.ErrorIs(t, err, payvault.ErrMalformedResponse, body)
		assert.Contains(t, err.Error(), place+" is null", body)
	}
	_, err := listCustomers(t.Context(), answering(t, 200, `{"code":0,"data":[{"customer_first_name":"a,null"}]}`))
	assert.NoError(t, err)
}

// TestReading_largePage: a page that is read with bounds is no other page.
func TestReading_largePage(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"customer_id":"C1"},`, 15_000)
	for odd, want := range map[string]string{
		`{"customer_id":"C2","comments":"a null"}],"data":null`: "C2",
		`{"customer_id":"C2","customer_id":"C3"}]`:              "C3",
		`{"customer_id":17}]`:                                   "17",
	} {
		page, err := answering(t, 200, `{"code":0,"data":[`+many+odd+`}`).Customers.List(t.Context(), nil)
		require.NoError(t, err, odd)
		require.Len(t, page.Items, 15_001, odd)
		assert.Equal(t, want, page.Items[15_000].ID, odd)
	}
	_, err := listCustomers(t.Context(), answering(t, 200, `{"code":0,"data":[`+many+`null]}`))
	require.ErrorContains(t, err, "/data/15000 is null")
}

// TestReading_oneOddValue: it does not lose what stands beside it, and what cannot be read is named.
func TestReading_oneOddValue(t *testing.T) {
	t.Parallel()
	first := within(listCustomers, "Items", 0)
	byCall := func(ctx ctx, c *payvault.Client, o ...opt) (any, error) {
		var out struct{ N int }
		err := c.Call(ctx, request("GET"), &out, o...)
		return out.N, err
	}
	for _, test := range []struct {
		call   call
		body   string
		want   any
		unread []string
	}{
		{createPayee, `{"code":0,"code":null,"data":{"payee_id":4}}`, payvault.Payee{ID: 4}, nil},
		{createPayee, `{"code":null,"code":0,"data":{"payee_id":4}}`, payvault.Payee{ID: 4}, nil},
		{tokenize, `{"rcode":0,"card_id":"A"}`, payvault.TokenizeResponse{RCode: "000", CardID: "A"}, nil},
		{tokenize, `{"rcode":"000","code":null,"card_id":"A"}`, payvault.TokenizeResponse{RCode: "000", CardID: "A"}, nil},
		{byCall, `{"rcode":0,"N":5}`, 5, nil},
		{cancel, `{"code":0,"data":"Canceled"}`, payvault.Confirmation{}, []string{"/data"}},
		{cancel, `{"code":0,"data":[]}`, payvault.Confirmation{}, []string{"/data"}},
		{saveData, `{"code":0,"data":{"fields":{}}}`, []payvault.SavedField(nil), nil},
		{
			first, `{"code":0,"data":[{"customer_id":"A","billing_cards":{ },"shipping_addresses":""}]}`,
			payvault.Customer{ID: "A"}, nil,
		},
		{first, `{"code":0,"data":[{"customer_id":"A"}]}` + "\x00\x00", payvault.Customer{ID: "A"}, nil},
		{createPayee, `{"code":0,"data":{"payee_id":4},"data":{"payee_name":"P"}}`, payvault.Payee{ID: 4, Name: "P"}, nil},
		{createPayee, `{"code":0,"data":{"payee_id":4},"data":null}`, payvault.Payee{ID: 4}, nil},
		{createPayee, `{"code":0,"data":{"payee_id":4},"data":"text"}`, payvault.Payee{ID: 4}, []string{"/data"}},
		{createPayee, `{"code":0,"data":{"payee_id":4,"payee_id":{}}}`, payvault.Payee{ID: 4}, []string{"/data/payee_id"}},
		{first, `{"code":0,"data":[{"customer_id":"A"}],"data":null}`, payvault.Customer{ID: "A"}, nil},
		{first, `{"code":0,"data":[{"customer_id":"A","customer_id":null}]}`, payvault.Customer{ID: "A"}, nil},
		{
			createPayee, `{"code":0,"data":{"payee_id":4,"payee_account":{"dda_number":"[REDACTED]","tr_number":"1"}}}`,
			payvault.Payee{ID: 4, Account: payvault.PayeeAccount{TRNumber: payvault.NewSecret("1")}},
			[]string{"/data/payee_account/dda_number"},
		},
		{
			createPayee, `{"code":0,"data":{"payee_id":4,"payee_address":[],"payee_email":["a",{}],"payee_name":"P"}}`,
			payvault.Payee{ID: 4, Email: []string{"a", ""}, Name: "P"}, []string{"/data/payee_address", "/data/payee_email/1"},
		},
	} {
		var response payvault.Response
		got, err := test.call(t.Context(), answering(t, 200, test.body), payvault.WithResponse(&response))
		require.NoError(t, err, test.body)
		assert.Equal(t, test.want, got, test.body)
		assert.Equal(t, test.unread, response.Unread, test.body)
	}
	for _, test := range []struct {
		call         call
		body, reason string
	}{
		{createPayee, `{"code":0,"code":5,"data":{"payee_id":4}}`, ": code 5"},
		{createPayee, `{"code":5,"code":0,"data":{"payee_id":4}}`, ": code 5"},
		{createPayee, `{"code":null,"data":{"payee_id":4}}`, "no result code"},
		{createPayee, `{"code":0,"data":"text"}`, "/data cannot be read as Payee"},
		{createPayee, `{"code":0,"data":{"payee_id":"P17"}}`, "/data/payee_id cannot be read as PayeeID"},
		{createPayee, `{"code":{},"data":{"payee_id":4}}`, "/code cannot be read as a result code"},
		{createPayee, `{"code":0,"rcode":"051","data":{"payee_id":1}}`, "both success and failure"},
		{createPayee, `{"code":5,"rcode":"000","data":{"payee_id":1}}`, ": code 5"},
		{tokenize, `{"rcode":"000","code":5,"card_id":"A"}`, "both success and failure"},
		{tokenize, `{"rcode":"051","code":0,"card_id":"A"}`, ": code 051"},
		{tokenize, `{"rcode":"0","card_id":"A"}`, "another result code than 000"},
		{tokenize, `{"rcode":null,"card_id":"A"}`, "no result code"},
		{tokenize, `{"rcode":5,"card_id":"A"}`, ": code 5"},
		{cancel, `{"code":0}`, "/data is missing"},
		{cancel, `{"code":0,"data":null}`, "/data is missing"},
		{first, `{"code":0,"data":{}}`, "/data cannot be read as an array"},
		{first, `{"code":0,"data":"","totalRecords":0}`, "/data cannot be read as an array"},
		{first, `{"code":0,"data":{"customers":[]}}`, "/data cannot be read as an array"},
		{
			first, `{"code":0,"data":[{"customer_id":"A","billing_cards":{"card_id":"a"}}]}`,
			"/data/0/billing_cards cannot be read as an array",
		},
	} {
		_, err := test.call(t.Context(), answering(t, 200, test.body))
		assert.ErrorContains(t, err, test.reason, test.body)
	}
}

// TestReading_misfit: a saved value is read as a whole or not at all, and what does not fit is no unread value.
func TestReading_misfit(t *testing.T) {
	t.Parallel()
	const value = `{"interestCount":1,"owners":[{"dob":"yesterday"}]}`
	for _, extra := range []string{"", `"later":[null],`} { // read strictly, and not
		body := `{"code":0,"data":{"fields":[{` + extra + `"key":"ownership","value":` + value +
			`},{"key":"a","settings":{"required":{}}}]}}`
		var response payvault.Response
		got, err := within(saveData, 0, "Value")(t.Context(), answering(t, 200, body), payvault.WithResponse(&response))
		require.NoError(t, err)
		assert.Equal(t, payvault.NewSecret(value), got)
		assert.Equal(t, []string{"/data/fields/1/settings/required"}, response.Unread)
	}
}

// TestReading_unreadPlaces: as many as a record of the log can hold are named.
func TestReading_unreadPlaces(t *testing.T) {
	t.Parallel()
	body := `{"code":0,"data":{"payee_id":4,"payee_email":[` + strings.Repeat(`{},`, 30) + `{}]}}`
	var response payvault.Response
	_, err := createPayee(t.Context(), answering(t, 200, body), payvault.WithResponse(&response))
	require.NoError(t, err)
	require.Len(t, response.Unread, 20)
	assert.Equal(t, "/data/payee_email/19", response.Unread[19])
}

// TestCall_answers: types of the caller are read as encoding/json reads them.
func TestCall_answers(t *testing.T) {
	t.Parallel()
	type inner struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type callerAnswer struct {
		Any      any             `json:"any"`
		Bytes    []byte          `json:"bytes"`
		Array    [2]int          `json:"array"`
		Wait     time.Duration   `json:"wait"`
		Quoted   int             `json:"quoted,string"`
		Pointer  *inner          `json:"pointer"`
		ByNumber map[int]string  `json:"by_number"`
		List     []inner         `json:"list"`
		Snake    string          `json:"snake_case"`
		Time     time.Time       `json:"time"`
		Open     map[string]any  `json:"open"`
		Text     string          `json:"text"`
		Number   json.Number     `json:"number"`
		Raw      json.RawMessage `json:"raw"`
	}
	for _, member := range []string{
		`"any":1.5`, `"Any":[12345678901234567890,null,{"a":{"b":[]}}]`, `"bytes":"YWI="`, `"array":[1]`, `"array":[1,2,3]`,
		`"wait":5`, `"quoted":"7"`, `"pointer":{"a":1},"pointer":{"b":2}`, `"pointer":{"a":1},"POINTER":null`,
		`"by_number":{"2":"b","1":"a"}`, `"list":[{"a":1},null]`, `"list":[{"a":1},{"a":2}],"list":[{"b":3}]`,
		`"SNAKE_CASE":"x"`, `"snakecase":"x"`, `"time":"2026-01-15T10:20:30Z"`, `"open":{"a":1},"open":{"b":2}`,
		`"text":"` + "\xff" + `"`, `"number":1.50`, `"raw":{"a": 1}`, `"text":null`,
	} {
		body := `{"code":0,` + member + `}`
		var want, got callerAnswer
		require.NoError(t, json.Unmarshal([]byte(body), &want), member)
		require.NoError(t, answering(t, 200, body).Call(t.Context(), request("GET"), &got), member)
		assert.Equal(t, want, got, member)
	}
	for _, member := range []string{
		`"text":5`, `"wait":"5s"`, `"array":{}`, `"list":[1]`, `"time":"` + garbageCanary + `"`, `"quoted":7.5`,
	} {
		body := `{"code":0,` + member + `}`
		require.Error(t, json.Unmarshal([]byte(body), new(callerAnswer)), member)
		err := answering(t, 200, body).Call(t.Context(), request("POST"), new(callerAnswer))
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown) // it was performed
		service.AssertHidden(t, err, garbageCanary)
	}
}

// TestFieldOption: a value of any type is read without loss, by either package and from an answer.
func TestFieldOption(t *testing.T) {
	t.Parallel()
	const text = `{"options":[{"label":"L","value":12345678901234567890.10,"disabled":true}]}`
	want := payvault.FieldSettings{Options: []payvault.FieldOption{
		{Label: "L", Value: json.Number("12345678901234567890.10"), Disabled: true},
	}}
	for how, unmarshal := range readers() {
		var settings payvault.FieldSettings
		require.NoError(t, unmarshal([]byte(text), &settings), how)
		assert.Equal(t, want, settings, how)
	}
	for _, extra := range []string{"", `"later":[null],`} { // read strictly, and not
		body := `{"code":0,"data":{"fields":[{` + extra + `"key":"a","settings":` + text + `}]}}`
		got, err := within(saveData, 0, "Settings")(t.Context(), answering(t, 200, body))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
