package payvault

import (
	"net/http"
	"net/url"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/transport"
)

// caller performs the operations of one client.
type caller struct {
	*core

	actsFor *MerchantID // the merchant of [Client.ForMerchant]; nil if the client acts for the owner of the key
}

// core holds the settings and connections that a client shares with the clients that [Client.ForMerchant] makes from
// it.
type core struct {
	base        *url.URL
	transport   *transport.Client
	owner       MerchantID // owner of the key, or 0
	vendorID    int64
	developerID string
	observers   observers
	server      string                       // host and port, for the observers
	header      http.Header                  // header of a request without a body; all requests share it
	jsonHeader  http.Header                  // header of a request with a JSON body; all requests share it
	paces       map[Operation]*overload.Pace // learned rate limits, none for Client.Call; nil in some tests
	policy      RetryPolicy                  // with the defaults in place of zero fields
}

// actFor sets the merchant ID of a request to the merchant of ForMerchant, unless the request names one. It also checks
// the ID.
func (c *caller) actFor(id *MerchantID, p *problems) {
	if c.actsFor != nil && *id == 0 {
		*id = *c.actsFor
	}
	c.checkMerchant("merchant_id", *id, p)
}

// checkMerchant adds a problem if id is negative, or if it names another merchant than ForMerchant.
func (c *caller) checkMerchant(path string, id MerchantID, p *problems) {
	switch {
	case id < 0:
		p.add(path, "is negative")
	case c.actsFor != nil && id != 0 && id != *c.actsFor:
		p.add(path, "names another merchant than ForMerchant")
	}
}
