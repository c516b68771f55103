package payvault_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// eachValue calls visit for every value of a JSON document. It passes the value's place and put, which replaces the
// value.
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

// anything matches the places that these tests leave out: values of any type, values that a success does not read, most
// saved fields, and records that must be present.
var anything = regexp.MustCompile(`^/(code|rcode|message)$|/(plan|relatedBusinesses)(/|$)|fields/\d+/value(/|$)|` +
	`^(/data)?(/app|/fields)?(/\d+)?$|^/data/fields/([1-57-9]|\d\d)`)

// element matches the places of list elements.
var element = regexp.MustCompile(`/\d+$`)

// needed matches the places of the IDs without which an answer has no result. The customer ID of a transaction is not
// needed.
var needed = regexp.MustCompile(`^(customers.list /data/\d+|customers.create /data)/customer_id$|` +
	`^[\w.]+ /data/((app/app|payee|request)_id)$`)

// informs matches the places whose absence is only reported. The caller can go on without these values.
var informs = regexp.MustCompile(`^/card_id$|^/data/fields/\d+/key$`)

// reading is the result of one answer in which one value has another form.
type reading struct {
	op          payvault.Operation
	isRead      bool // whether the call is a read; a read may fail, since it can be repeated without harm
	place, form string
	want, got   string // wire forms of the result: for the documented answer, and for this answer
	err         error
	unread      []string
	log         string
}

func (r reading) isNeeded() bool { return needed.MatchString(string(r.op) + " " + r.place) }

// eachAnswer makes every call once for each value of its documented answer and each form that forms returns for that
// value. It passes the result to check.
func eachAnswer(t *testing.T, forms func(value any) []string, check func(r reading)) {
	t.Helper()
	for _, o := range calls.Table() {
		body, log := o.Answer(), bytes.Buffer{}
		client := service.Client(t, service.Nowhere, payvault.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
				return service.Reply(http.StatusOK, body), nil
			})))
		do := func(response *payvault.Response) (string, error) {
			log.Reset()
			result, err := o.Do(t.Context(), client, calls.Documented(), o.Full, payvault.WithResponse(response))
			if err != nil {
				return "", err
			}
			wire, err := payvault.MarshalWire(result)
			require.NoError(t, err)
			return string(wire), nil
		}
		want, err := do(nil)
		require.NoError(t, err)
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		var answer any
		require.NoError(t, decoder.Decode(&answer))
		eachValue("", answer, nil, func(place string, value any, put func(any)) {
			_, isRecord := value.(map[string]any)
			// an element of a list must be a record, so the empty forms do not apply
			isElement := isRecord && element.MatchString(place)
			if o.Result == "-" || anything.MatchString(place) || isElement {
				return
			}
			for _, form := range forms(value) {
				put(json.RawMessage(form))
				text, err := json.Marshal(answer)
				require.NoError(t, err)
				put(value)
				body = string(text)
				var response payvault.Response
				got, err := do(&response)
				check(reading{o.Op, o.Replay == payvault.ReplayRead, place, form, want, got, err, response.Unread, log.String()})
			}
		})
	}
}

// odd returns the other forms in which real services send this value.
func odd(value any) []string {
	switch value := value.(type) {
	case json.Number:
		quoted := `"` + value.String() + `"`
		if strings.Contains(value.String(), ".") {
			return []string{quoted}
		}
		return []string{quoted, value.String() + ".0", value.String() + "e0", `"` + value.String() + `.0"`}
	case bool:
		if value {
			return []string{`"true"`, `"TRUE"`, `"Y"`, `"yes"`, `"1"`, `1`}
		}
		return []string{`"false"`, `"N"`, `"no"`, `"0"`, `0`, `""`, `null`}
	case string:
		if _, err := time.Parse(time.DateOnly, value); err == nil {
			return []string{`"` + value + `T10:20:30Z"`, strings.ReplaceAll(value, "-", "")}
		}
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			return []string{`"` + strings.Replace(value, "T", " ", 1) + `"`}
		}
	}
	return nil
}

