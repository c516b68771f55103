package payvault_test

import (
	"iter"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const customersPath = "/platform/vault/customer"

// fullCustomer is customers/create.request.json.
func fullCustomer() *payvault.CustomerCreateRequest {
	return &payvault.CustomerCreateRequest{
		ID:                     "CUST2001",
		AutoGenerateCustomerID: true,
		FirstName:              "Carla",
		LastName:               "Customer",
		FirmName:               "Customer Firm Inc",
		Phone:                  "2125550101",
		Email:                  "carla@example.com",
		ReferenceID:            "REF2002",
		Comments:               "A comment on the customer",
		DeveloperID:            "example-developer-2",
		MerchantID:             212346,
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
				CardNumber: payvault.NewSecret("5454545454545454"), ExpDate: "0130", CVV2: payvault.NewSecret("234"),
				TypeID: "S", TRNumber: payvault.NewSecret("123456780"), DDANumber: payvault.NewSecret("0002223330"), CardID: "CARDID2004",
				FirstName: "Bill", LastName: "Biller", FirmName: "Billing Firm Corp",
				Email: []string{"bill.one@example.com", "bill.two@example.com"},
				Addr1: "203 Billing Avenue", Addr2: "Billing Floor 3", City: "Toronto", State: "ON", Zip: "54545", Zip4: "2005",
				Country: "Canada", CountryCode: "124", Verify: true, Primary: true, MerchantID: 212348,
			},
			{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "0231", CardID: "CARDID2006"},
		},
	}
}

func minimalCustomer() *payvault.CustomerCreateRequest {
	return &payvault.CustomerCreateRequest{ID: "CUST2999", FirmName: "Minimal Firm"}
}

