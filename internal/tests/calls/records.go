package calls

import (
	"encoding/json"
	"time"

	"github.com/govalues/decimal"

	"example.com/payvault"
)

// The requests and results whose wire forms stand in testdata, written by hand. Each function returns new ones.

func secret(text string) payvault.Secret { return payvault.NewSecret(text) }

func visa() payvault.Secret { return secret("4111111111111111") }

func day(year int, month time.Month, d int) payvault.Date {
	return payvault.Date{Year: year, Month: month, Day: d}
}

// amount returns an exact decimal number.
func amount(text string) payvault.Amount { return payvault.AmountOf(decimal.MustParse(text)) }

// instant returns a time of the form 2026-01-15T09:30:42-05:00.
func instant(text string) payvault.Timestamp {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return payvault.Timestamp{Time: at}
}

// fullTokenize is tokens/tokenize.request.json.
func fullTokenize() *payvault.TokenizeRequest {
	return &payvault.TokenizeRequest{
		MerchantID: 212345, ProfileID: "PROFILE-1001", DeveloperID: "example-developer-1", LocID: "LOC-1002",
		VendorID: 1003, CardholderName: "Jane Example", AVSAddress: "101 Verification Street", AVSZip: "10001",
		EmailAddress: []string{"jane.one@example.com", "jane.two@example.com"},
		CardNumber:   visa(), ExpDate: payvault.ExpDate(12, 2029), CVV2: secret("123"),
		CardID:    "CARDID1004",
		CardSwipe: secret("%B4111111111111111^EXAMPLE/JANE^2912201000000000000?;4111111111111111=2912201000000000000?"),
		ClientIP:  "192.0.2.10", TRNumber: secret("123456780"), DDANumber: secret("0001112220"),
		TypeID: payvault.TypeACH, PayloadWalletOnePay: secret("RkFLRS1XQUxMRVQtT05FLVBBWUxPQUQ="),
		PayloadWalletTwoPay: secret("RkFLRS1XQUxMRVQtVFdPLVBBWUxPQUQ="), SingleUse: true,
		EchoFields: payvault.Pairs{{Name: "order", Value: "A-1005"}, {Name: "basket", Value: "B-1006"}},
		SessionID:  "SESSION-1007", UserID: 1008,
		ReportData: payvault.Pairs{{Name: "campaign", Value: "C-1009"}, {Name: "region", Value: "R-1010"}},
	}
}

// tokenized is tokens/tokenize.response.json.
func tokenized() *payvault.TokenizeResponse {
	return &payvault.TokenizeResponse{
		RCode: "000", RMsg: "Example success message", PGID: "PG1011", CardID: "CARDID1004",
		CardNumber: "4111xxxxxx111111", EchoFields: `[{"order":"A-1005"},{"basket":"B-1006"}]`,
	}
}

// fullCustomer is customers/create.request.json.
func fullCustomer() *payvault.CustomerCreateRequest {
	return &payvault.CustomerCreateRequest{
		ID: "CUST2001", AutoGenerateCustomerID: true, FirstName: "Carla", LastName: "Customer",
		FirmName: "Customer Firm Inc", Phone: "2125550101", Email: "carla@example.com", ReferenceID: "REF2002",
		Comments: "A comment on the customer", DeveloperID: "example-developer-2", MerchantID: 212346,
		ShippingAddresses: []payvault.ShippingAddress{
			{
				FirstName: "Sam", LastName: "Shipper", FirmName: "Shipping Firm LLC",
				Addr1: "201 Shipping Street", Addr2: "Shipping Suite 2", City: "Albany", State: "NY", Zip: "12201", Zip4: "2003",
				Country: "United States", CountryCode: "840", Primary: true, MerchantID: 212347,
			},
			{FirstName: "Sophie", Addr1: "202 Second Shipping Street"},
		},
		BillingCards: []payvault.BillingCardRequest{
			{
				CardNumber: secret("5454545454545454"), ExpDate: "0130", CVV2: secret("234"),
				TypeID: "S", TRNumber: secret("123456780"), DDANumber: secret("0002223330"), CardID: "CARDID2004",
				FirstName: "Bill", LastName: "Biller", FirmName: "Billing Firm Corp",
				Email: []string{"bill.one@example.com", "bill.two@example.com"},
				Addr1: "203 Billing Avenue", Addr2: "Billing Floor 3", City: "Toronto", State: "ON", Zip: "54545", Zip4: "2005",
				Country: "Canada", CountryCode: "124", Verify: true, Primary: true, MerchantID: 212348,
			},
			{CardNumber: visa(), ExpDate: "0231", CardID: "CARDID2006"},
		},
	}
}

