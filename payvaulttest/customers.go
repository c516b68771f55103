package payvaulttest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"example.com/payvault"
)

// Customer is what a test can see of a saved customer profile (interface §2.2).
type Customer struct {
	MerchantID          payvault.MerchantID
	ID                  string
	RecID               int64 // counted up
	FirstName, LastName string
	FirmName            string
	Phone, Email        string // as they were sent
	ReferenceID         string
	Comments            string
	DeveloperID         string
	PrimaryCardNumber   string // masked
	CardIDs             []string
	ShippingIDs         []int64
}

// The fields that a customer has in requests and in responses.
type customerFields struct {
	ID          string `json:"customer_id,omitempty"`
	FirstName   string `json:"customer_first_name,omitempty"`
	LastName    string `json:"customer_last_name,omitempty"`
	FirmName    string `json:"customer_firm_name,omitempty"`
	Phone       string `json:"customer_phone,omitempty"`
	Email       string `json:"customer_email,omitempty"`
	ReferenceID string `json:"reference_id,omitempty"`
	Comments    string `json:"comments,omitempty"`
	DeveloperID string `json:"developer_id,omitempty"`
}

type shippingFields struct {
	FirstName   string `json:"shipping_first_name,omitempty"`
	LastName    string `json:"shipping_last_name,omitempty"`
	FirmName    string `json:"shipping_firm_name,omitempty"`
	Addr1       string `json:"shipping_addr1,omitempty"`
	Addr2       string `json:"shipping_addr2,omitempty"`
	City        string `json:"shipping_city,omitempty"`
	State       string `json:"shipping_state,omitempty"`
	Zip         string `json:"shipping_zip,omitempty"`
	Zip4        string `json:"shipping_zip4,omitempty"`
	Country     string `json:"shipping_country,omitempty"`
	CountryCode string `json:"shipping_country_code,omitempty"`
	Primary     bool   `json:"primary"`
}

type billingFields struct {
	FirstName   string   `json:"billing_first_name,omitempty"`
	LastName    string   `json:"billing_last_name,omitempty"`
	FirmName    string   `json:"billing_firm_name,omitempty"`
	Email       []string `json:"billing_email,omitempty"`
	Addr1       string   `json:"billing_addr1,omitempty"`
	Addr2       string   `json:"billing_addr2,omitempty"`
	City        string   `json:"billing_city,omitempty"`
	State       string   `json:"billing_state,omitempty"`
	Zip         string   `json:"billing_zip,omitempty"`
	Zip4        string   `json:"billing_zip4,omitempty"`
	Country     string   `json:"billing_country,omitempty"`
	CountryCode string   `json:"billing_country_code,omitempty"`
	Primary     bool     `json:"primary"`
}

type customerRequest struct {
	customerFields
	AutoGenerate bool              `json:"auto_generate_customer_id"`
	MerchantID   *int64            `json:"merchant_id"`
	Shipping     []shippingRequest `json:"shipping_addresses"`
	Billing      []billingRequest  `json:"billing_cards"`
}

type shippingRequest struct {
	shippingFields
	MerchantID *int64 `json:"merchant_id"`
}

type billingRequest struct {
	billingFields
	paymentFields
	Verify     bool   `json:"verify"`
	MerchantID *int64 `json:"merchant_id"`
}

// A customerRecord is a customer as responses carry it. A saved one does not change, and knows its
// cards by their IDs only, since a card may be updated later: see [service.withCards].
type customerRecord struct {
	customerFields
	RecID             int64               `json:"rec_id"`
	NodeID            payvault.MerchantID `json:"node_id"`
	PrimaryCardNumber string              `json:"primary_card_number,omitempty"`
	Shipping          []shippingRecord    `json:"shipping_addresses"`
	Billing           []billingRecord     `json:"billing_cards"`
}

type shippingRecord struct {
	ShippingID int64 `json:"shipping_id"`
	shippingFields
}

type billingRecord struct {
	CardNumber string `json:"card_number,omitempty"`
	ExpDate    string `json:"exp_date,omitempty"`
	CardID     string `json:"card_id"`
	billingFields
	CardType     string `json:"card_type,omitempty"`
	VerifiedDate string `json:"verified_date,omitempty"`
}

// createCustomer performs POST /platform/vault/customer.
func (v *service) createCustomer(c *call) (any, error) {
	var in customerRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	merchant, err := in.merchant(c.account)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	record, err := v.saveCustomer(merchant, &in)
	if err != nil {
		return nil, err
	}
	return success(record), nil
}

