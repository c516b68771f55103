// Package operations holds what every operation sends and gives against the fixtures of testdata, which are written by
// hand.
package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// each runs a test for every operation.
func each(t *testing.T, test func(t *testing.T, o *calls.Operation)) {
	t.Helper()
	for _, o := range calls.Table() {
		t.Run(string(o.Op), func(t *testing.T) {
			t.Parallel()
			test(t, &o)
		})
	}
}

// exchange makes an operation, and gives the request that arrived.
func exchange(
	t *testing.T, o *calls.Operation, request any, answer string, opts ...payvault.Option,
) (service.Seen, any, error) {
	t.Helper()
	server := service.Answer(t, http.StatusOK, answer)
	result, err := o.Do(t.Context(), service.Client(t, server.URL+service.BasePath, opts...), calls.Documented(), request)
	require.Len(t, server.Seen(), 1)
	return server.Seen()[0], result, err
}

// fillers are options that fill fields which a request leaves empty.
func fillers() []payvault.Option {
	return []payvault.Option{payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3")}
}

// TestFull sends every documented field, and reads every one. What fills empty fields changes nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		got, result, err := exchange(t, o, o.Full, o.Answer(), fillers()...)
		require.NoError(t, err)
		assert.Equal(t, o.Want, compacted(result))
		query := ""
		if o.Method == http.MethodGet && o.Full != nil {
			query = "?" + calls.Fixture(o.Fixture("query"))
		}
		assertRequest(t, o, got, query, fixtureOf(o, o.Full, "request.json"))
	})
}

// TestMinimal sends no more than it is given, and reads what services really answer.
func TestMinimal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		opts := fillers()
		if o.Op == payvault.OpTokensTokenize || o.Op == payvault.OpCustomersCreate {
			opts = nil // which they would fill: see TestFilled
		}
		want, answer := o.Want, o.Answer()
		if o.Tolerant != nil {
			want, answer = o.Tolerant, calls.Fixture(o.Fixture("response.tolerant.json"))
		}
		got, result, err := exchange(t, o, o.Minimal, answer, opts...)
		require.NoError(t, err)
		if page, ok := want.(*payvault.Page[payvault.Customer]); ok {
			page.Number = 0 // it did not ask for the second one
		} else if page, ok := want.(*payvault.Page[payvault.Transaction]); ok {
			page.Number = 0
		}
		assert.Equal(t, want, compacted(result))
		assertRequest(t, o, got, "", fixtureOf(o, o.Minimal, "request.min.json"))
	})
}

// fixtureOf is the body of a request; "" if it has none.
func fixtureOf(o *calls.Operation, request any, kind string) string {
	if request == nil || o.Method == http.MethodGet {
		return ""
	}
	return calls.Fixture(o.Fixture(kind))
}

// assertRequest holds a request against the endpoint, the exact headers that it may have, and its JSON.
func assertRequest(t *testing.T, o *calls.Operation, got service.Seen, query, body string) {
	t.Helper()
	assert.Equal(t, o.Method+" "+service.BasePath+calls.Documented().In(o.Path)+query, got.Method+" "+got.Target)
	header := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {service.BasicToken},
		"User-Agent": got.Header["User-Agent"],
	}
	if got.Method == http.MethodPost {
		header.Set("Content-Length", strconv.Itoa(len(got.Body)))
	}
	switch {
	case strings.HasPrefix(got.Header.Get("Content-Type"), "multipart/form-data; boundary="):
		header["Content-Type"] = got.Header["Content-Type"]
		assertForm(t, got, body, "evidence.pdf", []byte(calls.Fixture("disputes/evidence.pdf")))
	case body == "":
		assert.Empty(t, got.Body)
	default:
		header.Set("Content-Type", "application/json")
		assert.JSONEq(t, body, string(got.Body))
	}
	assert.Equal(t, header, got.Header)
	assert.False(t, got.Chunked)
	assert.Regexp(t, `^payvault-go/\d+\.\d+\.\d+ \(go.*\)$`, got.Header.Get("User-Agent"))
}

// compacted takes the white space out of what stays JSON in a result.
func compacted(result any) any {
	if created, ok := result.(*payvault.ApplicationCreated); ok {
		var plan bytes.Buffer
		_ = json.Compact(&plan, created.Pricing.Plan)
		created.Pricing.Plan = plan.Bytes()
	}
	return result
}

