//go:build !race

// These tests check how much memory responses may take. They measure the heap of the process, so they run one at a
// time, before all parallel tests, and not with the race detector, which itself takes memory.

package operations

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
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
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

const (
	bodyCap     = 8 << 20 // the default of WithMaxResponseBytes
	mostHeap    = 300e6
	mostRecords = 71_900 // almost as many records as package answer permits
)

// reading is a function that makes a call and reads its response.
type reading func(ctx context.Context, c *payvault.Client) error

// read returns a reading that performs an operation of the table of calls.
func read(op payvault.Operation) reading {
	return func(ctx context.Context, c *payvault.Client) error {
		o := find(op)
		_, err := o.Do(ctx, c, calls.Documented(), o.Minimal)
		return err
	}
}

// readSaved calls SaveData and reads its result with ApplicationDataOf. It collects garbage between the two, so that
// each is measured alone.
func readSaved(ctx context.Context, c *payvault.Client) error {
	o := find(payvault.OpApplicationsSaveData)
	saved, err := o.Do(ctx, c, calls.Documented(), o.Minimal)
	runtime.GC()
	if err == nil {
		_, err = payvault.ApplicationDataOf(saved.([]payvault.SavedField))
	}
	return err
}

// into makes a call with Client.Call and reads the response into a variable of type T.
func into[T any](ctx context.Context, c *payvault.Client) error {
	return c.Call(ctx, payvault.Request{Method: http.MethodGet, Path: []string{"x"}}, new(T))
}

// These are types that a caller could pass to Client.Call.
type (
	arrays struct {
		Data []map[string]struct{ A [1 << 10]byte } `json:"data"`
	}
	list[T any] struct {
		X []T `json:"x"`
	}
	structs struct {
		Data []struct {
			A, B, C, D string
			E          [8]int
		} `json:"data"`
	}
	embedding struct { // the decoder allocates the embedded structs
		*payvault.Transaction
		*pointing
	}
	pointing struct{ *wide }
	wide     struct{ Strings [64]string }
	ours     struct { // with types of package payvault that decode themselves
		Pairs   []payvault.Pairs           `json:"pairs"`
		Options []payvault.FieldOption     `json:"options"`
		Fields  []payvault.SavedField      `json:"fields"`
		Data    []payvault.ApplicationData `json:"data"`
	}
)

// readings returns all ways to read a response, by name.
func readings() map[string]reading {
	return map[string]reading{
		"list": read(payvault.OpCustomersList), "transactions": read(payvault.OpSubscriptionsTransactions),
		"saved": readSaved, "validate": read(payvault.OpApplicationsValidate),
		"write": read(payvault.OpCustomersCreate), "payee": read(payvault.OpPayeesCreate),
		"tokenize": read(payvault.OpTokensTokenize),
		"any":      into[any], "arrays": into[arrays], "structs": into[structs], "ours": into[ours],
		"amounts": into[list[payvault.Amount]], "instants": into[list[payvault.Timestamp]],
		"embedding": into[list[embedding]], "secrets": into[list[payvault.Secret]],
		"wide": into[list[map[string]struct{ A [16]int64 }]],
	}
}

// attack is a hostile response body, or a hostile text of TestHostileTexts. Reading it takes much more memory than the
// text itself. The field readings names the ways to read it, separated by commas. Each name is a key of the map that
// the function readings returns, or of the map in TestHostileTexts.
type attack struct {
	readings, head, unit, tail string

	most int // maximum number of units; 0 means as many as fit into bodyCap
}

// body returns the head, the units and the tail. The unit is repeated as often as the field most and bodyCap permit. If
// the text contains PAD, a long text replaces PAD and fills the body up to bodyCap. The long text is not valid UTF-8,
// so it is larger after decoding.
func (a attack) body() string {
	n := (bodyCap - len(a.head) - len(a.tail)) / len(a.unit)
	if a.most > 0 {
		n = min(n, a.most)
	}
	body := a.head + strings.TrimSuffix(strings.Repeat(a.unit, n), ",") + a.tail
	return strings.Replace(body, "PAD", strings.Repeat("\xffa", max(0, bodyCap-len(body))/2), 1)
}

