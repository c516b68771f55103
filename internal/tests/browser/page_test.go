package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestRequestAppears checks that the page shows a request as soon as the emulator has answered it, and that the
// keyboard can open the details of the request.
func TestRequestAppears(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.do(chromedp.EmulateViewport(1280, 800))
	p.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})
	require.NoError(t, p.send())

	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	row := strings.Fields(p.text("#live tbody tr"))
	assert.Regexp(t, `^\d\d:\d\d:\d\d\.\d\d\d$`, row[0])
	assert.Equal(t, []string{"invoices.send", "100001", "200", "0"}, row[1:5])
	p.do(chromedp.Focus(chromedp.CSS("#live tbody button")), chromedp.KeyEvent(kb.Enter))
	p.waitFor(`!document.querySelector('#detail').hidden`)
	detail := p.text("#detail")
	assert.Contains(t, detail, "POST /platform/invoice/{invoice_id}/send")
	assert.Regexp(t, `outcome\s+performed`, detail)
	assert.Equal(t, "H3", eval[string](p, `document.activeElement.tagName`), "the detail is many rows away")
	p.do(chromedp.KeyEvent(kb.Escape))
	assert.True(t, eval[bool](p, `document.activeElement.matches('#live [aria-current]')`), "and the way back is short")
	assert.Contains(t, detail, `"email_address": [`)
	p.waitFor(`document.querySelector('#table-invoices').textContent.includes('outstanding')`)
	assert.Contains(t, p.text("#table-performed-operations summary"), "1")
	eval[any](p, `document.querySelector('#table-invoices tbody tr').id = 'same'`)
	assert.True(t, eval[bool](p, `refresh().then(() => !!document.querySelector('#same'))`), "what is selected stays so")

	require.Error(t, p.send())
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 2`)
	const marked = "#live tr:has([aria-current])"
	assert.Contains(t, p.text(marked), "200", "the chosen one is marked")
	p.click("#live tbody button")
	assert.Contains(t, p.text(marked), "409")
	eval[any](p, `document.querySelectorAll('#live tbody tr').forEach((row) => { row.id = 'old'; })`)
	p.choose("#only", "invoices.send")
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 2 && !document.querySelector('#old')`)
	assert.Contains(t, p.text(marked), "409", "also when the list is made anew")
	assert.Regexp(t, `outcome\s+not performed: the invoice is outstanding already`, p.text("#detail"))
}

// TestArmedIsSeen checks that the page counts and lists the injected faults, and that the message about the last action
// disappears.
func TestArmedIsSeen(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.do(chromedp.EmulateViewport(1280, 800))
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#strikes').innerText === '1 fault armed'`)
	top := func(selector string) float64 {
		return eval[float64](p, `document.querySelector('`+selector+`').getBoundingClientRect().top`)
	}
	assert.Less(t, top("#armed"), top("#presets li:nth-child(3)"))
	assert.Equal(t, "Armed: 503", p.text("#said"))
	eval[any](p, "scrollTo(0, 0)")
	assert.Less(t, top("#strikes"), 100.0)
	p.click(`[aria-label^="Arm: Permit"]`)
	p.waitFor(`document.querySelector('#armed').innerText.includes('permit rate 5 a second, every request')`)
	p.click("#armed li:last-child button")
	p.waitFor(`document.querySelector('#armed').children.length === 1`)
	p.click("#strikes")
	p.waitFor(`document.querySelector('#armed').getBoundingClientRect().bottom < innerHeight`)
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#strikes').innerText === '2 faults armed'`)
	p.click("#clear")
	p.waitFor(`document.querySelector('#strikes').hidden`)
	p.waitFor(`document.querySelector('#said').innerText === ''`)
}

// TestPageIsClosedFirst checks that closing the server of the page before the emulator does not block forever while a
// browser shows the page.
func TestPageIsClosedFirst(t *testing.T) {
	t.Parallel()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	page := httptest.NewServer(payvaulttest.Inspect(srv))
	p := newTab(t, srv, page.URL)
	p.do(chromedp.Navigate(page.URL))
	require.Error(t, p.send())
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	closed := make(chan struct{})
	go func() { page.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		assert.Fail(t, "the page keeps its server")
		page.CloseClientConnections()
		<-closed
	}
	p.waitFor(`document.querySelector('#connection').innerText !== 'live'`)
	assert.Equal(t, 1, eval[int](p, `document.querySelectorAll('#live tbody tr').length`), "it shows what it had")
}

func (p *tab) send() error {
	request := &payvault.InvoiceSendRequest{EmailAddress: []string{"jane@example.com"}}
	return p.srv.Client().Invoices.Send(p.ctx, "INV-1", request) //nolint:wrapcheck // unchanged
}