// TestWireForms: requests and results write themselves as the interface has them, and read that with either JSON
// package.
func TestWireForms(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		for kind, request := range map[string]any{"request.json": o.Full, "request.min.json": o.Minimal} {
			if text := fixtureOf(o, request, kind); text != "" {
				if _, cards := request.([]payvault.AccountUpdaterCard); cards || o.Op == payvault.OpApplicationsSaveData {
					text = at(t, text, "/data")
				}
				assertWire(t, withoutFile(request), text)
			}
		}
		if o.Result != "-" {
			wire, err := payvault.MarshalWire(o.Want)
			require.NoError(t, err)
			want := at(t, o.Answer(), o.Result)
			if strings.Contains(string(wire), `"totalPages"`) { // a page is more than its records
				want = `{"totalPages":3,"totalRecords":52,"data":` + want + `}`
			}
			assert.JSONEq(t, withoutFalse(t, want), withoutFalse(t, string(wire)))
			assertBack(t, withoutNumber(o.Want), wire)
		}
	})
}

// withoutFile is a request without what is a part of its own on the wire.
func withoutFile(request any) any {
	if response, ok := request.(*payvault.DisputeResponse); ok {
		response.Evidence = nil
	}
	return request
}

// withoutNumber is a result without what is not on the wire.
func withoutNumber(result any) any {
	switch page := result.(type) {
	case *payvault.Page[payvault.Customer]:
		page.Number = 0
	case *payvault.Page[payvault.Transaction]:
		page.Number = 0
	}
	return result
}

// assertWire checks that a value has the given wire form, and comes back from it unchanged with either JSON package.
func assertWire(t *testing.T, value any, wire string) {
	t.Helper()
	text, err := payvault.MarshalWire(value)
	require.NoError(t, err)
	assert.JSONEq(t, wire, string(text))
	assertBack(t, value, text)
}

func assertBack(t *testing.T, value any, wire []byte) {
	t.Helper()
	for _, unmarshal := range []func([]byte, any) error{
		json.Unmarshal, func(text []byte, v any) error { return jsonv2.Unmarshal(text, v) },
	} {
		back := reflect.New(reflect.TypeOf(value))
		require.NoError(t, unmarshal(wire, back.Interface()))
		assert.Equal(t, value, back.Elem().Interface())
	}
}

// at is the part of a JSON text that a pointer names.
func at(t *testing.T, text, pointer string) string {
	t.Helper()
	for member := range strings.SplitSeq(pointer, "/") {
		if member != "" {
			var object map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(text), &object))
			text = string(object[member])
		}
	}
	return text
}

// withoutFalse drops members that are false, which may be left out.
func withoutFalse(t *testing.T, text string) string {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	var drop func(any)
	drop = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, v := range value {
				drop(v)
			}
		case map[string]any:
			maps.DeleteFunc(value, func(_ string, v any) bool { return v == false })
			for _, v := range value {
				drop(v)
			}
		}
	}
	drop(value)
	without, err := json.Marshal(value)
	require.NoError(t, err)
	return string(without)
}

// TestRejected reads the documented refusal.
func TestRejected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		refused := payvault.Error{
			Op: o.Op, StatusCode: http.StatusOK, Code: "12", Message: "Example platform refusal with a detail",
			Detail: "Example detail in data.message", Delivery: payvault.Answered, Attempts: 1,
		}
		answer := "errors/platform_detail.json"
		if o.Op == payvault.OpTokensTokenize {
			refused.Code, refused.Message, refused.Detail = "902", "Example tokenize refusal", ""
			answer = "errors/rcode.json"
		}
		_, result, err := exchange(t, o, o.Full, calls.Fixture(answer))
		service.AssertError(t, err, refused, payvault.ErrRejected)
		assert.False(t, payvault.SafeToRetry(err))
		assert.Nil(t, result)
	})
}

// TestValidationFails reads code 2 with its fields, which is no failure only of the operation that asks for them.
func TestValidationFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		_, result, err := exchange(t, o, o.Full, calls.Fixture("errors/validation_fields.json"))
		if validation, ok := result.(*payvault.Validation); ok {
			require.NoError(t, err)
			assert.False(t, validation.OK())
			return
		}
		assert.Nil(t, result)
		want := []error{payvault.ErrRejected, payvault.ErrValidation}
		if o.Op == payvault.OpTokensTokenize {
			want = want[:1] // an rcode has no such meaning
		}
		service.AssertMatches(t, err, want...)
		e := service.AsError(t, err)
		assert.Equal(t, "Request validation failed", e.Message)
		assert.Equal(t, service.Fields{
			"legal_name": {"Example text: legal_name is required"},
			"business_email": {
				"Example text: business_email is required",
				"Example text: business_email is not an email address",
			},
			"tax_id": {"Example text: tax_id is not valid"},
		}, e.Fields)
		assert.Contains(t, err.Error(), "tax_id Example text: tax_id is not valid")
	})
}