// TestReading_oddValues checks that every value of every answer is read in each of its other forms.
func TestReading_oddValues(t *testing.T) {
	t.Parallel()
	eachAnswer(t, odd, func(r reading) {
		require.NoError(t, r.err, "%s %s", r.place, r.form)
		notPrimary := strings.NewReplacer(`,"primary":false`, "") // a missing flag means the same as false
		assert.JSONEq(t, notPrimary.Replace(r.want), notPrimary.Replace(r.got), "%s %s", r.place, r.form)
		assert.Empty(t, r.unread, "%s %s", r.place, r.form)
	})
}

// TestReading_oddTexts checks that a text may be sent as a number or a truth value, which is kept as text. It also
// checks that any value may be sent in one of the empty forms that PHP writes.
func TestReading_oddTexts(t *testing.T) {
	t.Parallel()
	texts := func(value any) []string {
		if text, ok := value.(string); ok && odd(text) == nil {
			return []string{`16500000000.10`, `true`, `false`, `null`, `{}`, `[ ]`}
		}
		return []string{`""`, `null`, `false`, `{ }`, `[]`}
	}
	eachAnswer(t, texts, func(r reading) {
		isNone := r.form != `true` && r.form != `16500000000.10`
		switch isSecret := strings.Contains(r.place, "/payee_account/"); {
		case isSecret && r.form == `true`: // no truth value: this place has a record
		case isNone && informs.MatchString(r.place):
			require.NoError(t, r.err)
			assert.Equal(t, []string{r.place}, r.unread)
		case isNone && r.isNeeded():
			require.ErrorContains(t, r.err, r.place+" is missing", "%s: its missing method", r.form)
		default:
			require.NoError(t, r.err, "%s %s; if its missing method is right, add the place to needed", r.place, r.form)
			text := `"` + r.form + `"`
			assert.Equal(t, !isNone, strings.Count(r.got, text) > strings.Count(r.want, text), "%s %s", r.place, r.form)
			assert.Empty(t, r.unread, "%s %s", r.place, r.form)
		}
	})
}

// TestReading_unreadable checks that an unreadable value fails a read, and that a write keeps its result and reports
// the place.
func TestReading_unreadable(t *testing.T) {
	t.Parallel()
	unreadable := func(value any) []string {
		switch value.(type) {
		case map[string]any, []any: // their members and elements are visited on their own
			return nil
		}
		if _, text := value.(string); text && odd(value) == nil {
			return []string{`{"` + garbageCanary + `":[1]}`}
		}
		return []string{`{"` + garbageCanary + `":[1]}`, `"` + garbageCanary + `"`}
	}
	eachAnswer(t, unreadable, func(r reading) {
		if r.isRead || r.isNeeded() {
			require.ErrorIs(t, r.err, payvault.ErrMalformedResponse, r.place)
			assert.Contains(t, r.err.Error(), r.place)
			assert.Contains(t, r.err.Error(), "cannot be read")
			service.AssertHidden(t, r.err, garbageCanary)
		} else {
			require.NoError(t, r.err, "%s; if its missing method is right, add the place to needed", r.place)
			assert.Contains(t, r.log, "level=WARN", r.place)
			assert.Contains(t, r.log, "unread="+r.place)
		}
		if !r.isRead {
			assert.Equal(t, []string{r.place}, r.unread)
		}
	})
}