// storedCustomer is customers/create.response.json.
func storedCustomer() *payvault.Customer {
	return &payvault.Customer{
		ID:                "CUST2001",
		RecID:             2011,
		NodeID:            212346,
		FirstName:         "Carla",
		LastName:          "Customer",
		FirmName:          "Customer Firm Inc",
		Phone:             "2125550101",
		Email:             "carla@example.com",
		ReferenceID:       "REF2002",
		Comments:          "A comment on the customer",
		DeveloperID:       "example-developer-2",
		PrimaryCardNumber: "6011xxxxxx111117",
		ShippingAddresses: []payvault.ShippingAddress{
			{
				ID: 2012, FirstName: "Sam", LastName: "Shipper", FirmName: "Shipping Firm LLC",
				Addr1: "201 Shipping Street", Addr2: "Shipping Suite 2", City: "Albany", State: "NY", Zip: "12201", Zip4: "2003",
				Country: "United States", CountryCode: "840", Primary: true,
			},
			{ID: 2013, FirstName: "Sophie", Addr1: "202 Second Shipping Street"},
		},
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

// listedCustomers is customers/list.response.json.
func listedCustomers() *payvault.Page[payvault.Customer] {
	return &payvault.Page[payvault.Customer]{
		Number: 2, TotalPages: 3, TotalRecords: 52,
		Items: []payvault.Customer{
			{
				ID:                "CUST2101",
				RecID:             2102,
				NodeID:            212349,
				FirstName:         "Lena",
				LastName:          "Listed",
				FirmName:          "Listed Firm Inc",
				Phone:             "2125550121",
				Email:             "lena@example.com",
				ReferenceID:       "REF2103",
				Comments:          "A comment on the listed customer",
				DeveloperID:       "example-developer-3",
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

func TestCustomersCreate(t *testing.T) {
	t.Parallel()
	tolerant := storedCustomer()
	tolerant.NodeID = 0
	tolerant.ShippingAddresses[1].ID = 0
	tolerant.BillingCards[0].CardType, tolerant.BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	tests := map[string]struct {
		request      *payvault.CustomerCreateRequest
		body, answer string
		want         *payvault.Customer
	}{
		"full":     {fullCustomer(), "customers/create.request.json", "customers/create.response.json", storedCustomer()},
		"minimal":  {minimalCustomer(), "customers/create.request.min.json", `{"code":0,"data":{"customer_id":"C1"}}`, &payvault.Customer{ID: "C1"}},
		"tolerant": {minimalCustomer(), "customers/create.request.min.json", "customers/create.response.tolerant.json", tolerant},
		"generated ID and a name": {
			&payvault.CustomerCreateRequest{AutoGenerateCustomerID: true, FirstName: "Carla", LastName: "Customer"},
			`{"auto_generate_customer_id":true,"customer_first_name":"Carla","customer_last_name":"Customer"}`,
			"customers/create.response.json", storedCustomer(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, customersPath, test.body, test.answer)

			got, err := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2)).Customers.Create(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestCustomersCreate_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, customersPath, "customers/create.request.json", "customers/create.error.json")

	got, err := srv.client().Customers.Create(t.Context(), fullCustomer())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpCustomersCreate, Code: "5", Message: "Example refusal of customers.create",
	})
	assert.Nil(t, got)
}

func TestCustomersCreate_invalid(t *testing.T) {
	t.Parallel()
	const (
		noID   = "is required, or auto_generate_customer_id"
		noName = "is required with customer_last_name, or customer_firm_name"
	)
	tests := map[string]struct {
		request *payvault.CustomerCreateRequest
		want    fields
	}{
		"nil":             {nil, fields{"request": {"is nil"}}},
		"empty":           {&payvault.CustomerCreateRequest{}, fields{"customer_id": {noID}, "customer_first_name": {noName}}},
		"first name only": {&payvault.CustomerCreateRequest{ID: "C", FirstName: "Carla"}, fields{"customer_first_name": {noName}}},
		"last name only":  {&payvault.CustomerCreateRequest{ID: "C", LastName: "Customer"}, fields{"customer_first_name": {noName}}},
		"no ID":           {&payvault.CustomerCreateRequest{FirmName: "Firm"}, fields{"customer_id": {noID}}},
		"all at once": {
			&payvault.CustomerCreateRequest{
				MerchantID:        thirdParty,
				ShippingAddresses: []payvault.ShippingAddress{{MerchantID: actingFor}, {ID: 2012, MerchantID: thirdParty}},
				BillingCards:      []payvault.BillingCardRequest{{ExpDate: "0130"}, {ExpDate: "1330", MerchantID: thirdParty}, {ExpDate: "130"}},
			},
			fields{
				"customer_id":                       {noID},
				"customer_first_name":               {noName},
				"merchant_id":                       {thirdNamed},
				"shipping_addresses[1].shipping_id": {"is assigned by the service and cannot be sent"},
				"shipping_addresses[1].merchant_id": {thirdNamed},
				"billing_cards[1].exp_date":         {badExpDate},
				"billing_cards[1].merchant_id":      {thirdNamed},
				"billing_cards[2].exp_date":         {badExpDate},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().ForMerchant(actingFor).Customers.Create(t.Context(), test.request)
			assertInvalid(t, err, payvault.OpCustomersCreate, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestCustomersCreate_forMerchant(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]payvault.MerchantID{"filled": 0, "the same": actingFor} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, customersPath,
				`{"customer_id":"CUST2999","customer_firm_name":"Minimal Firm","merchant_id":212346}`, "customers/create.response.json")
			request := minimalCustomer()
			request.MerchantID = id

			_, err := srv.client().ForMerchant(actingFor).Customers.Create(t.Context(), request)
			require.NoError(t, err)
		})
	}
}

func TestCustomersCreate_developerID(t *testing.T) {
	t.Parallel()
	for given, sent := range map[string]string{"": "of-the-client", "own": "own"} {
		t.Run(sent, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, customersPath,
				`{"customer_id":"CUST2999","customer_firm_name":"Minimal Firm","developer_id":"`+sent+`"}`, "customers/create.response.json")
			request := minimalCustomer()
			request.DeveloperID = given

			_, err := srv.client(payvault.WithDeveloperID("of-the-client")).Customers.Create(t.Context(), request)
			require.NoError(t, err)
		})
	}
}

func TestCustomersCreate_leavesRequestAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, customersPath, `{
		"customer_id":"CUST2999", "customer_firm_name":"Minimal Firm", "merchant_id":212346, "developer_id":"filled",
		"shipping_addresses":[{"shipping_city":"Albany"}], "billing_cards":[{"exp_date":"0130","billing_email":["bill@example.com"]}]
	}`, "customers/create.response.json").times(callers)
	client := srv.client(payvault.WithDeveloperID("filled")).ForMerchant(actingFor)
	request, want := minimalCustomer(), minimalCustomer()
	for _, r := range []*payvault.CustomerCreateRequest{request, want} {
		r.ShippingAddresses = []payvault.ShippingAddress{{City: "Albany"}}
		r.BillingCards = []payvault.BillingCardRequest{{ExpDate: "0130", Email: []string{"bill@example.com"}}}
	}

	together(func() {
		_, err := client.Customers.Create(t.Context(), request)
		assert.NoError(t, err)
	})
	assert.Equal(t, want, request)
}