// TestFaultAtAClick checks that a click injects a fault, that the fault makes requests fail, and that the page counts
// the failed requests.
func TestFaultAtAClick(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.choose("#times", "2")
	p.choose("#times", "-1")
	p.choose("#times", "2")
	p.choose("#target", "invoices.send")
	p.waitFor(`document.querySelector('#presets').textContent.includes('OpInvoicesSend,')`)
	assert.Contains(t, p.text("#presets code"), "Kind: payvaulttest.DropAfterCommit,\n\tTimes: 2,\n}")
	p.click(`[aria-label^="Arm: Lose the answer"]`)
	p.waitFor(`document.querySelector('#armed')?.textContent.includes('invoices.send: struck 0, 2 left')`)
	require.ErrorIs(t, p.send(), payvault.ErrOutcomeUnknown)
	p.waitFor(`document.querySelector('#armed').textContent.includes('struck 1, 1 left')`)
	p.waitFor(`document.querySelector('#live tbody tr.bad')`) // the page loads the list and the faults separately
	assert.Contains(t, p.text("#live tbody tr.bad"), "✗ invoices.send", "it is said without color, too")
	assert.Contains(t, p.text("#live tbody tr.bad"), "drop after commit")
	require.ErrorIs(t, p.send(), payvault.ErrOutcomeUnknown)
	p.waitFor(`document.querySelector('#armed').children.length === 0`)

	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed')?.textContent.includes('respond 503, invoices.send')`)
	p.click(`#armed button`)
	p.waitFor(`document.activeElement.id === 'waiting'`)
	assert.Empty(t, p.srv.Faults())

	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	p.do(chromedp.Focus(chromedp.CSS("#strikes")))
	require.Error(t, p.send())
	require.Error(t, p.send())
	p.waitFor(`document.activeElement.tagName === 'HEADER'`)
}

// TestRowsStayUnderThePointer checks that the page adds no rows to the list while the main mouse button is pressed.
// Otherwise the row under the pointer would move before the click ends.
func TestRowsStayUnderThePointer(t *testing.T) {
	t.Parallel()
	p := open(t)
	require.Error(t, p.send())
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	p.press(0)
	require.Error(t, p.send())
	p.waitFor(`held.length > 0`)
	p.waitFor(`document.querySelectorAll("#live tbody tr").length === 1`)
	p.waitFor(`window.dispatchEvent(new PointerEvent("pointerup"))`)
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 2`)

	for _, end := range []string{"pointercancel", "contextmenu", "blur"} {
		p.press(0)
		p.waitFor(`held && window.dispatchEvent(new Event("` + end + `"))`)
		p.waitFor(`held === undefined`)
	}
	p.press(2)
	assert.True(t, eval[bool](p, `held === undefined`), "it is for the menu")

	p.press(0)
	require.Error(t, p.send())
	p.waitFor(`held.length > 0`)
	p.choose("#only", "customers.list")
	p.waitFor(`held.some((batch) => batch.matching === 0)`)
	p.waitFor(`window.dispatchEvent(new PointerEvent("pointerup"))`)
	p.waitFor(`document.querySelector('#count').innerText === '3 in all, 0 fit'`)
	assert.Zero(t, eval[int](p, `document.querySelectorAll('#live tbody tr').length`), "those before the filter are gone")

	eval[any](p, `document.querySelector('#live').dispatchEvent(new PointerEvent('pointerdown'))`)
	p.waitFor(`held === undefined`) // only the timer sets held to undefined
	p.click("#pause")
	p.press(0)
	assert.True(t, eval[bool](p, `held === undefined`), "there is nothing to hold")
}

// press presses a mouse button on the list of requests. It stops the timer that would add the new rows although the
// button is still pressed.
func (p *tab) press(button int) {
	p.Helper()
	eval[any](p, fmt.Sprintf(`{at('live').dispatchEvent(new PointerEvent('pointerdown', {button: %d}));
		clearTimeout(holding)}`, button))
}

// TestFilters checks that the filters by failure and by operation, and both together, show only the requests that fit.
func TestFilters(t *testing.T) {
	t.Parallel()
	p := open(t)
	client := p.srv.Client()
	for range 20 {
		_, err := client.Customers.List(t.Context(), nil)
		require.NoError(t, err)
	}
	require.Error(t, p.send())
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 21`)
	p.click("#failed")
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	assert.Contains(t, p.text("#live tbody tr"), "404")
	p.choose("#only", "customers.list")
	p.waitFor(`document.querySelector('#none').innerText === 'No request that fits the filter.'`)
	p.click("#failed")
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 20`)
}

// TestPause checks that the button Pause stops updates of the list of requests, but not of the faults and records.
func TestPause(t *testing.T) {
	t.Parallel()
	p := open(t)
	require.Error(t, p.send())
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	p.click("#pause")
	assert.Equal(t, "paused", p.text("#connection"))
	_, err := p.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.RateLimit, Times: 5})
	require.NoError(t, err)
	p.srv.Payees.Seed(payvaulttest.Payee{ID: 4, Name: "Acme"})
	p.sendTo(http.MethodGet, "/platform/vault/customer", "", "")
	// when this is true, the page has loaded the new state
	p.waitFor(`document.querySelector('#armed').textContent.includes('struck 1, 4 left')`)
	assert.Equal(t, "payees: 1", p.text("#table-payees summary"))
	assert.Equal(t, 1, eval[int](p, `document.querySelectorAll('#live tbody tr').length`))
	p.see(false)
	p.see(true)
	p.waitFor(`document.querySelector('#connection').innerText === 'paused'`)
	assert.Equal(t, 1, eval[int](p, `document.querySelectorAll('#live tbody tr').length`))
	p.click("#pause")
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 2`)
	p.click("#pause")
	p.click("#failed") // a change of the filter ends the pause
	p.waitFor(`document.querySelector('#connection').innerText === 'live'`)
	assert.Equal(t, "false", eval[string](p, `document.querySelector('#pause').ariaPressed`))
}

