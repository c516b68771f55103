// Package calls performs every operation of the OpenAPI document with generated clients.
package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-faster/jx"
	ht "github.com/ogen-go/ogen/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/contract/clients/testdata/generated/oapi"
	"example.com/payvault/contract/clients/testdata/generated/ogen"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/payvaulttest"
)

const pdf = "%PDF-1.7"

// newServer starts the emulator with the seed file of cmd/payvault-emulator. The examples of the document have the IDs
// of this file.
func newServer(t *testing.T) *payvaulttest.Server {
	t.Helper()
	text, err := os.ReadFile("../../../../cmd/payvault-emulator/seed.json")
	require.NoError(t, err)
	seed, err := payvaulttest.LoadSeed(bytes.NewReader(text))
	require.NoError(t, err)
	srv := payvaulttest.NewServer(payvaulttest.WithSeed(seed))
	t.Cleanup(srv.Close)
	return srv
}

// performed checks that every operation was performed once.
func performed(t *testing.T, srv *payvaulttest.Server) {
	t.Helper()
	once := map[payvault.Operation]int{}
	for _, info := range payvault.Operations() {
		once[info.Op] = 1
	}
	assert.Equal(t, once, srv.AllCommits())
}

// answerCreated makes the emulator answer the next request with a success of status 201.
func answerCreated(t *testing.T, srv *payvaulttest.Server) {
	t.Helper()
	_, err := srv.Inject(payvaulttest.Fault{
		Kind: payvaulttest.Respond, Times: 1, Status: http.StatusCreated,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   `{"code":0,"message":"Success","data":{"message":"added"}}`,
	})
	require.NoError(t, err)
}

// allData returns a request that saves all data that an application needs to be complete.
func allData() string { return calls.Fixture("applications/save_data.request.json") }

