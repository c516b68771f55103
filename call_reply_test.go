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

// eachValue visits the values of a JSON text, with their places and a way to put another there.
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

// anything are the places whose values may be of any type or are not read of a success, and saved fields but for two;
// and those of the whole record, which has to be there.
var anything = regexp.MustCompile(`^/(code|rcode|message)$|/(plan|relatedBusinesses)(/|$)|fields/\d+/value(/|$)|` +
	`^(/data)?(/app|/fields)?(/\d+)?$|^/data/fields/([1-57-9]|\d\d)`)

// element are the places of elements of lists.
var element = regexp.MustCompile(`/\d+$`)

// needed are the places of IDs without which there is no result. In a transaction that of the customer is one of many.
var needed = regexp.MustCompile(`^(customers.list /data/\d+|customers.create /data)/customer_id$|` +
	`^[\w.]+ /data/((app/app|payee|request)_id)$`)

// informs are the places of values that are named when they are missing, but that the caller can go on without: the
// card ID that the caller has given, and the keys of saved fields.
var informs = regexp.MustCompile(`^/card_id$|^/data/fields/\d+/key$`)

// reading is what came of an answer in which another form stands for one value.
type reading struct {
	op          payvault.Operation
	isRead      bool // asking again is free
	place, form string
	want, got   string // wire forms of the result, as documented and as it came
	err         error
	unread      []string
	log         string
}

func (r reading) isNeeded() bool { return needed.MatchString(string(r.op) + " " + r.place) }

// eachAnswer makes every operation with its documented answer, each of whose values comes in other forms.
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
			isElement := isRecord && element.MatchString(place) // of a list, where it cannot be none
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

// odd are forms that services really send for a value.
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

// TestReading_oddValues: every documented value of every answer may come in another form.
func TestReading_oddValues(t *testing.T) {
	t.Parallel()
	eachAnswer(t, odd, func(r reading) {
		require.NoError(t, r.err, "%s %s", r.place, r.form)
		notPrimary := strings.NewReplacer(`,"primary":false`, "") // which may also not be told
		assert.JSONEq(t, notPrimary.Replace(r.want), notPrimary.Replace(r.got), "%s %s", r.place, r.form)
		assert.Empty(t, r.unread, "%s %s", r.place, r.form)
	})
}

// TestReading_oddTexts: a text may come as another scalar, whose literal is kept, and any value as none, as PHP may
// write it, lists and records too.
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
		case isSecret && r.form == `true`: // which is no truth value
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

