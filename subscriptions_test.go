package payvault_test

import (
	"testing"

	"example.com/payvault"
)

// TestSubscriptionsTransactions_records checks that an rcode of 0 is read as 000, because a service that writes codes
// as numbers cannot write 000. An empty record and a time without an offset make the call fail.
func TestSubscriptionsTransactions_records(t *testing.T) {
	t.Parallel()
	transactions := named(t, "subscriptions.transactions by Subscriptions.AllTransactions")
	for rcode, want := range map[string]string{`0`: "000", `0.0`: "000", `"000"`: "000", `51`: "51"} {
		assertRead(t, transactions, `{"code":0,"data":[{"rcode":`+rcode+`}]}`, &payvault.Transaction{RCode: want})
	}
	assertUnread(t, transactions, `{"code":0,"data":[{}]}`, "/data/0 is missing")
	assertUnread(t, transactions, `{"code":0,"data":[{"tran_time":"2026-01-15T14:30:42"}]}`,
		"/data/0/tran_time cannot be read: a time whose offset is missing")
}

// TestSubscriptionsCancel_confirmation checks that a cancellation is a success even if its confirmation is empty,
// missing or unreadable. If it is missing or unreadable, Response.Unread must have its JSON pointer.
func TestSubscriptionsCancel_confirmation(t *testing.T) {
	t.Parallel()
	cancel := named(t, "subscriptions.cancel")
	assertRead(t, cancel, `{"code":0,"data":{}}`, &payvault.Confirmation{})
	for _, body := range []string{`{"code":0}`, `{"code":0,"data":"Canceled"}`} {
		assertRead(t, cancel, body, &payvault.Confirmation{}, "/data")
	}
}