func TestCustomers_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, *fullCustomer(), fixture(t, "customers/create.request.json"))
	assertWire(t, *minimalCustomer(), fixture(t, "customers/create.request.min.json"))
	// A card that is not primary is written without the field.
	notPrimary := regexp.MustCompile(`,\s*"primary": false`)
	assertWire(t, *storedCustomer(), notPrimary.ReplaceAllString(fixtureData(t, "customers/create.response.json"), ""))
	page := *listedCustomers()
	page.Number = 0 // the wire does not have it
	assertWire(t, page, `{"totalPages":3,"totalRecords":52,"data":`+fixtureData(t, "customers/list.response.json")+`}`)
}

// Booleans have no distinct values to tell them apart by.
func TestCustomers_booleans(t *testing.T) {
	t.Parallel()
	assertWire(t, payvault.CustomerCreateRequest{AutoGenerateCustomerID: true}, `{"auto_generate_customer_id":true}`)
	assertWire(t, payvault.ShippingAddress{Primary: true}, `{"primary":true}`)
	assertWire(t, payvault.BillingCardRequest{Verify: true}, `{"verify":true}`)
	assertWire(t, payvault.BillingCardRequest{Primary: true}, `{"primary":true}`)
	assertWire(t, payvault.BillingCard{Primary: true}, `{"primary":true}`)
}

// fullListOptions is customers/list.query, and subscriptions/transactions.query.
func fullListOptions() *payvault.ListOptions {
	return &payvault.ListOptions{
		OrderOn: "tran_time",
		OrderBy: payvault.Descending,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", payvault.Date{Year: 2026, Month: time.January, Day: 1}, payvault.Date{Year: 2026, Month: time.January, Day: 31}),
			payvault.Where("tran_status", "EQUALS", "P"),
		},
		Count:      25,
		Page:       2,
		MerchantID: 212346,
	}
}

func TestCustomersList(t *testing.T) {
	t.Parallel()
	tolerant := listedCustomers()
	tolerant.Items[0].NodeID = 0
	tolerant.Items[0].BillingCards[0].CardType, tolerant.Items[0].BillingCards[0].VerifiedDate = "UNKNOWN_CARD_TYPE", ""
	full := "?" + fixture(t, "customers/list.query")
	tests := map[string]struct {
		options       *payvault.ListOptions
		query, answer string
		want          *payvault.Page[payvault.Customer]
	}{
		"full":     {fullListOptions(), full, "customers/list.response.json", listedCustomers()},
		"tolerant": {fullListOptions(), full, "customers/list.response.tolerant.json", tolerant},
		"nil":      {nil, "", `{"code":0,"totalPages":0,"totalRecords":0,"data":[]}`, &payvault.Page[payvault.Customer]{Items: []payvault.Customer{}}},
		"empty":    {&payvault.ListOptions{}, "?page=0", `{"code":0,"data":null}`, &payvault.Page[payvault.Customer]{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodGet, customersPath+test.query, "", test.answer)

			got, err := srv.client(payvault.WithMerchantID(1)).Customers.List(t.Context(), test.options)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestCustomersList_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodGet, customersPath, "", "customers/list.error.json")

	got, err := srv.client().Customers.List(t.Context(), nil)
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpCustomersList, Code: "5", Message: "Example refusal of customers.list",
	})
	assert.Nil(t, got)
}