// storedCustomer is customers/create.response.json.
func storedCustomer() *payvault.Customer {
	shipping := fullCustomer().ShippingAddresses
	shipping[0].ID, shipping[0].MerchantID, shipping[1].ID = 2012, 0, 2013
	return &payvault.Customer{
		ID: "CUST2001", RecID: 2011, NodeID: 212346, FirstName: "Carla", LastName: "Customer",
		FirmName: "Customer Firm Inc", Phone: "2125550101", Email: "carla@example.com", ReferenceID: "REF2002",
		Comments: "A comment on the customer", DeveloperID: "example-developer-2",
		PrimaryCardNumber: "6011xxxxxx111117", ShippingAddresses: shipping,
		BillingCards: []payvault.BillingCard{
			{
				CardNumber: "5454xxxxxx545454", ExpDate: "0130", CardID: "CARDID2004",
				FirstName: "Bill", LastName: "Biller", FirmName: "Billing Firm Corp",
				Email: []string{"bill.one@example.com", "bill.two@example.com"},
				Addr1: "203 Billing Avenue", Addr2: "Billing Floor 3", City: "Toronto", State: "ON", Zip: "54545", Zip4: "2005",
				Country: "Canada", CountryCode: "124", Primary: true, CardType: "MC", VerifiedDate: "20260115093042",
			},
			{CardNumber: "4111xxxxxx111111", ExpDate: "0231", CardID: "CARDID2006", CardType: "VI"},
		},
	}
}

func tolerantCustomer() *payvault.Customer {
	c := storedCustomer()
	c.NodeID, c.ShippingAddresses[1].ID = 0, 0
	c.BillingCards[0].CardType, c.BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	return c
}

// listedCustomers is customers/list.response.json.
func listedCustomers() *payvault.Page[payvault.Customer] {
	return &payvault.Page[payvault.Customer]{
		Number: 2, TotalPages: 3, TotalRecords: 52,
		Items: []payvault.Customer{
			{
				ID: "CUST2101", RecID: 2102, NodeID: 212349, FirstName: "Lena", LastName: "Listed",
				FirmName: "Listed Firm Inc", Phone: "2125550121", Email: "lena@example.com", ReferenceID: "REF2103",
				Comments: "A comment on the listed customer", DeveloperID: "example-developer-3",
				PrimaryCardNumber: "6011xxxxxx111117",
				ShippingAddresses: []payvault.ShippingAddress{{
					ID: 2104, FirstName: "Stella", LastName: "Sender", FirmName: "Sender Firm LLC",
					Addr1: "211 Sender Street", Addr2: "Sender Suite 4", City: "Austin", State: "TX", Zip: "73301", Zip4: "2105",
					Country: "Mexico", CountryCode: "484", Primary: true,
				}},
				BillingCards: []payvault.BillingCard{{
					CardNumber: "4111xxxxxx111111", ExpDate: "0332", CardID: "CARDID2106",
					FirstName: "Bella", LastName: "Buyer", FirmName: "Buyer Firm Corp",
					Email: []string{"bella.one@example.com", "bella.two@example.com"},
					Addr1: "213 Buyer Avenue", Addr2: "Buyer Floor 5", City: "Denver", State: "CO", Zip: "80201", Zip4: "2107",
					Country: "United States", CountryCode: "840", Primary: true, CardType: "VI", VerifiedDate: "20260216104153",
				}},
			},
			{ID: "CUST2108"},
		},
	}
}

