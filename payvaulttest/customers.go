package payvaulttest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"example.com/payvault"
	"example.com/payvault/internal/openapi"
)

// CustomerKey names a customer, its fields named as on the wire: a customer_id is unique for its merchant.
type CustomerKey struct {
	MerchantID payvault.MerchantID
	ID         string
}

// Customer is a customer profile as it is on the wire in answers. Its cards are shown as they are saved now.
type Customer struct {
	ID                string              `json:"customer_id,omitzero"`
	RecID             int64               `json:"rec_id"`  // counted up
	MerchantID        payvault.MerchantID `json:"node_id"` // whose customer it is
	FirstName         string              `json:"customer_first_name,omitzero"`
	LastName          string              `json:"customer_last_name,omitzero"`
	FirmName          string              `json:"customer_firm_name,omitzero"`
	Phone             string              `json:"customer_phone,omitzero"` // as it was sent
	Email             string              `json:"customer_email,omitzero"`
	ReferenceID       string              `json:"reference_id,omitzero"`
	Comments          string              `json:"comments,omitzero"`
	DeveloperID       string              `json:"developer_id,omitzero"`
	PrimaryCardNumber string              `json:"primary_card_number,omitzero"` // masked
	Shipping          []map[string]any    `json:"shipping_addresses"`           // by wire name
	Billing           []map[string]any    `json:"billing_cards"`                // by wire name
}

func (c *Customer) key() CustomerKey { return CustomerKey{c.MerchantID, c.ID} }

func (c *Customer) clone() Customer {
	view := *c
	view.Shipping, view.Billing = slices.Clone(view.Shipping), slices.Clone(view.Billing)
	for _, list := range [][]map[string]any{view.Shipping, view.Billing} {
		for i := range list {
			list[i] = maps.Clone(list[i])
		}
	}
	return view
}

// prepareCustomer fills a customer in. The first address and the first card are the primary ones if none is.
func (v *service) prepareCustomer(c *Customer) error {
	err := v.seedMerchant(&c.MerchantID)
	for c.ID == "" {
		if c.ID = v.ids.text("customer"); v.Customers.has(c.key()) {
			c.ID = ""
		}
	}
	if c.RecID == 0 {
		c.RecID = v.ids.number("customer")
	}
	for _, address := range c.Shipping {
		if address["shipping_id"] == nil {
			address["shipping_id"] = v.ids.number("shipping")
		}
	}
	for _, card := range c.Billing {
		_, saved := v.cardOf(c, card)
		err = cmp.Or(err, fits(saved, "billing_cards must name saved cards of the merchant"))
	}
	for _, list := range [][]map[string]any{c.Shipping, c.Billing} {
		none := !slices.ContainsFunc(list, isPrimary)
		for i, record := range list {
			record["primary"] = isPrimary(record) || none && i == 0
		}
	}
	return err
}

func isPrimary(record map[string]any) bool { return record["primary"] == true }

func (v *service) cardOf(c *Customer, billing map[string]any) (*Card, bool) {
	id, _ := billing["card_id"].(string)
	return v.savedCard(c.MerchantID, id)
}

// withCards is a copy of a customer with its cards as they are now.
func (v *service) withCards(record *Customer) Customer {
	c := record.clone()
	for _, billing := range c.Billing {
		card, ok := v.cardOf(&c, billing)
		if !ok {
			continue
		}
		for name, text := range map[string]string{
			"card_number": card.MaskedNumber, "exp_date": card.ExpDate, "card_type": card.Type,
		} {
			if billing[name] = text; text == "" {
				delete(billing, name)
			}
		}
		if isPrimary(billing) {
			c.PrimaryCardNumber = card.MaskedNumber
		}
	}
	return c
}

// A customerRequest has what a profile has, with the payment data and what else of its lists is not for answers.
type customerRequest struct {
	AutoGenerate bool             `json:"auto_generate_customer_id"`
	MerchantID   int64            `json:"merchant_id"`
	Shipping     []billingRequest `json:"shipping_addresses"` // merchant_id and primary of it
	Billing      []billingRequest `json:"billing_cards"`
}

type billingRequest struct {
	paymentFields
	Primary    bool  `json:"primary"`
	Verify     bool  `json:"verify"`
	MerchantID int64 `json:"merchant_id"`
}

