package browser

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// TestOtherOrigins checks that a web page of another origin, even on the same machine, cannot read or frame the
// emulator's page, or inject or remove faults.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	inspect, styled := payvaulttest.Inspect(srv), new(atomic.Int64)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/style.css" { // a browser requests the style sheet only if it displays the page
			styled.Add(1)
		}
		inspect.ServeHTTP(w, r)
	}))
	t.Cleanup(page.Close)
	t.Cleanup(srv.Close)
	_, err := srv.Inject(payvaulttest.Fault{Kind: payvaulttest.Hang})
	require.NoError(t, err)
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!doctype html><title>attacker</title>"))
	}))
	t.Cleanup(attacker.Close)
	for _, origin := range []string{attacker.URL, strings.Replace(attacker.URL, "127.0.0.1", "localhost", 1)} {
		p := newTab(t, srv, page.URL)
		p.do(chromedp.Navigate(origin))
		for name, script := range map[string]string{
			"read": `fetch(page + 'state').then((r) => r.text(), () => 'blocked')`,
			"post": `fetch(page + 'faults', {method: 'POST', body: '{"kind":"hang"}'}).then((r) => r.text(), () => 'blocked')`,
			"blind": `fetch(page + 'faults', {method: 'POST', mode: 'no-cors', body: '{"kind":"hang"}'}).then((r) => ` +
				`'blocked', () => 'blocked')`,
			"delete": `fetch(page + 'faults', {method: 'DELETE'}).then((r) => r.text(), () => 'blocked')`,
			"listen": `new Promise((done) => { const s = new EventSource(page + 'events'); s.onmessage = (e) => done(e.data); ` +
				`s.onerror = () => done('blocked'); })`,
			"script": `new Promise((done) => { const s = document.createElement('script'); s.onload = () => done('loaded');
			s.onerror = () => done('blocked');
				s.src = page + 'script.js'; document.head.append(s); })`,
			"submit": `new Promise((done) => { const f = document.createElement('iframe'); f.name = 'f';
			f.onload = () => done('blocked');
			document.body.append(f);
				const form = document.createElement('form'); form.method = 'POST'; form.enctype = 'text/plain';
			form.target = 'f'; form.action = page + 'faults';
				form.append(Object.assign(document.createElement('input'),
					{name: '{"kind":"other code","code":5,"message":"', value: '"}'}));
				document.body.append(form); form.submit(); })`,
		} {
			assert.Equal(t, "blocked", eval[string](p, "{const page = '"+page.URL+"/'; "+script+"}"), "%s from %s", name, origin)
		}
		p.do(chromedp.Navigate(origin))
		framed := `new Promise((done) => { const f = document.createElement('iframe'); f.onload = () => done(1); f.src = '` +
			page.URL + `/'; document.body.append(f); })`
		eval[int](p, framed)
		assert.Zero(t, styled.Load(), "a frame shows the page")
	}
	assert.Len(t, srv.Faults(), 1, "nothing was injected or removed")
	assert.Equal(t, 0, srv.Faults()[0].Struck)

	rebound, err := url.Parse(page.URL)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page.URL, nil)
	require.NoError(t, err)
	r.Host = "attacker.example:" + rebound.Port()
	resp, err := page.Client().Do(r)
	require.NoError(t, err)
	assert.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}

// TestNames checks that every element that can have the focus has a name for screen readers.
func TestNames(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.fill()
	p.click("#live tbody button")
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	focusable := 0
	for _, node := range tree.Nodes {
		for _, property := range node.Properties {
			if property.Name == accessibility.PropertyNameFocusable && string(property.Value.Value) == "true" {
				focusable++
				require.NotNil(t, node.Name)
				assert.NotEqual(t, `""`, string(node.Name.Value), "a %s without a name", node.Role.Value)
			}
		}
	}
	assert.Greater(t, focusable, 30)
}
