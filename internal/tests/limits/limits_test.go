//go:build !race

// The client is held to its bounds of memory and time, whatever the service answers. The tests run one at a
// time, since they measure the heap of their process.
package limits

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const (
	bodyCap  = 8 << 20 // that of a client by default
	mostHeap = 100e6
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientOf answers every request with the body.
func clientOf(t *testing.T, body io.ReadCloser, zipped bool, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	answer := func(*http.Request) (*http.Response, error) {
		response := &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: -1}
		if zipped {
			reader, err := gzip.NewReader(body)
			if err != nil {
				return nil, err
			}
			response.Body, response.Uncompressed = reader, true
		}
		return response, nil
	}
	client, err := payvault.NewClient("http://127.0.0.1", "key",
		append(opts, payvault.WithHTTPClient(&http.Client{Transport: roundTripper(answer)}))...)
	require.NoError(t, err)
	return client
}

// operations are one for each way to read an answer.
func operations() map[string]func(ctx context.Context, c *payvault.Client) error {
	call := payvault.Request{Method: http.MethodGet, Path: []string{"x"}}
	return map[string]func(ctx context.Context, c *payvault.Client) error{
		"list": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Customers.List(ctx, nil)
			return err
		},
		"saved fields": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Applications.SaveData(ctx, 1, payvault.ApplicationData{LegalName: "Minimal Legal Name"})
			return err
		},
		"write": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: "C1", FirmName: "Firm"})
			return err
		},
		"tokenize": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{MerchantID: 1})
			return err
		},
		"call into any": func(ctx context.Context, c *payvault.Client) error {
			var out any
			return c.Call(ctx, call, &out)
		},
		"call into a map": func(ctx context.Context, c *payvault.Client) error {
			out := map[string]string{}
			return c.Call(ctx, call, &out)
		},
		"call into maps": func(ctx context.Context, c *payvault.Client) error {
			var out struct {
				Data []map[string]large `json:"data"`
				X    map[string]large   `json:"x"`
			}
			return c.Call(ctx, call, &out)
		},
		"call into pointers": func(ctx context.Context, c *payvault.Client) error {
			var out struct {
				Data []*large                    `json:"data"`
				X    []map[string]map[string]int `json:"x"`
			}
			return c.Call(ctx, call, &out)
		},
		"call into arrays": func(ctx context.Context, c *payvault.Client) error {
			var out struct {
				Data []map[string]struct{ A [1 << 10]byte } `json:"data"`
			}
			return c.Call(ctx, call, &out)
		},
		"call into structs": func(ctx context.Context, c *payvault.Client) error {
			var out struct {
				Data []large           `json:"data"`
				X    map[string]*large `json:"x"`
			}
			return c.Call(ctx, call, &out)
		},
		"payee": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: "Payee"})
			return err
		},
		"transactions": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Subscriptions.Transactions(ctx, 1, nil)
			return err
		},
		"validate": func(ctx context.Context, c *payvault.Client) error {
			_, err := c.Applications.Validate(ctx, 1)
			return err
		},
	}
}

// large is a struct of the caller.
type large struct {
	A, B, C, D string
	E          [8]int
	M          map[string]large `json:"m"`
}

// attack is a body that is small on the wire or takes more memory than it has bytes, and the operations that it is
// for, one for each way in which it is read.
type attack struct {
	operations       string
	head, unit, tail string
}

// body repeats the unit as often as the cap allows, without a comma at the end.
func (a attack) body() string {
	n := (bodyCap - len(a.head) - len(a.tail)) / len(a.unit)
	return a.head + strings.TrimSuffix(strings.Repeat(a.unit, n), ",") + a.tail
}