// TestReading_largePage checks that a page of 15,001 records is read in the same way as a small one.
func TestReading_largePage(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"customer_id":"C1"},`, 15_000)
	for odd, want := range map[string]string{
		`{"customer_id":"C2","comments":"a null"}]`: "C2",
		`{"customer_id":"C2","customer_id":"C3"}]`:  "C3",
		`{"customer_id":17}]`:                       "17",
	} {
		page, err := answering(t, 200, `{"code":0,"data":[`+many+odd+`}`).Customers.List(t.Context(), nil)
		require.NoError(t, err, odd)
		require.Len(t, page.Items, 15_001, odd)
		assert.Equal(t, want, page.Items[15_000].ID, odd)
	}
	_, err := answering(t, 200, `{"code":0,"data":[`+many+`null]}`).Customers.List(t.Context(), nil)
	require.ErrorContains(t, err, "/data/15000")
}

// The names of some calls in package calls.
const (
	tokenizeNew     = "tokens.tokenize without a CardID"
	allCustomers    = "customers.list by Customers.All"
	allTransactions = "subscriptions.transactions by Subscriptions.AllTransactions"
)

// callNamed returns the call of this name, or a Client.Call that reads the member N.
func callNamed(t *testing.T, name string) call {
	t.Helper()
	if name != "Client.Call" {
		return named(t, name)
	}
	return func(c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		var out struct{ N int }
		err := c.Call(t.Context(), request("GET"), &out, opts...)
		return out.N, err
	}
}

// readAnswer is an answer, and the result that the client reads from it.
type readAnswer struct {
	call, body string
	want       any
	unread     []string // the content of Response.Unread
}

func assertRead(t *testing.T, answers []readAnswer) {
	t.Helper()
	for _, test := range answers {
		var response payvault.Response
		got, err := callNamed(t, test.call)(answering(t, 200, test.body), payvault.WithResponse(&response))
		require.NoError(t, err, test.body)
		assert.Equal(t, test.want, got, test.body)
		assert.Equal(t, test.unread, response.Unread, test.body)
	}
}

// failedAnswer is an answer that is an error, and a part of the error's text.
type failedAnswer struct{ call, body, reason string }

func assertFails(t *testing.T, answers []failedAnswer) {
	t.Helper()
	for _, test := range answers {
		_, err := callNamed(t, test.call)(answering(t, 200, test.body))
		assert.ErrorContains(t, err, test.reason, test.body)
	}
}

// savedField returns a field as SaveData returns it.
func savedField(key, value string) payvault.SavedField {
	return payvault.SavedField{Key: key, Value: payvault.NewSecret(value)}
}

// TestReading_resultCodes checks that the documented code decides, in each form that services send. The other code must
// not contradict it.
func TestReading_resultCodes(t *testing.T) {
	t.Parallel()
	tokenized := &payvault.TokenizeResponse{RCode: "000", CardID: "A"}
	assertRead(t, []readAnswer{
		{"payees.create", `{"code":0,"code":null,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{"payees.create", `{"code":null,"code":0,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{tokenizeNew, `{"rcode":0,"card_id":"A"}`, tokenized, nil},
		{tokenizeNew, `{"rcode":"000","code":null,"card_id":"A"}`, tokenized, nil},
		{"Client.Call", `{"rcode":0,"N":5}`, 5, nil},
		{tokenizeNew, `{"rcode":0.0,"card_id":"A"}`, tokenized, nil},
		{"payees.create", `{"code":0,"rcode":"0","data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{"payees.create", `{"code":"0","rcode":"Approved","data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{"payees.create", `{"code":0,"rcode":{},"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{"payees.create", `{"code":0,"rcode":{"a":1},"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, []string{"/rcode"}},
		{"payees.create", `{"rcode":true,"code":0,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, []string{"/rcode"}},
		{tokenizeNew, `{"rcode":"000","card_id":"A","code":"OK"}`, tokenized, nil},
		{"payees.create", `{"code":0,"rcode":"000 Approved","data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{tokenizeNew, `{"rcode":"000","card_id":"A","code":false}`, tokenized, nil},
		{"Client.Call", `{"code":0,"rcode":true,"N":5}`, 5, []string{"/rcode"}},
		{"Client.Call", `{"code":[],"rcode":"000","N":5}`, 5, nil},
		{"payees.create", `{"code":0.0,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{allCustomers, `{"code":0,"rcode":{},"data":[{"customer_id":"A"}]}`, &payvault.Customer{ID: "A"}, nil},
	})
	assertFails(t, []failedAnswer{
		{"payees.create", `{"code":0,"code":5,"data":{"payee_id":4}}`, ": code 5"},
		{"payees.create", `{"code":5,"code":0,"data":{"payee_id":4}}`, ": code 5"},
		{"payees.create", `{"code":{},"data":{"payee_id":4}}`, "no result code"},
		{"payees.create", `{"code":["5"],"data":{"payee_id":4}}`, "no result code"},
		{"payees.create", `{"code":0,"rcode":"051","data":{"payee_id":1}}`, "both success and failure"},
		{"payees.create", `{"code":0,"rcode":"E51","data":{"payee_id":1}}`, "both success and failure"},
		{"payees.create", `{"code":5,"rcode":["051"],"data":{"payee_id":1}}`, ": code 5"},
		{"customers.list", `{"code":0,"rcode":{"code":51},"data":[]}`, "/rcode cannot be read"},
		{tokenizeNew, `{"rcode":"000","code":"05A","card_id":"A"}`, "both success and failure"},
		{"payees.create", `{"code":5,"rcode":"000","data":{"payee_id":1}}`, "both success and failure"},
		{tokenizeNew, `{"rcode":"000","code":5,"card_id":"A"}`, "both success and failure"},
		{tokenizeNew, `{"rcode":"051","code":5,"card_id":"A"}`, ": code 051"},
		{tokenizeNew, `{"rcode":"051","code":{},"card_id":"A"}`, ": code 051"},
		{tokenizeNew, `{"rcode":{},"code":0,"card_id":"A"}`, "no result code"},
		{"payees.create", `{"code":0,"rcode":"1e999","data":{"payee_id":4}}`, "both success and failure"},
		{"payees.create", `{"code":"declined","rcode":"000","data":{"payee_id":4}}`, "both success and failure"},
		{"Client.Call", `{"code":{},"N":5}`, "no result code"},
		{tokenizeNew, `{"rcode":"0","card_id":"A"}`, "another result code"},
		{tokenizeNew, `{"rcode":null,"card_id":"A"}`, "no result code"},
	})
}

// TestReading_oddAnswers checks that these answers are read completely. encoding/json accepts them, and JSON v2 refuses
// some of them.
func TestReading_oddAnswers(t *testing.T) {
	t.Parallel()
	const options = `"key":"o","settings":{"options":[{"label":"L","value":12345678901234567890.10,"disabled":true}]}}]}}`
	exact := payvault.FieldOption{Label: "L", Value: "12345678901234567890.10", Disabled: true}
	optional := []payvault.SavedField{{Key: "o", Settings: payvault.FieldSettings{Options: []payvault.FieldOption{exact}}}}
	created := payvault.ApplicationCreated{
		App: payvault.Application{ID: 1}, Pricing: payvault.Pricing{Plan: json.RawMessage(`null`)},
	}
	assertRead(t, []readAnswer{
		{"customers.create", "\ufeff" + `{"code":0,"data":{"customer_id":"C1"}}`, &payvault.Customer{ID: "C1"}, nil},
		{"customers.create", `{"code":0,"data":{"customer_id":"C0","customer_id":"C1"}}`, &payvault.Customer{ID: "C1"}, nil},
		{"customers.create", `{"Code":0,"DATA":{"Customer_ID":"C1"}}`, &payvault.Customer{ID: "C1"}, nil},
		{
			"customers.create", `{"code":0,"data":{"customer_id":"C1","x":"` + "\xff" + `"}}`,
			&payvault.Customer{ID: "C1"},
			nil,
		},
		{"customers.create", `{"code":"0","data":{"customer_id":"C1"},"later":[null,{}]}`, &payvault.Customer{ID: "C1"}, nil},
		{
			"customers.create", `{"code":0,"data":{"customer_id":"C1","comments":"hello \ud83d"}}`, // half of an emoji
			&payvault.Customer{ID: "C1", Comments: "hello \ufffd"}, nil,
		},
		{
			allCustomers, `{"code":0,"data":[{"customer_id":"C1","comments":"hello \ud83d"}]}`,
			&payvault.Customer{ID: "C1", Comments: "hello \ufffd"}, nil,
		},
		{
			"applications.save_data", `{"code":0,"data":{"fields":[{"key":"a","value":"b\ud83d"}]}}`,
			[]payvault.SavedField{savedField("a", `"b\ud83d"`)},
			nil, // JSON as it came; Decode reads it
		},
		{"applications.save_data", `{"code":0,"data":{"fields":[{` + options, optional, nil},
		{"customers.list", `{"code":0,"data":null}`, &payvault.Page[payvault.Customer]{}, nil},
		{
			"customers.list", `{"code":0,"totalPages":0,"data":[]}`,
			&payvault.Page[payvault.Customer]{Items: []payvault.Customer{}},
			nil,
		},
		{"applications.create", `{"code":0,"data":{"app":{"app_id":1},"pricing":{"plan":null}}}`, &created, nil},
		{"subscriptions.cancel", `{"code":0,"data":{}}`, &payvault.Confirmation{}, nil},
		{allTransactions, `{"code":0,"data":[{"rcode":0}]}`, &payvault.Transaction{RCode: "000"}, nil},
		{allTransactions, `{"code":0,"data":[{"rcode":0.0}]}`, &payvault.Transaction{RCode: "000"}, nil},
		{allTransactions, `{"code":0,"data":[{"rcode":"00"}]}`, &payvault.Transaction{RCode: "00"}, nil},
		{"subscriptions.cancel", `{"code":0,"data":[ ]}`, &payvault.Confirmation{}, nil},
		{"applications.save_data", `{"code":0,"data":{"fields":{}}}`, []payvault.SavedField{}, nil},
		{
			"applications.save_data", `{"code":0,"data":{"fields":[{"key":"tax_id","value":"1"},{"key":"a","value":null}]}}`,
			[]payvault.SavedField{savedField("tax_id", `"1"`), {Key: "a"}},
			nil,
		},
		{
			allCustomers, `{"code":0,"data":[{"customer_id":"A","billing_cards":{ },"shipping_addresses":""}]}`,
			&payvault.Customer{
				ID: "A", BillingCards: []payvault.BillingCard{}, ShippingAddresses: []payvault.ShippingAddress{},
			},
			nil,
		},
		{
			"payees.create", `{"code":0,"data":{"payee_id":4},"data":{"payee_name":"P"}}`,
			&payvault.Payee{ID: 4, Name: "P"},
			nil,
		},
		{
			"payees.create", `{"code":0,"data":{"payee_id":4,"payee_email":"a"}}`,
			&payvault.Payee{ID: 4, Email: []string{"a"}},
			nil,
		},
	})
}

// TestReading_unread checks that missing and unreadable values of a successful write are listed in Response.Unread, and
// that the values beside them are read.
func TestReading_unread(t *testing.T) {
	t.Parallel()
	const unlike = `"key":"ownership","value":{"owners":1}},{"key":"a","settings":{"required":5}}]}}`
	assertRead(t, []readAnswer{
		{
			"applications.save_data", `{"code":0,"data":{"fields":[{` + unlike,
			[]payvault.SavedField{savedField("ownership", `{"owners":1}`), {Key: "a"}},
			[]string{"/data/fields/1/settings/required"},
		},
		{"subscriptions.cancel", `{"code":0}`, &payvault.Confirmation{}, []string{"/data"}},
		{"subscriptions.cancel", `{"code":0,"data":null}`, &payvault.Confirmation{}, []string{"/data"}},
		{"webhooks.add_event", `{"code":0}`, &payvault.Confirmation{}, []string{"/data"}},
		{"applications.save_data", `{"code":0}`, []payvault.SavedField{}, []string{"/data"}},
		{"applications.save_data", `{"code":0,"data":{}}`, []payvault.SavedField{}, []string{"/data/fields"}},
		{"tokens.tokenize with a CardID", `{"rcode":"000"}`, &payvault.TokenizeResponse{RCode: "000"}, []string{"/card_id"}},
		{
			"applications.save_data", `{"code":0,"data":{"fields":["",{"key":"a"},[],false,null]}}`,
			[]payvault.SavedField{{}, {Key: "a"}, {}, {}, {}},
			[]string{"/data/fields/0", "/data/fields/2", "/data/fields/3", "/data/fields/4"},
		},
		{
			"applications.save_data", `{"code":0,"data":{"fields":[{},{"key":"a"},{"key":"","value":"1"},{"key":[1]}]}}`,
			[]payvault.SavedField{{}, {Key: "a"}, savedField("", `"1"`), {}},
			[]string{"/data/fields/3/key", "/data/fields/0/key", "/data/fields/2/key"},
		},
		{"subscriptions.cancel", `{"code":0,"data":"Canceled"}`, &payvault.Confirmation{}, []string{"/data"}},
		{"payees.create", `{"code":0,"data":{"payee_id":4},"data":"text"}`, &payvault.Payee{ID: 4}, []string{"/data"}},
		{
			"payees.create", `{"code":0,"data":{"payee_id":4,"payee_id":{"a":1}}}`,
			&payvault.Payee{ID: 4},
			[]string{"/data/payee_id"},
		},
		{
			"payees.create", `{"code":0,"DATA":{"payee_id":4,"Payee_EMAIL":[{"` + garbageCanary + `":1}]}}`,
			&payvault.Payee{ID: 4, Email: []string{""}},
			[]string{"/DATA/Payee_EMAIL/0"},
		},
		{
			"payees.create", `{"code":0,"data":{"payee_id":4,"payee_account":{"dda_number":"[REDACTED]","tr_number":"1"}}}`,
			&payvault.Payee{ID: 4, Account: payvault.PayeeAccount{TRNumber: payvault.NewSecret("1")}},
			[]string{"/data/payee_account/dda_number"},
		},
		{
			"payees.create",
			`{"code":0,"data":{"payee_id":4,"payee_address":17,"payee_email":["a",{"a":1}],"payee_account":[]}}`,
			&payvault.Payee{ID: 4, Email: []string{"a", ""}},
			[]string{"/data/payee_address", "/data/payee_email/1"},
		},
	})
}

// TestReading_missing checks that an answer without a value that the caller needs is an error.
func TestReading_missing(t *testing.T) {
	t.Parallel()
	assertFails(t, []failedAnswer{
		{tokenizeNew, `{"rcode":"000"}`, "/card_id is missing"},
		{"payees.create", `{"code":0}`, "/data is missing"},
		{"payees.create", `{"code":0,"data":null}`, "/data is missing"},
		{"customers.list", `{"code":0,"data":[{"customer_id":"A"},{}]}`, "/data/1/customer_id is missing"},
		{allTransactions, `{"code":0,"data":[{}]}`, "/data/0 is missing"},
		{allCustomers, `{"code":0,"data":{},"totalRecords":1}`, "/data is missing"},
		{allCustomers, `{"code":0,"data":"","totalRecords":1}`, "/data is missing"},
		{"payees.create", `{"code":0,"data":[]}`, "/data/payee_id is missing"},
	})
}

// TestReading_wrongValues checks that an unreadable value of a read, or of a write's ID, is an error with its place.
func TestReading_wrongValues(t *testing.T) {
	t.Parallel()
	assertFails(t, []failedAnswer{
		{"payees.create", `{"code":0,"data":"text"}`, "cannot be read: /data "},
		{allTransactions, `{"code":0,"data":[{"dispute_flag":-1}]}`, "/data/0/dispute_flag cannot be read"},
		{"payees.create", `{"code":0,"data":{"payee_id":1.5}}`, "/data/payee_id"},
		{"customers.list", `{"code":0,"data":[null]}`, "/data/0 cannot be read"}, // null is no empty record
		{"customers.list", `{"code":0,"data":[{"customer_id":"a,null"},` + "\n\tnull ]}", "/data/1 cannot be read"},
		{"customers.list", `{"code":0,"data":[{"billing_cards":[{},{},null]}]}`, "/data/0/billing_cards/2 cannot be read"},
		{
			allTransactions, `{"code":0,"data":[{"tran_time":"2026-01-15T10:20:30+24:00"}]}`,
			"/data/0/tran_time cannot be read",
		},
		{allCustomers, `{"code":0,"data":{"customer_id":"A"}}`, "/data cannot be read"},
		{allCustomers, `{"code":0,"data":[{},[]]}`, "/data/1 cannot be read"},
		{allCustomers, `"text"`, "malformed response: the body cannot be read"},
		{
			allCustomers, `{"code":0,"data":[{"customer_id":"A","billing_cards":{"card_id":"a"}}]}`,
			"/data/0/billing_cards cannot be read",
		},
	})
}

// TestReading_tooManyValues checks that an answer with 150,000 records is an error, whatever its first records are.
func TestReading_tooManyValues(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"key":"a"},`, 150_000) + `{}]}}`
	assertFails(t, []failedAnswer{
		{"applications.save_data", `{"code":0,"data":{"fields":[` + many, "response: more values than an answer may have"},
		{"applications.save_data", `{"code":0,"data":{"fields":[{},` + many, "response: more values than an answer may have"},
		{
			"applications.save_data", `{"code":0,"data":{"fields":[{},{},` + many,
			"response: more values than an answer may have",
		},
	})
}

// TestReading_unreadPlaces checks that up to 20 unreadable places are listed. An answer with more is malformed, and its
// body is kept.
func TestReading_unreadPlaces(t *testing.T) {
	t.Parallel()
	for n, wantErr := range map[int]bool{20: false, 21: true} {
		body := `{"code":0,"data":{"payee_id":4,"payee_email":[` + strings.TrimSuffix(strings.Repeat(`[1],`, n), ",") + `]}}`
		var response payvault.Response
		_, err := named(t, "payees.create")(answering(t, 200, body), payvault.WithResponse(&response))
		require.Len(t, response.Unread, 20)
		assert.Equal(t, "/data/payee_email/19", response.Unread[19])
		if !wantErr {
			require.NoError(t, err)
			continue
		}
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown)
		assert.Equal(t, body, string(response.Body))
	}
}

// TestCall_answers checks that types of the caller are read as encoding/json reads them.
func TestCall_answers(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"any":1.5`, `"Any":[12345678901234567890,null,{"a":{"b":[]}}]`, `"bytes":"YWI="`, `"array":[1]`, `"array":[1,2,3]`,
		`"wait":5`, `"quoted":"7"`, `"record":{"inner":"a"},"record":{"other":"b"}`,
		`"record":{"inner":"a"},"RECORD":null`,
		`"map":{"2":"b","1":"a"}`, `"list":[{"inner":"a"},null]`, `"list":[{"inner":"a"},{}],"list":[{"other":"b"}]`,
		`"SNAKE_CASE":5`, `"snakecase":5`, `"time":"2026-01-15T10:20:30Z"`, `"open":{"a":1},"open":{"b":2}`,
		// the limit on the number of values does not apply to types of the caller
		`"any":[` + strings.Repeat("1,", 100_000) + `1]`,
		`"inner":"` + "\xff" + `"`, `"number":1.50`, `"raw":{"a": 1}`, `"inner":null`,
	} {
		body := `{"code":0,` + member + `}`
		var want, got callerForm
		require.NoError(t, json.Unmarshal([]byte(body), &want), member)
		require.NoError(t, answering(t, 200, body).Call(t.Context(), request("GET"), &got), member)
		assert.Equal(t, want, got, member)
	}
	// The decoder of GOEXPERIMENT=jsonv2 names more places than the other decoder.
	for member, place := range map[string]string{
		`"wait":"5s"`: "/wait", `"array":{}`: "/array", `"list":[{},{"inner":1}]`: "/list(/1)?/inner",
		`"time":"` + garbageCanary + `"`: "(the body|/time)", `"quoted":7.5`: "(the body|/quoted)",
		`"map":{"` + garbageCanary + `":5}`: "/map", `"open":[{"` + garbageCanary + `":1}]`: "/open",
	} {
		body := `{"code":0,` + member + `}`
		require.Error(t, json.Unmarshal([]byte(body), new(callerForm)), member)
		err := answering(t, 200, body).Call(t.Context(), request("POST"), new(callerForm))
		// the service has performed the operation
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown)
		assert.Regexp(t, ": "+place+` cannot be read \(`, err.Error(), member)
		service.AssertHidden(t, err, garbageCanary)
	}
}