// rest performs each operation that the test has not performed before. The name of the operation and the suffix give
// the method of the generated client. rest passes the IDs of the path and the smallest request to this method.
func rest(t *testing.T, srv *payvaulttest.Server, clientFor func(payvault.Operation) any, suffix string) {
	t.Helper()
	ids := calls.Seeded(srv)
	for _, o := range payvault.Operations() {
		if srv.Commits(o.Op) > 0 {
			continue
		}
		name := ""
		for word := range strings.FieldsFuncSeq(string(o.Op), func(r rune) bool { return r == '.' || r == '_' }) {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		name += suffix
		method := reflect.ValueOf(clientFor(o.Op)).MethodByName(name)
		require.True(t, method.IsValid(), "no method %s", name)
		var path []string
		for _, parameter := range regexp.MustCompile(`{\w+}`).FindAllString(o.Path, -1) {
			path = append(path, ids.In(parameter))
		}
		params := slices.Collect(method.Type().Ins())[1:] // without ctx, the first parameter
		if method.Type().IsVariadic() {
			params = params[:len(params)-1]
		}
		in := []reflect.Value{reflect.ValueOf(t.Context())}
		for _, param := range params {
			value := reflect.New(param)
			if strings.HasSuffix(param.String(), "Request") {
				require.NoError(t, json.Unmarshal([]byte(calls.Of(o.Op).MinimalJSON), value.Interface()))
			} else {
				path = fill(t, value.Elem(), path)
			}
			in = append(in, value.Elem())
		}
		out := method.Call(in)
		require.True(t, out[1].IsNil(), "%s: %v", name, out[1])
		if suffix != "" {
			require.False(t, out[0].Elem().FieldByName("JSON200").IsNil(), name)
		}
	}
}

// fill puts the IDs of a path into a parameter, or into the fields of a parameter. It returns the IDs that are left.
func fill(t *testing.T, param reflect.Value, ids []string) []string {
	t.Helper()
	switch {
	case param.Kind() == reflect.Struct && !strings.HasPrefix(param.Type().Name(), "Opt"):
		for _, field := range param.Fields() {
			ids = fill(t, field, ids)
		}
	case param.Kind() == reflect.Int64 && len(ids) > 0:
		id, err := strconv.ParseInt(ids[0], 10, 64)
		require.NoError(t, err)
		param.SetInt(id)
		return ids[1:]
	case param.Kind() == reflect.String && len(ids) > 0:
		param.SetString(ids[0])
		return ids[1:]
	}
	return ids
}

// TestOapiCodegen checks that the client that oapi-codegen has generated from the document can perform every
// operation of the emulator.
func TestOapiCodegen(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	clientFor := func(account payvaulttest.Account) *oapi.ClientWithResponses {
		client, err := oapi.NewClientWithResponses(srv.URL,
			oapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
				r.SetBasicAuth("", account.APIKey)
				return nil
			}))
		require.NoError(t, err)
		return client
	}
	client, partner := clientFor(srv.Merchant()), clientFor(srv.Partner())
	ctx := t.Context()

	token, err := client.TokensTokenizeWithResponse(ctx, oapi.TokenizeRequest{
		MerchantId: "100001", CardNumber: new("4111111111111111"), ExpDate: new("1230"),
	})
	require.NoError(t, err)
	require.NotNil(t, token.JSON200, string(token.Body))
	assert.NotEmpty(t, token.JSON200.CardId)

	customer, err := client.CustomersCreateWithResponse(ctx, oapi.CustomerCreateRequest{
		AutoGenerateCustomerId: new(true), CustomerFirmName: new("Acme"),
		BillingCards: &[]oapi.BillingCardRequest{{CardId: &token.JSON200.CardId}},
	})
	require.NoError(t, err)
	require.NotNil(t, customer.JSON200, string(customer.Body))

	page, err := client.CustomersListWithResponse(ctx,
		&oapi.CustomersListParams{OrderOn: new("customer_id"), Count: new(int64(10))})
	require.NoError(t, err)
	require.NotNil(t, page.JSON200, string(page.Body))
	assert.Len(t, page.JSON200.Data, 1)

	app, err := partner.ApplicationsCreateWithResponse(ctx, oapi.ApplicationCreateRequest{ChannelId: 1, SalesRep: 2})
	require.NoError(t, err)
	require.NotNil(t, app.JSON200, string(app.Body))
	id := app.JSON200.Data.App.AppId
	saved, err := partner.ApplicationsSaveDataWithResponse(ctx, id, oapi.ApplicationSaveDataRequest{
		Data: []oapi.ApplicationField{
			{Key: "legal_name", Value: "Acme"},
			{Key: "card_brands", Value: map[string]bool{"vi": true}},
		},
	})
	require.NoError(t, err)
	require.NotNil(t, saved.JSON200, string(saved.Body))
	assert.Len(t, saved.JSON200.Data.Fields, 2)
	validation, err := partner.ApplicationsValidateWithResponse(ctx, id)
	require.NoError(t, err)
	require.NotNil(t, validation.JSON200, string(validation.Body))
	incomplete, err := validation.JSON200.AsApplicationIncomplete()
	require.NoError(t, err)
	assert.Contains(t, incomplete.Data, "tax_id")

	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	file, err := writer.CreateFormFile("file", "evidence.pdf")
	require.NoError(t, err)
	_, err = io.WriteString(file, pdf)
	require.NoError(t, err)
	require.NoError(t, writer.WriteField("disputeResponse", `{"message":"m","amt_tran":12.50}`))
	require.NoError(t, writer.Close())
	dispute, err := client.DisputesRespondWithBodyWithResponse(ctx, "7102", writer.FormDataContentType(), &form)
	require.NoError(t, err)
	require.NotNil(t, dispute.JSON200, string(dispute.Body))
	answered, _ := srv.Disputes.Get(7102)
	assert.Equal(t, payvault.MustParseAmount("12.50"), answered.Response.AmtTran, "the digits are kept")

	transactions, err := client.SubscriptionsTransactionsWithResponse(ctx, 5001, &oapi.SubscriptionsTransactionsParams{
		Filter: &[]string{"tran_date,BETWEEN_DATES,2026-01-01,2026-02-28"},
	})
	require.NoError(t, err)
	require.NotNil(t, transactions.JSON200, string(transactions.Body))
	require.Len(t, transactions.JSON200.Data, 2)
	assert.Equal(t, json.Number("125.50"), *transactions.JSON200.Data[0].AmtTran, "the digits are kept")

	invoice, err := client.InvoicesSendWithResponse(ctx, "INV6001",
		oapi.InvoiceSendRequest{PhoneNumber: &[]int64{14155550100}})
	require.NoError(t, err)
	require.NotNil(t, invoice.JSON200, string(invoice.Body))
	rest(t, srv, func(op payvault.Operation) any {
		if strings.HasPrefix(string(op), "applications.") {
			return partner
		}
		return client
	}, "WithResponse")
	performed(t, srv)

	_, err = partner.ApplicationsSaveDataWithBodyWithResponse(ctx, id, "application/json", strings.NewReader(allData()))
	require.NoError(t, err)
	validation, err = partner.ApplicationsValidateWithResponse(ctx, id)
	require.NoError(t, err)
	complete, err := validation.JSON200.AsAcknowledgment()
	require.NoError(t, err)
	assert.EqualValues(t, 0, complete.Code, string(validation.Body))

	refused, err := client.WebhooksAddEventWithResponse(ctx, "none", "transaction_status_updated")
	require.NoError(t, err)
	require.NotNil(t, refused.JSONDefault, string(refused.Body))
	assert.Equal(t, int64(404), refused.JSONDefault.Code)

	answerCreated(t, srv)
	added, err := client.WebhooksAddEventWithResponse(ctx, "WH8001", "some_event")
	require.NoError(t, err)
	require.NotNil(t, added.JSON2XX, string(added.Body))
	assert.Equal(t, "added", added.JSON2XX.Data.Message)
}

// A key is an API key. Clients generated by ogen call BasicAuth to get the values of the Authorization header.
type key string

func (k key) BasicAuth(_ context.Context, _ ogen.OperationName) (ogen.BasicAuth, error) {
	return ogen.BasicAuth{Password: string(k)}, nil
}