func tolerantCustomers() *payvault.Page[payvault.Customer] {
	page := listedCustomers()
	page.Items[0].NodeID = 0
	page.Items[0].BillingCards[0].CardType, page.Items[0].BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	return page
}

// fullListOptions is customers/list.query, and subscriptions/transactions.query.
func fullListOptions() *payvault.ListOptions {
	return &payvault.ListOptions{
		OrderOn: "tran_time", OrderBy: payvault.Descending,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", day(2026, time.January, 1), day(2026, time.January, 31)),
			payvault.Where("tran_status", "EQUALS", "P"),
		},
		Count: 25, Page: 2, MerchantID: 212346,
	}
}

// fullPayee is payees/create.request.json.
func fullPayee() *payvault.PayeeCreateRequest {
	return &payvault.PayeeCreateRequest{
		Name: "Paula Payee", Email: []string{"paula.one@example.com", "paula.two@example.com"},
		Address: payvault.PayeeAddress{
			Address1: "301 Payee Road", Address2: "Payee Unit 6", City: "Boston", State: "MA", Zip: "02101",
			CountryCode: "840", Country: "United States",
		},
		Account: payvault.PayeeAccount{
			TypeID: payvault.TypeACH, TRNumber: secret("123456780"), DDANumber: secret("0003334440"),
			AccountholderName: "Paul Accountholder",
		},
		MerchantID: 212346,
	}
}

// storedPayee is payees/create.response.json.
func storedPayee() *payvault.Payee {
	r := fullPayee()
	r.Account.VerifiedDate = instant("2026-01-15T09:30:42-05:00")
	return &payvault.Payee{
		ID: 3001, Name: r.Name, Phone: "2125550131", Email: r.Email, Address: r.Address, Account: r.Account,
	}
}

func tolerantPayee() *payvault.Payee {
	p := storedPayee()
	p.Account.TypeID, p.Account.VerifiedDate = "UNKNOWN_ACCOUNT_TYPE", instant("2026-01-15T21:30:42+07:00")
	return p
}

// createdApplication is applications/create.response.json.
func createdApplication() *payvault.ApplicationCreated {
	return &payvault.ApplicationCreated{
		App: payvault.Application{
			ID: 4004, MerchantID: 0, Status: payvault.ApplicationIncomplete, DBAName: "Example Trading Name",
			DBTimestamp: instant("2026-01-15T14:30:42Z"), SubmitTimestamp: instant("2026-01-16T15:31:43Z"),
			CreditTimestamp: instant("2026-01-17T16:32:44Z"),
		},
		Pricing: payvault.Pricing{ID: 4005, Plan: json.RawMessage(`{"example_plan_key":"Example plan value"}`)},
	}
}

func tolerantApplication() *payvault.ApplicationCreated {
	a := createdApplication()
	a.App.Status, a.App.SubmitTimestamp = "UNKNOWN_STATUS", payvault.Timestamp{}
	a.App.DBTimestamp, a.App.CreditTimestamp = instant("2026-01-15T21:30:42+07:00"), instant("2026-01-17T23:32:44+07:00")
	return a
}

func businessAddress() payvault.ApplicationAddress {
	return payvault.ApplicationAddress{
		FirmName: "Business Address Firm", Address1: "401 Business Street", Address2: "Business Suite 7",
		City: "Dover", State: "DE", Zip: "19901", Zip4: "4101", Country: "840", Attempted: true, Validated: true,
	}
}

func fulfillmentAddress() payvault.ApplicationAddress {
	return payvault.ApplicationAddress{
		FirmName: "Fulfillment Address Firm", Address1: "403 Fulfillment Street", Address2: "Fulfillment Dock 9",
		City: "Monterrey", State: "NL", Zip: "64000", Zip4: "4106", Country: "484", Attempted: true, Validated: true,
	}
}

func authTimes() []payvault.AuthTime {
	return []payvault.AuthTime{payvault.AuthTime1, payvault.AuthTime30, payvault.AuthTime30Plus}
}

