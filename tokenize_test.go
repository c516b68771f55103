package payvault_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const tokenizePath = "/pg/tokenize"

// fullTokenize is tokens/tokenize.request.json.
func fullTokenize() *payvault.TokenizeRequest {
	return &payvault.TokenizeRequest{
		MerchantID:          212345,
		ProfileID:           "PROFILE-1001",
		DeveloperID:         "example-developer-1",
		LocID:               "LOC-1002",
		VendorID:            1003,
		CardholderName:      "Jane Example",
		AVSAddress:          "101 Verification Street",
		AVSZip:              "10001",
		EmailAddress:        []string{"jane.one@example.com", "jane.two@example.com"},
		CardNumber:          payvault.NewSecret("4111111111111111"),
		ExpDate:             payvault.ExpDate(12, 2029),
		CVV2:                payvault.NewSecret("123"),
		CardID:              "CARDID1004",
		CardSwipe:           payvault.NewSecret("%B4111111111111111^EXAMPLE/JANE^2912201000000000000?;4111111111111111=2912201000000000000?"),
		ClientIP:            "192.0.2.10",
		TRNumber:            payvault.NewSecret("123456780"),
		DDANumber:           payvault.NewSecret("0001112220"),
		TypeID:              payvault.TypeACH,
		PayloadWalletOnePay: payvault.NewSecret("RkFLRS1XQUxMRVQtT05FLVBBWUxPQUQ="),
		PayloadWalletTwoPay: payvault.NewSecret("RkFLRS1XQUxMRVQtVFdPLVBBWUxPQUQ="),
		SingleUse:           true,
		EchoFields:          payvault.Pairs{{Name: "order", Value: "A-1005"}, {Name: "basket", Value: "B-1006"}},
		SessionID:           "SESSION-1007",
		UserID:              1008,
		ReportData:          payvault.Pairs{{Name: "campaign", Value: "C-1009"}, {Name: "region", Value: "R-1010"}},
	}
}

// tokenized is tokens/tokenize.response.json.
func tokenized() *payvault.TokenizeResponse {
	return &payvault.TokenizeResponse{
		RCode:      "000",
		RMsg:       "Example success message",
		PGID:       "PG1011",
		CardID:     "CARDID1004",
		CardNumber: "4111xxxxxx111111",
		EchoFields: `[{"order":"A-1005"},{"basket":"B-1006"}]`,
	}
}

func TestTokensTokenize(t *testing.T) {
	t.Parallel()
	minimal := &payvault.TokenizeRequest{MerchantID: 212345}
	tests := map[string]struct {
		request      *payvault.TokenizeRequest
		body, answer string
		want         *payvault.TokenizeResponse
	}{
		"full":     {fullTokenize(), "tokens/tokenize.request.json", "tokens/tokenize.response.json", tokenized()},
		"minimal":  {minimal, "tokens/tokenize.request.min.json", `{"rcode":"000","card_id":"C1"}`, &payvault.TokenizeResponse{RCode: "000", CardID: "C1"}},
		"tolerant": {minimal, "tokens/tokenize.request.min.json", "tokens/tokenize.response.tolerant.json", tokenized()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, tokenizePath, test.body, test.answer)

			got, err := srv.client().Tokens.Tokenize(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestTokensTokenize_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, tokenizePath, "tokens/tokenize.request.json", "tokens/tokenize.error.json")

	got, err := srv.client().Tokens.Tokenize(t.Context(), fullTokenize())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpTokensTokenize, Code: "901", Message: "Example refusal of tokens.tokenize",
	})
	assert.Nil(t, got)
}