// TestOgen checks that the client that ogen has generated from the document can perform every operation of the
// emulator.
func TestOgen(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	clientFor := func(account payvaulttest.Account) *ogen.Client {
		client, err := ogen.NewClient(srv.URL, key(account.APIKey))
		require.NoError(t, err)
		return client
	}
	client, partner := clientFor(srv.Merchant()), clientFor(srv.Partner())
	ctx := t.Context()

	token := as[*ogen.TokenizeResult](t)(client.TokensTokenize(ctx, &ogen.TokenizeRequest{
		MerchantID: "100001", CardNumber: ogen.NewOptString("4111111111111111"), ExpDate: ogen.NewOptExpDate("1230"),
	}))
	as[*ogen.CustomerCreated](t)(client.CustomersCreate(ctx, &ogen.CustomerCreateRequest{
		AutoGenerateCustomerID: ogen.NewOptBool(true), CustomerFirmName: ogen.NewOptString("Acme"),
		BillingCards: []ogen.BillingCardRequest{{CardID: ogen.NewOptString(token.CardID)}},
	}))
	page := as[*ogen.CustomerPage](t)(client.CustomersList(ctx, ogen.CustomersListParams{
		OrderOn: ogen.NewOptString("customer_id"), Count: ogen.NewOptInt64(10),
	}))
	assert.Len(t, page.Data, 1)

	app := as[*ogen.ApplicationCreated](t)(partner.ApplicationsCreate(ctx,
		&ogen.ApplicationCreateRequest{ChannelID: 1, SalesRep: 2}))
	id := app.Data.App.AppID
	saved := as[*ogen.ApplicationSaved](t)(partner.ApplicationsSaveData(ctx, &ogen.ApplicationSaveDataRequest{
		Data: []ogen.ApplicationField{
			{Key: "legal_name", Value: jx.Raw(`"Acme"`)},
			{Key: "card_brands", Value: jx.Raw(`{"vi":true}`)},
		},
	}, ogen.ApplicationsSaveDataParams{AppId: id}))
	assert.Len(t, saved.Data.Fields, 2)
	validate := func() *ogen.ApplicationValidation {
		return as[*ogen.ApplicationValidation](t)(partner.ApplicationsValidate(ctx,
			ogen.ApplicationsValidateParams{AppId: id}))
	}
	assert.Contains(t, validate().ApplicationIncomplete.Data, "tax_id")

	as[*ogen.Acknowledgment](t)(client.DisputesRespond(ctx, &ogen.DisputeRespondFormMultipart{
		File:            ogen.NewOptMultipartFile(ht.MultipartFile{Name: "evidence.pdf", File: strings.NewReader(pdf)}),
		DisputeResponse: ogen.NewOptString(`{"message":"m"}`),
	}, ogen.DisputesRespondParams{RecID: "7102"}))

	transactions := as[*ogen.TransactionPage](t)(client.SubscriptionsTransactions(ctx,
		ogen.SubscriptionsTransactionsParams{
			SubscriptionID: 5001, Filter: []string{"tran_date,BETWEEN_DATES,2026-01-01,2026-02-28"},
		}))
	require.Len(t, transactions.Data, 2)
	assert.InDelta(t, 125.5, float64(transactions.Data[0].AmtTran.Value), 0)
	as[*ogen.Acknowledgment](t)(client.InvoicesSend(ctx,
		ogen.NewOptInvoiceSendRequest(ogen.InvoiceSendRequest{PhoneNumber: []int64{14155550100}}),
		ogen.InvoicesSendParams{InvoiceID: "INV6001"}))
	rest(t, srv, func(op payvault.Operation) any {
		if strings.HasPrefix(string(op), "applications.") {
			return partner
		}
		return client
	}, "")
	performed(t, srv)

	var all ogen.ApplicationSaveDataRequest
	require.NoError(t, json.Unmarshal([]byte(allData()), &all))
	as[*ogen.ApplicationSaved](t)(partner.ApplicationsSaveData(ctx, &all, ogen.ApplicationsSaveDataParams{AppId: id}))
	assert.True(t, validate().IsAcknowledgment())

	refused := as[*ogen.FailedStatusCode](t)(client.WebhooksAddEvent(ctx,
		ogen.WebhooksAddEventParams{WebhookID: "none", Event: "some_event"}))
	assert.Equal(t, 404, refused.StatusCode)
	assert.Equal(t, int64(404), refused.Response.Code)

	answerCreated(t, srv)
	added := as[*ogen.ConfirmationStatusCode](t)(client.WebhooksAddEvent(ctx,
		ogen.WebhooksAddEventParams{WebhookID: "WH8001", Event: "some_event"}))
	assert.Equal(t, 201, added.StatusCode)
	assert.Equal(t, "added", added.Response.Data.Message)
}

// as returns a function that checks that a call succeeded with an answer of type T. The function returns the answer.
func as[T any](t *testing.T) func(answer any, err error) T {
	t.Helper()
	return func(answer any, err error) T {
		t.Helper()
		require.NoError(t, err)
		require.IsType(t, *new(T), answer)
		return answer.(T)
	}
}