// see makes the tab visible or hidden for the page. It replaces document.hidden, because in a headless browser all tabs
// are visible.
func (p *tab) see(inSight bool) {
	p.Helper()
	eval[any](p, fmt.Sprintf(`{Object.defineProperty(document, 'hidden', {configurable: true, value: %t});
		document.dispatchEvent(new Event('visibilitychange'));}`, !inSight))
}

// TestManyTabs checks that many tabs with the same page work if only a few are visible. A browser opens at most six
// connections to a host, so a hidden tab must close its event stream.
func TestManyTabs(t *testing.T) {
	t.Parallel()
	first := open(t)
	for range 7 {
		first.see(false)
		first.waitFor(`document.querySelector('#connection').innerText.startsWith('not connected')`)
		next := first.another()
		next.waitFor(`document.querySelector('#connection').innerText === 'live'`)
		next.click(`[aria-label="Arm: 503"]`)
		next.waitFor(`document.querySelector('#armed li')`)
		next.click(`#clear`)
		next.waitFor(`!document.querySelector('#armed li')`)
		first.see(true)
		first.waitFor(`document.querySelector('#connection').innerText === 'live'`)
		next.see(false)
	}
	require.Error(t, first.send())
	first.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
}

// TestManyTabsInSight checks that a click injects a fault even if the server has no event stream for the tab, and that
// the tab gets a stream when another tab is hidden.
func TestManyTabsInSight(t *testing.T) {
	t.Parallel()
	first := open(t)
	p := first
	for range 4 {
		p = p.another()
		p.waitFor(`document.querySelector('#presets button')`)
	}
	p.waitFor(`document.querySelector('#connection').innerText.includes('too many pages')`)
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	assert.Len(t, p.srv.Faults(), 1)
	first.see(false)
	p.waitFor(`document.querySelector('#connection').innerText === 'live'`)
}

// another opens the same page in a new tab.
func (p *tab) another() *tab {
	p.Helper()
	next := newTab(p.T, p.srv, p.url)
	next.do(chromedp.Navigate(p.url))
	return next
}

// openTwo starts two emulators and opens the page of the first. To simulate a restart at the same address, a test
// stores the handler of the second emulator's page in the returned pointer.
func openTwo(t *testing.T) (p *tab, before, after *payvaulttest.Server, page *atomic.Pointer[http.Handler]) {
	t.Helper()
	before, after, page = payvaulttest.NewServer(), payvaulttest.NewServer(), new(atomic.Pointer[http.Handler])
	t.Cleanup(before.Close)
	t.Cleanup(after.Close)
	page.Store(new(payvaulttest.Inspect(before)))
	current := func(w http.ResponseWriter, r *http.Request) { (*page.Load()).ServeHTTP(w, r) }
	return openPage(t, before, http.HandlerFunc(current)), before, after, page
}

