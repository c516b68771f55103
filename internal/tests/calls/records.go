package calls

import (
	"encoding/json"
	"time"

	"example.com/payvault"
)

// The requests and results are read from testdata, which is written by hand. Package operations holds that nothing is
// lost on the way, and that fields are named like their members. Each function returns new values.

// request is the full request of an operation.
func request[T any](name string) T { return read[T](name + ".request.json") }

// answered gives the result in the documented answer to an operation, below the given members.
func answered[T any](name string, members ...string) func() any {
	return func() any { return new(read[T](name+".response.json", members...)) }
}

// read reads what is in a file below the given members.
func read[T any](name string, members ...string) T {
	text := []byte(Fixture(name))
	for _, member := range members {
		var object map[string]json.RawMessage
		must(json.Unmarshal(text, &object))
		text = object[member]
	}
	var v T
	must(json.Unmarshal(text, &v))
	return v
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func secret(text string) payvault.Secret { return payvault.NewSecret(text) }

func day(year int, month time.Month, d int) payvault.Date {
	return payvault.Date{Year: year, Month: month, Day: d}
}

// instant returns a time of the form 2026-01-15T09:30:42-05:00.
func instant(text string) payvault.Timestamp {
	at, err := time.Parse(time.RFC3339, text)
	must(err)
	return payvault.Timestamp{Time: at}
}

// The tolerant answers are documented ones in which some values are sent in another form, unknown, or left out.

func tolerantCustomer() any {
	return tolerant(new(read[payvault.Customer]("customers/create.response.json", "data")))
}

func tolerant(c *payvault.Customer) *payvault.Customer {
	c.NodeID = 0
	c.BillingCards[0].CardType, c.BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	if len(c.ShippingAddresses) > 1 {
		c.ShippingAddresses[1].ID = 0
	}
	return c
}

func tolerantCustomers() any {
	page := read[payvault.Page[payvault.Customer]]("customers/list.response.json")
	tolerant(&page.Items[0])
	return &page
}

func tolerantPayee() any {
	p := read[payvault.Payee]("payees/create.response.json", "data")
	p.Account.TypeID, p.Account.VerifiedDate = "UNKNOWN_ACCOUNT_TYPE", instant("2026-01-15T21:30:42+07:00")
	return &p
}

func tolerantApplication() any {
	a := read[payvault.ApplicationCreated]("applications/create.response.json", "data")
	a.App.Status, a.App.SubmitTimestamp = "UNKNOWN_STATUS", payvault.Timestamp{}
	a.App.DBTimestamp, a.App.CreditTimestamp = instant("2026-01-15T21:30:42+07:00"), instant("2026-01-17T23:32:44+07:00")
	return &a
}

func savedFields() []payvault.SavedField {
	return read[[]payvault.SavedField]("applications/save_data.response.json", "data", "fields")
}

func tolerantFields() any {
	saved := append(savedFields(), payvault.SavedField{
		Key: "unknown_key", Value: "a value under an unknown key", Type: "unknown_type",
	})
	for i := range saved {
		switch f := &saved[i]; f.Key {
		case "business_type":
			f.Value = payvault.BusinessType("unknown-business-type")
		case "business_established":
			f.Value = payvault.Date{}
		case "business_mcc":
			f.Type = "unknown_type"
		case "ownership":
			if o, ok := f.Value.(payvault.Ownership); ok {
				o.Owners[0].DOB, o.Owners[0].InterestPercent = payvault.Date{}, nil
			}
		}
	}
	return saved
}

// withEvidence adds the file, which is a part of its own.
func withEvidence(r payvault.DisputeResponse) *payvault.DisputeResponse {
	r.Evidence = payvault.FileFromBytes("evidence.pdf", []byte(Fixture("disputes/evidence.pdf")))
	return &r
}

func tolerantTransactions() any {
	page := read[payvault.Page[payvault.Transaction]]("subscriptions/transactions.response.json")
	first := &page.Items[0]
	first.Time, first.Status, first.CardType = instant("2026-01-15T14:30:42Z"), "UNKNOWN_STATUS", "UNKNOWN_CARD_TYPE"
	first.AmtRefunded, first.BatchID = payvault.Amount{}, 0
	first.BatchDate, first.SettleDate = payvault.Date{}, payvault.Date{}
	page.Items = []payvault.Transaction{
		*first,
		{PGID: "PG6011", Time: instant("2026-01-15T21:30:42+07:00")},
		{PGID: "PG6012", Time: instant("2026-01-15T21:30:42+07:00")},
		{PGID: "PG6013", Time: instant("2026-01-15T14:30:42.5Z")},
		{PGID: "PG6014", Time: instant("2026-01-15T21:30:42.5+07:00")},
		{PGID: "PG6015", Time: instant("2026-01-15T21:30:42.5+07:00")},
		{PGID: "PG6016"},
	}
	return &page
}

// fullListOptions is list.query.
func fullListOptions() *payvault.ListOptions {
	return &payvault.ListOptions{
		OrderOn: "tran_time", OrderBy: payvault.Descending, Count: 25, Page: 2, MerchantID: ActingFor,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", day(2026, time.January, 1), day(2026, time.January, 31)),
			payvault.Where("tran_status", "EQUALS", "P"),
		},
	}
}

// badListOptions have every problem that list options can have.
func badListOptions() (*payvault.ListOptions, fields) {
	january, march := day(2026, 1, 1), day(2026, 3, 1)
	options := &payvault.ListOptions{
		OrderBy: "ASC", Count: -1, Page: -1, Prefetch: -1, MerchantID: ThirdParty,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", january, march), payvault.Where("", "EQUALS", "P"),
			payvault.Where("tran_status", "EQUALS", "P,Q"), payvault.BetweenDates("tran_date", march, january),
		},
	}
	return options, fields{
		"order_by": {"is neither asc nor desc"}, "count": {"is negative"}, "page": {"is negative"},
		"Prefetch": {"is negative"}, "merchant_id": {ThirdNamed},
		"filter[1]": {"needs a field, a conditional and a value"},
		"filter[2]": {"contains a comma, which separates the parts of a filter"},
		"filter[3]": {"BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last"},
	}
}