// createCustomer performs POST /platform/vault/customer: it stores a customer with all its cards, or nothing.
func (v *service) createCustomer(c *call) (any, error) {
	in, err := bind[customerRequest](c.body)
	if err != nil {
		return nil, err
	}
	record, err := bind[Customer](c.body)
	if err != nil {
		return nil, err
	}
	if record.MerchantID, err = in.merchant(c); err != nil {
		return nil, err
	}
	if err := in.check(record); err != nil {
		return nil, err
	}
	if err := v.checkCustomer(&record, in.Billing); err != nil {
		return nil, err
	}
	for _, address := range record.Shipping {
		delete(address, "merchant_id")
	}
	for i, card := range in.Billing {
		if err := v.saveBilling(record.MerchantID, card, record.Billing[i]); err != nil {
			return nil, err
		}
	}
	stored, err := v.Customers.seed(record)
	return success(stored), err
}

// merchant resolves merchant_id; those of the addresses and cards must be permitted, too.
func (in *customerRequest) merchant(c *call) (payvault.MerchantID, error) {
	for _, record := range slices.Concat(in.Shipping, in.Billing) {
		if _, err := c.merchant(record.MerchantID); err != nil {
			return 0, err
		}
	}
	return c.merchant(in.MerchantID)
}

// check holds the rules between fields.
func (in *customerRequest) check(record Customer) error {
	p := problems{}
	p.check(record.ID != "" || in.AutoGenerate, "customer_id", "or auto_generate_customer_id is required")
	named := !isBlank(record.FirstName) && !isBlank(record.LastName)
	p.check(named || !isBlank(record.FirmName), "customer_first_name",
		"with customer_last_name, or customer_firm_name, is required")
	primary := false
	for i, address := range in.Shipping {
		p.check(!address.Primary || !primary, fmt.Sprintf("shipping_addresses[%d].primary", i),
			"is set for more than one address")
		primary = primary || address.Primary
	}
	primary = false
	cards := map[string]bool{}
	for i, card := range in.Billing {
		path := fmt.Sprintf("billing_cards[%d]", i)
		card.check(p, path)
		p.check(card.hasData() || card.CardID != "", openapi.WirePath(path, "card_number"),
			"or ACH data or card_id is required")
		p.check(card.CardID == "" || !cards[card.CardID], openapi.WirePath(path, "card_id"), "is given twice")
		p.check(!card.Primary || !primary, openapi.WirePath(path, "primary"), "is set for more than one card")
		cards[card.CardID] = true
		primary = primary || card.Primary
	}
	return p.err()
}

// checkCustomer refuses a taken customer_id and unknown cards before anything is stored.
func (v *service) checkCustomer(record *Customer, cards []billingRequest) error {
	if v.Customers.has(record.key()) {
		return refuse(http.StatusConflict, "there is a customer with this customer_id already")
	}
	for _, card := range cards {
		if _, ok := v.savedCard(record.MerchantID, card.CardID); card.CardID != "" && !ok {
			return notFound("saved card", "card_id")
		}
	}
	return nil
}

// saveBilling saves a card, unless a saved one is just named, and leaves of the record what answers carry.
func (v *service) saveBilling(merchant payvault.MerchantID, in billingRequest, record map[string]any) error {
	card, known := v.savedCard(merchant, in.CardID)
	if data := in.card(); !known || data != (Card{}) {
		saved, err := v.saveCard(merchant, in.CardID, data)
		if err != nil {
			return err
		}
		card = saved
	}
	for _, name := range []string{
		"card_number", "exp_date", "cvv2", "type_id", "tr_number", "dda_number", "verify",
		"merchant_id",
	} {
		delete(record, name)
	}
	record["card_id"] = card.ID
	if in.Verify {
		record["verified_date"] = v.now().Format("20060102150405")
	}
	return nil
}

// listCustomers performs GET /platform/vault/customer.
func (v *service) listCustomers(c *call) (any, error) {
	merchant, err := c.queryMerchant()
	if err != nil {
		return nil, err
	}
	rows := v.Customers.all(func(customer *Customer) bool { return customer.MerchantID == merchant })
	return list(c.query, v.document.customers, rows)
}