func allBrands() *payvault.CardBrands {
	return &payvault.CardBrands{VI: true, MC: true, DI: true, AM: true, GP: true}
}

func allMethods() *payvault.DeliveryMethods {
	return &payvault.DeliveryMethods{Digitally: true, Pickup: true, Delivery: true, Service: true}
}

func ownership() payvault.Ownership {
	return payvault.Ownership{InterestCount: 1, Owners: []payvault.Owner{{
		Name:       payvault.OwnerName{FirstName: "Olga", LastName: "Owner"},
		PersonType: payvault.PersonType{Owner: true, Control: true, User: true}, ID: "OWNER4102",
		ContactType: payvault.ContactType{Admin: true}, Phone: "2125550142", Email: "olga@example.com",
		DOB: day(1980, time.May, 21), SSN: secret("000123456"), Passport: secret("PASSPORT4103"),
		PassportExpirationDate: "2031-06-22", PassportIssueDate: "2021-06-23", DLNumber: secret("LICENSE4104"),
		DLState: "NJ", DLExpirationDate: "2030-07-24", DLIssueDate: "2022-07-25",
		InterestPercent:   new(amount("62.5")),
		RelatedBusinesses: []json.RawMessage{json.RawMessage(`"Example Related Business LLC"`)},
		CbExp:             "Example text in cbExp", Legal: new(true), LegalExp: "Example text in legalExp",
		Title: "Managing Member",
		Address: payvault.ApplicationAddress{
			FirmName: "Owner Address Firm", Address1: "402 Owner Street", Address2: "Owner Unit 8",
			City: "Calgary", State: "AB", Zip: "07001", Zip4: "4105", Country: "124", Attempted: true, Validated: true,
		},
	}}}
}

// fullData is applications/save_data.request.json.
func fullData() payvault.ApplicationData {
	return payvault.ApplicationData{
		LegalName: "Example Legal Name LLC", BusinessName: "Example Business Name",
		BusinessWebsites: "https://shop.example.com", BusinessEmail: "business@example.com", BusinessPhone: "2125550141",
		BusinessAddress: businessAddress(), BusinessType: payvault.BusinessLLC, LimitedPartnership: new(false),
		TradingStatus: payvault.TradingNonPublic, TaxIDType: payvault.TaxIDEIN, TaxID: secret("001234567"),
		StateFiled: "NV", BusinessEstablished: day(2015, time.March, 14), BusinessMCC: "5999",
		BusinessDescription: "Example description of the business", Ownership: ownership(), ProcessingHistory: new(true),
		BusinessServicesProcess: payvault.ServicesProcessFulfill, BusinessServicesAuthTime: authTimes(),
		CardBrands: allBrands(), CardVolume: new(amount("25000.00")), ACHVolume: new(amount("5000.00")),
		TotalVolume: new(amount("30000.00")), HighTicket: new(amount("1500.00")),
		FulfillmentProviderFlag: payvault.FulfillmentThirdParty, FulfillmentDeliveryMethod: allMethods(),
		DeliveryConfirmation: new(true), FulfillmentName: "Example Fulfillment House",
		FulfillmentContact: "Frank Fulfiller", FulfillmentEmail: "fulfillment@example.com",
		FulfillmentPhone: "2125550143", FulfillmentAddress: fulfillmentAddress(), FulfillmentProcessFlag: new(false),
		BankRouting: secret("123456780"), BankAccountNumber: secret("0004445550"),
	}
}

// MixedData is applications/save_data.request.mixed.json.
func MixedData() payvault.ApplicationData {
	return payvault.ApplicationData{
		LimitedPartnership: new(true), ProcessingHistory: new(false),
		BusinessServicesAuthTime:  []payvault.AuthTime{payvault.AuthTime90Plus},
		CardBrands:                &payvault.CardBrands{VI: true, DI: true},
		FulfillmentDeliveryMethod: &payvault.DeliveryMethods{Pickup: true, Service: true},
		DeliveryConfirmation:      new(false), FulfillmentProcessFlag: new(true),
	}
}

