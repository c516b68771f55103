package payvault_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const payeesPath = "/platform/vault/payee"

// fullPayee is payees/create.request.json.
func fullPayee() *payvault.PayeeCreateRequest {
	return &payvault.PayeeCreateRequest{
		Name:  "Paula Payee",
		Email: []string{"paula.one@example.com", "paula.two@example.com"},
		Address: payvault.PayeeAddress{
			Address1: "301 Payee Road", Address2: "Payee Unit 6", City: "Boston", State: "MA", Zip: "02101",
			CountryCode: "840", Country: "United States",
		},
		Account: payvault.PayeeAccount{
			TypeID: payvault.TypeACH, TRNumber: payvault.NewSecret("123456780"), DDANumber: payvault.NewSecret("0003334440"), AccountholderName: "Paul Accountholder",
		},
		MerchantID: 212346,
	}
}

// storedPayee is payees/create.response.json.
func storedPayee(t *testing.T) *payvault.Payee {
	t.Helper()
	return &payvault.Payee{
		ID:    3001,
		Name:  "Paula Payee",
		Phone: "2125550131",
		Email: []string{"paula.one@example.com", "paula.two@example.com"},
		Address: payvault.PayeeAddress{
			Address1: "301 Payee Road", Address2: "Payee Unit 6", City: "Boston", State: "MA", Zip: "02101",
			CountryCode: "840", Country: "United States",
		},
		Account: payvault.PayeeAccount{
			TypeID: "S", TRNumber: payvault.NewSecret("123456780"), DDANumber: payvault.NewSecret("0003334440"), AccountholderName: "Paul Accountholder",
			VerifiedDate: instant(t, "2026-01-15T09:30:42-05:00"),
		},
	}
}

func TestPayeesCreate(t *testing.T) {
	t.Parallel()
	tolerant := storedPayee(t)
	tolerant.Account.TypeID = "UNKNOWN_ACCOUNT_TYPE"
	tolerant.Account.VerifiedDate = instant(t, "2026-01-15T21:30:42+07:00")
	minimal := &payvault.PayeeCreateRequest{Name: "Minimal Payee"}
	tests := map[string]struct {
		request      *payvault.PayeeCreateRequest
		body, answer string
		want         *payvault.Payee
	}{
		"full":     {fullPayee(), "payees/create.request.json", "payees/create.response.json", storedPayee(t)},
		"minimal":  {minimal, "payees/create.request.min.json", `{"code":0,"data":{"payee_id":1}}`, &payvault.Payee{ID: 1}},
		"tolerant": {minimal, "payees/create.request.min.json", "payees/create.response.tolerant.json", tolerant},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, payeesPath, test.body, test.answer)
			// No documented field of a payee is filled by these.
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))

			got, err := client.Payees.Create(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestPayeesCreate_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, payeesPath, "payees/create.request.json", "payees/create.error.json")

	got, err := srv.client().Payees.Create(t.Context(), fullPayee())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpPayeesCreate, Code: "5", Message: "Example refusal of payees.create",
	})
	assert.Nil(t, got)
}

func TestPayeesCreate_invalid(t *testing.T) {
	t.Parallel()
	verified := payvault.PayeeAccount{VerifiedDate: instant(t, "2026-01-15T09:30:42-05:00")}
	tests := map[string]struct {
		request *payvault.PayeeCreateRequest
		want    fields
	}{
		"nil":     {nil, fields{"request": {"is nil"}}},
		"no name": {&payvault.PayeeCreateRequest{Email: []string{"a@example.com"}}, fields{"payee_name": {"is required"}}},
		"all at once": {
			&payvault.PayeeCreateRequest{Account: verified, MerchantID: thirdParty},
			fields{
				"payee_name":                  {"is required"},
				"payee_account.verified_date": {"is assigned by the service and cannot be sent"},
				"merchant_id":                 {thirdNamed},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().ForMerchant(actingFor).Payees.Create(t.Context(), test.request)
			assertInvalid(t, err, payvault.OpPayeesCreate, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestPayeesCreate_forMerchant(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]payvault.MerchantID{"filled": 0, "the same": actingFor} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, payeesPath, `{"payee_name":"Minimal Payee","merchant_id":212346}`, "payees/create.response.json")

			_, err := srv.client().ForMerchant(actingFor).Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "Minimal Payee", MerchantID: id})
			require.NoError(t, err)
		})
	}
}

func TestPayeesCreate_leavesRequestAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, payeesPath, "payees/create.request.json", "payees/create.response.json").times(callers)
	client, request, want := srv.client().ForMerchant(actingFor), fullPayee(), fullPayee()
	request.MerchantID, want.MerchantID = 0, 0

	together(func() {
		_, err := client.Payees.Create(t.Context(), request)
		assert.NoError(t, err)
	})
	assert.Equal(t, want, request)
}

func TestPayees_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, *fullPayee(), fixture(t, "payees/create.request.json"))
	assertWire(t, payvault.PayeeCreateRequest{Name: "Minimal Payee"}, fixture(t, "payees/create.request.min.json"))
	assertWire(t, *storedPayee(t), fixtureData(t, "payees/create.response.json"))
}

func TestPayeesDelete(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"payees/delete.response.json", "payees/delete.response.tolerant.json"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodDelete, payeesPath+"/3001", "", answer)
			require.NoError(t, srv.client(payvault.WithMerchantID(1)).Payees.Delete(t.Context(), 3001))
		})
	}
}

func TestPayeesDelete_forMerchant(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodDelete, payeesPath+"/3001?"+fixture(t, "payees/delete.query"), "", "payees/delete.response.json")
	require.NoError(t, srv.client().ForMerchant(actingFor).Payees.Delete(t.Context(), 3001))
}

func TestPayeesDelete_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodDelete, payeesPath+"/3001", "", "payees/delete.error.json")

	err := srv.client().Payees.Delete(t.Context(), 3001)
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpPayeesDelete, Code: "5", Message: "Example refusal of payees.delete",
	})
}

func TestPayeesDelete_invalid(t *testing.T) {
	t.Parallel()
	client := newService(t).client()
	for _, id := range []payvault.PayeeID{0, -3001} {
		err := client.Payees.Delete(t.Context(), id)
		assertInvalid(t, err, payvault.OpPayeesDelete, fields{"payee_id": badID(id)})
	}
	for _, merchant := range []payvault.MerchantID{0, -1} {
		err := client.ForMerchant(merchant).Payees.Delete(t.Context(), 0)
		assertInvalid(t, err, payvault.OpPayeesDelete, fields{
			"payee_id": {noID}, "merchant_id": {"of ForMerchant is not positive"},
		})
	}
}
