// Package operations tests what holds for every operation. For example, it compares requests and results with the
// fixtures in testdata, and measures how much memory a hostile response takes. What holds for one resource is tested
// beside the resource, as in payees_test.go.
package operations

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test for every operation in the table of calls.
func each(t *testing.T, test func(t *testing.T, o *calls.Operation)) {
	t.Helper()
	for _, o := range calls.Table() {
		t.Run(string(o.Op), func(t *testing.T) {
			t.Parallel()
			test(t, &o)
		})
	}
}

// find returns the operation op from the table of calls.
func find(op payvault.Operation) *calls.Operation { return new(calls.Of(op)) }

// nowhere returns a client whose requests reach no server.
func nowhere(t *testing.T) *payvault.Client {
	t.Helper()
	return service.Client(t, service.Nowhere)
}

// fillers returns options that fill empty fields of requests.
func fillers() []payvault.Option {
	return []payvault.Option{payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3")}
}

// TestEveryOperation checks that payvault.Operations, the table of calls, Operation.Stated and the methods of the
// client list the same operations.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	var all []payvault.OperationInfo
	var methods []string
	for _, o := range calls.Table() {
		all = append(all, o.OperationInfo)
		repeated := map[payvault.Replay]string{"with a card_id": "card_id", "same": "yes", "read": "yes", "never": "no"}
		assert.Contains(t, o.Stated, o.Method+" "+o.Path+" "+repeated[o.Replay]+" ",
			"operations.go and Stated in internal/tests/calls/table.go disagree")
	}
	for _, o := range payvault.Operations() {
		require.True(t, slices.Contains(all, o), "Table in internal/tests/calls/table.go has no entry for %s", o.Op)
	}
	assert.Equal(t, payvault.Operations(), all, "the order in operations.go and in internal/tests/calls/table.go")
	for _, c := range calls.All() {
		methods = append(methods, c.GoName)
	}
	slices.Sort(methods)
	assert.ElementsMatch(t, service.Methods(), slices.Compact(methods),
		"the methods of the services, and GoName and ways in internal/tests/calls/table.go")
}

// TestFull checks that every documented field of a request is sent, and every documented field of a response is read.
// The options that fill empty fields must not change a full request.
func TestFull(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		got, result, err := service.Exchange(t, o, o.Full, o.Answer(), fillers()...)
		require.NoError(t, err)
		want, query := o.Want(), ""
		if options, ok := o.Full.(*payvault.ListOptions); ok {
			query = "?" + calls.Fixture("list.query")
			reflect.ValueOf(want).Elem().FieldByName("Number").SetInt(int64(options.Page))
		}
		assert.Equal(t, want, result)
		assertRequest(t, o, got, query, fullJSON(o))
	})
}

// TestMinimal checks that a request with only its required fields is sent without any other field.
func TestMinimal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		opts := fillers()
		if o.Op == payvault.OpTokensTokenize || o.Op == payvault.OpCustomersCreate {
			opts = nil // the options would fill fields of these requests
		}
		got, _, err := service.Exchange(t, o, o.Minimal, o.Answer(), opts...)
		require.NoError(t, err)
		assertRequest(t, o, got, "", o.MinimalJSON)
	})
}

// fullJSON returns the JSON that the client must send for the request o.Full, or "" if it must send none.
func fullJSON(o *calls.Operation) string {
	if o.Full == nil || o.Lists() {
		return ""
	}
	return calls.Fixture(o.Fixture("request.json"))
}

// assertRequest checks the method, the URL, all headers and the body of a request.
func assertRequest(t *testing.T, o *calls.Operation, got service.Seen, query, body string) {
	t.Helper()
	assert.Equal(t, o.Method+" "+service.BasePath+calls.Documented().In(o.Path)+query, got.Method+" "+got.Target)
	header := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {service.BasicToken},
		"User-Agent": got.Header["User-Agent"],
	}
	if len(got.Body) > 0 || slices.Contains([]string{"POST", "PUT", "PATCH"}, got.Method) {
		header.Set("Content-Length", strconv.Itoa(len(got.Body)))
	}
	switch {
	case o.Op == payvault.OpDisputesRespond:
		header["Content-Type"] = got.Header["Content-Type"]
		service.AssertForm(t, got, body, "evidence.pdf", []byte(calls.Fixture("disputes/evidence.pdf")))
	case body == "":
		assert.Empty(t, string(got.Body), "no MinimalJSON in internal/tests/calls/table.go")
	default:
		header.Set("Content-Type", "application/json")
		assert.JSONEq(t, body, string(got.Body))
	}
	assert.Equal(t, header, got.Header)
	assert.Regexp(t, `^payvault-go/\d+\.\d+\.\d+ \(go.*\)$`, got.Header.Get("User-Agent"))
}