// TestResultOfAnotherShape: the result stands where the table says, and an error names the place. A result without an
// ID is no reason to call an operation that was performed a failure.
func TestResultOfAnotherShape(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		if !strings.HasPrefix(o.Result, "/") {
			return // it has none, or is the whole answer
		}
		odd := "17"
		for _, member := range slices.Backward(strings.Split(o.Result, "/")[1:]) {
			odd = `{"` + member + `":` + odd + `}`
		}
		var response payvault.Response
		client := service.Client(t, service.Nowhere, service.Over(service.Canned(http.StatusOK, `{"code":0,`+odd[1:])))
		_, err := o.Do(t.Context(), client, calls.Documented(), o.Full, payvault.WithResponse(&response))
		switch o.Op {
		case payvault.OpSubscriptionsCancel, payvault.OpWebhooksAddEvent, payvault.OpApplicationsSaveData:
			require.NoError(t, err)
			assert.Equal(t, []string{o.Result}, response.Unread)
		default:
			require.ErrorIs(t, err, payvault.ErrMalformedResponse)
			assert.Regexp(t, o.Result+"(/.*)? (is missing|cannot be read)", err.Error())
		}
	})
}

// TestForMerchant: the merchant stands in the request, whether or not it names the same; another one is refused.
func TestForMerchant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		if !o.Merchant {
			client := service.Client(t, service.Nowhere).ForMerchant(calls.ActingFor)
			result, err := o.Do(t.Context(), client, calls.Documented(), o.Full)
			service.AssertError(t, err, payvault.Error{Op: o.Op, Delivery: payvault.NotSent}, payvault.ErrMerchantNotSupported)
			assert.False(t, payvault.SafeToRetry(err))
			assert.Nil(t, result)
			return
		}
		for _, named := range []payvault.MerchantID{0, calls.ActingFor, calls.ThirdParty} {
			request := o.Minimal
			if o.Method == http.MethodGet && named != 0 {
				request = &payvault.ListOptions{}
			}
			named = name(request, named)
			server := service.Answer(t, http.StatusOK, o.Answer())
			client := service.Client(t, server.URL+service.BasePath, payvault.WithMerchantID(1)).ForMerchant(calls.ActingFor)
			result, err := o.Do(t.Context(), client, calls.Documented(), request)
			if named == calls.ThirdParty {
				service.AssertInvalid(t, err, o.Op, service.Fields{"merchant_id": {calls.ThirdNamed}})
				assert.Nil(t, result)
				assert.Empty(t, server.Seen())
				continue
			}
			require.NoError(t, err)
			assertMerchant(t, o, server.Seen()[0], request)
		}
	})
}

// name puts a merchant into a request, if it has a place for one.
func name(request any, merchant payvault.MerchantID) payvault.MerchantID {
	if request == nil {
		return 0
	}
	reflect.ValueOf(request).Elem().FieldByName("MerchantID").Set(reflect.ValueOf(merchant))
	return merchant
}

func assertMerchant(t *testing.T, o *calls.Operation, got service.Seen, request any) {
	t.Helper()
	if o.Method != http.MethodPost {
		query := "?merchant_id=212346"
		if request != nil {
			query += "&page=0"
		}
		assertRequest(t, o, got, query, "")
		return
	}
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(calls.Fixture(o.Fixture("request.min.json"))), &body))
	if body["merchant_id"] = 212346; o.Op == payvault.OpTokensTokenize {
		body["merchant_id"] = "212346"
	}
	text, err := json.Marshal(body)
	require.NoError(t, err)
	assertRequest(t, o, got, "", string(text))
}

