package payvault_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const (
	addPath      = "/platform/application/add"
	dataPath     = "/platform/application/4004/data"
	validatePath = "/platform/application/4004/validate"
)

// fullApplication is applications/create.request.json.
func fullApplication() *payvault.ApplicationCreateRequest {
	return &payvault.ApplicationCreateRequest{ChannelID: 4001, SalesRep: 4002, TerminationNode: 4003}
}

// createdApplication is applications/create.response.json.
func createdApplication(t *testing.T) *payvault.ApplicationCreated {
	t.Helper()
	return &payvault.ApplicationCreated{
		App: payvault.Application{
			ID:              4004,
			MerchantID:      0,
			Status:          payvault.ApplicationIncomplete,
			DBAName:         "Example Trading Name",
			DBTimestamp:     instant(t, "2026-01-15T14:30:42Z"),
			SubmitTimestamp: instant(t, "2026-01-16T15:31:43Z"),
			CreditTimestamp: instant(t, "2026-01-17T16:32:44Z"),
		},
		Pricing: payvault.Pricing{ID: 4005, Plan: json.RawMessage(`{"example_plan_key":"Example plan value"}`)},
	}
}

func TestApplicationsCreate(t *testing.T) {
	t.Parallel()
	minimal := &payvault.ApplicationCreateRequest{ChannelID: 4001, SalesRep: 4002}
	tolerant := createdApplication(t)
	tolerant.App.Status = "UNKNOWN_STATUS"
	tolerant.App.DBTimestamp = instant(t, "2026-01-15T21:30:42+07:00")
	tolerant.App.SubmitTimestamp = payvault.Timestamp{}
	tolerant.App.CreditTimestamp = instant(t, "2026-01-17T23:32:44+07:00")
	tests := map[string]struct {
		request      *payvault.ApplicationCreateRequest
		body, answer string
		want         *payvault.ApplicationCreated
	}{
		"full":     {fullApplication(), "applications/create.request.json", "applications/create.response.json", createdApplication(t)},
		"tolerant": {minimal, "applications/create.request.min.json", "applications/create.response.tolerant.json", tolerant},
		"approved": {
			minimal, "applications/create.request.min.json", `{"code":0,"data":{"app":{"app_id":1,"merchant_id":2},"pricing":{"plan":null}}}`,
			&payvault.ApplicationCreated{App: payvault.Application{ID: 1, MerchantID: 2}, Pricing: payvault.Pricing{Plan: json.RawMessage(`null`)}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, addPath, test.body, test.answer)
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))

			got, err := client.Applications.Create(t.Context(), test.request)
			require.NoError(t, err)
			assert.JSONEq(t, string(test.want.Pricing.Plan), string(got.Pricing.Plan))
			got.Pricing.Plan = test.want.Pricing.Plan // but for white space
			assert.Equal(t, test.want, got)
		})
	}
}

func TestApplicationsCreate_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, addPath, "applications/create.request.json", "applications/create.error.json")

	got, err := srv.client().Applications.Create(t.Context(), fullApplication())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpApplicationsCreate, Code: "5", Message: "Example refusal of applications.create",
	})
	assert.Nil(t, got)
}