// merchant resolves merchant_id; those of the addresses and cards must be permitted, too.
func (in *customerRequest) merchant(account Account) (payvault.MerchantID, error) {
	for _, address := range in.Shipping {
		if _, err := account.actFor(address.MerchantID); err != nil {
			return 0, err
		}
	}
	for _, card := range in.Billing {
		if _, err := account.actFor(card.MerchantID); err != nil {
			return 0, err
		}
	}
	return account.actFor(in.MerchantID)
}

func (in *customerRequest) check() error {
	p := problems{}
	p.check(in.ID != "" || in.AutoGenerate, "customer_id", "or auto_generate_customer_id is required")
	p.check(in.ID == "" || isAlphanumeric(in.ID), "customer_id", "must be alphanumeric")
	named := !isBlank(in.FirstName) && !isBlank(in.LastName)
	p.check(named || !isBlank(in.FirmName), "customer_first_name", "with customer_last_name, or customer_firm_name, is required")
	in.checkShipping(p)
	in.checkBilling(p)
	return p.err()
}

// checkShipping checks each address, and that one is primary at most.
func (in *customerRequest) checkShipping(p problems) {
	primary := false
	for i, address := range in.Shipping {
		path := fmt.Sprintf("shipping_addresses[%d]", i)
		p.check(isNumericCode(address.CountryCode), join(path, "shipping_country_code"), "must be a numeric code")
		p.check(!address.Primary || !primary, join(path, "primary"), "is set for more than one address")
		primary = primary || address.Primary
	}
}

// checkBilling checks each card, and that one saved card is named once and one card is primary at most.
func (in *customerRequest) checkBilling(p problems) {
	named, primary := map[string]bool{}, false
	for i := range in.Billing {
		card := &in.Billing[i]
		path := fmt.Sprintf("billing_cards[%d]", i)
		card.check(p, path)
		p.check(card.CardID == "" || !named[card.CardID], join(path, "card_id"), "is given twice")
		p.check(!card.Primary || !primary, join(path, "primary"), "is set for more than one card")
		named[card.CardID] = true
		primary = primary || card.Primary
	}
}

func (in *billingRequest) check(p problems, path string) {
	in.paymentFields.check(p, path)
	p.check(in.CardNumber != "" || in.Routing != "" || in.CardID != "", join(path, "card_number"), "or ACH data or card_id is required")
	p.check(isNumericCode(in.CountryCode), join(path, "billing_country_code"), "must be a numeric code")
}

// saveCustomer stores a customer with all its cards, or nothing. The caller holds the lock.
func (v *service) saveCustomer(merchant payvault.MerchantID, in *customerRequest) (*customerRecord, error) {
	rows := v.customersOf(merchant)
	if err := v.checkCustomerState(merchant, rows, in); err != nil {
		return nil, err
	}
	record := &customerRecord{customerFields: in.customerFields, RecID: v.ids.number("customer"), NodeID: merchant}
	if record.ID == "" {
		record.ID = freshText(v.ids, "customer", rows)
	}
	record.Shipping = v.saveShipping(in.Shipping)
	billing, err := v.saveBilling(merchant, in.Billing)
	if err != nil {
		return nil, err
	}
	record.Billing = billing
	rows.put(record.ID, record)
	return v.withCards(record), nil
}

// customersOf is the table of a merchant's customers. The caller holds the lock.
func (v *service) customersOf(merchant payvault.MerchantID) *table[string, *customerRecord] {
	rows, ok := v.customers[merchant]
	if !ok {
		rows = newTable[string, *customerRecord]()
		v.customers[merchant] = rows
	}
	return rows
}

// withCards is a copy of a saved customer with its cards as they are now. The caller holds the lock.
func (v *service) withCards(record *customerRecord) *customerRecord {
	current := *record
	current.Billing = slices.Clone(record.Billing)
	for i := range current.Billing {
		billing := &current.Billing[i]
		if card, ok := v.cards.get(cardKey{record.NodeID, billing.CardID}); ok {
			billing.CardNumber, billing.ExpDate, billing.CardType = card.MaskedNumber, card.ExpDate, card.Type
		}
	}
	current.PrimaryCardNumber = primaryNumber(current.Billing)
	return &current
}