// TestFilled: options of the client fill fields that a request leaves empty, where an operation has them.
func TestFilled(t *testing.T) {
	t.Parallel()
	tokens, customers := &calls.Table()[0], &calls.Table()[1]
	customer := func(developer string) *payvault.CustomerCreateRequest {
		return &payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm", DeveloperID: developer}
	}
	for _, test := range []struct {
		operation *calls.Operation
		request   any
		body      string
	}{
		{tokens, &payvault.TokenizeRequest{}, `{"merchant_id":"1","vendor_id":2,"developer_id":"3"}`},
		{
			tokens, &payvault.TokenizeRequest{MerchantID: 7, VendorID: 8, DeveloperID: "nine"},
			`{"merchant_id":"7","vendor_id":8,"developer_id":"nine"}`,
		},
		{customers, customer(""), `{"customer_id":"C1","customer_firm_name":"Firm","developer_id":"3"}`},
		{customers, customer("own"), `{"customer_id":"C1","customer_firm_name":"Firm","developer_id":"own"}`},
	} {
		got, _, err := exchange(t, test.operation, test.request, test.operation.Answer(), fillers()...)
		require.NoError(t, err)
		assertRequest(t, test.operation, got, "", test.body)
	}
}

// TestRequestsStayAsTheyAre: callers share a request, the fields of which are filled, and the options of the call.
func TestRequestsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	all, fresh := calls.All(), calls.All()
	for i := range all {
		c := &all[i]
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			client := service.Client(t, service.Nowhere, append(fillers(), service.Over(service.Canned(200, c.Answer())))...)
			for _, request := range []any{c.Full, fresh[i].Full} {
				v := reflect.Indirect(reflect.ValueOf(request))
				for _, field := range []string{"MerchantID", "VendorID", "DeveloperID"} {
					if v.Kind() == reflect.Struct && v.CanSet() && v.FieldByName(field).IsValid() {
						v.FieldByName(field).SetZero()
					}
				}
			}
			opts := append(make([]payvault.CallOption, 0, 4), payvault.WithHeader("X-Trace", "1"))
			service.Together(func() {
				_, err := c.Do(t.Context(), client, calls.Documented(), c.Full, opts...)
				assert.NoError(t, err)
			})
			assert.Equal(t, fresh[i].Full, c.Full)
			assert.Equal(t, make([]payvault.CallOption, 3), opts[1:4])
		})
	}
}

// TestRefused names every problem of a request at once, and sends nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range calls.All() {
		client := service.Client(t, service.Nowhere)
		if c.Merchant {
			client = client.ForMerchant(calls.ActingFor)
		}
		request := c.Refused
		result, err := c.Do(t.Context(), client, calls.IDs{}, request)
		service.AssertInvalid(t, err, c.Op, c.Problems)
		assert.Nil(t, result)
	}
}

// TestRefusals are problems one by one.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const noID, noName = "is required, or auto_generate_customer_id",
		"is required with customer_last_name, or customer_firm_name"
	type customer = payvault.CustomerCreateRequest
	operations := map[payvault.Operation]*calls.Operation{}
	for _, o := range calls.Table() {
		operations[o.Op] = &o
		if _, bulk := o.Full.([]payvault.AccountUpdaterCard); o.Method == http.MethodPost && o.Full != nil && !bulk &&
			o.Op != payvault.OpInvoicesSend && o.Op != payvault.OpApplicationsSaveData {
			_, err := o.Do(t.Context(), service.Client(t, service.Nowhere), calls.Documented(), nil)
			service.AssertInvalid(t, err, o.Op, service.Fields{"request": {"is nil"}})
		}
	}
	cards := operations[payvault.OpAccountUpdaterSubmit].Minimal.([]payvault.AccountUpdaterCard)
	for _, test := range []struct {
		op      payvault.Operation
		request any
		want    service.Fields
	}{
		{payvault.OpTokensTokenize, &payvault.TokenizeRequest{}, service.Fields{"merchant_id": {calls.Required}}},
		{payvault.OpCustomersCreate, &customer{}, service.Fields{"customer_id": {noID}, "customer_first_name": {noName}}},
		{payvault.OpCustomersCreate, &customer{ID: "C", FirstName: "Carla"}, service.Fields{"customer_first_name": {noName}}},
		{
			payvault.OpCustomersCreate, &customer{ID: "C", LastName: "Customer"},
			service.Fields{"customer_first_name": {noName}},
		},
		{payvault.OpCustomersCreate, &customer{FirmName: "Firm"}, service.Fields{"customer_id": {noID}}},
		{
			payvault.OpPayeesCreate, &payvault.PayeeCreateRequest{Name: "N", MerchantID: -7},
			service.Fields{"merchant_id": {"is negative"}},
		},
		{
			payvault.OpApplicationsCreate, &payvault.ApplicationCreateRequest{SalesRep: 1},
			service.Fields{"channel_id": {calls.Required}},
		},
		{
			payvault.OpApplicationsCreate, &payvault.ApplicationCreateRequest{ChannelID: 1},
			service.Fields{"sales_rep": {calls.Required}},
		},
		{payvault.OpAccountUpdaterSubmit, nil, service.Fields{"data": {"has 0 cards; 1 to 100 are allowed"}}},
		{
			payvault.OpAccountUpdaterSubmit, slices.Repeat(cards, 101),
			service.Fields{"data": {"has 101 cards; 1 to 100 are allowed"}},
		},
	} {
		o := operations[test.op]
		result, err := o.Do(t.Context(), service.Client(t, service.Nowhere), calls.Documented(), test.request)
		service.AssertInvalid(t, err, o.Op, test.want)
		assert.Nil(t, result)
	}
	for _, id := range []payvault.MerchantID{0, -1} {
		err := service.Client(t, service.Nowhere).ForMerchant(id).Payees.Delete(t.Context(), 1)
		service.AssertInvalid(t, err, payvault.OpPayeesDelete,
			service.Fields{"merchant_id": {"of ForMerchant is not positive"}})
	}
	got, _, err := exchange(t, operations[payvault.OpAccountUpdaterSubmit], slices.Repeat(cards, 100),
		`{"code":0,"data":{"request_id":"R"}}`)
	require.NoError(t, err, "100 cards may be sent")
	card := `,{"card_number":"4111111111111111","exp_date":"1229"}`
	assert.JSONEq(t, `{"data":[`+strings.Repeat(card, 100)[1:]+`]}`, string(got.Body))
}

