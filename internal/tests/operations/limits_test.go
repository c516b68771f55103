//go:build !race

// The client is held to its bounds of memory and time, whatever the service answers. These tests run one at a time and
// before all others, since they measure the heap of their process; the race detector takes memory of its own.

package operations

import (
	"bytes"
	"compress/gzip"
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
	bodyCap  = 8 << 20 // that of a client by default
	mostHeap = 100e6
)

// reading is a call that reads an answer.
type reading func(ctx context.Context, c *payvault.Client) error

// read makes an operation of the table.
func read(op payvault.Operation) reading {
	return func(ctx context.Context, c *payvault.Client) error {
		o := find(op)
		_, err := o.Do(ctx, c, calls.Documented(), o.Minimal)
		return err
	}
}

// into reads an answer into a variable of the caller.
func into[T any](ctx context.Context, c *payvault.Client) error {
	return c.Call(ctx, payvault.Request{Method: http.MethodGet, Path: []string{"x"}}, new(T))
}

// Types of the caller.
type (
	large struct {
		A, B, C, D string
		E          [8]int
		M          map[string]large `json:"m"`
	}
	maps struct {
		Data []map[string]large `json:"data"`
		X    map[string]large   `json:"x"`
	}
	pointers struct {
		Data []*large                    `json:"data"`
		X    []map[string]map[string]int `json:"x"`
	}
	arrays struct {
		Data []map[string]struct{ A [1 << 10]byte } `json:"data"`
	}
	structs struct {
		Data []large           `json:"data"`
		X    map[string]*large `json:"x"`
	}
	list[T any] struct { // of which even bytes are read one by one
		X []T `json:"x"`
	}
	embedding struct { // the decoder allocates what it embeds
		*payvault.Transaction
		*pointing
	}
	pointing struct{ *wide }
	wide     struct{ Strings [64]string }
	ours     struct { // types of the package
		Pairs   []payvault.Pairs           `json:"pairs"`
		Options []payvault.FieldOption     `json:"options"`
		Fields  []payvault.SavedField      `json:"fields"`
		Data    []payvault.ApplicationData `json:"data"`
	}
)

// readings are one for each way to read an answer.
func readings() map[string]reading {
	return map[string]reading{
		"list": read(payvault.OpCustomersList), "transactions": read(payvault.OpSubscriptionsTransactions),
		"saved": read(payvault.OpApplicationsSaveData), "validate": read(payvault.OpApplicationsValidate),
		"write": read(payvault.OpCustomersCreate), "payee": read(payvault.OpPayeesCreate),
		"tokenize": read(payvault.OpTokensTokenize),
		"any":      into[any], "map": into[map[string]string], "maps": into[maps], "pointers": into[pointers],
		"amounts": into[list[payvault.Amount]], "instants": into[list[payvault.Timestamp]],
		"bytes": into[list[byte]], "small": into[list[int8]], "words": into[list[uint16]],
		"times": into[list[time.Time]], "embedding": into[list[embedding]], "secrets": into[list[payvault.Secret]],
		"sets": into[list[map[string]struct{}]], "wide": into[list[map[string]struct{ A [16]int64 }]],
		"arrays": into[arrays], "structs": into[structs], "ours": into[ours],
	}
}

// attack is a body that is small on the wire or takes more memory than it has bytes, and the readings that it is for.
type attack struct{ readings, head, unit, tail string }

// body repeats the unit as often as the cap allows, without a comma at the end.
func (a attack) body() string {
	n := (bodyCap - len(a.head) - len(a.tail)) / len(a.unit)
	return a.head + strings.TrimSuffix(strings.Repeat(a.unit, n), ",") + a.tail
}