func attacks() map[string]attack {
	owners := `{"key":"ownership","value":{"owners":[` + strings.Repeat(`{},`, 1000) + `{}]}},`
	grown := `{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{},"i":{}},`
	names := func(value string) string {
		var members strings.Builder
		for i := 0; members.Len() < bodyCap-100; i++ {
			members.WriteString(`,"` + strconv.FormatInt(int64(i), 36) + `":` + value)
		}
		return members.String()
	}
	all := map[string]attack{
		"null records":        {"list, call into structs, call into pointers", `{"code":0,"data":[`, `null,`, `]}`},
		"empty records":       {"list, call into structs, call into maps", `{"code":0,"data":[`, `{},`, `]}`},
		"padded null records": {"list", `{"code":0,"data":[`, `null   ,`, `]}`},
		"padded records":      {"list", `{"code":0,"data":[`, strings.Repeat(" ", 200) + `{},`, `]}`},
		"cards of a record":   {"write", `{"code":0,"data":{"customer_id":"a","billing_cards":[`, `{},`, `]}}`},
		"records with cards":  {"list", `{"code":0,"data":[`, `{"billing_cards":[{},{}]},`, `]}`},
		"cards, then odd":     {"list", `{"code":0,"data":[`, `{"billing_cards":[{},{}]},`, `{"customer_id":1}]}`},
		"odd texts":           {"list", `{"code":0,"data":[`, `{"customer_id":1},`, `]}`},
		"odd lists":           {"write", `{"code":0,"data":{"customer_id":"a","billing_cards":[`, `17,`, `]}}`},
		"odd names":           {"write", `{"code":0,"data":{"customer_id":"a","billing_cards":[`, `{"CARD_ID":1},`, `]}}`},
		"saved fields":        {"saved fields, validate", `{"code":0,"data":{"fields":[`, `{},`, `]}}`},
		"owners":              {"saved fields", `{"code":0,"data":{"fields":[`, owners, `]}}`},
		"options": {
			"saved fields",
			`{"code":0,"data":{"fields":[{"key":"a","settings":{"options":[`, `{},`, `]}}]}}`,
		},
		"open values":     {"saved fields", `{"code":0,"data":{"fields":[`, `{"key":"a","value":[1,1,1,1,1,1,1,1]},`, `]}}`},
		"one open value":  {"saved fields", `{"code":0,"data":{"fields":[{"key":"a","value":[`, `1,`, `]}]}}`},
		"unknown numbers": {"list, call into any", `{"code":0,"data":[],"x":[`, `1,`, `]}`},
		"unknown objects": {"list, call into any", `{"code":0,"data":[],"x":[`, `{"a":1},`, `]}`},
		"members":         {"list, call into any, call into a map", `{"code":"0"` + names(`"a"`), ` `, `}`},
		"members twice":   {"list", `{"data":[],`, `"code":0,`, `,"code":0}`},
		"deep":            {"list, call into any", ``, `[`, ``},
		"long text":       {"list", `{"code":0,"rcode":"000","data":[{"customer_id":"`, `x`, `"}]}`},
		"invalid text":    {"list, call into any", `{"code":0,"data":[{"customer_id":"`, "\xff", `"}]}`},
		"invalid token":   {"tokenize", `{"code":0,"rcode":"000","card_id":"`, "\xffa", `"}`},
		"secret":          {"saved fields", `{"code":0,"data":{"fields":[{"key":"bank_routing","value":"`, `x`, `"}]}}`},
		"invalid secret": {
			"saved fields",
			`{"code":0,"data":{"fields":[{"key":"bank_routing","value":"`, "\xffa", `"}]}}`,
		},
		"escapes":         {"tokenize", `{"code":0,"rcode":"000","card_id":"`, `\u0041`, `"}`},
		"long number":     {"list", `{"code":0,"rcode":"000","data":[{"customer_id":`, `1`, `}]}`},
		"one-member maps": {"call into maps, call into arrays", `{"code":0,"data":[`, `{"a":{}},`, `]}`},
		"maps of maps":    {"call into pointers", `{"code":0,"x":[`, `{"a":{"b":1}},`, `]}`},
		"nested maps":     {"call into maps", `{"code":0,"data":[`, `{"a":{"m":{"b":{"m":{"c":{}}}}}},`, `]}`},
		"structs":         {"call into structs", `{"code":0,"data":[`, `{"m":{"a":{}}},`, `]}`},
		"maps with room": {
			"call into maps, call into any",
			`{"code":0,"data":[`, `{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{}},`, `]}`,
		},
		"maps that grew":   {"call into maps, call into any", `{"code":0,"data":[`, grown, `]}`},
		"long instant":     {"payee", `{"code":0,"data":{"payee_id":1,"payee_account":{"verified_date":"`, ` 1`, `"}}}`},
		"a large map":      {"call into structs, call into maps", `{"code":0,"x":{"":{}` + names(`{}`), ` `, "}}"},
		"messages":         {"list", `{"code":2,"data":{"a":[`, `"x",`, `]}}`},
		"odd transactions": {"transactions", `{"code":0,"data":[`, `{"amt_tran":"1,234.50","batch_date":20260115},`, `]}`},
		"transactions": {
			"transactions",
			`{"code":0,"data":[`, `{"amt_tran":1,"tran_time":"2026-01-15 10:20 +07"},`, `]}`,
		},
		"a long amount":   {"transactions", `{"code":0,"data":[{"amt_tran":"1`, `,111`, `.50"}]}`},
		"digits":          {"list", `{"code":7,"message":"`, `4111 1111 `, `"}`},
		"invalid message": {"list", `{"code":7,"message":"`, "\xffa", `"}`},
		"listed message":  {"list", `{"code":7,"message":[`, `{},`, `]}`},
		"escaped message": {"list", `{"code":7,"message":"`, `&amp;\\u0041%41`, `"}`},
		"many messages":   {"list", `{"code":2,"data":{"a":["`, `&amp;","`, `"]}}`},
		"fields":          {"list", `{"code":2,"data":{"":""` + names(`"a"`), ` `, "}}"},
		"codes":           {"list", `{"code":"`, `4 `, `"}`},
		"blanks":          {"list", `{"code":0,"rcode":"000",`, ` `, `"data":[]}`},
	}
	addLists(all, attack{"list", `{"code":0,"data":[`, ``, `]}`}, reflect.TypeFor[[]payvault.Customer]())
	addLists(all, attack{"transactions", `{"code":0,"data":[`, ``, `]}`}, reflect.TypeFor[[]payvault.Transaction]())
	return all
}