// TestWireForms checks that MarshalWire writes each request and result in the JSON form of its fixture, and that this
// JSON is read back as the same value.
func TestWireForms(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		for text, request := range map[string]any{fullJSON(o): o.Full, o.MinimalJSON: o.Minimal} {
			switch r := request.(type) {
			case *payvault.DisputeRespondRequest:
				r.Evidence = nil // the file is a part of the multipart form, not of the JSON
			case *payvault.ApplicationData:
				text = at(t, text, "data")
				assert.Empty(t, r.Extra)
			case []payvault.AccountUpdaterCard:
				text = at(t, text, "data")
			}
			if text != "" {
				service.AssertWire(t, request, text)
			}
		}
		want := strings.NewReplacer(`"code": 0,`, "", `"message": "Success",`, "").Replace(o.Answer())
		for _, member := range strings.Split(o.Result, "/")[1:] {
			want = at(t, want, member)
		}
		if o.Result != "-" {
			service.AssertWire(t, o.Want(), want)
		}
	})
}

// TestEveryField checks that testdata has a value for each field of the request and result types. Package contract
// compares testdata with the OpenAPI document. Each Go name must be the end of the JSON name, with few exceptions, so
// that no two fields are swapped.
func TestEveryField(t *testing.T) {
	t.Parallel()
	all := map[string]wireField{}
	for _, o := range calls.Table() {
		noteFields(all, reflect.ValueOf(o.Full))
		noteFields(all, reflect.ValueOf(o.Want()))
	}
	delete(all, "Application.MerchantID") // it is 0 in the response of Applications.Create
	delete(all, "Validation.Problems")    // a success has no problems; TestRejected reads some
	otherwise := map[string]string{       // Go names that differ from the end of the JSON name
		"EvidenceType": "cbr_ce_type", "AllocationType": "cbr_id_type", "Reason": "reason_desc", "Items": "data",
	}
	for name, field := range all {
		assert.True(t, field.filled, "no request.json and no response.json of testdata has %s", name)
		_, goName, _ := strings.Cut(name, ".")
		if otherwise[goName] != field.wire {
			squeezed := strings.ToLower(strings.ReplaceAll(field.wire, "_", ""))
			assert.True(t, strings.HasSuffix(squeezed, strings.ToLower(goName)),
				"the Go name of %s is not the end of %s: rename the field, or add it to otherwise in this test", name, field.wire)
		}
	}
}

// wireField has the JSON name of a struct field, and whether testdata has a value for the field.
type wireField struct {
	wire   string
	filled bool
}

// noteFields adds each struct field in v that has a JSON name to a map, under the key "Type.Field".
func noteFields(all map[string]wireField, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			noteFields(all, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteFields(all, v.Index(i))
		}
	case reflect.Struct:
		typeName, _, _ := strings.Cut(v.Type().Name(), "[") // without the type parameter of a page
		for field, value := range v.Fields() {
			if !field.IsExported() {
				continue
			}
			if wire, _, _ := strings.Cut(field.Tag.Get("json"), ","); wire != "" && wire != "-" {
				name := typeName + "." + field.Name
				all[name] = wireField{wire, all[name].filled || !value.IsZero()}
			}
			noteFields(all, value)
		}
	}
}

// at returns the value of a member of a JSON object, as JSON.
func at(t *testing.T, text, member string) string {
	t.Helper()
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &object))
	return string(object[member])
}

