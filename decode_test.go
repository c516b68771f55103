package payvault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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

// readResult is a result with the call that reads it. The body is made around the JSON of its record.
type readResult struct {
	name   string
	record any    // a zero value of the type whose fields are documented
	body   string // with %s for the record
	at     string // JSON pointer to the record
	needed string // of the record: the member without which there is no result, and its value
	write  bool   // asking again is not free
	call   func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error)
}

func readResults() []readResult {
	type ctx = context.Context
	return []readResult{
		{
			"tokenize",
			payvault.TokenizeResponse{},
			`%s`, "", `"rcode":"000","card_id":"CARD1"`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{MerchantID: 1}, opts...)
				return valueOf(r), err
			},
		},
		{
			"created customer",
			payvault.Customer{},
			`{"code":0,"data":%s}`, "/data", `"customer_id":"C1"`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm"}, opts...)
				return valueOf(r), err
			},
		},
		{
			"listed customer",
			payvault.Customer{},
			`{"code":0,"data":[%s]}`, "/data/0", `"x":1`, false,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				p, err := c.Customers.List(ctx, nil, opts...)
				return firstItem(p), err
			},
		},
		{
			"page",
			payvault.Page[payvault.Customer]{},
			`%s`, "", `"code":0,"data":[]`, false,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				p, err := c.Customers.List(ctx, nil, opts...)
				return valueOf(p), err
			},
		},
		{
			"payee",
			payvault.Payee{},
			`{"code":0,"data":%s}`, "/data", `"payee_id":4`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: "Payee"}, opts...)
				return valueOf(r), err
			},
		},
		{
			"application",
			payvault.Application{},
			`{"code":0,"data":{"app":%s}}`, "/data/app", `"app_id":4`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: 1, SalesRep: 2}, opts...)
				if r == nil {
					return nil, err
				}
				return r.App, err
			},
		},
		{
			"pricing",
			payvault.Pricing{},
			`{"code":0,"data":{"app":{"app_id":1},"pricing":%s}}`, "/data/pricing", `"x":1`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: 1, SalesRep: 2}, opts...)
				if r == nil {
					return nil, err
				}
				return r.Pricing, err
			},
		},
		{
			"settings",
			payvault.FieldSettings{},
			`{"code":0,"data":{"fields":[{"key":"a","settings":%s}]}}`,
			"/data/fields/0/settings", `"x":1`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Applications.SaveData(ctx, 1, payvault.ApplicationData{LegalName: "Minimal Legal Name"}, opts...)
				if len(r) == 0 {
					return nil, err
				}
				return r[0].Settings, err
			},
		},
		{
			"ownership",
			payvault.Ownership{},
			`{"code":0,"data":{"fields":[{"key":"ownership","value":%s}]}}`,
			"", `"x":1`, false,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Applications.SaveData(ctx, 1, payvault.ApplicationData{LegalName: "Minimal Legal Name"}, opts...)
				if len(r) == 0 {
					return nil, err
				}
				return r[0].Value, err
			},
		},
		{
			"transaction",
			payvault.Transaction{},
			`{"code":0,"data":[%s]}`, "/data/0", `"x":1`, false,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				p, err := c.Subscriptions.Transactions(ctx, 1, nil, opts...)
				return firstItem(p), err
			},
		},
		{
			"confirmation",
			payvault.Confirmation{},
			`{"code":0,"data":%s}`, "/data", `"x":1`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.Webhooks.AddEvent(ctx, "W1", "E1", opts...)
				return valueOf(r), err
			},
		},
		{
			"account updater",
			payvault.AccountUpdaterRequest{},
			`{"code":0,"data":%s}`, "/data", `"request_id":"R1"`, true,
			func(ctx ctx, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
				r, err := c.AccountUpdater.Submit(ctx,
					[]payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}}, opts...)
				return valueOf(r), err
			},
		},
	}
}