// TestRestart checks that after a restart the page shows no request and no fault of the old emulator, although the new
// emulator gives its requests and faults the same numbers.
func TestRestart(t *testing.T) {
	t.Parallel()
	p, before, after, page := openTwo(t)
	p.click(`[aria-label="Arm: 503"]`)
	require.Error(t, p.send())
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed')?.textContent.includes('503')`)
	p.click("#live tbody button")
	p.waitFor(`!document.querySelector('#detail').hidden`)

	page.Store(new(payvaulttest.Inspect(after)))
	for range 2 {
		_, err := after.Inject(payvaulttest.Fault{Kind: payvaulttest.RateLimit, Times: 2})
		require.NoError(t, err)
	}
	now := &tab{T: t, ctx: p.ctx, srv: after}
	for range 3 {
		now.sendTo(http.MethodGet, "/platform/vault/customer", "", "")
	}
	before.Close() // ends the stream; then the browser connects again
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 3`)
	p.waitFor(`document.querySelector('#armed').textContent.includes('rate limit')`)
	assert.NotContains(t, p.text("#armed"), "503")
	assert.NotContains(t, p.text("#live tbody"), "invoices")
	assert.True(t, eval[bool](p, `document.querySelector('#detail').hidden`))
}

// TestRestartWhilePaused checks that a paused page keeps the old requests after a restart of the emulator, and says
// that they are old.
func TestRestartWhilePaused(t *testing.T) {
	t.Parallel()
	p, before, after, page := openTwo(t)
	require.Error(t, p.send())
	p.waitFor(`document.querySelector('#live button')`)
	p.click("#live tbody button")
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	p.click("#pause")
	p.waitFor(`waiting === 0`) // no refresh of the page is scheduled

	page.Store(new(payvaulttest.Inspect(after)))
	before.Close() // ends the stream; then the browser connects again
	p.waitFor(`document.querySelector('#connection').innerText.startsWith('paused; these are the requests of before')`)
	p.waitFor(`!document.querySelector('#armed li')`)
	assert.Contains(t, p.text("#live tbody"), "invoices.send")
	assert.Contains(t, p.text("#detail"), "invoices.send")
	p.click("#pause")
	p.waitFor(`document.querySelector('#connection').innerText === 'live' && !document.querySelector('#live button')`)
	assert.True(t, eval[bool](p, `document.querySelector('#detail').hidden`))
}

// TestPending checks that the page shows a request as not answered while it hangs.
func TestPending(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.click(`[aria-label^="Arm: Hang"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	ctx, cancel := context.WithCancel(p.ctx)
	hanging := &tab{T: t, ctx: ctx, srv: p.srv}
	ended := make(chan error)
	go func() { ended <- hanging.send() }()
	p.waitFor(`document.querySelector('#pending').innerText.startsWith('1 not answered yet: invoices.send, hang, for ')`)
	cancel()
	require.Error(t, <-ended)
	p.waitFor(`document.querySelector('#pending').innerText === ''`)
	assert.Contains(t, p.text("#live tbody tr.bad"), "hang")
}

// TestTimesAndSkip checks that the page offers no faults while its input "times" or its input "skip" has an invalid
// value.
func TestTimesAndSkip(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, number := range []string{"-1", "", "1.5", "10000"} {
		for field, line := range map[string]string{"#times": "Times: 3,", "#skip": "Skip: 3,"} {
			p.choose(field, number)
			p.waitFor(`document.querySelector('#said').innerText.startsWith('Times and skip are whole numbers')`)
			p.waitFor(`!document.querySelector('#presets button')`)
			p.choose(field, "3")
			p.waitFor(`document.querySelector('#presets code')?.textContent.includes('` + line + `')`)
			assert.Empty(t, p.text("#said"))
		}
	}
	p.click(`[aria-label^="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed')?.textContent.includes('503 after 3 others, every request: struck 0,')`)
}

// TestOvertaken checks that the page ignores an answer that arrives after the answer to a later request.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	srv, late := payvaulttest.NewServer(), make(chan struct{})
	inspect := payvaulttest.Inspect(srv)
	p := openPage(t, srv, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/late":
			close(late)
			return // with status 200, because an error status would be a message in the console
		case r.URL.Path == "/presets" && r.FormValue("times") == "7":
			<-late
		}
		inspect.ServeHTTP(w, r)
	}))
	shown := eval[string](p, `(async () => {
		at('times').value = '7';
		const first = showPresets();
		at('times').value = '3';
		await showPresets();
		await fetch('late');
		await first;
		return at('presets').textContent;
	})()`)
	assert.Contains(t, shown, "Times: 3,")
	assert.NotContains(t, shown, "Times: 7,")
}