// attacks returns all attacks. With -short only the first three are used.
func attacks() []attack {
	const (
		data   = `{"code":0,"rcode":"000","data":[`
		record = `{"code":0,"data":{"customer_id":"a","billing_cards":[`
		fields = `{"code":0,"data":{"fields":[`
		listed = `{"code":0,"x":[`
	)
	return slices.Concat(
		// These bodies have a long text, which the decoder copies.
		of("list", data+`{"customer_id":"`, `"}]}`, "\xff"), of("list", data+`{"customer_id":1,"comments":"`, `"}]}`, `x`),
		of("saved", fields+`{"key":"bank_routing","value":"`, `"}]}}`, "\xffa"),

		// These bodies have many values of large types, but not more than are permitted, and a long text.
		upTo(mostRecords, of("transactions", data, `,{"pg_id":"PAD"}]}`, `{"pg_id":1},`)),
		upTo(mostRecords, of("list", data+`{"customer_id":1,"billing_cards":[`, `,{"card_type":"PAD"}]}]}`, `{},`)),
		upTo(mostRecords/2, of("list", data, `,{"customer_id":"PAD"}]}`, `{"customer_id":1},`)),
		// The last pg_id is a number, so the strict decoding fails and the body is decoded a second time.
		upTo(19_000, of("transactions", data, `,{"pg_id":"PAD"},{"pg_id":1}]}`, `{"pg_id":"1"},`)),
		upTo(10*mostRecords, of("write", record+`{"billing_email":[`, `]},{"card_type":"PAD"}]}}`, `"",`)),
		upTo(mostRecords, of("saved", fields, `,{"key":"PAD"}]}}`, `{},`)),
		upTo(mostRecords, of("saved", fields+`{"key":"ownership","value":{"owners":[`, `,{"cbExp":"PAD"}]}}]}}`, `{},`)),
		upTo(mostRecords/4, of("validate", `{"code":2,"data":{"a":[`, `],"b":"PAD"}}`, `[{}],`)),

		// Most of these bodies have more values than are permitted.
		of("list", data, `]}`, `{"billing_cards":[{},{}]},`, `{"customer_id":1},`, strings.Repeat(" ", 200)+`{},`),
		of("write", record, `]}}`, `{"CARD_ID":1},`), of("structs", data, `]}`, `null,`),
		of("amounts", listed, `]}`, `1e1,`), of("list, any", ``, ``, `[`), of("any", `{"code":"0"`+members(`"a"`), `}`, ` `),

		// These bodies repeat a member or a part of a text, in undocumented forms.
		of("transactions", data+`{`, `"rmsg":1}]}`, `"amt_tran":1e1,`, `"tran_time":"2026-01-15 10:20 +0531",`),
		of("write", `{"code":0,"data":{"customer_id":"a"`, `}}`, `,"rec_id":"x"`),
		of("instants", listed, `]}`, `"2026-01-15T00:00:00+05:31",`),
		of("payee", `{"code":0,"data":{"payee_id":1,"payee_account":{"verified_date":"`, `"}}}`, ` 1`),
		of("payee", `{"code":0,"data":{"payee_account":{"tr_number":"`, `"},"payee_id":"x"},"x":"`+"\xff"+`"}`, `x`),
		of("tokenize", `{"code":0,"rcode":"000","card_id":"`, `"}`, `\u0041`),

		// These bodies are read into types of the caller.
		upTo(mostRecords/2, of("arrays, any", data, `],"y":"PAD"}`, `{"a":{}},`)),
		upTo(10*mostRecords, of("any", data, `],"y":"PAD"}`, `1,`)),
		upTo(mostRecords, of("ours", `{"code":0,"fields":[`, `],"y":"PAD"}`, `{},`)),
		upTo(mostRecords/2, of("ours", `{"code":0,"pairs":[`, `],"y":"PAD"}`, `"[{\"a\":1}]",`)),
		upTo(mostRecords, of("embedding", listed, `],"y":"PAD"}`, `{"Strings":null},`)),
		upTo(mostRecords/2, of("wide", listed, `],"y":"PAD"}`, `{"a":{}},`)),
		of("secrets", listed, `]}`, `"`+strings.Repeat("x", 40)+`",`),

		// These bodies are refusals, whose texts become parts of the error.
		of("list", `{"code":7,"message":"`, `"}`, `4111 1111 `, "\xffa", `&amp;\\u0041%41`),
		of("list", `{"code":"`, `"}`, `4 `), of("list", `{"code":2,"data":{"a":["`, `"]}}`, `&amp;","`),
		of("list", `{"code":2,"data":{"":""`+members(`"a"`), "}}", ` `),
	)
}

// upTo sets the maximum number of units of each attack, and returns the attacks.
func upTo(most int, all []attack) []attack {
	for i := range all {
		all[i].most = most
	}
	return all
}

// of returns one attack for each unit. All of them have the same readings, head and tail.
func of(readings, head, tail string, units ...string) (all []attack) {
	for _, unit := range units {
		all = append(all, attack{readings: readings, head: head, unit: unit, tail: tail})
	}
	return all
}

