package payvault

import (
	"net/http"
	"net/url"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/transport"
)

// core is what a client and those that [Client.ForMerchant] makes of it share.
type core struct {
	base        *url.URL
	transport   *transport.Client
	merchant    MerchantID
	vendorID    int64
	developerID string
	observers   observers
	server      string      // host and port, for the observers
	header      http.Header // of each request; the values are shared
	paces       map[Operation]*overload.Pace
	policy      RetryPolicy // without zero fields
}

// actFor fills in the merchant that the client acts for.
func (c *Client) actFor(id *MerchantID, p *problems) {
	if c.merchant != nil && *id == 0 {
		*id = *c.merchant
	}
	c.checkMerchant("merchant_id", *id, p)
}

// checkMerchant refuses an ID that is none, and one that names a third merchant.
func (c *Client) checkMerchant(path string, id MerchantID, p *problems) {
	switch {
	case id < 0:
		p.add(path, "is negative")
	case c.merchant != nil && id != 0 && id != *c.merchant:
		p.add(path, "names another merchant than ForMerchant")
	}
}

// clientOf returns nil for a service that [NewClient] did not make.
func clientOf[S ~struct{ client *Client }](s *S) *Client {
	if s == nil {
		return nil
	}
	return struct{ client *Client }(*s).client
}
