package payvaulttest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"example.com/payvault"
)

// A call is one request that has passed the check against the document.
type call struct {
	account  Account
	merchant payvault.MerchantID // the merchant for which the call acts
	path     func(name string) string
	query    url.Values
	body     []byte
	parts    []Part
}

// actFor sets the merchant of a call from the merchant_id of its query or body. If both have none, it sets the merchant
// of the key.
func (c *call) actFor(body any) error {
	c.merchant = c.account.MerchantID
	fields, _ := body.(map[string]any)
	given, ok := fields["merchant_id"]
	if c.query.Has("merchant_id") {
		given, ok = c.query.Get("merchant_id"), true
	}
	if !ok {
		return nil
	}
	id, _ := strconv.ParseInt(fmt.Sprint(given), 10, 64)
	c.merchant = payvault.MerchantID(id)
	if !c.account.mayActFor(c.merchant) {
		return refuse(http.StatusForbidden, "the account may not act for the merchant of merchant_id")
	}
	return nil
}

// id returns a number in the path. If the value is not a number, it returns 0, which is the ID of no record.
func (c *call) id(name string) int64 {
	if id, err := strconv.ParseInt(c.path(name), 10, 64); err == nil {
		return id
	}
	return 0
}

// An action performs an operation. The caller holds the lock of the state.
type action func(*call) (any, error)

// reading returns the action of an operation that reads a JSON body.
func reading[T any](perform func(*call, T) (any, error)) action {
	return func(c *call) (any, error) { return perform(c, bind[T](c.body)) }
}