// TestSmallAnswers are successes with no more than they have to have.
func TestSmallAnswers(t *testing.T) {
	t.Parallel()
	results := map[payvault.Operation][]any{ // answer and result, by turns
		payvault.OpTokensTokenize: {
			`{"rcode":"000","card_id":"C1"}`,
			&payvault.TokenizeResponse{RCode: "000", CardID: "C1"},
		},
		payvault.OpCustomersCreate: {`{"code":0,"data":{"customer_id":"C1"}}`, &payvault.Customer{ID: "C1"}},
		payvault.OpCustomersList: {
			`{"code":0,"data":null}`, &payvault.Page[payvault.Customer]{Number: 2},
			`{"code":0,"totalPages":0,"totalRecords":0,"data":[]}`,
			&payvault.Page[payvault.Customer]{Number: 2, Items: []payvault.Customer{}},
		},
		payvault.OpPayeesCreate: {`{"code":0,"data":{"payee_id":1}}`, &payvault.Payee{ID: 1}},
		payvault.OpApplicationsCreate: {
			`{"code":0,"data":{"app":{"app_id":1,"merchant_id":2},"pricing":{"plan":null}}}`,
			&payvault.ApplicationCreated{
				App: payvault.Application{ID: 1, MerchantID: 2}, Pricing: payvault.Pricing{Plan: json.RawMessage(`null`)},
			},
		},
		payvault.OpSubscriptionsTransactions: {`{"code":0,"data":null}`, &payvault.Page[payvault.Transaction]{Number: 2}},
		payvault.OpSubscriptionsCancel:       {`{"code":0,"data":{}}`, &payvault.Confirmation{}},
		payvault.OpWebhooksAddEvent:          {`{"code":0,"message":"Success","data":{}}`, &payvault.Confirmation{}},
	}
	each(t, func(t *testing.T, o *calls.Operation) {
		t.Helper()
		for test := range slices.Chunk(results[o.Op], 2) {
			_, result, err := exchange(t, o, o.Full, test[0].(string))
			require.NoError(t, err)
			assert.Equal(t, test[1], result)
		}
	})
}

// TestNegativeIDs: an ID that is a number is positive.
func TestNegativeIDs(t *testing.T) {
	t.Parallel()
	for _, o := range calls.Table() {
		for _, id := range []int64{-1, math.MinInt64} {
			ids := calls.IDs{
				Payee: payvault.PayeeID(id), Application: payvault.ApplicationID(id), Dispute: payvault.DisputeID(id),
				Subscription: payvault.SubscriptionID(id), Invoice: "I", Webhook: "W", Event: "E",
			}
			if !strings.Contains(ids.In(o.Path), strconv.FormatInt(id, 10)) {
				continue // it has no such ID
			}
			_, err := o.Do(t.Context(), service.Client(t, service.Nowhere), ids, o.Full)
			require.ErrorIs(t, err, payvault.ErrInvalidRequest)
			assert.Equal(t, "is negative", strings.Join(firstOf(service.AsError(t, err).Fields), ""))
		}
	}
}

