package payvault

import (
	"net/http"
	"net/url"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/transport"
)

// caller performs the operations of a client. It has what all clients of a key share, and the merchant that this one
// acts for.
type caller struct {
	*core

	actsFor *MerchantID // of [Client.ForMerchant]; nil for the owner of the key
}

// core is what a client and those that [Client.ForMerchant] makes of it share.
type core struct {
	base        *url.URL
	transport   *transport.Client
	owner       MerchantID // of the key, or 0
	vendorID    int64
	developerID string
	observers   observers
	server      string      // host and port, for the observers
	header      http.Header // of each request; the values are shared
	paces       map[Operation]*overload.Pace
	policy      RetryPolicy // without zero fields
}

// actFor fills in the merchant that the client acts for.
func (c *caller) actFor(id *MerchantID, p *problems) {
	if c.actsFor != nil && *id == 0 {
		*id = *c.actsFor
	}
	c.checkMerchant("merchant_id", *id, p)
}

// checkMerchant refuses an ID that is none, and one that names a third merchant.
func (c *caller) checkMerchant(path string, id MerchantID, p *problems) {
	switch {
	case id < 0:
		p.add(path, "is negative")
	case c.actsFor != nil && id != 0 && id != *c.actsFor:
		p.add(path, "names another merchant than ForMerchant")
	}
}
