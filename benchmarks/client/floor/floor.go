// Package floor is what a careful programmer writes by hand: net/http and encoding/json, without retries, delivery
// tracking, deadlines or checks.
package floor

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"example.com/payvault/benchmarks/client"
)

// TokenizeRequest has every field that the interface documents.
type TokenizeRequest struct {
	MerchantID          string   `json:"merchant_id"`
	ProfileID           string   `json:"profile_id,omitempty"`
	DeveloperID         string   `json:"developer_id,omitempty"`
	LocID               string   `json:"loc_id,omitempty"`
	VendorID            int64    `json:"vendor_id,omitempty"`
	CardholderName      string   `json:"cardholder_name,omitempty"`
	AVSAddress          string   `json:"avs_address,omitempty"`
	AVSZip              string   `json:"avs_zip,omitempty"`
	EmailAddress        []string `json:"email_address,omitempty"`
	CardNumber          string   `json:"card_number,omitempty"`
	ExpDate             string   `json:"exp_date,omitempty"`
	CVV2                string   `json:"cvv2,omitempty"`
	CardID              string   `json:"card_id,omitempty"`
	CardSwipe           string   `json:"card_swipe,omitempty"`
	ClientIP            string   `json:"client_ip,omitempty"`
	TRNumber            string   `json:"tr_number,omitempty"`
	DDANumber           string   `json:"dda_number,omitempty"`
	TypeID              string   `json:"type_id,omitempty"`
	PayloadWalletOnePay string   `json:"payload_wallet_one_pay,omitempty"`
	PayloadWalletTwoPay string   `json:"payload_wallet_two_pay,omitempty"`
	SingleUse           bool     `json:"single_use,omitempty"`
	EchoFields          string   `json:"echo_fields,omitempty"`
	SessionID           string   `json:"session_id,omitempty"`
	UserID              int64    `json:"user_id,omitempty"`
	ReportData          string   `json:"report_data,omitempty"`
}

// TokenizeResponse names the stored card.
type TokenizeResponse struct {
	RCode      string `json:"rcode"`
	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id"`
	CardID     string `json:"card_id"`
	CardNumber string `json:"card_number"`
	EchoFields string `json:"echo_fields"`
}

// Client sends requests.
type Client struct {
	BaseURL string
	HTTP    *http.Client

	auth, tokenizeURL string
}

// NewClient returns a client.
func NewClient(baseURL string, transport http.RoundTripper) *Client {
	return &Client{
		BaseURL: baseURL,
		HTTP:    &http.Client{Transport: transport},
		auth:    "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+client.Key)),

		tokenizeURL: baseURL + "/pg/tokenize",
	}
}

// Do sends a body and decodes the answer.
func (c *Client) Do(ctx context.Context, method, url string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	return c.Send(req, out)
}

// Send sends a request and decodes the answer.
func (c *Client) Send(req *http.Request, out any) error {
	req.Header.Set("Accept", "application/json")
	if req.Header.Get("Content-Type") == "" && req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", c.auth)
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return json.Unmarshal(b, out)
}

// Tokenize stores a card.
func (c *Client) Tokenize(ctx context.Context, req *TokenizeRequest) (*TokenizeResponse, error) {
	var out TokenizeResponse
	if err := c.Do(ctx, http.MethodPost, c.tokenizeURL, req, &out); err != nil {
		return nil, err
	}
	if out.RCode != "000" {
		return nil, errors.New(out.RCode)
	}
	return &out, nil
}

// Answer is the body of a tokenize answer.
const Answer = `{"rcode":"000","rmsg":"Approved","pg_id":"8f14e45fceea167a5a36dedd4bea2543",` +
	`"card_id":"c20ad4d76fe97759aa27a0c99bff6710","card_number":"4111xxxxxx111111","echo_fields":"[{\"order\":\"17\"}]"}`

// New tokenizes a card.
func New(baseURL string, transport http.RoundTripper) (client.Call, error) {
	c := NewClient(baseURL, transport)
	return func(ctx context.Context) error {
		resp, err := c.Tokenize(ctx, &TokenizeRequest{
			MerchantID: "4001", CardholderName: "Ada Lovelace", AVSAddress: "12 St James's Square", AVSZip: "10001",
			EmailAddress: []string{"ada@example.com"}, CardNumber: "4111111111111111", ExpDate: "1230", CVV2: "123",
		})
		if err == nil && resp.CardID == "" {
			err = errors.New("no card ID")
		}
		return err
	}, nil
}