// TestRejected checks the errors for the documented refusals of every operation. Validate returns messages about fields
// as a result instead.
func TestRejected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		want := payvault.Error{Op: o.Op, StatusCode: http.StatusOK, Delivery: payvault.DeliveryAnswered, Attempts: 1}
		want.Code, want.Message = "12", "Example platform refusal with a detail"
		want.Detail = "Example detail in data.message"
		refusal, sentinels := "errors/platform_detail.json", []error{payvault.ErrRejected, payvault.ErrValidation}
		if o.Op == payvault.OpTokensTokenize {
			want.Code, want.Message, want.Detail = "902", "Example tokenize refusal", ""
			refusal, sentinels = "errors/rcode.json", sentinels[:1] // an rcode does not match ErrValidation
		}
		_, result, err := service.Exchange(t, o, o.Full, calls.Fixture(refusal))
		service.AssertError(t, err, want, payvault.ErrRejected)
		assert.False(t, payvault.SafeToRetry(err))
		assert.Nil(t, result)

		want.Code, want.Message, want.Detail = "2", "Request validation failed", ""
		want.Fields = service.Fields{
			"legal_name": {"Example text: legal_name is required"},
			"business_email": {
				"Example text: business_email is required", "Example text: business_email is not an email address",
			},
			"tax_id": {"Example text: tax_id is not valid"},
		}
		_, result, err = service.Exchange(t, o, o.Full, calls.Fixture("errors/validation_fields.json"))
		if o.Op == payvault.OpApplicationsValidate {
			assert.Equal(t, &payvault.Validation{Problems: want.Fields}, result)
			return
		}
		assert.Nil(t, result)
		service.AssertError(t, err, want, sentinels...)
		assert.ErrorContains(t, err, "tax_id Example text: tax_id is not valid")
	})
}

// TestForMerchant checks that a client of ForMerchant sends the merchant ID in the query or in the body, as
// Operation.Stated says. An operation without a merchant ID must fail before anything is sent.
func TestForMerchant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *calls.Operation) {
		server := service.Answer(t, http.StatusOK, o.Answer())
		client := service.Client(t, server.URL, payvault.WithMerchantID(1)).ForMerchant(calls.ActingFor)
		place := o.Stated[strings.LastIndex(o.Stated, " ")+1:]
		if place == "-" {
			result, err := o.Do(t.Context(), client, calls.Documented(), o.Full)
			want := payvault.Error{Op: o.Op, Delivery: payvault.DeliveryNotSent}
			service.AssertError(t, err, want, payvault.ErrMerchantNotSupported)
			assert.False(t, payvault.SafeToRetry(err))
			assert.Nil(t, result)
			assert.Empty(t, server.Seen())
			return
		}
		for _, named := range []payvault.MerchantID{0, calls.ActingFor} {
			request := o.Minimal
			if o.Method == http.MethodGet && named != 0 {
				request = &payvault.ListOptions{}
			}
			if request != nil {
				reflect.ValueOf(request).Elem().FieldByName("MerchantID").Set(reflect.ValueOf(named))
			}
			_, err := o.Do(t.Context(), client, calls.Documented(), request)
			require.NoError(t, err)
		}
		require.Len(t, server.Seen(), 2)
		for _, got := range server.Seen() {
			want, merchant := "212346", got.Query.Get("merchant_id")
			if place != "query" {
				merchant = at(t, string(got.Body), "merchant_id")
			}
			if place == "body-string" {
				want = `"212346"`
			}
			assert.Equal(t, want, merchant)
		}
	})
}

// TestRefused checks that one error reports all problems of a request, that a nil context is refused, and that nothing
// is sent in either case.
func TestRefused(t *testing.T) {
	t.Parallel()
	unobserved := payvault.WithObserver(payvault.Observer{
		Start: func(context.Context, payvault.CallInfo) context.Context { panic("there is no context to start from") },
	})
	for _, c := range calls.All() {
		client := nowhere(t)
		if c.Merchant {
			client = client.ForMerchant(calls.ActingFor)
		}
		result, err := c.Do(t.Context(), client, calls.IDs{}, c.Refused)
		service.AssertInvalid(t, err, c.Op, c.Problems)
		assert.Nil(t, result)
		client = service.Client(t, service.Nowhere, unobserved)
		_, err = c.Do(nil, client, calls.Documented(), c.Full) //nolint:staticcheck // the test needs a nil context
		service.AssertInvalid(t, err, c.Op, service.Fields{"context": {"is nil"}})
	}
}

// TestNegativeIDs checks that every operation refuses a negative ID in its path.
func TestNegativeIDs(t *testing.T) {
	t.Parallel()
	ids := calls.Documented()
	for _, id := range reflect.ValueOf(&ids).Elem().Fields() {
		if id.CanInt() {
			id.SetInt(-1)
		}
	}
	ids.Dispute = math.MinInt64
	for _, o := range calls.Table() {
		_, rest, _ := strings.Cut(o.Path, "{")
		if param, _, _ := strings.Cut(rest, "}"); strings.Contains(ids.In(o.Path), "-") {
			_, err := o.Do(t.Context(), nowhere(t), ids, o.Full)
			service.AssertInvalid(t, err, o.Op, service.Fields{param: {"is negative"}})
		}
	}
}