// TestReading_unreadable: what cannot be read fails a read with its place, and leaves a write its result.
func TestReading_unreadable(t *testing.T) {
	t.Parallel()
	unreadable := func(value any) []string {
		switch value.(type) {
		case map[string]any, []any: // whose members and elements have their turn
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

// TestReading_largePage: a page that is read with bounds is no other page.
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

// TestReading_oneOddValue: it does not lose what stands beside it, and what cannot be read is named.
func TestReading_oneOddValue(t *testing.T) {
	t.Parallel()
	tokenize, cancel := named(t, "tokens.tokenize without a CardID"), named(t, "subscriptions.cancel")
	createPayee, saveData := named(t, "payees.create"), named(t, "applications.save_data")
	updateCard := named(t, "tokens.tokenize with a CardID")
	createCustomer, list := named(t, "customers.create"), named(t, "customers.list")
	createApplication, nothing := named(t, "applications.create"), payvault.Page[payvault.Customer]{}
	created := payvault.ApplicationCreated{
		App: payvault.Application{ID: 1}, Pricing: payvault.Pricing{Plan: json.RawMessage(`null`)},
	}
	first, transaction := named(t, "customers.list by Customers.All"),
		named(t, "subscriptions.transactions by Subscriptions.AllTransactions")
	single := []string{"a"}
	tokenized := &payvault.TokenizeResponse{RCode: "000", CardID: "A"}
	byCall := func(c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		var out struct{ N int }
		err := c.Call(t.Context(), request("GET"), &out, opts...)
		return out.N, err
	}
	saved := func(key, value string) payvault.SavedField {
		return payvault.SavedField{Key: key, Value: payvault.NewSecret(value)}
	}
	const unlike = `"key":"ownership","value":{"owners":1}},{"key":"a","settings":{"required":5}}]}}`
	const options = `"key":"o","settings":{"options":[{"label":"L","value":12345678901234567890.10,"disabled":true}]}}]}}`
	exact := payvault.FieldOption{Label: "L", Value: "12345678901234567890.10", Disabled: true}
	optional := []payvault.SavedField{{Key: "o", Settings: payvault.FieldSettings{Options: []payvault.FieldOption{exact}}}}
	for _, test := range []struct {
		call   call
		body   string
		want   any
		unread []string
	}{
		// What encoding/json takes and JSON v2 refuses.
		{createCustomer, "\ufeff" + `{"code":0,"data":{"customer_id":"C1"}}`, &payvault.Customer{ID: "C1"}, nil},
		{createCustomer, `{"code":0,"data":{"customer_id":"C0","customer_id":"C1"}}`, &payvault.Customer{ID: "C1"}, nil},
		{createCustomer, `{"Code":0,"DATA":{"Customer_ID":"C1"}}`, &payvault.Customer{ID: "C1"}, nil},
		{createCustomer, `{"code":0,"data":{"customer_id":"C1","x":"` + "\xff" + `"}}`, &payvault.Customer{ID: "C1"}, nil},
		{createCustomer, `{"code":"0","data":{"customer_id":"C1"},"later":[null,{}]}`, &payvault.Customer{ID: "C1"}, nil},
		{
			saveData, `{"code":0,"data":{"fields":[{` + unlike,
			[]payvault.SavedField{saved("ownership", `{"owners":1}`), {Key: "a"}},
			[]string{"/data/fields/1/settings/required"},
		},
		{saveData, `{"code":0,"data":{"fields":[{` + options, optional, nil},
		{createPayee, `{"code":0,"code":null,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{createPayee, `{"code":null,"code":0,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{tokenize, `{"rcode":0,"card_id":"A"}`, tokenized, nil},
		{tokenize, `{"rcode":"000","code":null,"card_id":"A"}`, tokenized, nil},
		{byCall, `{"rcode":0,"N":5}`, 5, nil},
		{list, `{"code":0,"data":null}`, &nothing, nil},
		{list, `{"code":0,"totalPages":0,"data":[]}`, &payvault.Page[payvault.Customer]{Items: []payvault.Customer{}}, nil},
		{createApplication, `{"code":0,"data":{"app":{"app_id":1},"pricing":{"plan":null}}}`, &created, nil},
		{cancel, `{"code":0,"data":{}}`, &payvault.Confirmation{}, nil},
		// Code 0 decides, where nothing that is missing stops the caller.
		{cancel, `{"code":0}`, &payvault.Confirmation{}, []string{"/data"}},
		{cancel, `{"code":0,"data":null}`, &payvault.Confirmation{}, []string{"/data"}},
		{named(t, "webhooks.add_event"), `{"code":0}`, &payvault.Confirmation{}, []string{"/data"}},
		{saveData, `{"code":0}`, []payvault.SavedField{}, []string{"/data"}},
		{saveData, `{"code":0,"data":{}}`, []payvault.SavedField{}, []string{"/data/fields"}},
		{updateCard, `{"rcode":"000"}`, &payvault.TokenizeResponse{RCode: "000"}, []string{"/card_id"}},
		{
			saveData, `{"code":0,"data":{"fields":["",{"key":"a"},[],false,null]}}`,
			[]payvault.SavedField{{}, {Key: "a"}, {}, {}, {}},
			[]string{"/data/fields/0", "/data/fields/2", "/data/fields/3", "/data/fields/4"},
		},
		{
			saveData, `{"code":0,"data":{"fields":[{},{"key":"a"},{"key":"","value":"1"},{"key":[1]}]}}`,
			[]payvault.SavedField{{}, {Key: "a"}, saved("", `"1"`), {}},
			[]string{"/data/fields/3/key", "/data/fields/0/key", "/data/fields/2/key"},
		},
		{transaction, `{"code":0,"data":[{"rcode":0}]}`, &payvault.Transaction{RCode: "000"}, nil},
		{transaction, `{"code":0,"data":[{"rcode":0.0}]}`, &payvault.Transaction{RCode: "000"}, nil},
		{transaction, `{"code":0,"data":[{"rcode":"00"}]}`, &payvault.Transaction{RCode: "00"}, nil},
		{tokenize, `{"rcode":0.0,"card_id":"A"}`, tokenized, nil},
		{cancel, `{"code":0,"data":"Canceled"}`, &payvault.Confirmation{}, []string{"/data"}},
		{cancel, `{"code":0,"data":[ ]}`, &payvault.Confirmation{}, nil},
		{createPayee, `{"code":0,"rcode":"0","data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{createPayee, `{"code":"0","rcode":"Approved","data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{createPayee, `{"code":0,"rcode":{},"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{createPayee, `{"code":0,"rcode":{"a":1},"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, []string{"/rcode"}},
		{createPayee, `{"rcode":true,"code":0,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, []string{"/rcode"}},
		{tokenize, `{"rcode":"000","card_id":"A","code":"OK"}`, tokenized, nil},
		{createPayee, `{"code":0,"rcode":"000 Approved","data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{tokenize, `{"rcode":"000","card_id":"A","code":false}`, tokenized, nil},
		{byCall, `{"code":0,"rcode":true,"N":5}`, 5, []string{"/rcode"}},
		{byCall, `{"code":[],"rcode":"000","N":5}`, 5, nil},
		{createPayee, `{"code":0.0,"data":{"payee_id":4}}`, &payvault.Payee{ID: 4}, nil},
		{saveData, `{"code":0,"data":{"fields":{}}}`, []payvault.SavedField{}, nil},
		{
			saveData, `{"code":0,"data":{"fields":[{"key":"tax_id","value":"1"},{"key":"a","value":null}]}}`,
			[]payvault.SavedField{saved("tax_id", `"1"`), {Key: "a"}},
			nil,
		},
		{
			first, `{"code":0,"data":[{"customer_id":"A","billing_cards":{ },"shipping_addresses":""}]}`,
			&payvault.Customer{
				ID: "A", BillingCards: []payvault.BillingCard{}, ShippingAddresses: []payvault.ShippingAddress{},
			},
			nil,
		},
		{createPayee, `{"code":0,"data":{"payee_id":4},"data":{"payee_name":"P"}}`, &payvault.Payee{ID: 4, Name: "P"}, nil},
		{createPayee, `{"code":0,"data":{"payee_id":4,"payee_email":"a"}}`, &payvault.Payee{ID: 4, Email: single}, nil},
		{createPayee, `{"code":0,"data":{"payee_id":4},"data":"text"}`, &payvault.Payee{ID: 4}, []string{"/data"}},
		{
			createPayee, `{"code":0,"data":{"payee_id":4,"payee_id":{"a":1}}}`,
			&payvault.Payee{ID: 4},
			[]string{"/data/payee_id"},
		},
		{first, `{"code":0,"rcode":{},"data":[{"customer_id":"A"}]}`, &payvault.Customer{ID: "A"}, nil},
		{
			createPayee, `{"code":0,"DATA":{"payee_id":4,"Payee_EMAIL":[{"` + garbageCanary + `":1}]}}`,
			&payvault.Payee{ID: 4, Email: []string{""}},
			[]string{"/DATA/Payee_EMAIL/0"},
		},
		{
			createPayee, `{"code":0,"data":{"payee_id":4,"payee_account":{"dda_number":"[REDACTED]","tr_number":"1"}}}`,
			&payvault.Payee{ID: 4, Account: payvault.PayeeAccount{TRNumber: payvault.NewSecret("1")}},
			[]string{"/data/payee_account/dda_number"},
		},
		{
			createPayee, `{"code":0,"data":{"payee_id":4,"payee_address":17,"payee_email":["a",{"a":1}],"payee_account":[]}}`,
			&payvault.Payee{ID: 4, Email: []string{"a", ""}},
			[]string{"/data/payee_address", "/data/payee_email/1"},
		},
	} {
		var response payvault.Response
		got, err := test.call(answering(t, 200, test.body), payvault.WithResponse(&response))
		require.NoError(t, err, test.body)
		assert.Equal(t, test.want, got, test.body)
		assert.Equal(t, test.unread, response.Unread, test.body)
	}
	many := strings.Repeat(`{"key":"a"},`, 150_000) + `{}]}}`
	for _, test := range []struct {
		call         call
		body, reason string
	}{
		{createPayee, `{"code":0,"code":5,"data":{"payee_id":4}}`, ": code 5"},
		{createPayee, `{"code":5,"code":0,"data":{"payee_id":4}}`, ": code 5"},
		{createPayee, `{"code":0,"data":"text"}`, "cannot be read: /data "},
		{transaction, `{"code":0,"data":[{"dispute_flag":-1}]}`, "/data/0/dispute_flag cannot be read"},
		{createPayee, `{"code":0,"data":{"payee_id":1.5}}`, "/data/payee_id"},
		{createPayee, `{"code":{},"data":{"payee_id":4}}`, "no result code"},
		{createPayee, `{"code":["5"],"data":{"payee_id":4}}`, "no result code"},
		{createPayee, `{"code":0,"rcode":"051","data":{"payee_id":1}}`, "both success and failure"},
		{createPayee, `{"code":0,"rcode":"E51","data":{"payee_id":1}}`, "both success and failure"},
		{createPayee, `{"code":5,"rcode":["051"],"data":{"payee_id":1}}`, ": code 5"},
		{list, `{"code":0,"rcode":{"code":51},"data":[]}`, "/rcode cannot be read"},
		{tokenize, `{"rcode":"000","code":"05A","card_id":"A"}`, "both success and failure"},
		{createPayee, `{"code":5,"rcode":"000","data":{"payee_id":1}}`, "both success and failure"},
		{tokenize, `{"rcode":"000","code":5,"card_id":"A"}`, "both success and failure"},
		{tokenize, `{"rcode":"051","code":5,"card_id":"A"}`, ": code 051"},
		{tokenize, `{"rcode":"051","code":{},"card_id":"A"}`, ": code 051"},
		{tokenize, `{"rcode":{},"code":0,"card_id":"A"}`, "no result code"},
		{createPayee, `{"code":0,"rcode":"1e999","data":{"payee_id":4}}`, "both success and failure"},
		{createPayee, `{"code":"declined","rcode":"000","data":{"payee_id":4}}`, "both success and failure"},
		{byCall, `{"code":{},"N":5}`, "no result code"},
		{tokenize, `{"rcode":"0","card_id":"A"}`, "another result code"},
		{tokenize, `{"rcode":null,"card_id":"A"}`, "no result code"},
		{list, `{"code":0,"data":[null]}`, "/data/0 cannot be read"}, // which is no empty record
		{list, `{"code":0,"data":[{"customer_id":"a,null"},` + "\n\tnull ]}", "/data/1 cannot be read"},
		{list, `{"code":0,"data":[{"billing_cards":[{},{},null]}]}`, "/data/0/billing_cards/2 cannot be read"},
		{tokenize, `{"rcode":"000"}`, "/card_id is missing"},
		{createPayee, `{"code":0}`, "/data is missing"},
		{createPayee, `{"code":0,"data":null}`, "/data is missing"},
		{list, `{"code":0,"data":[{"customer_id":"A"},{}]}`, "/data/1/customer_id is missing"},
		{transaction, `{"code":0,"data":[{}]}`, "/data/0 is missing"},
		{transaction, `{"code":0,"data":[{"tran_time":"2026-01-15T10:20:30+24:00"}]}`, "/data/0/tran_time cannot be read"},
		{first, `{"code":0,"data":{"customer_id":"A"}}`, "/data cannot be read"},
		{first, `{"code":0,"data":{},"totalRecords":1}`, "/data is missing"},
		{first, `{"code":0,"data":"","totalRecords":1}`, "/data is missing"},
		{first, `{"code":0,"data":[{},[]]}`, "/data/1 cannot be read"},
		{createPayee, `{"code":0,"data":[]}`, "/data/payee_id is missing"},
		{first, `"text"`, "malformed response: the body cannot be read"},
		{saveData, `{"code":0,"data":{"fields":[` + many, "response: more values than an answer may have"},
		{saveData, `{"code":0,"data":{"fields":[{},` + many, "response: more values than an answer may have"},
		{saveData, `{"code":0,"data":{"fields":[{},{},` + many, "response: more values than an answer may have"},
		{
			first, `{"code":0,"data":[{"customer_id":"A","billing_cards":{"card_id":"a"}}]}`,
			"/data/0/billing_cards cannot be read",
		},
	} {
		_, err := test.call(answering(t, 200, test.body))
		assert.ErrorContains(t, err, test.reason, test.body)
	}
}

// TestReading_unreadPlaces: 20 are named. An answer with more of them is malformed, and there as it came.
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

// TestCall_answers: types of the caller are read as encoding/json reads them.
func TestCall_answers(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"any":1.5`, `"Any":[12345678901234567890,null,{"a":{"b":[]}}]`, `"bytes":"YWI="`, `"array":[1]`, `"array":[1,2,3]`,
		`"wait":5`, `"quoted":"7"`, `"record":{"inner":"a"},"record":{"other":"b"}`,
		`"record":{"inner":"a"},"RECORD":null`,
		`"map":{"2":"b","1":"a"}`, `"list":[{"inner":"a"},null]`, `"list":[{"inner":"a"},{}],"list":[{"other":"b"}]`,
		`"SNAKE_CASE":5`, `"snakecase":5`, `"time":"2026-01-15T10:20:30Z"`, `"open":{"a":1},"open":{"b":2}`,
		`"any":[` + strings.Repeat("1,", 100_000) + `1]`, // which may be as dense as it likes
		`"inner":"` + "\xff" + `"`, `"number":1.50`, `"raw":{"a": 1}`, `"inner":null`,
	} {
		body := `{"code":0,` + member + `}`
		var want, got callerForm
		require.NoError(t, json.Unmarshal([]byte(body), &want), member)
		require.NoError(t, answering(t, 200, body).Call(t.Context(), request("GET"), &got), member)
		assert.Equal(t, want, got, member)
	}
	// The decoder of GOEXPERIMENT=jsonv2 names more places than the other one.
	for member, place := range map[string]string{
		`"wait":"5s"`: "/wait", `"array":{}`: "/array", `"list":[{},{"inner":1}]`: "/list(/1)?/inner",
		`"time":"` + garbageCanary + `"`: "(the body|/time)", `"quoted":7.5`: "(the body|/quoted)",
		`"map":{"` + garbageCanary + `":5}`: "/map", `"open":[{"` + garbageCanary + `":1}]`: "/open",
	} {
		body := `{"code":0,` + member + `}`
		require.Error(t, json.Unmarshal([]byte(body), new(callerForm)), member)
		err := answering(t, 200, body).Call(t.Context(), request("POST"), new(callerForm))
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown) // it was performed
		assert.Regexp(t, ": "+place+` cannot be read \(`, err.Error(), member)
		service.AssertHidden(t, err, garbageCanary)
	}
}