func TestTokensTokenize_invalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request *payvault.TokenizeRequest
		want    fields
	}{
		"nil":         {nil, fields{"request": {"is nil"}}},
		"no merchant": {&payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111")}, fields{"merchant_id": {"is required"}}},
		"all at once": {
			&payvault.TokenizeRequest{ExpDate: "2029-12"},
			fields{"merchant_id": {"is required"}, "exp_date": {badExpDate}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().Tokens.Tokenize(t.Context(), test.request)
			assertInvalid(t, err, payvault.OpTokensTokenize, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestTokensTokenize_expDate(t *testing.T) {
	t.Parallel()
	client := newService(t).client()
	for _, date := range []string{
		"1", "129", "12029", "1329", "0029", "9929", "12/9", "+129", "-129", " 129", "1 29", "ab29", "12ab", "0x1f", "1_29", "１２",
		payvault.ExpDate(13, 2029), payvault.ExpDate(12, 1999), payvault.ExpDate(12, 2100), payvault.ExpDate(-1, 2029),
	} {
		_, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1, ExpDate: date})
		assertInvalid(t, err, payvault.OpTokensTokenize, fields{"exp_date": {badExpDate}})
	}
}

func TestTokensTokenize_filled(t *testing.T) {
	t.Parallel()
	options := []payvault.Option{
		payvault.WithMerchantID(212345), payvault.WithVendorID(1003), payvault.WithDeveloperID("example-developer-1"),
	}
	tests := map[string]struct {
		request *payvault.TokenizeRequest
		body    string
	}{
		"empty fields": {
			&payvault.TokenizeRequest{},
			`{"merchant_id":"212345","vendor_id":1003,"developer_id":"example-developer-1"}`,
		},
		"not the others": {
			&payvault.TokenizeRequest{MerchantID: 7, VendorID: 8, DeveloperID: "nine"},
			`{"merchant_id":"7","vendor_id":8,"developer_id":"nine"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, tokenizePath, test.body, "tokens/tokenize.response.json")

			_, err := srv.client(options...).Tokens.Tokenize(t.Context(), test.request)
			require.NoError(t, err)
		})
	}
}

func TestTokensTokenize_forMerchant(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]payvault.MerchantID{"filled": 0, "the same": 212346} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, tokenizePath, `{"merchant_id":"212346"}`, "tokens/tokenize.response.json")
			client := srv.client(payvault.WithMerchantID(212345)).ForMerchant(actingFor) // wins over the owner of the key

			_, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: id})
			require.NoError(t, err)
		})
	}
	for _, id := range []payvault.MerchantID{999999, 212345} {
		t.Run("another "+strconv.Itoa(int(id)), func(t *testing.T) {
			t.Parallel()
			client := newService(t).client(payvault.WithMerchantID(212345)).ForMerchant(actingFor)

			got, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: id})
			assertInvalid(t, err, payvault.OpTokensTokenize, fields{"merchant_id": {thirdNamed}})
			assert.Nil(t, got)
		})
	}
}

func TestTokensTokenize_leavesRequestAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, tokenizePath, "tokens/tokenize.request.json", "tokens/tokenize.response.json").times(callers)
	client := srv.client(payvault.WithMerchantID(212345), payvault.WithVendorID(1003), payvault.WithDeveloperID("example-developer-1"))
	request, want := fullTokenize(), fullTokenize()
	for _, r := range []*payvault.TokenizeRequest{request, want} {
		r.MerchantID, r.VendorID, r.DeveloperID = 0, 0, ""
	}

	together(func() {
		_, err := client.Tokens.Tokenize(t.Context(), request)
		assert.NoError(t, err)
	})
	assert.Equal(t, want, request)
}

func TestTokens_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, *fullTokenize(), fixture(t, "tokens/tokenize.request.json"))
	assertWire(t, payvault.TokenizeRequest{MerchantID: 212345}, fixture(t, "tokens/tokenize.request.min.json"))
	assertWire(t, *tokenized(), fixture(t, "tokens/tokenize.response.json"))
}

func TestTokenizeResponse_echoFields(t *testing.T) {
	t.Parallel()
	pairs, err := payvault.ParsePairs(tokenized().EchoFields)
	require.NoError(t, err)
	assert.Equal(t, fullTokenize().EchoFields, pairs)
}

// TestTokensTokenize_longestSecretFirst: a security code must not break up an account number that it is part of.
func TestTokensTokenize_longestSecretFirst(t *testing.T) {
	t.Parallel()
	for _, echo := range []string{"123456789012", "1234-5678-9012", "1234 5678 9012"} {
		srv := newService(t)
		srv.expect(http.MethodPost, "/pg/tokenize",
			`{"merchant_id":"1","cvv2":"123","dda_number":"123456789012"}`, `{"rcode":"117","rmsg":"bad account `+echo+`"}`)
		_, err := srv.client().Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1, CVV2: payvault.NewSecret("123"), DDANumber: payvault.NewSecret("123456789012")})
		assert.EqualError(t, err, "payvault: tokens.tokenize: status 200 OK: code 117: bad account [REDACTED]")
	}
}
