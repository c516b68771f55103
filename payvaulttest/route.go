package payvaulttest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"example.com/payvault"
)

// A bodyKind tells what an operation takes as its body.
type bodyKind int

const (
	noBody bodyKind = iota
	jsonBody
	optionalJSON
	formBody
)

// A route is one row of the table of endpoints.
type route struct {
	op      payvault.Operation
	method  string
	path    string
	body    bodyKind
	query   []string
	partner bool
	perform func(*call) (any, error)
}

func (v *service) routes() []route {
	merchant := []string{"merchant_id"}
	list := []string{"order_on", "order_by", "filter", "count", "page", "merchant_id"}
	return []route{
		{op: payvault.OpTokensTokenize, method: "POST", path: "/pg/tokenize", body: jsonBody, perform: v.tokenize},
		{op: payvault.OpCustomersCreate, method: "POST", path: "/platform/vault/customer", body: jsonBody, perform: v.createCustomer},
		{op: payvault.OpCustomersList, method: "GET", path: "/platform/vault/customer", query: list, perform: v.listCustomers},
		{op: payvault.OpPayeesCreate, method: "POST", path: "/platform/vault/payee", body: jsonBody, perform: v.createPayee},
		{op: payvault.OpPayeesDelete, method: "DELETE", path: "/platform/vault/payee/{payee_id}", query: merchant, perform: v.deletePayee},
		{op: payvault.OpApplicationsCreate, method: "POST", path: "/platform/application/add", body: jsonBody, partner: true, perform: v.createApplication},
		{op: payvault.OpApplicationsSaveData, method: "POST", path: "/platform/application/{app_id}/data", body: jsonBody, partner: true, perform: v.saveApplication},
		{op: payvault.OpApplicationsValidate, method: "GET", path: "/platform/application/{app_id}/validate", partner: true, perform: v.validateApplication},
		{op: payvault.OpDisputesRespond, method: "POST", path: "/platform/dispute/{rec_id}/respond", body: formBody, perform: v.respondToDispute},
		{op: payvault.OpSubscriptionsTransactions, method: "GET", path: "/platform/subscription/transactions/{subscription_id}", query: list, perform: v.listTransactions},
		{op: payvault.OpSubscriptionsCancel, method: "POST", path: "/platform/subscription/{subscription_id}/cancel", body: jsonBody, perform: v.cancelSubscription},
		{op: payvault.OpInvoicesSend, method: "POST", path: "/platform/invoice/{invoice_id}/send", body: optionalJSON, perform: v.sendInvoice},
		{op: payvault.OpAccountUpdaterSubmit, method: "POST", path: "/platform/aus/add", body: jsonBody, perform: v.submitUpdate},
		{op: payvault.OpWebhooksAddEvent, method: "POST", path: "/platform/webhook/{webhook_id}/event/{event}", perform: v.addEvent},
	}
}

// A match is what a router found for a request: the route, or else the methods that the path takes.
type match struct {
	route    *route
	params   map[string]string
	allow    []string
	tokenize bool // whether the path is that of tokenize, whose answers have a shape of their own
}

// find looks a request up among the routes. Paths match exactly: nothing is cleaned or redirected.
func find(routes []route, basePath string, r *http.Request) match {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), basePath)
	if !ok {
		return match{}
	}
	var found match
	for i := range routes {
		params, ok := matchPath(routes[i].path, path)
		if !ok {
			continue
		}
		found.tokenize = routes[i].op == payvault.OpTokensTokenize
		if routes[i].method == r.Method {
			return match{route: &routes[i], params: params, tokenize: found.tokenize}
		}
		found.allow = append(found.allow, routes[i].method)
	}
	return found
}

// matchPath compares an escaped path with a pattern, segment by segment.
func matchPath(pattern, path string) (map[string]string, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range want {
		name, isParam := strings.CutPrefix(segment, "{")
		if !isParam {
			if got[i] != segment {
				return nil, false
			}
			continue
		}
		text, err := url.PathUnescape(got[i])
		if err != nil || text == "" {
			return nil, false
		}
		params[strings.TrimSuffix(name, "}")] = text
	}
	return params, true
}

// err is the refusal of a request that no route takes.
func (m match) err() error {
	switch {
	case m.route != nil:
		return nil
	case len(m.allow) > 0:
		slices.Sort(m.allow)
		return refuse(http.StatusMethodNotAllowed, "the path takes %s only", strings.Join(m.allow, ", "))
	default:
		return refuse(http.StatusNotFound, "there is no such operation")
	}
}
