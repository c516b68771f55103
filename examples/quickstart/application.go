package main

import "example.com/payvault"

// businessData returns all required data of an application, except the data that ownerAndBankData returns.
func businessData() payvault.ApplicationData {
	address := payvault.ApplicationAddress{
		Address1: "1 Main Street", City: "Springfield", State: "IL", Zip: "62701",
		Country: "840",
	}
	return payvault.ApplicationData{
		LegalName:                 "Springfield Bakery LLC",
		BusinessName:              "Springfield Bakery",
		BusinessWebsites:          "https://bakery.example.com",
		BusinessEmail:             "owner@bakery.example.com",
		BusinessAddress:           address,
		BusinessType:              payvault.BusinessLLC,
		LimitedPartnership:        new(false),
		TradingStatus:             payvault.TradingNonPublic,
		TaxIDType:                 payvault.TaxIDEIN,
		TaxID:                     payvault.NewSecret("123456789"),
		StateFiled:                "IL",
		BusinessEstablished:       payvault.Date{Year: 2019, Month: 5, Day: 1},
		BusinessMCC:               "5462",
		BusinessDescription:       "Bread and cakes",
		ProcessingHistory:         new(false),
		BusinessServicesProcess:   payvault.ServicesProcessOrder,
		BusinessServicesAuthTime:  []payvault.AuthTime{payvault.AuthTime1, payvault.AuthTime30},
		CardBrands:                &payvault.CardBrands{VI: true, MC: true},
		CardVolume:                new(payvault.MustParseAmount("25000.00")),
		TotalVolume:               new(payvault.MustParseAmount("40000.00")),
		HighTicket:                new(payvault.MustParseAmount("500.00")),
		FulfillmentProviderFlag:   payvault.FulfillmentBusiness,
		FulfillmentDeliveryMethod: &payvault.DeliveryMethods{Pickup: true, Delivery: true},
		DeliveryConfirmation:      new(true),
	}
}

// ownerAndBankData returns the owners and the bank account of an application.
func ownerAndBankData() payvault.ApplicationData {
	return payvault.ApplicationData{
		Ownership: payvault.Ownership{InterestCount: 1, Owners: []payvault.Owner{{
			Name:            payvault.OwnerName{FirstName: "Jane", LastName: "Doe"},
			PersonType:      &payvault.PersonType{Owner: true, Control: true},
			ContactType:     &payvault.ContactType{Admin: true},
			Phone:           "2175550100",
			Email:           "jane@bakery.example.com",
			DOB:             payvault.Date{Year: 1985, Month: 2, Day: 3},
			SSN:             payvault.NewSecret("123456789"),
			InterestPercent: new(payvault.MustParseAmount("100")),
			Title:           "Owner",
			Address: payvault.ApplicationAddress{
				Address1: "2 Oak Street", City: "Springfield", State: "IL",
				Zip: "62701", Country: "840",
			},
		}}},
		BankRouting:       payvault.NewSecret("123456780"),
		BankAccountNumber: payvault.NewSecret("000123456789"),
	}
}