// addLists adds a body for the list of a type that an attack has begun, and for each of those in its elements.
func addLists(all map[string]attack, a attack, list reflect.Type) {
	if a.unit = `"",`; list.Elem().Kind() == reflect.Struct {
		a.unit = `{},`
		for _, field := range reflect.VisibleFields(list.Elem()) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); field.Type.Kind() == reflect.Slice {
				addLists(all, attack{a.operations, a.head + `{"` + name + `":[`, ``, `]}` + a.tail}, field.Type)
			}
		}
	}
	all["list "+a.head] = a
}

// TestHostileBodies: no answer of the default size takes more than mostHeap, garbage included.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileBodies(t *testing.T) {
	most, of := uint64(0), ""
	for name, attack := range attacks() {
		if testing.Short() && !slices.Contains([]string{"records with cards", "odd texts", "invalid secret"}, name) {
			continue
		}
		text := attack.body()
		for operation := range strings.SplitSeq(attack.operations, ", ") {
			client := clientOf(t, io.NopCloser(strings.NewReader(text)), false)
			heap := peak(func() { _ = operations()[operation](t.Context(), client) })
			assert.LessOrEqual(t, heap, uint64(mostHeap), "%s of %s", operation, name)
			if heap > most {
				most, of = heap, operation+" of "+name
			}
		}
	}
	t.Logf("at most %d MB, for %s", most/1e6, of)
}

// TestHostileBodies_compressed: they are read in the same way.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileBodies_compressed(t *testing.T) {
	for _, name := range []string{"blanks", "empty records", "long text"} {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, _ = io.WriteString(w, attacks()[name].body())
		require.NoError(t, w.Close())
		client := clientOf(t, io.NopCloser(&zipped), true)
		heap := peak(func() { _ = operations()["list"](t.Context(), client) })
		assert.LessOrEqual(t, heap, uint64(mostHeap), name)
		if testing.Short() {
			break
		}
	}
}