// TestCopiedLineCompiles checks that the Go code that the page copies to the clipboard compiles.
func TestCopiedLineCompiles(t *testing.T) {
	t.Parallel()
	p := open(t)
	var lines strings.Builder
	count := eval[int](p, `document.querySelectorAll('#presets li').length`)
	require.Equal(t, 6, count)
	for i := range count {
		lines.WriteString(p.copied(fmt.Sprintf(`#presets li:nth-child(%d) [aria-label^="Copy"]`, i+1)) + "\n")
	}
	source := "package main\n\nimport (\n\t\"context\"\n\t\"testing\"\n\n\t\"example.com/payvault\"\n" +
		"\t\"example.com/payvault/payvaulttest\"\n)\n\nfunc main() {}\n\n" +
		"func use(t *testing.T, srv *payvaulttest.Server) {\n" + lines.String() + "}\n\n" +
		"func first(ctx context.Context) (any, error) {\n" + p.copied(`[aria-label="Copy a first request: Go"]`) +
		"\nreturn page, err\n}\n"
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	copied := p.copied(`#armed [aria-label="Copy the line of Go: respond"]`)
	assert.Equal(t, strings.ReplaceAll(p.text("#armed code"), "\t", ""), strings.ReplaceAll(copied, "\t", ""))
	assert.Contains(t, copied, "Fault{\n\tKind: payvaulttest.Respond,\n\tTimes: 1,\n\tStatus: 503,\n})")
	_, err := p.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Message: strings.Repeat("m", 200)})
	require.NoError(t, err)
	eval[any](p, `refresh()`)
	p.click(`#armed [aria-label="Copy the line of Go: other code"]`)
	p.waitFor(`document.querySelector('#said').innerText.endsWith('write what is meant in place of fillIn')`)
	name := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(name, []byte(source), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, name) //nolint:gosec // a file of this test
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
}

// TestMarkupIsText checks that the page shows an ID as text, even if the ID contains HTML.
func TestMarkupIsText(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.srv.Invoices.Seed(payvaulttest.Invoice{ID: `<img src=x onerror=document.title='struck'>`})
	require.Error(t, p.send()) // the next request makes the page load the records
	p.waitFor(`document.querySelector('#table-invoices tbody').textContent.includes('<img src=x')`)
	assert.Zero(t, eval[int](p, `document.images.length`))
}

// TestFocusStays checks that a row keeps the focus while other rows arrive, and that the element around the list gets
// the focus when the row is removed.
func TestFocusStays(t *testing.T) {
	t.Parallel()
	p := open(t, payvaulttest.WithRequestHistory(0))
	require.Error(t, p.send())
	p.waitFor(`document.querySelector('#live button')`)
	p.do(chromedp.Focus(chromedp.CSS("#live button")))
	for range 101 {
		p.sendTo(http.MethodGet, "/platform/vault/customer", "", "")
	}
	p.waitFor(`document.querySelector('#count').innerText.startsWith('102 in all')`)
	assert.Contains(t, eval[string](p, `document.activeElement.innerText`), "invoices", "it is still there")
	for range 100 {
		p.sendTo(http.MethodGet, "/platform/vault/customer", "", "")
	}
	p.waitFor(`document.querySelector('#count').innerText.startsWith('202 in all')`)
	assert.Equal(t, "scroll tall", eval[string](p, `document.activeElement.className`))
	p.do(chromedp.KeyEvent(kb.Tab))
	assert.Equal(t, "link", eval[string](p, `document.activeElement.className`), "and from there to the newest row")
}