// savedFields is applications/save_data.response.json.
func savedFields() []payvault.SavedField {
	type (
		option  = payvault.FieldOption
		options = []option
	)
	optional := func(key, kind string, value any) payvault.SavedField {
		return payvault.SavedField{Key: key, Value: value, Type: kind}
	}
	required := func(key, kind string, value any, allowed ...option) payvault.SavedField {
		f := optional(key, kind, value)
		f.Settings = payvault.FieldSettings{Required: true, Options: allowed}
		return f
	}
	return []payvault.SavedField{
		required("legal_name", "text", "Example Legal Name LLC"), required("business_name", "text", "Example Business Name"),
		required("business_websites", "url_list", "https://shop.example.com"),
		required("business_email", "email", "business@example.com"), optional("business_phone", "phone", "2125550141"),
		required("business_address", "address_suggest", businessAddress()),
		required("business_type", "select", payvault.BusinessLLC, options{
			{Label: "Sole proprietorship", Value: "sole-prop"}, {Label: "Limited liability company", Value: "llc"},
			{Label: "Public corporation", Value: "corporation-public"},
			{Label: "Private corporation", Value: "corporation-private"}, {Label: "Partnership", Value: "partnership"},
			{Label: "Tax exempt organization", Value: "tax-exempt", Disabled: true},
		}...),
		required("limited_partnership", "toggle", false),
		required("trading_status", "radio", payvault.TradingNonPublic,
			option{Label: "Publicly traded", Value: "pt"}, option{Label: "Non-public", Value: "np"}),
		required("tax_id_type", "select", payvault.TaxIDEIN,
			option{Label: "Employer number", Value: "ein"}, option{Label: "Social security number", Value: "ssn"}),
		required("tax_id", "tax_id", secret("001234567")), required("state_filed", "us_state", "NV"),
		required("business_established", "date", day(2015, time.March, 14)), required("business_mcc", "mcc", "5999"),
		required("business_description", "text", "Example description of the business"),
		required("ownership", "ownership", ownership()), required("processing_history", "toggle", true),
		required("business_services_process", "radio", payvault.ServicesProcessFulfill, options{
			{Label: "When the order is placed", Value: "order"}, {Label: "When the order is fulfilled", Value: "fulfill"},
		}...),
		required("business_services_auth_time", "checkbox_group", authTimes()),
		required("card_brands", "checkbox_row", *allBrands()),
		required("card_volume", "currency", amount("25000.00")), optional("ach_volume", "currency", amount("5000.00")),
		required("total_volume", "currency", amount("30000.00")), required("high_ticket", "currency", amount("1500.00")),
		required("fulfillment_provider_flag", "radio", payvault.FulfillmentThirdParty,
			option{Label: "The business itself", Value: "business"}, option{Label: "A third party", Value: "thirdparty"}),
		required("fulfillment_delivery_method", "checkbox_row", *allMethods()),
		required("delivery_confirmation", "toggle", true),
		optional("fulfillment_name", "text", "Example Fulfillment House"),
		optional("fulfillment_contact", "name", "Frank Fulfiller"),
		optional("fulfillment_email", "email", "fulfillment@example.com"),
		optional("fulfillment_phone", "phone", "2125550143"),
		optional("fulfillment_address", "address_suggest", fulfillmentAddress()),
		optional("fulfillment_process_flag", "toggle", false),
		required("bank_routing", "bank_routing", secret("123456780")),
		required("bank_account_number", "bank_dda", secret("0004445550")),
	}
}

// tolerantFields is applications/save_data.response.tolerant.json.
func tolerantFields() []payvault.SavedField {
	saved := append(savedFields(),
		payvault.SavedField{Key: "unknown_key", Value: "a value under an unknown key", Type: "unknown_type"})
	for i := range saved {
		switch f := &saved[i]; f.Key {
		case "business_type":
			f.Value = payvault.BusinessType("unknown-business-type")
		case "business_established":
			f.Value = payvault.Date{}
		case "business_mcc":
			f.Type = "unknown_type"
		case "ownership":
			o := ownership()
			o.Owners[0].DOB, o.Owners[0].InterestPercent = payvault.Date{}, nil
			f.Value = o
		}
	}
	return saved
}