// attacks begin with those that are made in short too.
func attacks() []attack {
	const (
		data   = `{"code":0,"data":[`
		record = `{"code":0,"data":{"customer_id":"a","billing_cards":[`
		fields = `{"code":0,"data":{"fields":[`
		text   = `{"code":0,"rcode":"000","data":[{"customer_id":`
		token  = `{"code":0,"rcode":"000","card_id":"`
		eight  = `{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{}`
		legal  = `{"key":"legal_name","value":{"a":"`
		misfit = `{"settings":{"required":{"a":1}}}`
		secret = fields + `{"key":"bank_routing","value":"`
	)
	owned := func(n int) string {
		return `{"key":"ownership","value":{"owners":[` + strings.Repeat(`{},`, n-1) + `{}]}},`
	}
	cards := func(n int) string { return `{"billing_cards":[` + strings.Repeat(`{},`, n-1) + `{}]},` }
	again := func(member string) string { return `{` + strings.Repeat(member+`,`, 99) + member + `},` }
	owner := func(n int) string {
		return `{"key":"ownership","value":{"owners":[{"ssn":"` + strings.Repeat("x", n) + `","dob":"x"}]}},`
	}
	object := func(n int) string {
		var text strings.Builder
		for i := range n {
			text.WriteString(`,"` + string(rune('a'+i)) + `":{}`)
		}
		return `{` + text.String()[1:] + `},`
	}
	braces := `{"key":"business_services_auth_time","value":"` + strings.Repeat("1}", 2000) + `"},`
	times := `{"key":"business_services_auth_time","value":"{` + strings.Repeat("1,", 450) + `}"},`
	return slices.Concat(
		of("list", data, `]}`, `{"billing_cards":[{},{}]},`, `{"customer_id":1},`), of("saved", secret, `"}]}}`, "\xffa"),

		// Records, and what is in them.
		of("list, structs, pointers", data, `]}`, `null,`), of("list, structs, maps", data, `]}`, `{},`),
		of("list", data, `]}`, `null   ,`, strings.Repeat(" ", 200)+`{},`),
		of("list", data, `{"customer_id":1}]}`, `{"billing_cards":[{},{}]},`),
		of("write", record, `]}}`, `{},`, `17,`, `{"CARD_ID":1},`), of("write", record+`{"billing_email":[`, `]}]}}`, `"",`),
		of("saved", fields, `]}}`, owned(3), owned(5), owned(17), owned(50), owned(300), times, times[:60]+`1"},`),
		of("write", `{"code":0,"data":{"customer_id":"a"`, `}}`, `,"rec_id":"x"`),
		of("payee", `{"code":0,"data":{"payee_id":1,"payee_email":[`, `]}}`, `{},`, `{"a":1},`),
		of("saved", fields+`{"key":"business_services_auth_time","value":"{`, `}"}]}}`, `1,`),
		of("saved", fields, `]}}`, `{"key":"card_volume","value":"x"},`, `{"key":"business_address","value":{}},`),
		of("saved, validate", fields, `]}}`, `{},`, owned(1001), `{"key":"a","value":[1,1,1,1,1,1,1,1]},`),
		of("saved", fields+`{"key":"a","settings":{"options":[`, `]}}]}}`, `{},`),
		of("saved", fields+`{"key":"a","value":[`, `]}]}}`, `1,`),
		of("transactions", data, `]}`, `{},`, `{"amt_tran":"1,234.50","batch_date":20260115},`,
			`{"amt_tran":1,"tran_time":"2026-01-15 10:20 +07"},`),

		// The same names again and again, with values in other forms than documented.
		of("transactions", data, `]}`, again(`"amt_tran":1e1`), again(`"amt_tran":"1e1"`),
			again(`"amt_tran":1.00000000000000000000`), again(`"batch_id":"1.00000000000000000000"`),
			again(`"tran_time":"2026-01-15 10:20 +0531"`)),
		of("saved", fields, `]}}`, `{"key":"ownership","value":{"owners":[`+
			strings.TrimSuffix(again(`"interestPercent":1.00000000000000000000`), `,`)+`]}},`),
		of("write", `{"code":0,"data":{"customer_id":"a"`, `}}`, `,"rec_id":1e1`, `,"rec_id":1.00000000000000000000`),
		of("amounts", `{"code":0,"x":[`, `]}`, `1e1,`, `1.00000000000000000000,`),
		of("times, instants", `{"code":0,"x":[`, `]}`, `"2026-01-15T00:00:00+05:31",`),
		of("instants", `{"code":0,"x":[`, `]}`, `"2026-01-15 00:00 +07",`, `"2026-01-15 00:00 +0531",`),
		of("bytes, small, words", `{"code":0,"x":[`, `]}`, `1,`),

		// Lists that grow, just as much as is read, twice since the last value is odd, and a long text.
		of("list", data+strings.Repeat(cards(3), 11_600)+`{"rec_id":"1","comments":"`, `"}]}`, `x`),
		of("list", data+strings.Repeat(cards(129), 1_080)+`{"comments":"`, `"}]}`, `x`),
		of("list", data+cards(25_000)+`{"rec_id":"1","comments":"`, `"}]}`, `x`),

		// What is not documented, or the caller's.
		of("ours", `{"code":0,"pairs":[`, `]}`, `"[]",`, `"",`, `null,`, `"[{\"a\":1}]",`),
		of("ours", `{"code":0,"options":[`, `]}`, `{},`, `{"value":{"a":[]}},`), of("ours", data, `]}`, `[],`, `[{},{},{}],`),
		of("ours", `{"code":0,"fields":[`, `]}`, `{},`, owned(3)),
		of("list, any", `{"code":0,"data":[],"x":[`, `]}`, `1,`, `{"a":1},`), of("list, any", ``, ``, `[`),
		of("list, any, map", `{"code":"0"`+members(`"a"`), `}`, ` `), of("list", `{"data":[],`, `,"code":0}`, `"code":0,`),
		of("list", `{"code":0,"rcode":"000",`, `"data":[]}`, ` `), of("maps, arrays", data, `]}`, `{"a":{}},`),
		of("maps, any", data, `]}`, eight+`},`, eight+`,"i":{}},`, `{"a":{"m":{"b":{"m":{"c":{}}}}}},`),
		of("pointers", `{"code":0,"x":[`, `]}`, `{"a":{"b":1}},`), of("structs", data, `]}`, `{"m":{"a":{}}},`),
		of("embedding", `{"code":0,"x":[`, `]}`, `{"rcode":""},`, `{"Strings":null},`),
		of("sets", `{"code":0,"x":[`, `]}`, object(9), object(15), object(29)),
		of("wide", `{"code":0,"x":[`, `]}`, object(9)),
		of("structs, maps", `{"code":0,"x":{"":{}`+members(`{}`), "}}", ` `),

		// Texts that are copied: secrets, what does not fit, what is read again, and then for its code.
		of("saved", fields+`{"key":"ownership","value":{"owners":[{"ssn":"`, `","dob":"x"}]}},`+misfit+`]}}`, `x`),
		of("saved", fields+`{"key":"ownership","value":{"owners":[{"ssn":"`, `","dob":"x"}]}},`+misfit+`]},"code":{}}`, `x`),
		of("saved", fields+`{"key":"ownership","value":{"owners":[{"ssn":"`, `"}]}},`+misfit+`]}}`, `x`),
		of("saved", fields, misfit+`]}}`, owner(4000), owner(500), braces), of("saved", fields, `{}]}}`, owner(4000), braces),
		of("saved", fields+legal, `"}},`+misfit+`]},"code":{}}`, `x`),
		of("saved", fields+strings.Repeat(`{},`, 7000)+legal, `"}},`+misfit+`]},"code":{}}`, `x`),
		of("payee", `{"code":0,"data":{"payee_account":{"tr_number":"`, `"},"payee_id":"x"},"x":"`+"\xff"+`"}`, `x`),
		of("list", data+cards(25_000)+`{"comments":"`, `","rec_id":"1"}],"code":5}`, `x`),
		of("list", data+cards(25_000)+`{"comments":"`, `","rec_id":"1"},{"rec_id":{}}],"x":1,"x":1}`, `x`),
		of("list", data+strings.Repeat(cards(3), 11_600)+`{"comments":"`, `","rec_id":"1"}],"code":5}`, `x`),
		of("list", data+cards(19_000)+`{"comments":"`, `","rec_id":"1"}],"code":5}`, `x`, "\xffa"),
		of("list", data+cards(25_000)+`{"rec_id":"1"}],`, `"code":5}`, `"rcode":{"a":0},`, `"data":{},`),
		of("transactions", data+strings.Repeat(`{},`, 9_000), `{"batch_id":17}]}`,
			again(`"tran_time":"2026-01-15T10:20:30+05:31"`), again(`"tran_time":"2026-01-15 10:20 +0531"`)),
		of("list", `{"code":0,"data":[]`, `}`, `,"`+strings.Repeat("x", 900)+`":1`),
		of("secrets", `{"code":0,"x":[`, `]}`, `"`+strings.Repeat("x", 40)+`",`),

		// Long texts.
		of("list, any", text+`"`, `"}]}`, `x`, "\xff"), of("list", text, `}]}`, `1`), of("saved", secret, `"}]}}`, `x`),
		of("tokenize", token, `"}`, "\xffa", `\u0041`), of("transactions", data+`{"amt_tran":"1`, `.50"}]}`, `,111`),
		of("payee", `{"code":0,"data":{"payee_id":1,"payee_account":{"verified_date":"`, `"}}}`, ` 1`),

		// Refusals.
		of("list", `{"code":7,"message":"`, `"}`, `4111 1111 `, "\xffa", `&amp;\\u0041%41`),
		of("list", `{"code":"`, `"}`, `4 `), of("list", `{"code":2,"data":{"a":["`, `"]}}`, `&amp;","`),
		of("list", `{"code":7,"message":[`, `]}`, `{},`), of("list", `{"code":2,"data":{"a":[`, `]}}`, `"x",`),
		of("list", `{"code":2,"data":{"":""`+members(`"a"`), "}}", ` `),
	)
}