func valueOf[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func firstItem[T any](p *payvault.Page[T]) any {
	if p == nil || len(p.Items) == 0 {
		return nil
	}
	return p.Items[0]
}

// oddity is what a service may send for a value, and what the value then is.
type oddity struct {
	wire string
	want any
}

// oddities of a type of field.
func oddities(of reflect.Type) []oddity {
	day := payvault.Date{Year: 2026, Month: time.January, Day: 15}
	instant := func(text string) payvault.Timestamp {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		return payvault.Timestamp{Time: at}
	}
	if of.Kind() == reflect.Interface { // nothing is documented of it
		return nil
	}
	switch reflect.Zero(of).Interface().(type) {
	case payvault.Amount:
		return []oddity{
			{`12.50`, amount("12.50")},
			{`"12.50"`, amount("12.50")},
			{`1e2`, amount("100")},
			{`"1,234.50"`, amount("1234.50")},
			{`""`, payvault.Amount{}},
		}
	case payvault.Date:
		return []oddity{
			{`"2026-01-15T10:20:30Z"`, day},
			{`"2026-01-15 10:20:30"`, day},
			{`"2026-01-15T10:20:30.123-07"`, day},
			{`"20260115"`, day},
			{`20260115`, day},
			{`"2026-01-15Z"`, day},
			{`"0000-00-00"`, payvault.Date{}},
			{`0`, payvault.Date{}},
			{`""`, payvault.Date{}},
		}
	case payvault.Timestamp:
		return []oddity{
			{`"2026-01-15T10:20:30-07"`, instant("2026-01-15T10:20:30-07:00")},
			{`"2026-01-15T10:20:30.5+0530"`, instant("2026-01-15T10:20:30.5+05:30")},
			{`"2026-01-15 10:20:30+05:30"`, instant("2026-01-15T10:20:30+05:30")},
			{`"2026-01-15t10:20:30z"`, instant("2026-01-15T10:20:30Z")},
			{`"2026-01-15 10:20:30 -07:00"`, instant("2026-01-15T10:20:30-07:00")},
			{`"2026-01-15T10:20Z"`, instant("2026-01-15T10:20:00Z")},
			{`"2026-01-15 10:20:30 UTC"`, instant("2026-01-15T10:20:30Z")},
			{`"2026-01-15T10:20:30 gmt"`, instant("2026-01-15T10:20:30Z")},
			{`"0000-00-00 00:00:00"`, payvault.Timestamp{}},
			{`0`, payvault.Timestamp{}},
			{`""`, payvault.Timestamp{}},
		}
	case payvault.Secret:
		return []oddity{{`16500000000`, payvault.NewSecret("16500000000")}, {`""`, payvault.Secret{}}}
	case json.RawMessage:
		return []oddity{{`[1.0,"x"]`, json.RawMessage(`[1.0,"x"]`)}}
	}
	switch of.Kind() {
	case reflect.String:
		return []oddity{{`16500000000`, "16500000000"}, {`1.50`, "1.50"}, {`true`, "true"}, {`"later value"`, "later value"}}
	case reflect.Bool:
		return []oddity{
			{`"true"`, true},
			{`"Y"`, true},
			{`"yes"`, true},
			{`"1"`, true},
			{`1`, true},
			{`"false"`, false},
			{`"N"`, false},
			{`"no"`, false},
			{`"0"`, false},
			{`0`, false},
			{`""`, false},
		}
	case reflect.Int64, reflect.Int:
		return []oddity{{`"7"`, 7}, {`7.0`, 7}, {`"7.0"`, 7}, {`7e0`, 7}, {`""`, 0}}
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
	if of.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || name == "data" {
			continue
		}
		below := leaf{
			append(slices.Clip(at.names), name), append(slices.Clip(at.index), field.Index), nil,
		}
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

// answered is a client whose service answers with a body.
func answered(t *testing.T, body string, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	rt := service.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	client, err := payvault.NewClient("https://service.test", "key",
		append(opts, payvault.WithHTTPClient(&http.Client{Transport: rt}))...)
	require.NoError(t, err)
	return client
}

// TestReading_oddValues: every documented field of every result takes what services really send for it.
func TestReading_oddValues(t *testing.T) {
	t.Parallel()
	for _, r := range readResults() {
		fields := leaves(reflect.TypeOf(r.record), leaf{})
		require.NotEmpty(t, fields, r.name)
		for _, field := range fields {
			all := oddities(field.of)
			if !field.needed(&r) {
				all = append(all, oddity{`null`, reflect.Zero(field.of).Interface()})
			}
			for _, odd := range all {
				if field.needed(&r) && (odd.wire == `""` || field.names[0] == "rcode") {
					continue
				}
				body := fmt.Sprintf(r.body, field.record(r.needed, odd.wire))
				var response payvault.Response
				result, err := r.call(t.Context(), answered(t, body), payvault.WithResponse(&response))
				if !assert.NoError(t, err, body) || !assert.NotNil(t, result, body) {
					continue
				}
				if got := field.of; got.Kind() == reflect.Slice || odd.want == nil {
					continue
				}
				got := field.in(result)
				if !reflect.TypeOf(odd.want).AssignableTo(field.of) {
					odd.want = reflect.ValueOf(odd.want).Convert(field.of).Interface()
				}
				if at, isTime := got.(payvault.Timestamp); isTime {
					assert.True(t, at.Equal(odd.want.(payvault.Timestamp).Time), "%s: %s", body, at)
					continue
				}
				assert.Equal(t, odd.want, got, body)
				assert.Empty(t, response.Unread, body)
			}
		}
	}
}

// TestReading_unreadable: what cannot be read fails a read with its place, and leaves a write its result.
func TestReading_unreadable(t *testing.T) {
	t.Parallel()
	for _, r := range readResults() {
		if r.name == "ownership" { // a value that does not fit is there as its text
			continue
		}
		for _, field := range leaves(reflect.TypeOf(r.record), leaf{}) {
			odd := `{"a":[1]}`
			if field.of == reflect.TypeFor[json.RawMessage]() || field.of.Kind() == reflect.Interface ||
				field.names[0] == "rcode" {
				continue
			}
			needed := r.needed
			if field.needed(&r) {
				needed = `"rcode":"000"`
			}
			body := fmt.Sprintf(r.body, field.record(needed, odd))
			pointer := r.at + "/" + strings.Join(field.names, "/")
			var response payvault.Response
			var log bytes.Buffer
			client := answered(t, body, payvault.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			result, err := r.call(t.Context(), client, payvault.WithResponse(&response))
			if !r.write {
				require.ErrorIs(t, err, payvault.ErrMalformedResponse, body)
				assert.Contains(t, err.Error(), pointer+" cannot be read", body)
				continue
			}
			if field.needed(&r) {
				require.ErrorIs(t, err, payvault.ErrMalformedResponse, body)
				assert.Contains(t, err.Error(), pointer+" cannot be read as ", body)
				assert.Equal(t, []string{pointer}, response.Unread, body)
				continue
			}
			require.NoError(t, err, body)
			assert.NotNil(t, result, body)
			assert.Equal(t, []string{pointer}, response.Unread, body)
			assert.Contains(t, log.String(), "level=WARN", body)
			assert.Contains(t, log.String(), "unread="+pointer, body)
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
		got, err := answered(t, body).Customers.Create(t.Context(),
			&payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm"})
		if assert.NoError(t, err, body) {
			assert.Equal(t, &payvault.Customer{ID: "C1", FirstName: "Ann"}, got, body)
		}
	}
}

// TestReading_nullRecord: null in a list is no empty record.
func TestReading_nullRecord(t *testing.T) {
	t.Parallel()
	for body, place := range map[string]string{
		`{"code":0,"data":[null]}`:                               "/data/0",
		`{"code":0,"data":[{"customer_id":"a"}, null]}`:          "/data/1",
		`{"code":0,"data":[{"billing_cards":[{},{},null]}]}`:     "/data/0/billing_cards/2",
		`{"code":0,"data":[{"customer_id":"a"},` + "\n\tnull ]}": "/data/1",
	} {
		_, err := answered(t, body).Customers.List(t.Context(), nil)
		require.ErrorIs(t, err, payvault.ErrMalformedResponse, body)
		assert.Contains(t, err.Error(), place+" is null", body)
	}
	_, err := answered(t, `{"code":0,"data":[{"customer_first_name":"a,null"}]}`).Customers.List(t.Context(), nil)
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
		page, err := answered(t, `{"code":0,"data":[`+many+odd+`}`).Customers.List(t.Context(), nil)
		require.NoError(t, err, odd)
		require.Len(t, page.Items, 15_001, odd)
		assert.Equal(t, want, page.Items[15_000].ID, odd)
	}
	_, err := answered(t, `{"code":0,"data":[`+many+`null]}`).Customers.List(t.Context(), nil)
	require.ErrorContains(t, err, "/data/15000 is null")
}

// TestReading_oneOddValue: it does not lose what stands beside it, and what cannot be read is named.
func TestReading_oneOddValue(t *testing.T) {
	t.Parallel()
	payee := func(c *payvault.Client, opt payvault.CallOption) (any, error) {
		r, err := c.Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "Payee"}, opt)
		return valueOf(r), err
	}
	tokenize := func(c *payvault.Client, opt payvault.CallOption) (any, error) {
		r, err := c.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1}, opt)
		return valueOf(r), err
	}
	cancel := func(c *payvault.Client, opt payvault.CallOption) (any, error) {
		r, err := c.Subscriptions.Cancel(t.Context(), 1, &payvault.SubscriptionCancelRequest{CustomerID: "C1"}, opt)
		return valueOf(r), err
	}
	save := func(c *payvault.Client, opt payvault.CallOption) (any, error) {
		r, err := c.Applications.SaveData(t.Context(), 1, payvault.ApplicationData{LegalName: "Legal Name"}, opt)
		return r, err
	}
	list := func(c *payvault.Client, opt payvault.CallOption) (any, error) {
		p, err := c.Customers.List(t.Context(), nil, opt)
		return firstItem(p), err
	}
	call := func(c *payvault.Client, opt payvault.CallOption) (any, error) {
		var out struct{ N int }
		err := c.Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"x"}}, &out, opt)
		return out.N, err
	}
	type perform = func(c *payvault.Client, opt payvault.CallOption) (any, error)
	for _, test := range []struct {
		perform perform
		body    string
		want    any
		unread  []string
	}{
		{payee, `{"code":0,"code":null,"data":{"payee_id":4}}`, payvault.Payee{ID: 4}, nil},
		{payee, `{"code":null,"code":0,"data":{"payee_id":4}}`, payvault.Payee{ID: 4}, nil},
		{tokenize, `{"rcode":0,"card_id":"A"}`, payvault.TokenizeResponse{RCode: "000", CardID: "A"}, nil},
		{tokenize, `{"rcode":"000","code":null,"card_id":"A"}`, payvault.TokenizeResponse{RCode: "000", CardID: "A"}, nil},
		{call, `{"rcode":0,"N":5}`, 5, nil},
		{cancel, `{"code":0,"data":"Canceled"}`, payvault.Confirmation{}, []string{"/data"}},
		{cancel, `{"code":0,"data":[]}`, payvault.Confirmation{}, []string{"/data"}},
		{save, `{"code":0,"data":{"fields":{}}}`, []payvault.SavedField(nil), nil},
		{
			list, `{"code":0,"data":[{"customer_id":"A","billing_cards":{ },"shipping_addresses":""}]}`,
			payvault.Customer{ID: "A"},
			nil,
		},
		{list, `{"code":0,"data":[{"customer_id":"A"}]}` + "\x00\x00", payvault.Customer{ID: "A"}, nil},
		{payee, `{"code":0,"data":{"payee_id":4},"data":{"payee_name":"P"}}`, payvault.Payee{ID: 4, Name: "P"}, nil},
		{payee, `{"code":0,"data":{"payee_id":4},"data":null}`, payvault.Payee{ID: 4}, nil},
		{payee, `{"code":0,"data":{"payee_id":4},"data":"text"}`, payvault.Payee{ID: 4}, []string{"/data"}},
		{payee, `{"code":0,"data":{"payee_id":4,"payee_id":{}}}`, payvault.Payee{ID: 4}, []string{"/data/payee_id"}},
		{list, `{"code":0,"data":[{"customer_id":"A"}],"data":null}`, payvault.Customer{ID: "A"}, nil},
		{list, `{"code":0,"data":[{"customer_id":"A","customer_id":null}]}`, payvault.Customer{ID: "A"}, nil},
		{
			payee, `{"code":0,"data":{"payee_id":4,"payee_account":{"dda_number":"[REDACTED]","tr_number":"1"}}}`,
			payvault.Payee{ID: 4, Account: payvault.PayeeAccount{TRNumber: payvault.NewSecret("1")}},
			[]string{"/data/payee_account/dda_number"},
		},
		{
			payee, `{"code":0,"data":{"payee_id":4,"payee_address":[],"payee_email":["a",{}],"payee_name":"P"}}`,
			payvault.Payee{ID: 4, Email: []string{"a", ""}, Name: "P"},
			[]string{"/data/payee_address", "/data/payee_email/1"},
		},
	} {
		var response payvault.Response
		got, err := test.perform(answered(t, test.body), payvault.WithResponse(&response))
		require.NoError(t, err, test.body)
		assert.Equal(t, test.want, got, test.body)
		assert.Equal(t, test.unread, response.Unread, test.body)
	}
	for _, test := range []struct {
		perform perform
		body    string
	}{
		{payee, `{"code":0,"code":5,"data":{"payee_id":4}}`},
		{payee, `{"code":5,"code":0,"data":{"payee_id":4}}`},
		{payee, `{"code":null,"data":{"payee_id":4}}`},
		{payee, `{"code":0,"data":"text"}`},
		{tokenize, `{"rcode":"0","card_id":"A"}`},
		{tokenize, `{"rcode":null,"card_id":"A"}`},
		{tokenize, `{"rcode":5,"card_id":"A"}`},
		{cancel, `{"code":0}`},
		{cancel, `{"code":0,"data":null}`},
		{list, `{"code":0,"data":{}}`},
		{list, `{"code":0,"data":"","totalRecords":0}`},
		{list, `{"code":0,"data":{"customers":[]}}`},
		{list, `{"code":0,"data":[{"customer_id":"A","billing_cards":{"card_id":"a"}}]}`},
	} {
		_, err := test.perform(answered(t, test.body), nil)
		assert.Error(t, err, test.body)
	}
	for body, reason := range map[string]string{
		`{"code":0,"data":{"payee_id":"P17"}}`: "/data/payee_id cannot be read as PayeeID",
		`{"code":0,"data":"P17"}`:              "/data cannot be read as Payee",
		`{"code":{},"data":{"payee_id":4}}`:    "/code cannot be read as a result code",
	} {
		_, err := payee(answered(t, body), nil)
		assert.ErrorContains(t, err, reason)
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
		saved, err := answered(t, body).Applications.SaveData(t.Context(), 1,
			payvault.ApplicationData{LegalName: "Legal Name"}, payvault.WithResponse(&response))
		require.NoError(t, err)
		require.Len(t, saved, 2)
		assert.Equal(t, payvault.NewSecret(value), saved[0].Value)
		assert.Equal(t, []string{"/data/fields/1/settings/required"}, response.Unread)
	}
}

