// Package calls is the one table of calls: how each operation of payvault.Operations is made with the least request,
// with all fields, and with one that is refused before it is sent. The suites over all operations read it.
package calls

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"example.com/payvault"
)

// An Operation is made with requests, and gives results.
type Operation struct {
	payvault.OperationInfo

	// Stated is what the interface and the design say of the operation: method and path, whether it is repeated after a
	// lost answer, and where it puts a merchant_id.
	Stated string

	// The requests; nil where there is none to pass. Their wire forms are testdata/<Op>.request.json, .request.min.json,
	// or .query. Refused goes with no ID.
	Full, Minimal, Refused any
	// Problems of Refused, by wire path.
	Problems map[string][]string
	// The results of testdata/<Op>.response.json and .response.tolerant.json; the latter is nil where there is none.
	Want, Tolerant any
	// Once reports whether it can be performed once per record: the service refuses to do it again.
	Once bool
	// GoName is that of the method, such as "Customers.Create".
	GoName string

	do   func(ctx context.Context, c *payvault.Client, ids IDs, request any, opts ...payvault.CallOption) (any, error)
	ways []Call // other than do
}

// A Call is one way to make an operation: there is another where a request, or an iterator, makes a difference.
type Call struct {
	Operation

	Name    string // "customers.list", or "customers.list by Customers.All"
	Repeats bool   // the client repeats it by itself after an attempt that may have performed it
}

// IDs are the records that calls are about.
type IDs struct {
	Card         string
	Payee        payvault.PayeeID
	Application  payvault.ApplicationID
	Dispute      payvault.DisputeID
	Subscription payvault.SubscriptionID
	Invoice      payvault.InvoiceID
	Webhook      payvault.WebhookID
	Event        payvault.Event
}

// Documented returns the IDs that stand in testdata.
func Documented() IDs {
	return IDs{
		Card: "CARDID1004", Payee: 3001, Application: 4004, Dispute: 5002, Subscription: 6006,
		Invoice: "INVOICE7001", Webhook: "WEBHOOK9001", Event: payvault.EventTransactionStatusUpdated,
	}
}

// In puts the IDs into a template of payvault.Operations.
func (ids IDs) In(template string) string {
	return strings.NewReplacer(
		"{payee_id}", fmt.Sprint(ids.Payee), "{appId}", fmt.Sprint(ids.Application), "{rec_id}", fmt.Sprint(ids.Dispute),
		"{subscription_id}", fmt.Sprint(ids.Subscription), "{invoice_id}", string(ids.Invoice),
		"{webhook_id}", string(ids.Webhook), "{event}", string(ids.Event),
	).Replace(template)
}

// Do makes the operation. The result is nil where the method returns nil, whatever its type.
func (o *Operation) Do(
	ctx context.Context, c *payvault.Client, ids IDs, request any, opts ...payvault.CallOption,
) (any, error) {
	return o.do(ctx, c, ids, request, opts...)
}

// Fixture names a file of testdata that belongs to the operation, such as "customers/list.query".
func (o *Operation) Fixture(kind string) string {
	return strings.Replace(string(o.Op), ".", "/", 1) + "." + kind
}

// Answer is the documented answer of a success.
func (o *Operation) Answer() string { return Fixture(o.Fixture("response.json")) }

// Fixture reads a file of testdata, without the line break at its end.
func Fixture(name string) string {
	text, err := os.ReadFile(filepath.Join(Root(), "testdata", filepath.FromSlash(name)))
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Root is the directory of the repository, as seen from a package in it.
func Root() string {
	dir := "."
	for range 5 { // as deep as a package can lie
		if _, err := os.Stat(filepath.Join(dir, "testdata", "README.md")); err == nil {
			return dir
		}
		dir = filepath.Join("..", dir)
	}
	panic("calls: not run within the repository")
}

// All returns every way to make every operation, in the order of the table. No two of them share a request.
func All() []Call {
	var all []Call
	for i, o := range Table() {
		replay := o.Replay == payvault.ReplayRead || o.Replay == payvault.ReplaySame
		if o.Replay != payvault.ReplayWithCardID {
			all = append(all, Call{Operation: o, Name: string(o.Op), Repeats: replay})
		}
		for _, way := range o.ways {
			own := entries()[i]()
			own.OperationInfo, own.do, own.GoName = o.OperationInfo, way.do, cmp.Or(way.GoName, o.GoName)
			all = append(all, Call{own, string(o.Op) + " " + way.Name, replay || way.Repeats})
		}
	}
	return all
}

// of makes a function of the table.
func of[Req, Res any](
	do func(ctx context.Context, c *payvault.Client, ids IDs, request Req, opts ...payvault.CallOption) (Res, error),
) func(context.Context, *payvault.Client, IDs, any, ...payvault.CallOption) (any, error) {
	return func(ctx context.Context, c *payvault.Client, ids IDs, r any, opts ...payvault.CallOption) (any, error) {
		request, _ := r.(Req) // nil, typed, if there is none
		result, err := do(ctx, c, ids, request, opts...)
		if v := reflect.ValueOf(result); v.Kind() != reflect.Struct && v.IsNil() {
			return nil, err
		}
		if err != nil && reflect.TypeFor[Res]() == reflect.TypeFor[done]() {
			return nil, err
		}
		return result, err
	}
}

// done is the result of an operation that has none, and none the request of one that takes none.
type (
	done struct{}
	none *struct{}
)

// first takes the first item of a list.
func first[T any](items iter.Seq2[*T, error]) (*T, error) {
	for item, err := range items {
		return item, err
	}
	return nil, nil //nolint:nilnil // an empty list
}

// Table returns every operation that the calls are known of, all values new.
func Table() []Operation {
	var table []Operation
	for _, entry := range entries() {
		o := entry()
		at := slices.IndexFunc(payvault.Operations(), func(info payvault.OperationInfo) bool { return o.Op == info.Op })
		if at < 0 {
			panic("calls: there is no operation " + string(o.Op))
		}
		o.OperationInfo = payvault.Operations()[at]
		table = append(table, o)
	}
	return table
}

// op is an entry that Table completes.
func op(name payvault.Operation) payvault.OperationInfo { return payvault.OperationInfo{Op: name} }
