package payvault_test

import (
	"testing"

	"example.com/payvault"
)

// TestPayeesCreate_account checks that the numbers of the account are read from JSON texts and from JSON numbers. A
// routing number that has lost a zero, and a number that is [REDACTED], are left out and named in Unread.
func TestPayeesCreate_account(t *testing.T) {
	t.Parallel()
	create := named(t, "payees.create")
	secret := payvault.NewSecret
	for _, test := range []struct {
		account string
		want    payvault.PayeeAccount
		unread  []string
	}{
		{`{"tr_number":"21000021"}`, payvault.PayeeAccount{TRNumber: secret("21000021")}, nil},
		{`{"tr_number":121000021.0}`, payvault.PayeeAccount{TRNumber: secret("121000021")}, nil},
		{
			`{"dda_number":17,"tr_number":21000021}`,
			payvault.PayeeAccount{DDANumber: secret("17")},
			[]string{"/data/payee_account/tr_number"},
		},
		{
			`{"dda_number":"[REDACTED]","tr_number":"1"}`,
			payvault.PayeeAccount{TRNumber: secret("1")},
			[]string{"/data/payee_account/dda_number"},
		},
	} {
		body := `{"code":0,"data":{"payee_id":4,"payee_account":` + test.account + `}}`
		assertRead(t, create, body, &payvault.Payee{ID: 4, Account: test.want}, test.unread...)
	}
}

// TestPayeesCreate_missing checks that an answer without data is an error, because it has no ID of the payee.
func TestPayeesCreate_missing(t *testing.T) {
	t.Parallel()
	assertUnread(t, named(t, "payees.create"), `{"code":0}`, "/data is missing")
}
