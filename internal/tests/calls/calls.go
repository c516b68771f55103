// Package calls has a table of all operations, with the requests and the results that tests expect.
package calls

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// An Operation is an operation of the service, with the requests and the result that tests expect.
type Operation struct {
	payvault.OperationInfo

	// GoName is the name of the method, such as "Customers.Create".
	GoName string
	// Stated is written by hand and describes the operation: the method, the path, whether the client repeats the
	// operation after a lost answer, and the part of the request that has the merchant_id.
	Stated string
	// Full is a request with all fields, Minimal is the smallest request, and Refused is a request that the SDK refuses to
	// send. They are nil if the method has no request parameter. Minimal is also nil for a list, whose options are
	// optional. The JSON of Full is in the file Fixture("request.json"); list options are in testdata/list.query.
	Full, Minimal, Refused any
	// MinimalJSON is the JSON of Minimal. It is empty if the request has no body.
	MinimalJSON string
	// Problems is the Error.Fields that a test expects if it calls the method with the request Refused and with empty IDs.
	// If the operation supports ForMerchant, the test uses a client of ForMerchant(ActingFor).
	Problems map[string][]string
	// Want returns the result that the SDK must return for Answer. The Number of a page is zero, because the answer does
	// not have it.
	Want func() any
	// Result is the JSON pointer to the result in Answer. It is empty for the whole answer, and "-" if no result is
	// documented.
	Result string
	// NeededID is the name of the ID without which the result is of no use. It is empty if the answer has no such ID.
	NeededID string
	// Once is true if the service refuses to perform the operation a second time on the same record.
	Once bool

	ways   []Call                         // further ways to call the operation, such as its iterator
	change func(ids IDs, request any) any // changes the request before the call; nil if it stays unchanged
}

// A Call is one way to call an operation. For example, some operations have a method and an iterator.
type Call struct {
	Operation

	Name    string // "customers.list", or "customers.list by Customers.All"
	Repeats bool   // retried even if an attempt may have performed the operation
}

// IDs has the IDs of the records that calls use. An ID with the tag path:"payee" replaces a path parameter that begins
// with payee, such as {payee_id}.
type IDs struct {
	Card         string
	Payee        payvault.PayeeID        `path:"payee"`
	Application  payvault.ApplicationID  `path:"app"`
	Dispute      payvault.DisputeID      `path:"rec"`
	Subscription payvault.SubscriptionID `path:"subscription"`
	Invoice      payvault.InvoiceID      `path:"invoice"`
	Webhook      payvault.WebhookID      `path:"webhook"`
	Event        payvault.Event          `path:"event"`
}

// Documented returns the IDs that testdata uses.
func Documented() IDs {
	return IDs{
		Card: "CARDID1004", Payee: 3001, Application: 4004, Dispute: 5002, Subscription: 6006,
		Invoice: "INVOICE7001", Webhook: "WEBHOOK9001", Event: payvault.EventTransactionStatusUpdated,
	}
}

// Seeded stores new records in an emulator and returns their IDs.
func Seeded(srv *payvaulttest.Server) IDs {
	return IDs{
		Card:         srv.Cards.Seed(payvaulttest.Card{}).ID,
		Payee:        srv.Payees.Seed(payvaulttest.Payee{Name: "Acme"}).ID,
		Application:  srv.Applications.Seed(payvaulttest.Application{}).ID,
		Dispute:      srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval}).ID,
		Subscription: srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "CUST6101"}).ID,
		Invoice:      srv.Invoices.Seed(payvaulttest.Invoice{}).ID,
		Webhook:      srv.Webhooks.Seed(payvaulttest.Webhook{}).ID,
		Event:        payvault.EventTransactionStatusUpdated,
	}
}

// In replaces the parameters of a path template, such as {payee_id}, with the IDs. It panics if an ID is missing.
func (ids IDs) In(template string) string {
	return regexp.MustCompile(`\{\w+\}`).ReplaceAllStringFunc(template, func(param string) string {
		for start, id := range ids.all() {
			if strings.HasPrefix(param, "{"+start) && !reflect.ValueOf(id).IsZero() {
				return fmt.Sprint(id)
			}
		}
		panic("calls: no ID for " + param + " of " + template + ": add a field to IDs, Documented and Seeded in calls.go, " +
			"and to canaryIDs in kinds.go of the simulation")
	})
}

// all yields a pair for each field that has a path tag: the value of the tag, and the ID.
func (ids IDs) all() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for field, id := range reflect.ValueOf(ids).Fields() {
			if name := field.Tag.Get("path"); name != "" && !yield(name, id.Interface()) {
				return
			}
		}
	}
}

// done is the result of an operation whose method returns only an error.
type done struct{}

func none() any { return done{} }