// of gives attacks that differ in the unit.
func of(readings, head, tail string, units ...string) (all []attack) {
	for _, unit := range units {
		all = append(all, attack{readings, head, unit, tail})
	}
	return all
}

// members are as many of an object as the cap allows.
func members(value string) string {
	var text strings.Builder
	for i := 0; text.Len() < bodyCap-100; i++ {
		text.WriteString(`,"` + strconv.FormatInt(int64(i), 36) + `":` + value)
	}
	return text.String()
}

// assertSmall holds the growth of the heap in f to mostHeap. No garbage is collected meanwhile, as with a large heap.
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
			time.Sleep(200 * time.Microsecond) //nolint:forbidigo // samples; nothing waits for it
		}
	})
	f()
	ended.Store(true)
	looking.Wait()
	assert.LessOrEqual(t, highest, before+mostHeap, "%.100s", what)
	t.Logf("%d MB: %.100q", (max(highest, before)-before)/1e6, what)
}

// zipped is a transport that answers as net/http does when the answer was compressed: in small pieces, of no known
// length.
func zipped(t *testing.T, body string) payvault.Option {
	t.Helper()
	var text bytes.Buffer
	w, err := gzip.NewWriterLevel(&text, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = io.WriteString(w, body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
		r, err := gzip.NewReader(bytes.NewReader(text.Bytes()))
		return &http.Response{StatusCode: 200, ContentLength: -1, Uncompressed: true, Body: r}, err
	}))
}