func TestApplicationsCreate_invalid(t *testing.T) {
	t.Parallel()
	required := []string{"is required"}
	tests := map[string]struct {
		request *payvault.ApplicationCreateRequest
		want    fields
	}{
		"nil":         {nil, fields{"request": {"is nil"}}},
		"no channel":  {&payvault.ApplicationCreateRequest{SalesRep: 4002}, fields{"channel_id": required}},
		"no rep":      {&payvault.ApplicationCreateRequest{ChannelID: 4001}, fields{"sales_rep": required}},
		"all at once": {&payvault.ApplicationCreateRequest{TerminationNode: 4003}, fields{"channel_id": required, "sales_rep": required}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().Applications.Create(t.Context(), test.request)
			assertInvalid(t, err, payvault.OpApplicationsCreate, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestApplicationsCreate_leavesRequestAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, addPath, "applications/create.request.json", "applications/create.response.json").times(callers)
	client, request := srv.client(), fullApplication()

	together(func() {
		_, err := client.Applications.Create(t.Context(), request)
		assert.NoError(t, err)
	})
	assert.Equal(t, fullApplication(), request)
}

func TestApplications_forMerchant(t *testing.T) {
	t.Parallel()
	client := newService(t).client().ForMerchant(actingFor)

	created, err := client.Applications.Create(t.Context(), fullApplication())
	assertNoMerchant(t, err, payvault.OpApplicationsCreate)
	assert.Nil(t, created)

	saved, err := client.Applications.SaveData(t.Context(), 4004, fullData())
	assertNoMerchant(t, err, payvault.OpApplicationsSaveData)
	assert.Nil(t, saved)

	validation, err := client.Applications.Validate(t.Context(), 4004)
	assertNoMerchant(t, err, payvault.OpApplicationsValidate)
	assert.Nil(t, validation)
}

func TestApplications_invalidID(t *testing.T) {
	t.Parallel()
	client := newService(t).client()
	for _, id := range []payvault.ApplicationID{0, -4004} {
		saved, err := client.Applications.SaveData(t.Context(), id, payvault.ApplicationData{})
		assertInvalid(t, err, payvault.OpApplicationsSaveData, fields{"appId": badID(id), "data": {"has no field"}})
		assert.Nil(t, saved)

		validation, err := client.Applications.Validate(t.Context(), id)
		assertInvalid(t, err, payvault.OpApplicationsValidate, fields{"appId": badID(id)})
		assert.Nil(t, validation)
	}
}

// The values of applications/save_data.request.json and save_data.response.json that are objects.

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

func ownership() payvault.Ownership {
	return payvault.Ownership{InterestCount: 1, Owners: []payvault.Owner{{
		Name:                   payvault.OwnerName{FirstName: "Olga", LastName: "Owner"},
		PersonType:             payvault.PersonType{Owner: true, Control: true, User: true},
		ID:                     "OWNER4102",
		ContactType:            payvault.ContactType{Admin: true},
		Phone:                  "2125550142",
		Email:                  "olga@example.com",
		DOB:                    payvault.Date{Year: 1980, Month: time.May, Day: 21},
		SSN:                    payvault.NewSecret("000123456"),
		Passport:               payvault.NewSecret("PASSPORT4103"),
		PassportExpirationDate: "2031-06-22",
		PassportIssueDate:      "2021-06-23",
		DLNumber:               payvault.NewSecret("LICENSE4104"),
		DLState:                "NJ",
		DLExpirationDate:       "2030-07-24",
		DLIssueDate:            "2022-07-25",
		InterestPercent:        new(amount("62.5")),
		RelatedBusinesses:      []json.RawMessage{json.RawMessage(`"Example Related Business LLC"`)},
		CbExp:                  "Example text in cbExp",
		Legal:                  new(true),
		LegalExp:               "Example text in legalExp",
		Title:                  "Managing Member",
		Address: payvault.ApplicationAddress{
			FirmName: "Owner Address Firm", Address1: "402 Owner Street", Address2: "Owner Unit 8",
			City: "Calgary", State: "AB", Zip: "07001", Zip4: "4105", Country: "124", Attempted: true, Validated: true,
		},
	}}}
}

// fullData is applications/save_data.request.json.
func fullData() payvault.ApplicationData {
	return payvault.ApplicationData{
		LegalName:                 "Example Legal Name LLC",
		BusinessName:              "Example Business Name",
		BusinessWebsites:          "https://shop.example.com",
		BusinessEmail:             "business@example.com",
		BusinessPhone:             "2125550141",
		BusinessAddress:           businessAddress(),
		BusinessType:              payvault.BusinessLLC,
		LimitedPartnership:        new(false),
		TradingStatus:             payvault.TradingNonPublic,
		TaxIDType:                 payvault.TaxIDEIN,
		TaxID:                     payvault.NewSecret("001234567"),
		StateFiled:                "NV",
		BusinessEstablished:       payvault.Date{Year: 2015, Month: time.March, Day: 14},
		BusinessMCC:               "5999",
		BusinessDescription:       "Example description of the business",
		Ownership:                 ownership(),
		ProcessingHistory:         new(true),
		BusinessServicesProcess:   payvault.ServicesProcessFulfill,
		BusinessServicesAuthTime:  []payvault.AuthTime{payvault.AuthTime1, payvault.AuthTime30, payvault.AuthTime30Plus},
		CardBrands:                &payvault.CardBrands{VI: true, MC: true, DI: true, AM: true, GP: true},
		CardVolume:                new(amount("25000.00")),
		ACHVolume:                 new(amount("5000.00")),
		TotalVolume:               new(amount("30000.00")),
		HighTicket:                new(amount("1500.00")),
		FulfillmentProviderFlag:   payvault.FulfillmentThirdParty,
		FulfillmentDeliveryMethod: &payvault.DeliveryMethods{Digitally: true, Pickup: true, Delivery: true, Service: true},
		DeliveryConfirmation:      new(true),
		FulfillmentName:           "Example Fulfillment House",
		FulfillmentContact:        "Frank Fulfiller",
		FulfillmentEmail:          "fulfillment@example.com",
		FulfillmentPhone:          "2125550143",
		FulfillmentAddress:        fulfillmentAddress(),
		FulfillmentProcessFlag:    new(false),
		BankRouting:               payvault.NewSecret("123456780"),
		BankAccountNumber:         payvault.NewSecret("0004445550"),
	}
}

// mixedData is applications/save_data.request.mixed.json.
func mixedData() payvault.ApplicationData {
	return payvault.ApplicationData{
		LimitedPartnership:        new(true),
		ProcessingHistory:         new(false),
		BusinessServicesAuthTime:  []payvault.AuthTime{payvault.AuthTime90Plus},
		CardBrands:                &payvault.CardBrands{VI: true, DI: true},
		FulfillmentDeliveryMethod: &payvault.DeliveryMethods{Pickup: true, Service: true},
		DeliveryConfirmation:      new(false),
		FulfillmentProcessFlag:    new(true),
	}
}

// savedFields is applications/save_data.response.json.
func savedFields() []payvault.SavedField {
	required := payvault.FieldSettings{Required: true}
	var optional payvault.FieldSettings
	oneOf := func(options ...payvault.FieldOption) payvault.FieldSettings {
		return payvault.FieldSettings{Required: true, Options: options}
	}
	return []payvault.SavedField{
		{Key: "legal_name", Value: "Example Legal Name LLC", Type: "text", Settings: required},
		{Key: "business_name", Value: "Example Business Name", Type: "text", Settings: required},
		{Key: "business_websites", Value: "https://shop.example.com", Type: "url_list", Settings: required},
		{Key: "business_email", Value: "business@example.com", Type: "email", Settings: required},
		{Key: "business_phone", Value: "2125550141", Type: "phone", Settings: optional},
		{Key: "business_address", Value: businessAddress(), Type: "address_suggest", Settings: required},
		{Key: "business_type", Value: payvault.BusinessLLC, Type: "select", Settings: oneOf(
			payvault.FieldOption{Label: "Sole proprietorship", Value: "sole-prop"},
			payvault.FieldOption{Label: "Limited liability company", Value: "llc"},
			payvault.FieldOption{Label: "Public corporation", Value: "corporation-public"},
			payvault.FieldOption{Label: "Private corporation", Value: "corporation-private"},
			payvault.FieldOption{Label: "Partnership", Value: "partnership"},
			payvault.FieldOption{Label: "Tax exempt organization", Value: "tax-exempt", Disabled: true},
		)},
		{Key: "limited_partnership", Value: false, Type: "toggle", Settings: required},
		{Key: "trading_status", Value: payvault.TradingNonPublic, Type: "radio", Settings: oneOf(
			payvault.FieldOption{Label: "Publicly traded", Value: "pt"},
			payvault.FieldOption{Label: "Non-public", Value: "np"},
		)},
		{Key: "tax_id_type", Value: payvault.TaxIDEIN, Type: "select", Settings: oneOf(
			payvault.FieldOption{Label: "Employer number", Value: "ein"},
			payvault.FieldOption{Label: "Social security number", Value: "ssn"},
		)},
		{Key: "tax_id", Value: payvault.NewSecret("001234567"), Type: "tax_id", Settings: required},
		{Key: "state_filed", Value: "NV", Type: "us_state", Settings: required},
		{Key: "business_established", Value: payvault.Date{Year: 2015, Month: time.March, Day: 14}, Type: "date", Settings: required},
		{Key: "business_mcc", Value: "5999", Type: "mcc", Settings: required},
		{Key: "business_description", Value: "Example description of the business", Type: "text", Settings: required},
		{Key: "ownership", Value: ownership(), Type: "ownership", Settings: required},
		{Key: "processing_history", Value: true, Type: "toggle", Settings: required},
		{Key: "business_services_process", Value: payvault.ServicesProcessFulfill, Type: "radio", Settings: oneOf(
			payvault.FieldOption{Label: "When the order is placed", Value: "order"},
			payvault.FieldOption{Label: "When the order is fulfilled", Value: "fulfill"},
		)},
		{
			Key: "business_services_auth_time", Value: []payvault.AuthTime{payvault.AuthTime1, payvault.AuthTime30, payvault.AuthTime30Plus},
			Type: "checkbox_group", Settings: required,
		},
		{
			Key: "card_brands", Value: payvault.CardBrands{VI: true, MC: true, DI: true, AM: true, GP: true},
			Type: "checkbox_row", Settings: required,
		},
		{Key: "card_volume", Value: amount("25000.00"), Type: "currency", Settings: required},
		{Key: "ach_volume", Value: amount("5000.00"), Type: "currency", Settings: optional},
		{Key: "total_volume", Value: amount("30000.00"), Type: "currency", Settings: required},
		{Key: "high_ticket", Value: amount("1500.00"), Type: "currency", Settings: required},
		{Key: "fulfillment_provider_flag", Value: payvault.FulfillmentThirdParty, Type: "radio", Settings: oneOf(
			payvault.FieldOption{Label: "The business itself", Value: "business"},
			payvault.FieldOption{Label: "A third party", Value: "thirdparty"},
		)},
		{
			Key: "fulfillment_delivery_method", Value: payvault.DeliveryMethods{Digitally: true, Pickup: true, Delivery: true, Service: true},
			Type: "checkbox_row", Settings: required,
		},
		{Key: "delivery_confirmation", Value: true, Type: "toggle", Settings: required},
		{Key: "fulfillment_name", Value: "Example Fulfillment House", Type: "text", Settings: optional},
		{Key: "fulfillment_contact", Value: "Frank Fulfiller", Type: "name", Settings: optional},
		{Key: "fulfillment_email", Value: "fulfillment@example.com", Type: "email", Settings: optional},
		{Key: "fulfillment_phone", Value: "2125550143", Type: "phone", Settings: optional},
		{Key: "fulfillment_address", Value: fulfillmentAddress(), Type: "address_suggest", Settings: optional},
		{Key: "fulfillment_process_flag", Value: false, Type: "toggle", Settings: optional},
		{Key: "bank_routing", Value: payvault.NewSecret("123456780"), Type: "bank_routing", Settings: required},
		{Key: "bank_account_number", Value: payvault.NewSecret("0004445550"), Type: "bank_dda", Settings: required},
	}
}

// tolerantFields is applications/save_data.response.tolerant.json.
func tolerantFields() []payvault.SavedField {
	saved := append(savedFields(), payvault.SavedField{Key: "unknown_key", Value: "a value under an unknown key", Type: "unknown_type"})
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

func TestApplicationsSaveData(t *testing.T) {
	t.Parallel()
	extra := payvault.ApplicationData{
		LegalName: "Minimal Legal Name",
		Extra: []payvault.ApplicationField{
			{Key: "later_text", Value: "a later addition"},
			{Key: "later_object", Value: map[string]any{"inner": []any{1, "two", nil}}},
			{Key: "later_secret", Value: payvault.NewSecret("4107")},
		},
	}
	tests := map[string]struct {
		data         payvault.ApplicationData
		body, answer string
		want         []payvault.SavedField
	}{
		"full":     {fullData(), "applications/save_data.request.json", "applications/save_data.response.json", savedFields()},
		"mixed":    {mixedData(), "applications/save_data.request.mixed.json", `{"code":0,"data":{"fields":[]}}`, []payvault.SavedField{}},
		"minimal":  {payvault.ApplicationData{LegalName: "Minimal Legal Name"}, "applications/save_data.request.min.json", `{"code":0,"data":{}}`, nil},
		"tolerant": {mixedData(), "applications/save_data.request.mixed.json", "applications/save_data.response.tolerant.json", tolerantFields()},
		"extra": {extra, `{"data":[
			{"key":"legal_name","value":"Minimal Legal Name"},
			{"key":"later_text","value":"a later addition"},
			{"key":"later_object","value":{"inner":[1,"two",null]}},
			{"key":"later_secret","value":"4107"}
		]}`, `{"code":0,"data":{}}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, dataPath, test.body, test.answer)

			got, err := srv.client(payvault.WithMerchantID(1)).Applications.SaveData(t.Context(), 4004, test.data)
			require.NoError(t, err)
			assert.Equal(t, test.want, withoutSpace(t, got))
		})
	}
}

// withoutSpace takes the white space out of the values that stay JSON.
func withoutSpace(t *testing.T, saved []payvault.SavedField) []payvault.SavedField {
	t.Helper()
	for _, f := range saved {
		if o, ok := f.Value.(payvault.Ownership); ok {
			for i, raw := range o.Owners[0].RelatedBusinesses {
				text, err := json.Marshal(raw)
				require.NoError(t, err)
				o.Owners[0].RelatedBusinesses[i] = text
			}
		}
	}
	return saved
}

func TestApplicationsSaveData_rejected(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer string
		want   payvault.Error
	}{
		"another code": {
			"applications/save_data.error.json",
			payvault.Error{Op: payvault.OpApplicationsSaveData, Code: "5", Message: "Example refusal of applications.save_data"},
		},
		"validation": {
			`{"code":2,"message":"Request validation failed","data":{"tax_id":["is not valid"],"message":"of a field of this name"}}`,
			payvault.Error{
				Op: payvault.OpApplicationsSaveData, Code: "2", Message: "Request validation failed",
				Fields: fields{"tax_id": {"is not valid"}, "message": {"of a field of this name"}},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, dataPath, "applications/save_data.request.json", test.answer)

			got, err := srv.client().Applications.SaveData(t.Context(), 4004, fullData())
			assertRejected(t, err, test.want)
			assert.Equal(t, test.want.Code == "2", isValidation(err))
			assert.Nil(t, got)
		})
	}
}

func TestApplicationsSaveData_invalid(t *testing.T) {
	t.Parallel()
	together := []string{"and bank_account_number are required together"}
	element := "has an element that is empty or contains a brace or comma"
	noDate := payvault.Date{Year: 2015, Month: time.February, Day: 29}
	field := func(key string) payvault.ApplicationField { return payvault.ApplicationField{Key: key, Value: "x"} }
	tests := map[string]struct {
		data payvault.ApplicationData
		want fields
	}{
		"empty":                 {payvault.ApplicationData{}, fields{"data": {"has no field"}}},
		"routing number alone":  {payvault.ApplicationData{BankRouting: payvault.NewSecret("123456780")}, fields{"bank_routing": together}},
		"account number alone":  {payvault.ApplicationData{BankAccountNumber: payvault.NewSecret("0004445550")}, fields{"bank_routing": together}},
		"key of a field":        {payvault.ApplicationData{TaxID: payvault.NewSecret("1"), Extra: []payvault.ApplicationField{field("tax_id")}}, fields{"tax_id": {"is set twice"}}},
		"key twice":             {payvault.ApplicationData{Extra: []payvault.ApplicationField{field("k"), field("l"), field("k")}}, fields{"k": {"is set twice"}}},
		"no key":                {payvault.ApplicationData{Extra: []payvault.ApplicationField{field("")}}, fields{"data": {"has a field without a key"}}},
		"no day of the year":    {payvault.ApplicationData{BusinessEstablished: noDate}, fields{"business_established": {badDate}}},
		"auth times":            {payvault.ApplicationData{BusinessServicesAuthTime: []payvault.AuthTime{"1,30", "", "}"}}, fields{"business_services_auth_time": {element, element, element}}},
		"value that is no JSON": {payvault.ApplicationData{Extra: []payvault.ApplicationField{{Key: "k", Value: func() {}}}}, fields{"k": {"cannot be written as JSON: func() has no form"}}},
		"all at once": {
			payvault.ApplicationData{
				BankRouting: payvault.NewSecret("123456780"), BusinessEstablished: noDate,
				Ownership: payvault.Ownership{Owners: []payvault.Owner{{}, {DOB: noDate}}},
				Extra:     []payvault.ApplicationField{field("ownership"), field("")},
			},
			fields{
				"bank_routing": together, "business_established": {badDate}, "ownership.owners[1].dob": {badDate},
				"ownership": {"is set twice"}, "data": {"has a field without a key"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().Applications.SaveData(t.Context(), 4004, test.data)
			assertInvalid(t, err, payvault.OpApplicationsSaveData, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestApplicationsSaveData_leavesDataAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, dataPath, "applications/save_data.request.json", "applications/save_data.response.json").times(callers)
	client, data := srv.client(), fullData()

	together(func() {
		_, err := client.Applications.SaveData(t.Context(), 4004, data)
		assert.NoError(t, err)
	})
	assert.Equal(t, fullData(), data)
}

func TestApplicationsValidate(t *testing.T) {
	t.Parallel()
	problems := map[string][]string{
		"legal_name":     {"Example text: legal_name is required"},
		"business_email": {"Example text: business_email is required"},
		"ownership":      {"Example text: ownership is required", "Example text: an owner is required"},
		"bank_routing":   {"Example text: bank account and routing number are required together"},
		"bank_account_number": {
			"Example text: bank_account_number is required", "Example text: bank account and routing number are required together",
		},
	}
	tests := map[string]struct {
		status int
		answer string
		want   *payvault.Validation
	}{
		"passes":              {http.StatusOK, "applications/validate.response.json", &payvault.Validation{}},
		"tolerant":            {http.StatusOK, "applications/validate.response.tolerant.json", &payvault.Validation{}},
		"fails with 200":      {http.StatusOK, "applications/validate.invalid.json", &payvault.Validation{Problems: problems}},
		"fails with 422":      {http.StatusUnprocessableEntity, "applications/validate.invalid.json", &payvault.Validation{Problems: problems}},
		"fails with a text":   {http.StatusOK, `{"code":"2","data":{"tax_id":"is required"}}`, &payvault.Validation{Problems: fields{"tax_id": {"is required"}}}},
		"a field message":     {http.StatusOK, `{"code":2,"data":{"message":["is required"]}}`, &payvault.Validation{Problems: fields{"message": {"is required"}}}},
		"field without texts": {http.StatusOK, `{"code":2,"data":{"tax_id":[]}}`, &payvault.Validation{Problems: fields{"tax_id": {}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodGet, validatePath+fixture(t, "applications/validate.query"), "", test.answer).withStatus(test.status)

			got, err := srv.client(payvault.WithMerchantID(1)).Applications.Validate(t.Context(), 4004)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.want.Problems == nil, got.OK())
		})
	}
}

func TestApplicationsValidate_rejected(t *testing.T) {
	t.Parallel()
	const failed = "Request validation failed"
	tests := map[string]struct {
		status     int
		answer     string
		code, text string
	}{
		"another code":           {http.StatusOK, "applications/validate.error.json", "5", "Example refusal of applications.validate"},
		"another code with data": {http.StatusOK, `{"code":5,"message":"no","data":{"tax_id":"a record","list":["a value"]}}`, "5", "no"},
		"no data":                {http.StatusOK, `{"code":2,"message":"Request validation failed"}`, "2", failed},
		"no data with 422":       {http.StatusUnprocessableEntity, `{"code":2,"message":"Request validation failed","data":null}`, "2", failed},
		"empty data":             {http.StatusOK, `{"code":2,"message":"Request validation failed","data":{}}`, "2", failed},
		"data of another shape":  {http.StatusOK, `{"code":2,"message":"Request validation failed","data":["tax_id"]}`, "2", failed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodGet, validatePath, "", test.answer).withStatus(test.status)

			got, err := srv.client().Applications.Validate(t.Context(), 4004)
			assertError(t, err, payvault.Error{
				Op: payvault.OpApplicationsValidate, StatusCode: test.status, Code: test.code, Message: test.text,
				Delivery: payvault.Answered, Attempts: 1,
			})
			assert.ErrorIs(t, err, payvault.ErrRejected)
			assert.Equal(t, test.code == "2", isValidation(err))
			assert.Nil(t, got)
		})
	}
}

func TestApplications_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, *fullApplication(), fixture(t, "applications/create.request.json"))
	assertWire(t, payvault.ApplicationCreateRequest{ChannelID: 4001, SalesRep: 4002}, fixture(t, "applications/create.request.min.json"))
	assertWire(t, *createdApplication(t), fixtureData(t, "applications/create.response.json"))
	assertWire(t, fullData(), fixtureData(t, "applications/save_data.request.json"))
	assertWire(t, mixedData(), fixtureData(t, "applications/save_data.request.mixed.json"))
	assertWire(t, payvault.ApplicationData{LegalName: "Minimal Legal Name"}, fixtureData(t, "applications/save_data.request.min.json"))
	assertWire(t, payvault.ApplicationData{}, `[]`)
	type fieldList struct {
		Fields []payvault.SavedField `json:"fields"`
	}
	assertWire(t, fieldList{savedFields()}, fixtureData(t, "applications/save_data.response.json"))
	assertWire(t, payvault.Validation{Problems: fields{"tax_id": {"is required"}}}, `{"data":{"tax_id":["is required"]}}`)
}

// Booleans have no distinct values to tell them apart by.
func TestApplications_booleans(t *testing.T) {
	t.Parallel()
	for wire, brands := range map[string]payvault.CardBrands{
		`{"vi":true,"mc":false,"di":false,"am":false,"gp":false}`: {VI: true},
		`{"vi":false,"mc":true,"di":false,"am":false,"gp":false}`: {MC: true},
		`{"vi":false,"mc":false,"di":true,"am":false,"gp":false}`: {DI: true},
		`{"vi":false,"mc":false,"di":false,"am":true,"gp":false}`: {AM: true},
		`{"vi":false,"mc":false,"di":false,"am":false,"gp":true}`: {GP: true},
	} {
		assertWire(t, brands, wire)
	}
	for wire, methods := range map[string]payvault.DeliveryMethods{
		`{"digitally":true,"pickup":false,"delivery":false,"Service":false}`: {Digitally: true},
		`{"digitally":false,"pickup":true,"delivery":false,"Service":false}`: {Pickup: true},
		`{"digitally":false,"pickup":false,"delivery":true,"Service":false}`: {Delivery: true},
		`{"digitally":false,"pickup":false,"delivery":false,"Service":true}`: {Service: true},
	} {
		assertWire(t, methods, wire)
	}
	for wire, person := range map[string]payvault.PersonType{
		`{"owner":true,"control":false,"user":false}`: {Owner: true},
		`{"owner":false,"control":true,"user":false}`: {Control: true},
		`{"owner":false,"control":false,"user":true}`: {User: true},
	} {
		assertWire(t, person, wire)
	}
	assertWire(t, payvault.ApplicationAddress{Attempted: true}, `{"attempted":true}`)
	assertWire(t, payvault.ApplicationAddress{Validated: true}, `{"validated":true}`)
	assertWire(t, payvault.Owner{Legal: new(false)}, `{"legal":false}`)
	assertWire(t, payvault.Ownership{InterestCount: 2}, `{"interestCount":2}`)
}

func TestApplicationData_extra(t *testing.T) {
	t.Parallel()
	data := payvault.ApplicationData{
		LegalName: "Minimal Legal Name",
		Extra: []payvault.ApplicationField{
			{Key: "later_text", Value: "a later addition"},
			{Key: "later_number", Value: json.Number("12345678901234567890.10")},
			{Key: "later_object", Value: map[string]any{"inner": []any{true, nil}}},
			{Key: "later_null"},
		},
	}
	assertWire(t, data, `[
		{"key":"legal_name","value":"Minimal Legal Name"},
		{"key":"later_text","value":"a later addition"},
		{"key":"later_number","value":12345678901234567890.10},
		{"key":"later_object","value":{"inner":[true,null]}},
		{"key":"later_null","value":null}
	]`)
}

func TestApplicationData_unmarshal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wire, problem string
		want          payvault.ApplicationData
	}{
		"null values":      {`[{"key":"tax_id","value":null},{"key":"card_brands"}]`, "", payvault.ApplicationData{}},
		"plain toggle":     {`[{"key":"processing_history","value":false}]`, "", payvault.ApplicationData{ProcessingHistory: new(false)}},
		"plain number":     {`[{"key":"high_ticket","value":1500.0}]`, "", payvault.ApplicationData{HighTicket: new(amount("1500.0"))}},
		"set with spaces":  {`[{"key":"business_services_auth_time","value":"{1, 90+}"}]`, "", payvault.ApplicationData{BusinessServicesAuthTime: []payvault.AuthTime{"1", "90+"}}},
		"not a list":       {`{"legal_name":"x"}`, "not a list of pairs {key, value}", payvault.ApplicationData{}},
		"wrong type":       {`[{"key":"tax_id","value":[1]}]`, "tax_id: cannot be read as Secret", payvault.ApplicationData{}},
		"wrong toggle":     {`[{"key":"processing_history","value":"maybe"}]`, "processing_history: cannot be read as bool", payvault.ApplicationData{}},
		"wrong set":        {`[{"key":"business_services_auth_time","value":[1]}]`, "business_services_auth_time: cannot be read as string", payvault.ApplicationData{}},
		"secret in object": {`[{"key":"ownership","value":{"owners":[{"ssn":[1]}]}}]`, "ownership: cannot be read as Ownership", payvault.ApplicationData{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got payvault.ApplicationData
			err := json.Unmarshal([]byte(test.wire), &got)
			if test.problem != "" {
				require.EqualError(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestSavedField_value(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key, kind, value string
		want             any
	}{
		"null":                         {"tax_id", "tax_id", `null`, nil},
		"null of an unknown key":       {"later_key", "text", `null`, nil},
		"JSON toggle":                  {"processing_history", "toggle", `true`, true},
		"JSON number":                  {"card_volume", "currency", `25000.50`, amount("25000.50")},
		"empty amount":                 {"card_volume", "currency", `""`, payvault.Amount{}},
		"empty set":                    {"business_services_auth_time", "checkbox_group", `"{}"`, []payvault.AuthTime(nil)},
		"all auth times":               {"business_services_auth_time", "checkbox_group", `"{1,30,30+,90+}"`, []payvault.AuthTime{"1", "30", "30+", "90+"}},
		"some brands":                  {"card_brands", "checkbox_row", `{"mc":true}`, payvault.CardBrands{MC: true}},
		"unknown value of an enum":     {"trading_status", "radio", `"xx"`, payvault.TradingStatus("xx")},
		"text does not fit a toggle":   {"processing_history", "toggle", `"perhaps"`, payvault.NewSecret("perhaps")},
		"text does not fit an amount":  {"card_volume", "currency", `"a lot"`, payvault.NewSecret("a lot")},
		"text does not fit a date":     {"business_established", "date", `"14.03.2015"`, payvault.NewSecret("14.03.2015")},
		"text does not fit an address": {"business_address", "address_suggest", `"401 Business Street"`, payvault.NewSecret("401 Business Street")},
		"array does not fit a set":     {"business_services_auth_time", "checkbox_group", `["1","30"]`, payvault.NewSecret(`["1","30"]`)},
		"object does not fit a text":   {"legal_name", "text", `{"first":"x"}`, payvault.NewSecret(`{"first":"x"}`)},
		"number for a secret":          {"tax_id", "tax_id", `123456789`, payvault.NewSecret("123456789")},
		"unfitting ownership":          {"ownership", "ownership", `{"owners":[{"ssn":[123456789]}]}`, payvault.NewSecret(`{"owners":[{"ssn":[123456789]}]}`)},
		"secret under an unknown key":  {"later_tax_id", "tax_id", `"001234567"`, payvault.NewSecret("001234567")},
		"later routing number":         {"later_routing", "bank_routing", `123456780`, payvault.NewSecret("123456780")},
		"later account number":         {"later_account", "bank_dda", `"0004445550"`, payvault.NewSecret("0004445550")},
		"number of an unknown key":     {"later_key", "currency", `12345678901234567890.10`, json.Number("12345678901234567890.10")},
		"toggle of an unknown key":     {"later_key", "toggle", `"true"`, "true"},
		"object of an unknown key":     {"later_key", "text", `{"inner":[1,true]}`, map[string]any{"inner": []any{json.Number("1"), true}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := `{"key":"` + test.key + `","value":` + test.value + `,"type":"` + test.kind + `","settings":{"required":false}}`
			want := payvault.SavedField{Key: test.key, Value: test.want, Type: test.kind}

			var got payvault.SavedField
			require.NoError(t, json.Unmarshal([]byte(wire), &got))
			assert.Equal(t, want, got)

			again, err := payvault.MarshalWire(got)
			require.NoError(t, err)
			var back payvault.SavedField
			require.NoError(t, json.Unmarshal(again, &back))
			assert.Equal(t, want, back)
		})
	}
}

func TestSavedField_missing(t *testing.T) {
	t.Parallel()
	var got payvault.SavedField
	require.NoError(t, json.Unmarshal([]byte(`{"key":"tax_id"}`), &got))
	assert.Equal(t, payvault.SavedField{Key: "tax_id"}, got)
}

// TestApplicationsSaveData_messages: lists of messages by field come with any code.
func TestApplicationsSaveData_messages(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, "/platform/application/7/data", `{"data":[{"key":"legal_name","value":"x"}]}`,
		`{"code":5,"message":"no","data":{"tax_id":["is required"]}}`)
	_, err := srv.client().Applications.SaveData(t.Context(), 7, payvault.ApplicationData{LegalName: "x"})
	e, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok)
	assert.Equal(t, map[string][]string{"tax_id": {"is required"}}, e.Fields)
}
