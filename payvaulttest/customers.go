package payvaulttest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/cardnumber"
)

// CustomerKey identifies a customer. A customer_id is unique only within its merchant.
type CustomerKey struct {
	MerchantID payvault.MerchantID
	ID         string
}

// Customer is a customer profile, with the fields that answers on the wire have. BillingCards have the current data of
// the saved cards.
type Customer struct {
	ID                string              `json:"customer_id,omitzero"`
	RecID             int64               `json:"rec_id"`  // number that the server gives to the record
	NodeID            payvault.MerchantID `json:"node_id"` // the merchant of the customer
	FirstName         string              `json:"customer_first_name,omitzero"`
	LastName          string              `json:"customer_last_name,omitzero"`
	FirmName          string              `json:"customer_firm_name,omitzero"`
	Phone             string              `json:"customer_phone,omitzero"` // as in the request
	Email             string              `json:"customer_email,omitzero"`
	ReferenceID       string              `json:"reference_id,omitzero"`
	Comments          string              `json:"comments,omitzero"`
	DeveloperID       string              `json:"developer_id,omitzero"`
	PrimaryCardNumber string              `json:"primary_card_number,omitzero"` // masked
	ShippingAddresses []map[string]any    `json:"shipping_addresses"`           // keys are the names on the wire
	BillingCards      []map[string]any    `json:"billing_cards"`                // keys are the names on the wire
}

type customers struct {
	*state
	*Store[CustomerKey, Customer]

	cards *cards
}

func newCustomers(s *state, cards *cards) *Store[CustomerKey, Customer] {
	v := &customers{state: s, cards: cards}
	v.Store = newStore(s, "customer", v)
	s.actions[payvault.OpCustomersCreate] = reading(v.createCustomer)
	s.actions[payvault.OpCustomersList] = v.listCustomers
	return v.Store
}

func (*customers) key(c *Customer) (CustomerKey, *payvault.MerchantID) {
	return CustomerKey{c.NodeID, c.ID}, &c.NodeID
}

// prepare fills in missing values, masks the primary card number, and removes merchant_id from the addresses. It makes
// one address and one card primary: the first that is marked as primary, or else the first in the list.
func (v *customers) prepare(c *Customer) {
	for c.ID == "" {
		if made := v.ids.text("customer"); !v.has(CustomerKey{c.NodeID, made}) {
			c.ID = made
		}
	}
	c.RecID = cmp.Or(c.RecID, v.ids.number("customer"))
	c.PrimaryCardNumber = cardnumber.Masked(c.PrimaryCardNumber)
	for _, address := range c.ShippingAddresses {
		delete(address, "merchant_id")
		if address["shipping_id"] == nil {
			address["shipping_id"] = v.ids.number("shipping")
		}
	}
	for _, list := range [][]map[string]any{c.ShippingAddresses, c.BillingCards} {
		primary := max(0, slices.IndexFunc(list, isPrimary))
		for i, record := range list {
			record["primary"] = i == primary
		}
	}
}

func isPrimary(record map[string]any) bool { return record["primary"] == true }

const withoutName = "with customer_last_name, or customer_firm_name, is required"

func (c *Customer) isNamed() bool { return c.FirstName != "" && c.LastName != "" || c.FirmName != "" }

func (v *customers) permits(c *Customer) error {
	isUnknown := func(billing map[string]any) bool { return v.cardOf(c, billing) == nil }
	return cmp.Or(
		fits(!slices.ContainsFunc(c.BillingCards, isUnknown), "billing_cards must name saved cards of the merchant"),
		v.document.shows("Customer", c),
		fits(c.isNamed(), "customer_first_name "+withoutName),
	)
}

func (v *customers) cardOf(c *Customer, billing map[string]any) *Card {
	id, _ := billing["card_id"].(string)
	return v.cards.of(c.NodeID, id)
}

// detach copies the addresses and billing cards, and fills in the current data of the saved cards.
func (v *customers) detach(c *Customer) {
	c.ShippingAddresses, c.BillingCards = copyParts(c.ShippingAddresses), copyParts(c.BillingCards)
	for _, billing := range c.BillingCards {
		if card := v.cardOf(c, billing); card != nil {
			card.show(billing)
			if isPrimary(billing) {
				c.PrimaryCardNumber = card.CardNumber
			}
		}
	}
}

// copyParts copies addresses or billing cards. It also copies billing_email, the only value that is a list.
func copyParts(parts []map[string]any) []map[string]any {
	copies := make([]map[string]any, len(parts))
	for i, part := range parts {
		copies[i] = map[string]any{}
		maps.Copy(copies[i], part)
		switch emails := part["billing_email"].(type) {
		case []any:
			copies[i]["billing_email"] = slices.Clone(emails)
		case []string: // the type in a seed that is written in Go
			copies[i]["billing_email"] = slices.Clone(emails)
		}
	}
	return copies
}

// A customerRequest has the parts of a request that a [Customer] does not have: the wish for a generated ID, and the
// payment data of the billing cards.
type customerRequest struct {
	AutoGenerate bool            `json:"auto_generate_customer_id"`
	Billing      []paymentFields `json:"billing_cards"`
}

// createCustomer performs POST /platform/vault/customer. It stores a customer with all its cards, or nothing.
func (v *customers) createCustomer(c *call, in customerRequest) (any, error) {
	record := bind[Customer](c.body)
	record.NodeID = c.merchant
	if err := v.checkCustomer(c, &record, &in); err != nil {
		return nil, err
	}
	for i, card := range in.Billing {
		v.saveBilling(c, card, record.BillingCards[i])
	}
	return success(v.view(v.put(record))), nil
}

// checkCustomer returns a refusal unless the required fields are there, the payment data is valid, the customer_id is
// not taken, and the saved cards that the request names exist.
func (v *customers) checkCustomer(c *call, record *Customer, in *customerRequest) error {
	p := problems{}
	p.check(record.ID != "" || in.AutoGenerate, "customer_id", "or auto_generate_customer_id is required")
	p.check(record.isNamed(), "customer_first_name", withoutName)
	var err error
	for i, card := range in.Billing {
		card.check(p, fmt.Sprintf("billing_cards[%d]", i))
		if card.CardID != "" {
			_, unknown := v.cards.find(c, card.CardID)
			err = cmp.Or(err, unknown)
		}
	}
	if v.has(CustomerKey{record.NodeID, record.ID}) {
		err = refuse(http.StatusConflict, "there is a customer with this customer_id already")
	}
	return cmp.Or(p.err(), err)
}

// saveBilling saves the payment data of a billing card, if there is any. In the record of the billing card, it sets the
// card ID, and removes the full card number and the fields that answers do not have. It ignores the error of save,
// because checkCustomer has checked the card ID.
func (v *customers) saveBilling(c *call, in paymentFields, record map[string]any) {
	if in.CardID == "" || in.card() != (Card{}) {
		card, _ := v.cards.save(c, in)
		in.CardID = card.ID
	}
	for _, name := range []string{"card_number", "cvv2", "type_id", "tr_number", "dda_number", "verify", "merchant_id"} {
		delete(record, name)
	}
	record["card_id"] = in.CardID
	if in.Verify {
		record["verified_date"] = v.now().Format("20060102150405")
	}
}

// listCustomers performs GET /platform/vault/customer.
func (v *customers) listCustomers(c *call) (any, error) {
	rows := v.all(func(customer *Customer) bool { return customer.NodeID == c.merchant })
	return list(c.query, v.document.customers, rows)
}