// TestHostileBodies: no answer of the default size takes more than mostHeap, garbage included.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileBodies(t *testing.T) {
	var indexed strings.Builder // messages by numbers that could be parts of a card number, in one answer
	indexed.WriteString(`{"code":2,"data":{"0":[` + strings.Repeat(`"",`, 10_000) + `""]`)
	for i := 100; indexed.Len() < 64_000; i++ {
		indexed.WriteString(`,"` + strconv.Itoa(i) + `":[""]`)
	}
	refused := service.Client(t, service.Nowhere, service.Over(service.Canned(200, indexed.String()+"}}")))
	assertSmall(t, func() { _ = readings()["write"](t.Context(), refused) }, "indexed messages")
	for _, status := range []int{502, 503} { // which is tried again
		body := `{"code":7,"message":"` + strings.Repeat("\xffa", 4<<20-50) + `"}`
		down := service.Client(t, service.Nowhere, service.Over(service.Canned(status, body)))
		assertSmall(t, func() { _ = readings()["list"](t.Context(), down) }, "status "+strconv.Itoa(status))
	}
	for i, attack := range attacks() {
		if testing.Short() && i > 2 {
			break
		}
		client := service.Client(t, service.Nowhere, zipped(t, attack.body()))
		for name := range strings.SplitSeq(attack.readings, ", ") {
			assertSmall(t, func() { _ = readings()[name](t.Context(), client) }, name+" of "+attack.head+attack.unit)
		}
	}
}