// TestReading_unreadPlaces: as many as a record of the log can hold are named.
func TestReading_unreadPlaces(t *testing.T) {
	t.Parallel()
	body := `{"code":0,"data":{"payee_id":4,"payee_email":[` + strings.Repeat(`{},`, 30) + `{}]}}`
	var response payvault.Response
	_, err := answered(t, body).Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "Payee"},
		payvault.WithResponse(&response))
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
		`"wait":5`,
		`"quoted":"7"`, `"pointer":{"a":1},"pointer":{"b":2}`, `"pointer":{"a":1},"POINTER":null`,
		`"by_number":{"2":"b","1":"a"}`,
		`"list":[{"a":1},null]`, `"list":[{"a":1},{"a":2}],"list":[{"b":3}]`, `"SNAKE_CASE":"x"`, `"snakecase":"x"`,
		`"time":"2026-01-15T10:20:30Z"`, `"open":{"a":1},"open":{"b":2}`, `"text":"` + "\xff" + `"`, `"number":1.50`,
		`"raw":{"a": 1}`, `"text":null`,
	} {
		body := []byte(`{"code":0,` + member + `}`)
		var want, got callerAnswer
		require.NoError(t, json.Unmarshal(body, &want), member)
		err := answered(t, string(body)).Call(t.Context(),
			payvault.Request{Method: http.MethodGet, Path: []string{"x"}}, &got)
		require.NoError(t, err, member)
		assert.Equal(t, want, got, member)
	}
	for _, member := range []string{
		`"text":5`, `"wait":"5s"`, `"array":{}`, `"list":[1]`, `"time":"yesterday"`,
		`"quoted":7.5`,
	} {
		var out callerAnswer
		body := `{"code":0,` + member + `}`
		require.Error(t, json.Unmarshal([]byte(body), new(callerAnswer)), member)
		err := answered(t, body).Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"x"}}, &out)
		require.ErrorIs(t, err, payvault.ErrMalformedResponse, member)
	}
}