// TestManyRequests checks that the page shows at most 200 requests but counts all, and that a filter finds a request
// that is not shown.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	p := open(t, payvaulttest.WithRequestHistory(0))
	require.Error(t, p.send())
	for range 5000 {
		p.sendTo(http.MethodGet, "/platform/vault/customer", "", "")
	}
	p.waitFor(`document.querySelector('#count').textContent.startsWith('5,001 in all')`)
	rows := eval[int](p, `document.querySelectorAll('#live tbody tr').length`)
	assert.LessOrEqual(t, rows, 200)
	assert.Equal(t, fmt.Sprintf("5,001 in all, 4,%d not shown", 1001-rows), p.text("#count"))
	p.choose("#only", "customers.list")
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 100`)
	assert.Equal(t, "5,001 in all, 5,000 fit, 4,900 not shown", p.text("#count"))
	for range 101 {
		p.srv.Disputes.Seed(payvaulttest.Dispute{})
	}
	p.sendTo(http.MethodGet, "/platform/vault/customer/4242", "", "")
	p.choose("#only", "none")
	p.waitFor(`document.querySelector('#count').textContent === '5,002 in all, 1 fit'`)
	assert.Contains(t, p.text("#live tbody"), "no operation")
	p.click("#live tbody button")
	assert.Regexp(t, `^no operation\n(.*\n)+route\s+none\n`, p.text("#detail"))
	p.waitFor(`document.querySelector('#table-disputes summary').textContent === 'disputes: 101, the newest 100 shown'`)
	p.choose("#only", "invoices.send") // the filter finds the oldest request
	p.waitFor(`document.querySelector('#live tbody').textContent.includes('invoices.send')`)
	assert.Equal(t, "5,002 in all, 1 fit", p.text("#count"))
	assert.Equal(t, 1, eval[int](p, `document.querySelectorAll('#live tbody tr').length`))
}

// TestLayout checks that the page does not scroll sideways in windows of several sizes, in light or dark colors, with
// letters of normal or double size. go test -artifacts keeps the screenshots.
func TestLayout(t *testing.T) {
	t.Parallel()
	for name, screen := range map[string]struct {
		width, height int64
		scale         float64
		scheme        string
	}{
		"light": {1100, 1200, 1, "light"},
		"dark":  {1280, 1800, 1, "dark"},
		"phone": {360, 1600, 1, "light"},
		"card":  {400, 1600, 1, "light"},
		"night": {400, 1600, 1, "dark"},
		"zoom":  {640, 1000, 2, "dark"}, // a window of 1280 pixels, zoomed to 200 %
		"least": {320, 1600, 1, "light"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t)
			p.fill()
			_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: screen.scheme}},
			})
			require.NoError(t, err)
			p.do(chromedp.EmulateViewport(screen.width, screen.height, chromedp.EmulateScale(screen.scale)))
			p.click("#live tbody button")
			// on a narrow screen the details are below the list, so their heading gets the focus
			reached := map[bool]string{true: "BUTTON", false: "H3"}[screen.width > 1000]
			assert.Equal(t, reached, eval[string](p, `document.activeElement.tagName`))
			p.click(`[aria-label^="Arm: Lose"]`)
			p.click("#table-subscriptions summary")
			p.waitFor(`document.querySelector('#armed li')`)
			eval[any](p, "scrollTo(0, 0)")
			assert.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth - innerWidth`), 0, "it scrolls sideways")
			assert.Equal(t, screen.width >= 640, eval[bool](p, `document.querySelector('th.wide').clientWidth > 0`), "columns")
			assert.LessOrEqual(t, eval[int](p, `{const e = document.querySelector('.tall'); e.scrollWidth - e.clientWidth}`), 0,
				"the requests are cut off")
			assert.Empty(t, p.wrapped("#faults code"))
			if screen.width >= 400 {
				assert.Empty(t, p.cut("#faults code"))
			}
			ground := map[string]string{"light": "rgb(246, 247, 249)", "dark": "rgb(20, 23, 28)"}[screen.scheme]
			assert.Equal(t, ground, eval[string](p, `getComputedStyle(document.body).backgroundColor`))
			assert.Less(t, eval[int](p, `{const table = document.querySelector('#table-applications'); table.open = true;
				table.querySelector('tbody tr').clientHeight}`), 350, "a word in each line")
			eval[any](p, `{document.documentElement.style.fontSize = '200%';
				document.querySelectorAll('details').forEach((each) => { each.open = true; })}`)
			assert.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth - innerWidth`), 0,
				"large letters scroll sideways")
			picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), name+"-large.png"), picture, 0o600))
			eval[any](p, `{document.documentElement.style.fontSize = '';
				document.querySelectorAll('details').forEach((each) => { each.open = each.id === 'table-subscriptions'; })}`)
			picture, err = chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), picture, 0o600))
		})
	}
}

// wrapped returns the text of each selected element that has more lines on the page than in its text.
func (p *tab) wrapped(selector string) []string {
	p.Helper()
	return eval[[]string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((code) => {
		const range = document.createRange();
		range.selectNodeContents(code);
		const lines = new Set([...range.getClientRects()].map(({top}) => top)).size;
		return lines === code.textContent.split('\n').length ? '' : code.textContent;
	}).filter(Boolean)`, selector))
}