// members returns JSON members with different names and the same value, which nearly fill a body of bodyCap.
func members(value string) string {
	var text strings.Builder
	for i := 0; text.Len() < bodyCap-100; i++ {
		text.WriteString(`,"` + strconv.FormatInt(int64(i), 36) + `":` + value)
	}
	return text.String()
}

// assertSmall checks that the heap grows by at most mostHeap while f runs. It turns the garbage collector off, because
// in a program with a large heap the collector may not run before f returns.
func assertSmall(t *testing.T, f func(), what string) {
	t.Helper()
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
			time.Sleep(200 * time.Microsecond) //nolint:forbidigo // samples the heap; nothing waits for it
		}
	})
	f()
	ended.Store(true)
	looking.Wait()
	assert.LessOrEqual(t, highest, before+mostHeap, "%.100s", what)
	t.Logf("%d MB: %.100q", (max(highest, before)-before)/1e6, what)
}

// pieces is a reader whose Read returns at most 16 KiB.
type pieces struct{ io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), 16<<10)]) }

// zipped returns an option for a transport that answers as net/http does for a compressed response: in small reads, and
// with an unknown ContentLength.
func zipped(body string) payvault.Option {
	return service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
		text := io.NopCloser(pieces{strings.NewReader(body)})
		return &http.Response{StatusCode: 200, ContentLength: -1, Uncompressed: true, Body: text}, nil
	}))
}

// TestHostileBodies checks that the heap grows by at most mostHeap while the client reads a response body that
// is within the default size limit. Memory that the garbage collector could free counts too.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileBodies(t *testing.T) {
	var indexed strings.Builder // the field names are numbers, which may be parts of a card number
	indexed.WriteString(`{"code":2,"data":{"0":[` + strings.Repeat(`"",`, 10_000) + `""]`)
	for i := 100; indexed.Len() < 64_000; i++ {
		indexed.WriteString(`,"` + strconv.Itoa(i) + `":[""]`)
	}
	refused := service.Client(t, service.Nowhere, service.Over(service.Canned(200, indexed.String()+"}}")))
	assertSmall(t, func() { _ = readings()["write"](t.Context(), refused) }, "indexed messages")
	for _, status := range []int{502, 503} { // the client retries a read after these statuses
		body := `{"code":7,"message":"` + strings.Repeat("\xffa", 4<<20-50) + `"}`
		down := service.Client(t, service.Nowhere, service.Over(service.Canned(status, body)))
		assertSmall(t, func() { _ = readings()["list"](t.Context(), down) }, "status "+strconv.Itoa(status))
	}
	for i, attack := range attacks() {
		if testing.Short() && i > 2 {
			break
		}
		client := service.Client(t, service.Nowhere, zipped(attack.body()))
		for name := range strings.SplitSeq(attack.readings, ", ") {
			assertSmall(t, func() { _ = readings()[name](t.Context(), client) }, name+" of "+attack.head+attack.unit)
		}
	}
}

// TestHostileTexts checks that the functions with which callers read a text make the heap grow by at most mostHeap.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileTexts(t *testing.T) {
	read := map[string]func(text []byte){
		"pairs": func(text []byte) { _, _ = payvault.ParsePairs(string(text)) },
		"data":  func(text []byte) { _ = json.Unmarshal(text, new(payvault.ApplicationData)) },
		"field": func(text []byte) {
			var field payvault.SavedField
			if json.Unmarshal(text, &field) == nil && field.Key == "ownership" {
				_ = field.Decode(new(payvault.Ownership))
			} else {
				_ = field.Decode(new([]any))
			}
		},
	}
	for i, attack := range slices.Concat(
		upTo(mostRecords, of("pairs", "[", `,{"":"PAD"}]`, `{"a":1},`, `{"":""},`)),
		upTo(mostRecords/3, of("pairs", "[", `,{"":"PAD"}]`, `{"":[[],[]]},`, `{"":{"":{}}},`)),
		upTo(mostRecords, of("data", "[", `,{"key":"PAD"}]`, `{},`)),
		upTo(mostRecords, of("data", `[{"key":"ownership","value":{"owners":[`, `]}},{"key":"PAD"}]`, `{},`)),
		upTo(10*mostRecords, of("field", `{"key":"a","value":[`, `]}`, `1,`)),
	) {
		if testing.Short() && i > 0 {
			break
		}
		text := []byte(attack.body())
		assertSmall(t, func() { read[attack.readings](text) }, attack.readings+attack.unit)
	}
}