// badListOptions have every problem that list options can have.
func badListOptions() (*payvault.ListOptions, fields) {
	const (
		incomplete = "needs a field, a conditional and a value"
		comma      = "contains a comma, which separates the parts of a filter"
		notRange   = "BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last"
	)
	first, last := payvault.Date{Year: 2026, Month: time.January, Day: 1}, payvault.Date{Year: 2026, Month: time.January, Day: 31}
	options := &payvault.ListOptions{
		OrderBy: "ASC", Count: -1, Page: -1, Prefetch: -1, MerchantID: thirdParty,
		Filters: []payvault.Filter{
			payvault.BetweenDates("tran_date", first, last),
			payvault.Where("", "EQUALS", "P"),
			payvault.Where("tran_status", "", "P"),
			payvault.Where("tran_status", "EQUALS"),
			payvault.Where("tran_status", "EQUALS", "P,Q"),
			payvault.Where("tran_status,x", "EQUALS", "P"),
			payvault.BetweenDates("tran_date", last, first),
			payvault.BetweenDates("tran_date", payvault.Date{}, last),
			payvault.BetweenDates("tran_date", first, payvault.Date{Year: 2026, Month: time.February, Day: 30}),
			payvault.Where("tran_date", payvault.CondBetweenDates, "2026-01-01"),
		},
	}
	return options, fields{
		"order_by": {"is neither asc nor desc"}, "count": {"is negative"}, "page": {"is negative"}, "Prefetch": {"is negative"},
		"merchant_id": {thirdNamed},
		"filter[1]":   {incomplete}, "filter[2]": {incomplete}, "filter[3]": {incomplete},
		"filter[4]": {comma}, "filter[5]": {comma},
		"filter[6]": {notRange}, "filter[7]": {notRange}, "filter[8]": {notRange}, "filter[9]": {notRange},
	}
}

func TestCustomersList_invalid(t *testing.T) {
	t.Parallel()
	options, want := badListOptions()
	client := newService(t).client().ForMerchant(actingFor)

	got, err := client.Customers.List(t.Context(), options)
	assertInvalid(t, err, payvault.OpCustomersList, want)
	assert.Nil(t, got)

	next, stop := iter.Pull2(client.Customers.All(t.Context(), options))
	defer stop()
	customer, err, _ := next()
	assertInvalid(t, err, payvault.OpCustomersList, want)
	assert.Nil(t, customer)
	_, _, more := next()
	assert.False(t, more)
}

func TestCustomersList_forMerchant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options *payvault.ListOptions
		query   string
	}{
		"nil":      {nil, "?merchant_id=212346"},
		"filled":   {&payvault.ListOptions{Page: 3}, "?merchant_id=212346&page=3"},
		"the same": {&payvault.ListOptions{MerchantID: actingFor}, "?merchant_id=212346&page=0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodGet, customersPath+test.query, "", "customers/list.response.json")

			_, err := srv.client().ForMerchant(actingFor).Customers.List(t.Context(), test.options)
			require.NoError(t, err)
		})
	}
}

func TestCustomersList_leavesOptionsAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	e := srv.expect(http.MethodGet, customersPath+"?"+fixture(t, "customers/list.query"), "", "customers/list.response.json")
	e.withHeader("X-Trace", "1")
	e.times(callers)
	client, options, want := srv.client().ForMerchant(actingFor), fullListOptions(), fullListOptions()
	options.MerchantID, want.MerchantID = 0, 0
	callOptions := slices.Grow([]payvault.CallOption{payvault.WithHeader("X-Trace", "1")}, 4)

	together(func() {
		_, err := client.Customers.List(t.Context(), options, callOptions...)
		assert.NoError(t, err)
	})
	assert.Equal(t, want, options)
	assert.Equal(t, make([]payvault.CallOption, 4), callOptions[1:5])
}

func TestCustomersAll(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	page := `{"code":0,"totalPages":2,"totalRecords":3,"data":[{"customer_id":"C1"},{"customer_id":"C2"}]}`
	srv.expect(http.MethodGet, customersPath+"?count=2&merchant_id=212346&page=0", "", page).times(callers)
	page = `{"code":0,"totalPages":2,"totalRecords":3,"data":[{"customer_id":"C3"}]}`
	srv.expect(http.MethodGet, customersPath+"?count=2&merchant_id=212346&page=1", "", page).times(callers)
	options := payvault.ListOptions{Count: 2, Prefetch: 1}
	customers := srv.client().ForMerchant(actingFor).Customers.All(t.Context(), &options)

	together(func() {
		var ids []string
		for customer, err := range customers {
			if assert.NoError(t, err) {
				ids = append(ids, customer.ID)
			}
		}
		assert.Equal(t, []string{"C1", "C2", "C3"}, ids)
	})
	assert.Equal(t, payvault.ListOptions{Count: 2, Prefetch: 1}, options)
}