// checkCustomerState refuses a taken customer_id and unknown cards before anything is stored.
func (v *service) checkCustomerState(merchant payvault.MerchantID, rows *table[string, *customerRecord], in *customerRequest) error {
	if _, taken := rows.get(in.ID); taken {
		return refuse(http.StatusConflict, "there is a customer with this customer_id already")
	}
	for _, card := range in.Billing {
		if _, ok := v.cards.get(cardKey{merchant, card.CardID}); card.CardID != "" && !ok {
			return refuse(http.StatusNotFound, "there is no saved card with this card_id")
		}
	}
	return nil
}

func (v *service) saveShipping(addresses []shippingRequest) []shippingRecord {
	records := make([]shippingRecord, 0, len(addresses))
	for _, address := range addresses {
		records = append(records, shippingRecord{ShippingID: v.ids.number("shipping"), shippingFields: address.shippingFields})
	}
	return records
}

func (v *service) saveBilling(merchant payvault.MerchantID, cards []billingRequest) ([]billingRecord, error) {
	records := make([]billingRecord, 0, len(cards))
	for _, in := range cards {
		card, known := v.cards.get(cardKey{merchant, in.CardID})
		if data := in.card(); !known || data != (Card{}) { // a saved card may just be named
			saved, err := v.saveCard(merchant, in.CardID, data)
			if err != nil {
				return nil, err
			}
			card = saved
		}
		record := billingRecord{CardID: card.ID, billingFields: in.billingFields}
		if in.Verify {
			record.VerifiedDate = v.now().Format("20060102150405")
		}
		records = append(records, record)
	}
	return records, nil
}

// primaryNumber is the masked number of the primary card, or of the first one if none is primary.
func primaryNumber(cards []billingRecord) string {
	for _, card := range cards {
		if card.Primary {
			return card.CardNumber
		}
	}
	if len(cards) > 0 {
		return cards[0].CardNumber
	}
	return ""
}

// listCustomers performs GET /platform/vault/customer.
func (v *service) listCustomers(c *call) (any, error) {
	merchant, err := c.merchant()
	if err != nil {
		return nil, err
	}
	q, err := parseListQuery(c.query, customerColumns())
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return q.answer(views(v.customersOf(merchant).rows, v.withCards)), nil
}

func customerColumns() columns[customerRecord] {
	return columns[customerRecord]{
		{"customer_id", textKind, func(r *customerRecord) string { return r.ID }},
		{"rec_id", numberKind, func(r *customerRecord) string { return strconv.FormatInt(r.RecID, 10) }},
		{"node_id", numberKind, func(r *customerRecord) string { return strconv.FormatInt(int64(r.NodeID), 10) }},
		{"customer_first_name", textKind, func(r *customerRecord) string { return r.FirstName }},
		{"customer_last_name", textKind, func(r *customerRecord) string { return r.LastName }},
		{"customer_firm_name", textKind, func(r *customerRecord) string { return r.FirmName }},
		{"customer_phone", textKind, func(r *customerRecord) string { return r.Phone }},
		{"customer_email", textKind, func(r *customerRecord) string { return r.Email }},
		{"reference_id", textKind, func(r *customerRecord) string { return r.ReferenceID }},
		{"comments", textKind, func(r *customerRecord) string { return r.Comments }},
		{"developer_id", textKind, func(r *customerRecord) string { return r.DeveloperID }},
		{"primary_card_number", textKind, func(r *customerRecord) string { return r.PrimaryCardNumber }},
	}
}

// Customers returns the saved customers of a merchant, in order of creation.
func (s *Server) Customers(merchant payvault.MerchantID) []Customer {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return views(views(s.service.customersOf(merchant).rows, s.service.withCards), (*customerRecord).view)
}

// Customer returns a saved customer of a merchant.
func (s *Server) Customer(merchant payvault.MerchantID, id string) (Customer, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	record, ok := s.service.customersOf(merchant).get(id)
	if !ok {
		return Customer{}, false
	}
	return s.service.withCards(record).view(), true
}

func (r *customerRecord) view() Customer {
	view := Customer{
		MerchantID: r.NodeID, ID: r.ID, RecID: r.RecID, FirstName: r.FirstName, LastName: r.LastName,
		FirmName: r.FirmName, Phone: r.Phone, Email: r.Email, ReferenceID: r.ReferenceID,
		Comments: r.Comments, DeveloperID: r.DeveloperID, PrimaryCardNumber: r.PrimaryCardNumber,
	}
	for _, card := range r.Billing {
		view.CardIDs = append(view.CardIDs, card.CardID)
	}
	for _, address := range r.Shipping {
		view.ShippingIDs = append(view.ShippingIDs, address.ShippingID)
	}
	return view
}
