package browser

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestCanary checks that neither the page nor the JSON that it loads contains the secrets and full card numbers of
// requests and records.
func TestCanary(t *testing.T) {
	t.Parallel()
	const canary, number, key = "c4nary", "4929123456781234", "a-key"
	p := open(t, payvaulttest.WithAccount(payvaulttest.Account{MerchantID: 5, APIKey: key, PayeeVault: true}))
	p.srv.Cards.Seed(payvaulttest.Card{CardNumber: number, CardholderName: canary})
	p.srv.Invoices.Seed(payvaulttest.Invoice{Emails: []string{canary}})
	p.srv.Payees.Seed(payvaulttest.Payee{Name: canary})
	p.srv.Webhooks.Seed(payvaulttest.Webhook{NotificationURL: "http://" + canary + "@127.0.0.1:1/" + canary + "?" +
		canary, Events: []payvault.Event{"e"}})
	p.srv.TriggerEvent(5, "e", canary)
	require.NoError(t, p.srv.WaitDeliveries(t.Context()))
	names := `"card_number":"` + number + `","customer_id":"` + number + `","customer_firm_name":"` + canary + `","` +
		canary + `":"` + canary + `"`
	requests := 0
	for _, info := range payvault.Operations() {
		for _, body := range []string{"{" + names + "}", canary, `{"customer_id":"` + number + `","customer_firm_name":"` +
			canary + `"}`} {
			path := strings.NewReplacer("{", canary, "}", number).Replace(info.Path)
			p.sendTo(info.Method, path+"?"+canary+"="+canary+"&page="+canary, key, body)
			p.sendTo(info.Method, path, canary, body)
			requests += 2
		}
	}
	for _, id := range []string{number, key} {
		p.sendTo(http.MethodPost, "/platform/vault/customer", key, `{"customer_id":"`+id+`","customer_firm_name":"`+
			canary+`"}`)
		requests++
	}
	p.sendTo(http.MethodPost, "/"+canary+"/"+number, key, canary)
	requests++

	p.waitFor(fmt.Sprintf(`document.querySelector('#count').textContent.startsWith('%d in all')`, requests))
	page := eval[string](p, `(async () => {
		document.querySelectorAll('details').forEach((each) => { each.open = true; });
		let seen = document.documentElement.outerHTML;
		for (const button of document.querySelectorAll('#live tbody button')) {
			button.click();
			seen += document.querySelector('#detail').outerHTML;
		}
		for (const path of ['state', 'requests', 'faults', 'presets', 'connection']) seen += await (await fetch(path)).text();
		return seen + JSON.stringify([...document.querySelectorAll('input, select')].map((each) => each.value)) +
				document.cookie
			+ JSON.stringify(localStorage);
	})()`)
	p.waitFor(`document.querySelector('#table-deliveries td')`) // the table appears when the page has loaded the state
	assert.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}$`, p.text("#table-deliveries td"))
	assert.Contains(t, page, "4929xxxxxx781234", "what is masked is there")
	assert.Contains(t, page, "customer_firm_name")
	for _, secret := range []string{canary, number} {
		assert.NotContains(t, page, secret)
	}
}

// sendTo sends a request with the given key and body.
func (p *tab) sendTo(method, path, key, body string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.srv.URL+path, strings.NewReader(body))
	require.NoError(p, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Canary", "c4nary")
	r.SetBasicAuth("", key)
	resp, err := p.srv.HTTPClient().Do(r)
	require.NoError(p, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(p, err)
	require.NoError(p, resp.Body.Close())
}