// TestHostileTexts: what callers read themselves is held to the same bounds.
//
//nolint:paralleltest // it measures the heap of the process
func TestHostileTexts(t *testing.T) {
	read := map[string]func(text []byte){
		"pairs": func(text []byte) { _, _ = payvault.ParsePairs(string(text)) },
		"data":  func(text []byte) { _ = json.Unmarshal(text, new(payvault.ApplicationData)) },
		"field": func(text []byte) { _ = json.Unmarshal(text, new(payvault.SavedField)) },
	}
	owners := `{"key":"ownership","value":{"owners":[` + strings.Repeat("{},", 100_000) + `{}]}},`
	for i, attack := range slices.Concat(
		of("pairs", "[", "]", `{"a":1},`, `{"":""},`, `{"":[[],[]]},`, `{"":{"":{}}},`),
		of("data", "[", "]", `{},`, `{"key":"a","value":[1,1,1,1]},`, `{"key":"a","value":{"":{}}},`, owners),
		of("field", `{"key":"a","value":[`, `]}`, `1,`, `{"":{}},`, `null,`,
			`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1},`),
	) {
		if testing.Short() && i > 0 {
			break
		}
		text := []byte(attack.body())
		assertSmall(t, func() { read[attack.readings](text) }, attack.readings+attack.unit)
	}
}

// TestHonestPage: as many records as a page may hold by far are no attack, also if one of them is odd.
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

// closing is done when a body is closed, which has been read then.
type closing func()

func (f closing) Close() error {
	f()
	return nil
}

// TestDecodingEndsWithTheContext: also while nothing is read from the network any more.
//
//nolint:paralleltest // beside tests that measure the heap of the process
func TestDecodingEndsWithTheContext(t *testing.T) {
	many := strings.Repeat(`{"customer_id":1},`, 30_000) + `{}`
	for name, body := range map[string]string{
		"list": `{"code":0,"data":[` + many + `]}`, "any": `{"code":0,"data":[` + many + `]}`,
		"saved": `{"code":0,"data":{"fields":[` + many + `]}}`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answer := struct {
			io.Reader
			closing
		}{strings.NewReader(body), closing(cancel)}
		client := service.Client(t, service.Nowhere, service.Over(service.RoundTripper(
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, ContentLength: -1, Body: answer}, nil
			})))
		require.ErrorIs(t, readings()[name](ctx, client), context.Canceled, name)
	}
}

// TestAllocations guards the client's own cost, that of the answer in memory included.
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
	quiet := payvault.WithLogger(slog.New(slog.NewJSONHandler(io.Discard, nil))) // without Debug
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

// TestClearing_longSwipe: what clearing takes is in proportion to the secrets too, such as a track with many names.
//
//nolint:paralleltest // it counts the allocations of the process
func TestClearing_longSwipe(t *testing.T) {
	client := service.Client(t, service.Nowhere, service.Over(service.Canned(200, `{"rcode":"905","rmsg":"bad"}`)))
	for shape, unit := range map[string]string{"names": "A ", "fields": "A/B C^", "tracks": ";411111111=A/B C?"} {
		swipe := "%B4111111111111111^DOE/" + strings.Repeat(unit, 8<<10/len(unit)) + "^2512?"
		request := &payvault.TokenizeRequest{MerchantID: 1, CardSwipe: payvault.NewSecret(swipe)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := client.Tokens.Tokenize(t.Context(), request)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, payvault.ErrRejected)
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(20), "MB for a swipe of 8 KB: %s", shape)
	}
}