// TestHostileTexts: what callers read themselves is held to the same bounds.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileTexts(t *testing.T) {
	readPairs := func(text []byte) { _, _ = payvault.ParsePairs(string(text)) }
	readData := func(text []byte) { _ = json.Unmarshal(text, new(payvault.ApplicationData)) }
	readField := func(text []byte) { _ = json.Unmarshal(text, new(payvault.SavedField)) }
	for name, test := range map[string]struct {
		read func(text []byte)
		unit string
	}{
		"pairs":              {readPairs, `{"a":1}`},
		"empty pairs":        {readPairs, `{"":""}`},
		"pairs of lists":     {readPairs, `{"":[[],[]]}`},
		"pairs of objects":   {readPairs, `{"":{"":{}}}`},
		"empty fields":       {readData, `{}`},
		"unknown fields":     {readData, `{"key":"a","value":[1,1,1,1]}`},
		"fields of objects":  {readData, `{"key":"a","value":{"":{}}}`},
		"one field":          {readData, `{"key":"ownership","value":{"owners":[` + strings.Repeat("{},", 100_000) + `{}]}}`},
		"value of a list":    {readField, `1`},
		"value of objects":   {readField, `{"":{}}`},
		"value of null":      {readField, `null`},
		"value of many more": {readField, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`},
	} {
		if testing.Short() && name != "pairs" {
			continue
		}
		text := attack{"", "[", test.unit + ",", "]"}.body()
		if strings.HasPrefix(name, "value") {
			text = `{"key":"a","value":` + text + `}`
		}
		sent := []byte(text)
		heap := peak(func() { test.read(sent) })
		assert.LessOrEqual(t, heap, uint64(mostHeap), name)
	}
}

// peak returns how much the heap grows in f at most, looked at every few hundred microseconds. No garbage is collected
// meanwhile, as in a process with a large heap.
func peak(f func()) uint64 {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	before, highest := heap[0].Value.Uint64(), uint64(0)
	var ended atomic.Bool
	var looking sync.WaitGroup
	looking.Go(func() {
		for !ended.Load() {
			metrics.Read(heap)
			highest = max(highest, heap[0].Value.Uint64())
			time.Sleep(200 * time.Microsecond) //nolint:forbidigo // samples; nothing waits for it
		}
	})
	f()
	ended.Store(true)
	looking.Wait()
	return highest - min(before, highest)
}

// TestHonestPage: as many records as a page may hold by far are no attack, also if one of them is odd.
//
//nolint:paralleltest // beside tests that measure the heap of the process
func TestHonestPage(t *testing.T) {
	record := `{"customer_id":"C1","customer_first_name":"Ann","billing_cards":[{"card_id":"a"},{"card_id":"b"}],` +
		`"shipping_addresses":[{"shipping_city":"X"},{"shipping_city":"Y"}]`
	full := record + `,"comments":"` + strings.Repeat("null ", 100) + `"`
	for name, test := range map[string]struct {
		records      int
		record, last string
		most         int64
	}{
		"documented":         {10_000, record + `}`, record + `}`, bodyCap},
		"odd to the last":    {10_000, record + `}`, record + `,"rec_id":"17"}`, bodyCap},
		"under a raised cap": {30_000, full + `}`, full + `}`, 64 << 20},
	} {
		body := `{"code":"0","totalPages":1,"data":[` + strings.Repeat(test.record+",", test.records-1) + test.last + `]}`
		client := clientOf(t, io.NopCloser(strings.NewReader(body)), false, payvault.WithMaxResponseBytes(test.most))
		page, err := client.Customers.List(t.Context(), nil)
		require.NoError(t, err, name)
		assert.Len(t, page.Items, test.records, name)
		assert.Equal(t, "Y", page.Items[test.records-1].ShippingAddresses[1].City, name)
	}
}

// closing tells when a body was read and closed.
type closing struct {
	io.Reader

	closed *atomic.Bool
}

func (c closing) Close() error {
	c.closed.Store(true)
	return nil
}

// ending is a context that ends when the answer has arrived, between two looks at it.
type ending struct {
	context.Context //nolint:containedctx // it is one

	arrived *atomic.Bool
}

func (c ending) Err() error {
	if c.arrived.Load() {
		return context.Canceled
	}
	return nil
}

// TestDecodingEndsWithTheContext: also while nothing is read from the network any more.
//
//nolint:paralleltest // beside tests that measure the heap of the process
func TestDecodingEndsWithTheContext(t *testing.T) {
	many := strings.Repeat(`{"customer_id":1},`, 30_000) + `{}`
	for name, body := range map[string]string{
		"list":          `{"code":0,"data":[` + many + `]}`,
		"call into any": `{"code":0,"data":[` + many + `]}`,
		"saved fields":  `{"code":0,"data":{"fields":[` + many + `]}}`,
	} {
		var arrived atomic.Bool
		client := clientOf(t, closing{strings.NewReader(body), &arrived}, false)
		err := operations()[name](ending{t.Context(), &arrived}, client)
		assert.ErrorIs(t, err, context.Canceled, name)
	}
}