// Do calls the method GoName of a client. Each parameter of the method gets the argument of its type: the context, the
// request, or an ID. If none has the type, the parameter is zero. If the method returns an iterator, Do takes the
// result from the first item.
func (o *Operation) Do(
	ctx context.Context, c *payvault.Client, ids IDs, request any, opts ...payvault.CallOption,
) (any, error) {
	if o.change != nil {
		request = o.change(ids, request)
	}
	service, name, _ := strings.Cut(o.GoName, ".")
	field := reflect.ValueOf(c).Elem().FieldByName(service)
	if !field.IsValid() || field.IsNil() {
		panic("client.go: no field " + service + " that newClient sets")
	}
	method := field.MethodByName(name)
	given := []any{ctx, request}
	for _, id := range ids.all() {
		given = append(given, id)
	}
	var in []reflect.Value
	for i := range method.Type().NumIn() - 1 {
		param := method.Type().In(i)
		value := reflect.Zero(param)
		for _, v := range given {
			if v != nil && reflect.TypeOf(v).AssignableTo(param) {
				value = reflect.ValueOf(v)
			}
		}
		in = append(in, value)
	}
	return result(method.CallSlice(append(in, reflect.ValueOf(opts))))
}

// result converts the results of a method call to one result and an error. If the method returns an iterator, both come
// from its first item.
func result(out []reflect.Value) (any, error) {
	switch v := out[0].Interface().(type) {
	case nil:
		return done{}, nil
	case error:
		return nil, v
	case iter.Seq2[*payvault.Customer, error]:
		return first(v)
	case iter.Seq2[*payvault.Transaction, error]:
		return first(v)
	case iter.Seq2[*payvault.Page[payvault.Customer], error]:
		return first(v)
	case iter.Seq2[*payvault.Page[payvault.Transaction], error]:
		return first(v)
	case iter.Seq2[*payvault.AccountUpdaterBatch, error]:
		for batch, err := range v {
			if err != nil {
				return nil, err
			}
			if batch.Err != nil {
				return nil, batch.Err
			}
			return &payvault.AccountUpdaterSubmission{RequestID: batch.RequestID}, nil
		}
		return nil, nil //nolint:nilnil // no card, no batch
	default:
		err, _ := reflect.TypeAssert[error](out[1])
		isMissing := out[0].IsNil() && (err != nil || out[0].Kind() == reflect.Pointer) // an empty slice is a result
		if isMissing {
			return nil, err
		}
		return v, err
	}
}

func first[T any](items iter.Seq2[*T, error]) (any, error) {
	for item, err := range items {
		if item == nil {
			return nil, err
		}
		return item, err
	}
	return nil, nil //nolint:nilnil // an empty list
}

// Fixture returns the name of a file in testdata that belongs to the operation, such as
// "customers/create.request.json" for the kind "request.json".
func (o *Operation) Fixture(kind string) string {
	return strings.Replace(string(o.Op), ".", "/", 1) + "." + kind
}

// Answer returns the documented answer of a success.
func (o *Operation) Answer() string { return Fixture(o.Fixture("response.json")) }

// Lists reports whether the operation returns a page of a list.
func (o *Operation) Lists() bool {
	_, lists := o.Full.(*payvault.ListOptions)
	return lists
}

// Fixture reads a file of testdata, without its last line break.
func Fixture(name string) string {
	text, err := os.ReadFile(filepath.Join(Root(), "testdata", filepath.FromSlash(name)))
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Root returns the path from the working directory to the root of the repository.
func Root() string {
	dir := "."
	for range 5 { // no package is more than four directories below the root
		if _, err := os.Stat(filepath.Join(dir, "testdata", "README.md")); err == nil {
			return dir
		}
		dir = filepath.Join("..", dir)
	}
	panic("calls: not run within the repository")
}

// Of returns the entry of the table for an operation.
func Of(op payvault.Operation) Operation {
	for _, o := range Table() {
		if o.Op == op {
			return o
		}
	}
	panic("internal/tests/calls/table.go does not have operation " + string(op))
}

// All returns all calls of all operations, in the order of the table. No two calls share a request value.
func All() []Call {
	var all []Call
	again := [][]Operation{Table(), Table()}
	for i, o := range Table() {
		replay := o.Replay == payvault.ReplayRead || o.Replay == payvault.ReplaySame
		if o.Replay != payvault.ReplayWithCardID {
			all = append(all, Call{o, string(o.Op), replay})
		}
		for j, way := range o.ways {
			own := again[j][i]
			own.GoName, own.change = cmp.Or(way.GoName, o.GoName), way.change
			if way.Problems != nil {
				own.Problems = way.Problems
			}
			all = append(all, Call{own, string(o.Op) + " " + way.Name, replay || way.Repeats})
		}
	}
	return all
}

// info returns the entry of payvault.Operations for an operation.
func info(name payvault.Operation) payvault.OperationInfo {
	for _, o := range payvault.Operations() {
		if o.Op == name {
			_ = Documented().In(o.Path) // panics if there is no ID for a parameter
			return o
		}
	}
	panic("calls: operations.go does not have operation " + string(name))
}