// fullResponse is disputes/respond.request.json, with disputes/evidence.pdf.
func fullResponse() *payvault.DisputeResponse {
	return &payvault.DisputeResponse{
		Message: "Example message of the response to the dispute", Type: payvault.DisputeCreditProcessed,
		AmtTran: amount("125.50"), BatchDate: day(2026, time.January, 16), ReferenceNumber: "REFNUM5001",
		EvidenceType: "EXAMPLE_CE_TYPE", AllocationType: "EXAMPLE_ID_TYPE",
		Reason:   "Example description of the reason",
		Evidence: payvault.FileFromBytes("evidence.pdf", []byte(Fixture("disputes/evidence.pdf"))),
	}
}

// minimalResponse is disputes/respond.request.min.json: an answer to a retrieval dispute.
func minimalResponse() *payvault.DisputeResponse {
	return &payvault.DisputeResponse{Message: "Example answer to a retrieval dispute", Evidence: fullResponse().Evidence}
}

// listedTransactions is subscriptions/transactions.response.json.
func listedTransactions() *payvault.Page[payvault.Transaction] {
	return &payvault.Page[payvault.Transaction]{
		Number: 2, TotalPages: 3, TotalRecords: 52,
		Items: []payvault.Transaction{
			{
				MerchantID: 212346, Time: instant("2026-01-15T09:30:42-05:00"), Status: payvault.TransactionStatusP,
				AuthCode: "AUTH6001", RCode: "000", RMsg: "Example transaction message", CardNumber: "4111xxxxxx111111",
				CardType: "VI", PurchaseID: "PURCHASE6002", PGID: "PG6003", CardholderFirstName: "Tara",
				CardholderLastName: "Transactor", AmtTran: amount("125.50"), Currency: "840", DisputeFlag: true,
				AmtRefunded: amount("25.10"), BatchNumber: 6004, CustomerID: "CUST6005", SubscriptionID: 6006,
				MerchRefNum: "MERCHREF6007", BatchID: 6008, BatchDate: day(2026, time.January, 16),
				SettleDate: day(2026, time.January, 17), AmtFunded: amount("98.75"), FundedCurrency: "124",
			},
			{Time: instant("2026-01-18T10:41:53-05:00"), PGID: "PG6009"},
		},
	}
}

// tolerantTransactions is subscriptions/transactions.response.tolerant.json.
func tolerantTransactions() *payvault.Page[payvault.Transaction] {
	p := listedTransactions()
	first := &p.Items[0]
	first.Time = instant("2026-01-15T14:30:42Z")
	first.Status, first.CardType = "UNKNOWN_STATUS", "UNKNOWN_CARD_TYPE"
	first.AmtRefunded, first.BatchID = payvault.Amount{}, 0
	first.BatchDate, first.SettleDate = payvault.Date{}, payvault.Date{}
	p.Items = []payvault.Transaction{
		*first,
		{PGID: "PG6011", Time: instant("2026-01-15T21:30:42+07:00")},
		{PGID: "PG6012", Time: instant("2026-01-15T21:30:42+07:00")},
		{PGID: "PG6013", Time: instant("2026-01-15T14:30:42.5Z")},
		{PGID: "PG6014", Time: instant("2026-01-15T21:30:42.5+07:00")},
		{PGID: "PG6015", Time: instant("2026-01-15T21:30:42.5+07:00")},
		{PGID: "PG6016"},
	}
	return p
}

// fullCards are account_updater/submit.request.json.
func fullCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{
		{CardNumber: visa(), ExpDate: "1229", CardID: "CALLERCARD8001"},
		{CardNumber: secret("5454545454545454"), ExpDate: "0130", CardID: "CALLERCARD8002"},
	}
}