// cut returns the texts of the selected elements that are too narrow to show their whole text.
func (p *tab) cut(selector string) []string {
	p.Helper()
	return eval[[]string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)]
		.filter((code) => code.scrollWidth > code.clientWidth).map((code) => code.textContent)`, selector))
}

// TestTaughtOperation checks that the page lists an operation that Server.Handle has added and injects faults for it,
// and that long lines of the Go code scroll and do not wrap.
func TestTaughtOperation(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.do(chromedp.EmulateViewport(400, 1600))
	p.srv.Handle(http.MethodPut, "/platform/dispute/{rec_id}/accept", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"code":0,"message":"Success"}`)
	})
	accept := payvault.Request{Method: http.MethodPut, Path: []string{"platform", "dispute", "7", "accept"}}
	require.NoError(t, p.srv.Client().Call(t.Context(), accept, nil))
	const name = "PUT /platform/dispute/{rec_id}/accept"
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	assert.Contains(t, p.text("#live tbody tr"), name)
	p.waitFor(`[...document.querySelector('#target').options].some((option) => option.value === '` + name + `')`)
	p.choose("#only", name)
	p.choose("#target", name)
	p.waitFor(`document.querySelector('#presets').textContent.includes('Operation: "` + name + `"')`)
	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed').textContent.includes('respond 503, ` + name + `')`)
	require.ErrorIs(t, p.srv.Client().Call(t.Context(), accept, nil), payvault.ErrUnavailable)
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 2`)
	assert.Contains(t, p.text("#live tbody tr.bad"), name)
	assert.Empty(t, p.wrapped("#presets code"))
	assert.Len(t, p.cut("#presets code"), 6, "they scroll instead")
	assert.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth - innerWidth`), 0, "it scrolls sideways")
}

// fill seeds records, sends requests of several operations, and waits until the page shows eight requests.
func (p *tab) fill() {
	ctx, client := p.Context(), p.srv.Client()
	p.srv.Invoices.Seed(payvaulttest.Invoice{ID: "INV-1"})
	p.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 5001, CustomerID: "CUST5001"})
	p.srv.Applications.Seed(payvaulttest.Application{ID: 3})
	_, err := client.Tokens.Tokenize(ctx,
		&payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"})
	require.NoError(p, err)
	_, err = client.Customers.Create(ctx, &payvault.CustomerCreateRequest{
		ID: "JANE1", FirstName: "Jane", LastName: "Doe", Email: "jane@example.com",
		BillingCards: []payvault.BillingCardRequest{{
			CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230",
			Verify: new(true),
		}},
	})
	require.NoError(p, err)
	_, err = client.Customers.List(ctx, nil)
	require.NoError(p, err)
	require.NoError(p, p.send())
	require.Error(p, p.send())
	_, err = p.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: "0", Times: 1})
	require.NoError(p, err)
	_, err = client.Subscriptions.Transactions(ctx, 5001, nil)
	require.NoError(p, err)
	_, err = client.Customers.Create(ctx, &payvault.CustomerCreateRequest{
		ID: "JOHN1", FirstName: "John", LastName: "Doe",
		BillingCards: []payvault.BillingCardRequest{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}},
	})
	require.NoError(p, err)
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 8`)
}

// TestFirstRequest checks that a page without requests shows code for a first request, and that it shows "No request
// yet." only after it has connected.
func TestFirstRequest(t *testing.T) {
	t.Parallel()
	srv, connect := payvaulttest.NewServer(), make(chan struct{})
	inspect := payvaulttest.Inspect(srv)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			<-connect
		}
		inspect.ServeHTTP(w, r)
	}))
	t.Cleanup(page.Close)
	t.Cleanup(srv.Close)
	p := newTab(t, srv, page.URL)
	p.do(chromedp.Navigate(page.URL))
	p.waitFor(`document.querySelector('#first code')`)
	assert.Equal(t, "connecting", p.text("#connection"))
	assert.Equal(t, "Waiting for the emulator.", p.text("#none"))
	assert.True(t, eval[bool](p, `document.querySelector('#first').hidden`))
	close(connect)
	p.waitFor(`document.querySelector('#none').innerText === 'No request yet.'`)
	assert.Equal(t, "live", p.text("#connection"))
	lines := eval[[]string](p, `[...document.querySelectorAll('#first code')].map((code) => code.innerText)`)
	require.Len(t, lines, 2)
	assert.Equal(t, "curl -u :merchant-api-key "+srv.URL+"/platform/vault/customer", lines[0])
	assert.Contains(t, lines[1], fmt.Sprintf("payvault.NewClient(\n\t%q,\n\t%q,\n)", srv.URL, "merchant-api-key"))
	p.do(chromedp.EmulateViewport(400, 1600))
	assert.Empty(t, p.wrapped("#first code:not(.shell)"))
	assert.Empty(t, p.cut("#first code"))
	assert.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth - innerWidth`), 0, "it scrolls sideways")
	p.sendTo(http.MethodGet, "/platform/vault/customer", "merchant-api-key", "")
	p.waitFor(`document.querySelector('#first').hidden && document.querySelector('#none').hidden`)
	assert.Contains(t, p.text("#live tbody"), "200")
}