func firstOf(fields service.Fields) []string {
	for _, problems := range fields {
		return problems
	}
	return nil
}

// TestHostileIDs: whatever a text is, it stays one segment of the path, or is refused.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"../droplets?tag=prod": "..%2Fdroplets%3Ftag=prod", "x?y=1": "x%3Fy=1", "a/b": "a%2Fb", "a#b": "a%23b",
		"a%2Fb":  "a%252Fb",
		"%2e%2e": "%252e%252e", "a b": "a%20b", "a\r\nX: y": "a%0D%0AX:%20y", "größe": "gr%C3%B6%C3%9Fe", "\xff": "%FF",
		"...": "...", "a;b": "a%3Bb", `..\..`: "..%5C..", "http://other": "http:%2F%2Fother", "\x00": "%00",
	} {
		server := service.Answer(t, http.StatusOK, `{"code":0,"data":{}}`)
		client := service.Client(t, server.URL+service.BasePath)
		require.NoError(t, client.Invoices.Send(t.Context(), payvault.InvoiceID(id), nil))
		_, err := client.Webhooks.AddEvent(t.Context(), payvault.WebhookID(id), payvault.Event(id))
		require.NoError(t, err)
		require.NoError(t, client.Call(t.Context(), payvault.Request{Method: "PUT", Path: []string{"x", id}}, nil))
		var targets []string
		for _, r := range server.Seen() {
			targets = append(targets, strings.TrimPrefix(r.Target, service.BasePath))
			assert.Empty(t, r.Header.Get("X"))
		}
		assert.Equal(t, []string{
			"/platform/invoice/" + want + "/send", "/platform/webhook/" + want + "/event/" + want,
			"/x/" + want,
		}, targets)
	}
	client := service.Client(t, service.Nowhere)
	problem := []string{calls.BadSegment}
	for _, id := range []string{"", ".", ".."} {
		service.AssertInvalid(t, client.Invoices.Send(t.Context(), payvault.InvoiceID(id), nil), payvault.OpInvoicesSend,
			service.Fields{"invoice_id": problem})
		_, err := client.Webhooks.AddEvent(t.Context(), payvault.WebhookID(id), payvault.Event(id))
		service.AssertInvalid(t, err, payvault.OpWebhooksAddEvent, service.Fields{"webhook_id": problem, "event": problem})
		err = client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x", id}}, nil)
		service.AssertInvalid(t, err, payvault.OpCall, service.Fields{"path[1]": problem})
	}
}

// TestClientThatIsNone: calls of a client that NewClient did not make fail, and never panic.
func TestClientThatIsNone(t *testing.T) {
	t.Parallel()
	want := service.Fields{"client": {"was not made by NewClient"}}
	for _, client := range []*payvault.Client{
		(*payvault.Client)(nil).ForMerchant(1),
		new(payvault.Client).ForMerchant(1),
		{},
	} {
		for _, c := range calls.All() {
			_, err := c.Do(t.Context(), client, calls.Documented(), c.Full)
			service.AssertInvalid(t, err, c.Op, want)
		}
		service.AssertInvalid(t, client.Call(t.Context(), payvault.Request{Method: "GET", Path: []string{"x"}}, nil),
			payvault.OpCall, want)
		client.CloseIdleConnections()
		assert.Equal(t, "not made by NewClient", client.LogValue().String())
	}
	(*payvault.Client)(nil).CloseIdleConnections()
}

// TestNilContext: there is no context to start from.
func TestNilContext(t *testing.T) {
	t.Parallel()
	for _, c := range calls.All() {
		_, err := c.Do(nil, service.Client(t, service.Nowhere), calls.Documented(), c.Full) //nolint:staticcheck // the point
		service.AssertInvalid(t, err, c.Op, service.Fields{"context": {"is nil"}})
	}
}

var errShutdown = errors.New("the program shuts down")

// TestEndedContext: nothing is sent, and the cause stays visible.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	for _, c := range calls.All() {
		result, err := c.Do(ctx, service.Client(t, service.Nowhere), calls.Documented(), c.Full)
		assert.Nil(t, result)
		service.AssertError(t, err, payvault.Error{Op: c.Op, Delivery: payvault.NotSent})
		require.ErrorIs(t, err, errShutdown)
		assert.True(t, payvault.SafeToRetry(err))
	}
}
