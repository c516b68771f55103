package payvault

import (
	"context"
	"iter"
	"strconv"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// CustomersService keeps customer profiles in the customer vault.
type CustomersService struct{ caller *caller }

// CustomerCreateRequest is a customer to store. It needs ID or AutoGenerateCustomerID. It also needs the first and last
// name, or the firm name.
type CustomerCreateRequest struct {
	ID                     string `json:"customer_id,omitzero"`               // unique, alphanumeric
	AutoGenerateCustomerID bool   `json:"auto_generate_customer_id,omitzero"` // the service generates the ID
	FirstName              string `json:"customer_first_name,omitzero"`
	LastName               string `json:"customer_last_name,omitzero"`
	FirmName               string `json:"customer_firm_name,omitzero"`
	Phone                  string `json:"customer_phone,omitzero"` // the service does not document the form
	Email                  string `json:"customer_email,omitzero"`
	ReferenceID            string `json:"reference_id,omitzero"`
	Comments               string `json:"comments,omitzero"`
	DeveloperID            string `json:"developer_id,omitzero"` // names the integration; see also WithDeveloperID
	// MerchantID is the merchant to act for; see also Client.ForMerchant.
	MerchantID        MerchantID           `json:"merchant_id,omitzero"`
	ShippingAddresses []ShippingAddress    `json:"shipping_addresses,omitempty"`
	BillingCards      []BillingCardRequest `json:"billing_cards,omitempty"`
}

// prepare fills in the merchant and the developer ID from the settings of the client. It checks the IDs, the name, the
// merchants and the expiration dates.
func (r *CustomerCreateRequest) prepare(c *caller, p *problems) {
	c.actFor(&r.MerchantID, p)
	if r.DeveloperID == "" {
		r.DeveloperID = c.developerID
	}
	if r.ID == "" && !r.AutoGenerateCustomerID {
		p.add("customer_id", "is required, or auto_generate_customer_id")
	}
	if (r.FirstName == "" || r.LastName == "") && r.FirmName == "" {
		p.add("customer_first_name", "is required with customer_last_name, or customer_firm_name")
	}
	for i, address := range r.ShippingAddresses {
		path := "shipping_addresses[" + strconv.Itoa(i) + "]"
		c.checkMerchant(path+".merchant_id", address.MerchantID, p)
		if address.ID != 0 {
			p.add(path+".shipping_id", "is assigned by the service and cannot be sent")
		}
	}
	for i, card := range r.BillingCards {
		path := "billing_cards[" + strconv.Itoa(i) + "]"
		c.checkMerchant(path+".merchant_id", card.MerchantID, p)
		checkExpDate(path+".exp_date", card.ExpDate, p)
	}
}

// Customer is a stored customer profile.
type Customer struct {
	ID                string            `json:"customer_id,omitzero" answer:"id"` // CustomerID in other records
	RecID             int64             `json:"rec_id,omitzero" answer:"id"`      // assigned by the service
	NodeID            MerchantID        `json:"node_id,omitzero" answer:"id"`     // the merchant ID
	FirstName         string            `json:"customer_first_name,omitzero"`
	LastName          string            `json:"customer_last_name,omitzero"`
	FirmName          string            `json:"customer_firm_name,omitzero"`
	Phone             string            `json:"customer_phone,omitzero"` // unchanged from the request
	Email             string            `json:"customer_email,omitzero"`
	ReferenceID       string            `json:"reference_id,omitzero" answer:"id"`
	Comments          string            `json:"comments,omitzero"`
	DeveloperID       string            `json:"developer_id,omitzero" answer:"id"`
	PrimaryCardNumber string            `json:"primary_card_number,omitzero"` // masked
	ShippingAddresses []ShippingAddress `json:"shipping_addresses,omitempty"`
	BillingCards      []BillingCard     `json:"billing_cards,omitempty"`
}

func (c *Customer) missing() string {
	if c.ID == "" {
		return "customer_id"
	}
	return ""
}

// tidy returns customer_id and true if a record of a list has no ID. It does not change the record.
func (c *Customer) tidy() (place string, needed bool) {
	place = c.missing()
	return place, place != ""
}

// ShippingAddress is a shipping address of a customer. Requests and results use this type.
type ShippingAddress struct {
	ID          int64      `json:"shipping_id,omitzero" answer:"id"` // assigned by the service; refused in requests
	FirstName   string     `json:"shipping_first_name,omitzero"`
	LastName    string     `json:"shipping_last_name,omitzero"`
	FirmName    string     `json:"shipping_firm_name,omitzero"`
	Addr1       string     `json:"shipping_addr1,omitzero"`
	Addr2       string     `json:"shipping_addr2,omitzero"`
	City        string     `json:"shipping_city,omitzero"`
	State       string     `json:"shipping_state,omitzero"`
	Zip         string     `json:"shipping_zip,omitzero"`                       // postal code
	Zip4        string     `json:"shipping_zip4,omitzero"`                      // extension of the postal code
	Country     string     `json:"shipping_country,omitzero"`                   // name of the country
	CountryCode string     `json:"shipping_country_code,omitzero" answer:"iso"` // numeric code
	Primary     *bool      `json:"primary,omitzero"`                            // nil is not sent; in a result, unknown
	MerchantID  MerchantID `json:"merchant_id,omitzero" answer:"id"`            // only in requests
}

// BillingCardRequest is a card or an ACH account of a customer in a request. Results have a [BillingCard] instead.
type BillingCardRequest struct {
	CardNumber  Secret         `json:"card_number,omitzero"` // digits
	ExpDate     string         `json:"exp_date,omitzero"`    // MMYY; see FormatExpDate
	CVV2        Secret         `json:"cvv2,omitzero"`        // card security code
	TypeID      ACHAccountType `json:"type_id,omitzero"`     // ACH account type
	TRNumber    Secret         `json:"tr_number,omitzero"`   // ACH routing number
	DDANumber   Secret         `json:"dda_number,omitzero"`  // ACH account number
	CardID      string         `json:"card_id,omitzero"`     // a card ID; its effect in a request is not documented
	FirstName   string         `json:"billing_first_name,omitzero"`
	LastName    string         `json:"billing_last_name,omitzero"`
	FirmName    string         `json:"billing_firm_name,omitzero"`
	Email       []string       `json:"billing_email,omitempty"`
	Addr1       string         `json:"billing_addr1,omitzero"`
	Addr2       string         `json:"billing_addr2,omitzero"`
	City        string         `json:"billing_city,omitzero"`
	State       string         `json:"billing_state,omitzero"`
	Zip         string         `json:"billing_zip,omitzero"`          // postal code
	Zip4        string         `json:"billing_zip4,omitzero"`         // extension of the postal code
	Country     string         `json:"billing_country,omitzero"`      // the service does not document the form
	CountryCode string         `json:"billing_country_code,omitzero"` // the service does not document the form
	Verify      *bool          `json:"verify,omitzero"`               // nil is not sent
	Primary     *bool          `json:"primary,omitzero"`              // nil is not sent
	MerchantID  MerchantID     `json:"merchant_id,omitzero"`          // the merchant to act for
}

// BillingCard is a stored card of a customer. Security codes and ACH account data are not returned.
type BillingCard struct {
	CardNumber   string      `json:"card_number,omitzero"`            // masked
	ExpDate      string      `json:"exp_date,omitzero" answer:"mmyy"` // MMYY
	CardID       string      `json:"card_id,omitzero" answer:"id"`    // a card ID, as Tokenize returns
	FirstName    string      `json:"billing_first_name,omitzero"`
	LastName     string      `json:"billing_last_name,omitzero"`
	FirmName     string      `json:"billing_firm_name,omitzero"`
	Email        []string    `json:"billing_email,omitempty"`
	Addr1        string      `json:"billing_addr1,omitzero"`
	Addr2        string      `json:"billing_addr2,omitzero"`
	City         string      `json:"billing_city,omitzero"`
	State        string      `json:"billing_state,omitzero"`
	Zip          string      `json:"billing_zip,omitzero"`                       // postal code
	Zip4         string      `json:"billing_zip4,omitzero"`                      // extension of the postal code
	Country      string      `json:"billing_country,omitzero"`                   // the service does not document the form
	CountryCode  string      `json:"billing_country_code,omitzero" answer:"iso"` // the service does not document the form
	Primary      bool        `json:"primary,omitzero"`
	CardType     string      `json:"card_type,omitzero"`     // such as a two-letter code; the values are not documented
	VerifiedDate CompactTime `json:"verified_date,omitzero"` // 14 digits without a time zone
}

// Create stores a customer profile and returns it with its ID. Before anything is sent, Create refuses the request in
// these cases:
//
//   - The request is nil.
//   - ID is empty, and AutoGenerateCustomerID is false.
//   - FirmName is empty, and FirstName or LastName is empty too.
//   - An expiration date is not of the form MMYY.
//   - A shipping address has an ID. Only the service assigns this ID.
//   - A merchant ID is negative, or names another merchant than [Client.ForMerchant].
//   - A text contains [REDACTED] or is not valid UTF-8.
//
// Not replayable. POST /platform/vault/customer.
func (s *CustomersService) Create(
	ctx context.Context, req *CustomerCreateRequest, opts ...CallOption,
) (*Customer, error) {
	return doRecord[Customer](ctx, s.caller, call{op: OpCustomersCreate.info(), content: jsonBody(req)}, opts)
}

// List returns one page of customer profiles. It fails before anything is sent if the paging options or filters are
// not valid; see [ListOptions].
//
// Sort and filter by fields of [Customer], named as on the wire. The service documents customer_id as an example and no
// other field. No field of a customer is a date, so a filter of [BetweenDates] is of no use.
//
// Replayable. GET /platform/vault/customer.
func (s *CustomersService) List(ctx context.Context, query *ListOptions, opts ...CallOption) (*Page[Customer], error) {
	return s.list().page(ctx, query, newCallOptions(opts))
}

// All returns an iterator over all customer profiles from query.Page on, or from page 0 on if query is nil. Without
// Prefetch, a page is requested only when the loop needs it. The loop ends after the first error: an error of List, or
// an error that matches [ErrMalformedResponse] if the pages contradict each other. A second loop over the iterator
// begins at query.Page again.
//
// Replayable. GET /platform/vault/customer.
func (s *CustomersService) All(
	ctx context.Context, query *ListOptions, opts ...CallOption,
) iter.Seq2[*Customer, error] {
	return s.list().all(ctx, query, opts)
}

// Pages returns an iterator like that of All, but over whole pages. Use Pages in a program that saves its progress.
//
// Replayable. GET /platform/vault/customer.
func (s *CustomersService) Pages(
	ctx context.Context, query *ListOptions, opts ...CallOption,
) iter.Seq2[*Page[Customer], error] {
	return s.list().pages(ctx, query, opts)
}

func (s *CustomersService) list() list[Customer] {
	return list[Customer]{s.caller, OpCustomersList, nil, (*Customer).tidy}
}