// clipboard is held while a test uses the clipboard, which all tabs share.
var clipboard sync.Mutex //nolint:gochecknoglobals // there is one clipboard

// copied clicks a button that copies, and returns the text on the clipboard.
func (p *tab) copied(selector string) string {
	p.Helper()
	clipboard.Lock()
	defer clipboard.Unlock()
	_, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: browser.PermissionSettingGranted,
		Origin: p.url,
	})
	require.NoError(p, err)
	eval[any](p, `document.querySelector('#said').textContent = ''`)
	p.click(selector)
	p.waitFor(`document.querySelector('#said').textContent.startsWith('Copied')`)
	return eval[string](p, `navigator.clipboard.readText()`)
}

// TestConnect checks that the page can copy the base URL and an API key.
func TestConnect(t *testing.T) {
	t.Parallel()
	p := open(t)
	assert.Equal(t, p.srv.URL, p.copied(`[aria-label="Copy: base URL"]`))
	assert.Equal(t, "partner-vendor-key",
		p.copied(`[aria-label="Copy: partner 900001, vendor 7001, acts for 100001, 100002"]`))
}

// TestClearSearchReset checks that the list can be searched and cleared, and that the emulator can be reset.
func TestClearSearchReset(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.fill()
	p.do(chromedp.Focus(chromedp.CSS("#search")), chromedp.KeyEvent("Outstanding"))
	p.waitFor(`document.querySelector('#count').innerText === '8 in all, 1 fit'`)
	assert.Contains(t, p.text("#live tbody"), "invoices.send")
	p.choose("#search", "no such thing")
	p.waitFor(`document.querySelector('#none').innerText === 'No request that fits the filter.'`)
	p.choose("#search", "")
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 8`)
	p.click("#pause")
	p.click("#empty")
	p.waitFor(`document.querySelector('#none').innerText === 'No request yet.'`)
	p.waitFor(`document.querySelector('#connection').innerText === 'live'`)
	assert.NotEmpty(t, p.srv.Cards.All(), "the records stay")
	assert.Len(t, p.srv.Requests(), 8, "and so does what a test sees")

	p.click(`[aria-label="Arm: 503"]`)
	p.waitFor(`document.querySelector('#armed li')`)
	require.Error(t, p.send())
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 1`)
	p.click("#reset")
	p.waitFor(`document.querySelector('#none').innerText === 'No request yet.'`)
	p.waitFor(`document.querySelector('#table-tokens summary').innerText === 'tokens: 0'`)
	assert.Empty(t, p.srv.Faults())
}

// TestBodies checks that the page shows bodies only while they are turned on. While they are off, a copied curl command
// has fillIn in place of each value of the body.
func TestBodies(t *testing.T) {
	t.Parallel()
	p := open(t)
	const customers, body = "/platform/vault/customer", `{"customer_id":"C1","customer_firm_name":"F1"}`
	p.sendTo(http.MethodPost, customers, "merchant-api-key", body)
	p.waitFor(`document.querySelector('#live button')`)
	p.click("#live tbody button")
	curl := "curl -u :merchant-api-key -H 'Content-Type: application/json' -d '"
	assert.Equal(t, curl+`{"customer_firm_name":"fillIn","customer_id":"fillIn"}' `+p.srv.URL+customers, p.copied("#curl"))
	assert.Contains(t, p.text("#said"), "write what is meant in place of fillIn")
	assert.NotContains(t, p.text("#detail"), "C1")
	assert.Contains(t, p.text("#bodies-note"), "for made-up data only")

	p.click("#bodies")
	p.waitFor(`document.querySelector('#bodies-note').innerText.includes('send made-up data only')`)
	p.sendTo(http.MethodPost, customers, "merchant-api-key", body)
	p.waitFor(`document.querySelectorAll('#live tbody tr').length === 2`)
	p.click("#live tbody button")
	detail := p.text("#detail")
	assert.Contains(t, detail, "POST "+customers)
	assert.Contains(t, detail, `"customer_id": "C1",`)
	assert.Contains(t, detail, `"message": "there is a customer with this customer_id already"`)
	assert.Equal(t, curl+body+"' "+p.srv.URL+customers, p.copied("#curl"))

	p.click("#bodies")
	p.waitFor(`document.querySelector('#none').innerText === 'No request yet.'`)
	assert.True(t, eval[bool](p, `document.querySelector('#detail').hidden`))
	assert.NotContains(t, eval[string](p, `fetch('requests').then((response) => response.text())`), "C1")
}
