package main

import (
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// seed adds a subscription to the emulator. The subscription has a transaction for each day of 2026. The documentation
// of the service names only the status P; the statuses D and R are made up.
func seed(srv *payvaulttest.Server) payvault.SubscriptionID {
	var transactions []payvaulttest.Transaction
	for day := range 365 {
		t := payvaulttest.Transaction{
			Time: time.Date(2026, 1, 1+day, 9, 30, 0, 0, time.UTC), Status: "P", Currency: "840",
			AmtTran: payvault.MustParseAmount("0.10"),
		}
		switch {
		case day%30 == 0:
			t.Status = "D"
		case day%45 == 0:
			t.Status, t.AmtRefunded = "R", payvault.MustParseAmount("0.03")
		case day%10 == 0:
			t.Currency, t.AmtTran = "392", payvault.MustParseAmount("15") // a currency without decimals
		}
		transactions = append(transactions, t)
	}
	return srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: transactions}).ID
}