// TestHonestPage checks that a page with 10,000 to 30,000 records is read, even if some values have undocumented forms.
//
//nolint:paralleltest // beside tests that measure the heap of the process
func TestHonestPage(t *testing.T) {
	const record = `{"customer_id":"C1","customer_first_name":"Ann","billing_cards":[{"card_id":"a"},{"card_id":"b"}],` +
		`"shipping_addresses":[{"shipping_city":"X"},{"shipping_city":"Y"}]`
	full := record + `,"comments":"` + strings.Repeat("null ", 100) + `"`
	const sparse = `{"customer_id":"C1","billing_cards":[{},{},{},{"card_id":"b"}]`
	answer := func(records int, record, last string) payvault.Option {
		return service.Over(service.Canned(200, `{"code":"0","totalPages":1,"data":[`+
			strings.Repeat(record+"},", records-1)+record+last+`}]}`))
	}
	for _, test := range []struct {
		records      int
		record, last string
		most         int64
	}{
		{10_000, record, "", bodyCap},
		{10_000, record, `,"rec_id":"17"`, bodyCap},
		{30_000, full, "", 64 << 20},
		{10_000, sparse, `,"rec_id":"17"`, bodyCap},
	} {
		client := service.Client(t, service.Nowhere, answer(test.records, test.record, test.last),
			payvault.WithMaxResponseBytes(test.most))
		page, err := client.Customers.List(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, page.Items, test.records)
		cards := page.Items[test.records-1].BillingCards
		assert.Equal(t, "b", cards[len(cards)-1].CardID)
	}
	const odd = `{"merchant_id":"1","tran_time":"2026-01-15 10:20 +0530","amt_funded":"1,000.50","auth_code":17,` +
		`"amt_tran":"1.00000000000000000000","amt_refunded":1e1,"dispute_flag":"Y","batch_number":1.0,"batch_id":"17",` +
		`"subscription_id":"5","batch_date":20260115,"settle_date":"","purchase_id":2,"pg_id":3,"customer_id":4,` +
		`"rmsg":false,"rcode":0,"card_type":1,"tran_currency":840,"merch_ref_num":5`
	for record, records := range map[string]int{`{"merchant_id":1`: 14_000, odd: 10_000} {
		client := service.Client(t, service.Nowhere, answer(records, record, `,"batch_id":"17"`))
		page, err := client.Subscriptions.Transactions(t.Context(), 1, nil)
		require.NoError(t, err)
		assert.Len(t, page.Items, records)
	}
}

// TestAllocations checks that a call makes at most 60 allocations if the response is already in memory.
//
//nolint:paralleltest // it counts the allocations of the process
func TestAllocations(t *testing.T) {
	const answer = `{"rcode":"000","rmsg":"Success","pg_id":"PG1001","card_id":"CARD1002",` +
		`"card_number":"4111xxxxxx111111"}`
	card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}
	cards := slices.Repeat([]payvault.AccountUpdaterCard{card}, payvault.MaxAccountUpdaterCards)
	request := &payvault.TokenizeRequest{
		MerchantID: 212345, CardholderName: "Tina Tester", AVSZip: "10001", CardNumber: card.CardNumber, ExpDate: "1229",
		CVV2: payvault.NewSecret("123"),
	}
	quiet := payvault.WithLogger(slog.New(slog.NewJSONHandler(io.Discard, nil))) // a logger of level Info
	tokenize := func(c *payvault.Client) error {
		_, err := c.Tokens.Tokenize(t.Context(), request)
		return err
	}
	for name, test := range map[string]struct {
		most   float64
		answer string
		opts   []payvault.Option
		call   func(c *payvault.Client) error
	}{
		"tokenize": {60, answer, nil, tokenize}, "tokenize with a logger": {60, answer, []payvault.Option{quiet}, tokenize},
		"a page of no customers": {
			60, `{"code":0,"totalPages":0,"totalRecords":0,"data":[]}`, nil, func(c *payvault.Client) error {
				_, err := c.Customers.List(t.Context(), nil)
				return err
			},
		},
		"a submission of 100 cards": {
			60, `{"code":0,"data":{"request_id":"r1"}}`, nil, func(c *payvault.Client) error {
				_, err := c.AccountUpdater.Submit(t.Context(), cards)
				return err
			},
		},
	} {
		client, err := payvault.NewClient("https://service.test/gateway/v1", "test-api-key",
			append(test.opts, service.Over(service.Canned(200, test.answer)))...)
		require.NoError(t, err)
		got := testing.AllocsPerRun(1000, func() { err = test.call(client) })
		require.NoError(t, err)
		assert.LessOrEqual(t, got, test.most, name)
	}
}
