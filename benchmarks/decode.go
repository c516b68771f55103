package benchmarks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/sdk"
)

// customers is a page of full customers of about 1.5 KB each.
func customers(n int) string {
	records := make([]string, n)
	for i := range records {
		address := func(id int, primary bool) string {
			return fmt.Sprintf(`{"shipping_id":%d,"shipping_first_name":"Ada","shipping_last_name":"Lovelace","shipping_firm_name":"Analytical Engines Ltd","shipping_addr1":"12 St James's Square","shipping_addr2":"Floor 2","shipping_city":"Springfield","shipping_state":"IL","shipping_zip":"62701","shipping_zip4":"0001","shipping_country":"United States","shipping_country_code":"840","primary":%t}`, id, primary)
		}
		card := func(id int, primary bool) string {
			return fmt.Sprintf(`{"card_number":"4111xxxxxx11%04d","exp_date":"1230","card_id":"c20ad4d76fe97759aa27a0c99bff%04d","billing_first_name":"Ada","billing_last_name":"Lovelace","billing_email":["ada@example.com"],"billing_addr1":"12 St James's Square","billing_city":"Springfield","billing_state":"IL","billing_zip":"62701","billing_country":"United States","billing_country_code":"840","primary":%t,"card_type":"VI","verified_date":"20260115093042"}`, id, id, primary)
		}
		records[i] = fmt.Sprintf(`{"customer_id":"cust%06d","rec_id":%d,"node_id":4001,"customer_first_name":"Ada","customer_last_name":"Lovelace","customer_firm_name":"Analytical Engines Ltd","customer_phone":"2125550100","customer_email":"ada%d@example.com","reference_id":"ref-%d","comments":"prefers to be called in the morning","developer_id":"acme-billing","primary_card_number":"4111xxxxxx111111","shipping_addresses":[%s],"billing_cards":[%s,%s]}`,
			i, 900000+i, i, i, address(i, true), card(i, true), card(i+1, false))
	}
	return page(records)
}

// transactions is a page of transactions.
func transactions(n int) string {
	records := make([]string, n)
	for i := range records {
		records[i] = fmt.Sprintf(`{"merchant_id":4001,"tran_time":"2026-01-15T09:30:42.123-05:00","tran_status":"P","auth_code":"A1B2C3","rcode":"000","rmsg":"Approved","card_number":"4111xxxxxx111111","card_type":"VI","purchase_id":"order-%d","pg_id":"8f14e45fceea167a5a36dedd4bea%04d","cardholder_first_name":"Ada","cardholder_last_name":"Lovelace","amt_tran":%d.50,"tran_currency":"840","dispute_flag":false,"amt_refunded":0.00,"batch_number":%d,"customer_id":"cust%06d","subscription_id":77,"merch_ref_num":"m-%d","batch_id":%d,"batch_date":"2026-01-15","settle_date":"2026-01-16","amt_funded":%d.50,"funded_currency":"840"}`,
			i, i, 10+i, i, i, i, i, 10+i)
	}
	return page(records)
}

func page(records []string) string {
	return fmt.Sprintf(`{"code":0,"message":"Success","totalPages":1,"totalRecords":%d,"data":[%s]}`,
		len(records), strings.Join(records, ","))
}

// envelope is the shape of a page.
type envelope[T any] struct {
	Code         json.Number `json:"code"`
	TotalPages   int         `json:"totalPages"`
	TotalRecords int         `json:"totalRecords"`
	Data         []T         `json:"data"`
}

// plainTransaction is payvault.Transaction with plain types.
type plainTransaction struct {
	MerchantID          int64     `json:"merchant_id"`
	Time                time.Time `json:"tran_time"`
	Status              string    `json:"tran_status"`
	AuthCode            string    `json:"auth_code"`
	RCode               string    `json:"rcode"`
	RMsg                string    `json:"rmsg"`
	CardNumber          string    `json:"card_number"`
	CardType            string    `json:"card_type"`
	PurchaseID          string    `json:"purchase_id"`
	PGID                string    `json:"pg_id"`
	CardholderFirstName string    `json:"cardholder_first_name"`
	CardholderLastName  string    `json:"cardholder_last_name"`
	AmtTran             float64   `json:"amt_tran"`
	Currency            string    `json:"tran_currency"`
	DisputeFlag         bool      `json:"dispute_flag"`
	AmtRefunded         float64   `json:"amt_refunded"`
	BatchNumber         int64     `json:"batch_number"`
	CustomerID          string    `json:"customer_id"`
	SubscriptionID      int64     `json:"subscription_id"`
	MerchRefNum         string    `json:"merch_ref_num"`
	BatchID             int64     `json:"batch_id"`
	BatchDate           string    `json:"batch_date"`
	SettleDate          string    `json:"settle_date"`
	AmtFunded           float64   `json:"amt_funded"`
	FundedCurrency      string    `json:"funded_currency"`
}

// unmarshal is one bare json.Unmarshal of a page.
func unmarshal[T any](name, body string) Variant {
	bytes := []byte(body)
	return Each(name, func() error {
		var p envelope[T]
		if err := json.Unmarshal(bytes, &p); err != nil {
			return err
		}
		return checkCount(len(p.Data), p.TotalRecords)
	})
}

func checkCount(got, want int) error {
	if got == 0 || got != want {
		return errors.New("records are missing")
	}
	return nil
}

// PageVariants decode a page of 100 customers: bare, and through the client with all that belongs to a call.
func PageVariants() ([]Variant, error) {
	body := customers(100)
	c, err := sdk.NewClient("http://127.0.0.1", client.Canned(body))
	if err != nil {
		return nil, err
	}
	return []Variant{
		unmarshal[payvault.Customer]("one bare json.Unmarshal", body),
		Each("Customers.List, canned", func() error {
			p, err := c.Customers.List(context.Background(), nil)
			if err != nil {
				return err
			}
			return checkCount(len(p.Items), p.TotalRecords)
		}),
	}, nil
}

// TransactionVariants decode 100 transactions: into plain types, and into those of the package.
func TransactionVariants() []Variant {
	body := transactions(100)
	return []Variant{
		unmarshal[plainTransaction]("float64 and time.Time", body),
		unmarshal[payvault.Transaction]("Amount, Timestamp, Date and typed IDs", body),
	}
}

// Decode measures both.
func Decode(rounds int) (Section, error) {
	body := customers(100)
	s := Section{Title: "decoding a page of 100 records", Head: raceHead(fmt.Sprintf("customers: %d KB", len(body)/1000))}
	list, err := PageVariants()
	if err != nil {
		return s, err
	}
	stats, err := Race(rounds, 60*time.Millisecond, list...)
	if err != nil {
		return s, err
	}
	s.race("100 customers, ", stats)
	s.atLeast("speed of Customers.List ÷ bare Unmarshal", 0.95, 1/stats[1].CPURatio)
	if stats, err = Race(rounds, 60*time.Millisecond, TransactionVariants()...); err != nil {
		return s, err
	}
	s.race("100 transactions, ", stats)
	s.atMost("transactions: time ÷ float64 and time.Time", 1.10, stats[1].CPURatio, "")
	return s, nil
}
