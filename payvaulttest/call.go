package payvaulttest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"example.com/payvault"
)

// A call is the input of an action, taken from a request. The action gets the call only after the request has passed
// the check against api/openapi.yaml.
type call struct {
	account  Account
	merchant payvault.MerchantID // the merchant for which the call acts
	path     func(name string) string
	query    url.Values
	body     []byte
	parts    []Part
}

// actFor sets the merchant of a call: the merchant_id in the query, else the merchant_id in the body, else the merchant
// of the account. It returns a refusal if the account may not act for this merchant.
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

// id returns a path parameter as an int64. If the parameter is not an int64, id returns 0, which is the ID of no
// record.
func (c *call) id(name string) int64 {
	if id, err := strconv.ParseInt(c.path(name), 10, 64); err == nil {
		return id
	}
	return 0
}

// An action performs an operation and returns the answer, or a refusal as the error. The caller must hold the lock of
// the state.
type action func(*call) (any, error)

// reading returns an action that decodes the JSON body of a call, and gives perform the call and the decoded body.
func reading[T any](perform func(*call, T) (any, error)) action {
	return func(c *call) (any, error) { return perform(c, bind[T](c.body)) }
}
