package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault/payvaulttest"
)

const patience = 30 * time.Second // long enough on a machine that runs other tests at the same time

//nolint:gochecknoglobals // one browser for all tests
var chromium context.Context

func TestMain(m *testing.M) {
	code := run(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) int {
	// when it runs as root in a container, Chromium starts only without its sandbox
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	defer stop()
	var end context.CancelFunc
	chromium, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "Chromium, which Debian's package chromium has, cannot be started:", err)
		return 1
	}
	return m.Run()
}

// A tab is a browser tab that shows the page of the server srv.
type tab struct {
	*testing.T

	ctx context.Context //nolint:containedctx // context of the tab
	srv *payvaulttest.Server
	url string
}

// open starts a server and opens its page in a tab. A message in the browser's console makes the test fail.
func open(t *testing.T, opts ...payvaulttest.Option) *tab {
	t.Helper()
	srv := payvaulttest.NewServer(opts...)
	return openPage(t, srv, payvaulttest.Inspect(srv))
}

func openPage(t *testing.T, srv *payvaulttest.Server, inspect http.Handler) *tab {
	t.Helper()
	page := httptest.NewServer(inspect)
	var console sync.WaitGroup
	t.Cleanup(func() { // runs after the cleanup of newTab, which closes the tab
		console.Wait()
		srv.Close()
		page.Close()
	})
	p := newTab(t, srv, page.URL)
	messages := chromedp.Console(p.ctx)
	console.Go(func() {
		for message, err := range messages {
			if err == nil {
				assert.Empty(t, message.String())
			}
		}
	})
	focus := emulation.SetFocusEmulationEnabledParams{Enabled: true} // a page without the focus cannot use the clipboard
	_, err := chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled, focus)
	require.NoError(t, err)
	p.do(chromedp.Navigate(page.URL))
	p.waitFor(`document.querySelector('#connection').textContent === 'live'`)
	p.waitFor(`document.querySelector('#presets button') && document.querySelector('#stored details')`)
	return p
}

// newTab opens an empty tab for the page at url, and closes it after the test.
func newTab(t *testing.T, srv *payvaulttest.Server, url string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium)
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx)) // creates the tab, which exists until this context ends
	return &tab{T: t, ctx: ctx, srv: srv, url: url}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p, chromedp.Do(ctx, actions...))
}

func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// choose sets the value of an input or select element, and triggers the events of a change by the user.
func (p *tab) choose(selector, value string) {
	p.Helper()
	eval[any](p, fmt.Sprintf(
		`{const e = document.querySelector(%q); e.value = %q;
		e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change'))}`, selector, value,
	))
}

// waitFor waits until a JavaScript expression is true.
func (p *tab) waitFor(expression string) {
	p.Helper()
	require.Eventually(p, func() bool { return eval[bool](p, "!!("+expression+")") }, patience, patience/1000, "%s",
		expression)
}

// text returns the visible text of the first element that matches the selector.
func (p *tab) text(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// eval evaluates JavaScript and returns its value.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p, err, expression)
	return value
}