// TestFieldOption: a value of any type is read without loss, by either package and from an answer.
func TestFieldOption(t *testing.T) {
	t.Parallel()
	const text = `{"label":"L","value":12345678901234567890.10,"disabled":true}`
	want := payvault.FieldOption{Label: "L", Value: json.Number("12345678901234567890.10"), Disabled: true}
	for how, unmarshal := range readers() {
		var option payvault.FieldOption
		require.NoError(t, unmarshal([]byte(text), &option), how)
		assert.Equal(t, want, option, how)
		var settings payvault.FieldSettings
		require.NoError(t, unmarshal([]byte(`{"options":[`+text+`]}`), &settings), how)
		assert.Equal(t, []payvault.FieldOption{want}, settings.Options, how)
	}
	for _, extra := range []string{"", `"later":[null],`} { // read strictly, and not
		body := `{"code":0,"data":{"fields":[{` + extra + `"key":"a","settings":{"options":[` + text + `]}}]}}`
		saved, err := answered(t, body).Applications.SaveData(t.Context(), 1,
			payvault.ApplicationData{LegalName: "Legal Name"})
		require.NoError(t, err)
		require.Len(t, saved, 1)
		assert.Equal(t, []payvault.FieldOption{want}, saved[0].Settings.Options)
	}
}

// TestReading_bothCodes: an answer that says success and failure says nothing.
func TestReading_bothCodes(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"code":0,"rcode":"051","data":{"payee_id":1}}`, `{"code":5,"rcode":"000","card_id":"CARD1","data":{"payee_id":1}}`,
	} {
		client := answered(t, body)
		_, err := client.Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "Payee"})
		require.Error(t, err, body)
		_, err = client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1})
		require.Error(t, err, body)
		err = client.Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"x"}}, nil)
		require.Error(t, err, body)
		err = client.Payees.Delete(t.Context(), 5)
		require.Error(t, err, body)
	}
}
