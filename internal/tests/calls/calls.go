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
	"regexp"
	"strings"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// An Operation is made with requests, and gives results.
type Operation struct {
	payvault.OperationInfo

	// GoName is that of the method, such as "Customers.Create".
	GoName string
	// Stated is what the interface and the design say of the operation: method and path, whether it is repeated after a
	// lost answer, and where it puts a merchant_id.
	Stated string
	// The requests; nil where there is none to pass. Their wire forms are testdata/<Op>.request.json, .request.min.json,
	// or of list options testdata/list.query. Refused goes with no ID.
	Full, Minimal, Refused any
	// Problems of Refused, by wire path.
	Problems map[string][]string
	// The result of testdata/<Op>.response.json. A page has no number there.
	Want func() any
	// Once reports whether it can be performed once per record: the service refuses to do it again.
	Once bool

	ways   []Call                         // besides the method with the request as it is
	change func(ids IDs, request any) any // what a way makes of the request
}

// A Call is one way to make an operation: there is another where a request, or an iterator, makes a difference.
type Call struct {
	Operation

	Name    string // "customers.list", or "customers.list by Customers.All"
	Repeats bool   // the client repeats it by itself after an attempt that may have performed it
}

// IDs are the records that calls are about, by what the parameters of paths that name them begin with.
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

// Documented returns the IDs that stand in testdata.
func Documented() IDs {
	return IDs{
		Card: "CARDID1004", Payee: 3001, Application: 4004, Dispute: 5002, Subscription: 6006,
		Invoice: "INVOICE7001", Webhook: "WEBHOOK9001", Event: payvault.EventTransactionStatusUpdated,
	}
}

// Seeded returns the IDs of new records of an emulator.
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

// In puts the IDs into a template of payvault.Operations. It panics if one of them is missing.
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

// all gives the IDs by the starts of their parameters.
func (ids IDs) all() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for field, id := range reflect.ValueOf(ids).Fields() {
			if name := field.Tag.Get("path"); name != "" && !yield(name, id.Interface()) {
				return
			}
		}
	}
}

// done is the result of an operation that has none.
type done struct{}

func none() any { return done{} }

// Do calls the method, whose parameters are told apart by their types. It takes the first item of a list or of a job.
func (o *Operation) Do(
	ctx context.Context, c *payvault.Client, ids IDs, request any, opts ...payvault.CallOption,
) (any, error) {
	if o.change != nil {
		request = o.change(ids, request)
	}
	service, name, _ := strings.Cut(o.GoName, ".")
	method := reflect.ValueOf(c).Elem().FieldByName(service).MethodByName(name)
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

// result is what a method has returned.
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
	case iter.Seq[*payvault.AccountUpdaterBatch]:
		for batch := range v {
			if batch.Err != nil {
				return nil, batch.Err
			}
			return &payvault.AccountUpdaterSubmission{RequestID: batch.RequestID}, nil
		}
		return nil, nil //nolint:nilnil // no card, no batch
	default:
		err, _ := reflect.TypeAssert[error](out[1])
		if out[0].IsNil() {
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

// Fixture names a file of testdata that belongs to the operation, such as "customers/create.request.json".
func (o *Operation) Fixture(kind string) string {
	return strings.Replace(string(o.Op), ".", "/", 1) + "." + kind
}

// Answer is the documented answer of a success.
func (o *Operation) Answer() string { return Fixture(o.Fixture("response.json")) }

// TolerantAnswer is one in other forms that services send; Answer if there is no such file.
func (o *Operation) TolerantAnswer() string {
	if _, err := os.Stat(file(o.Fixture("response.tolerant.json"))); err != nil {
		return o.Answer()
	}
	return Fixture(o.Fixture("response.tolerant.json"))
}

// Lists reports whether the request is one for a page of a list.
func (o *Operation) Lists() bool {
	_, lists := o.Full.(*payvault.ListOptions)
	return lists
}

// Fixture reads a file of testdata, without the line break at its end.
func Fixture(name string) string {
	text, err := os.ReadFile(file(name))
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// file is the path of a file of testdata.
func file(name string) string { return filepath.Join(Root(), "testdata", filepath.FromSlash(name)) }

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

// Of returns an operation of the table.
func Of(op payvault.Operation) Operation {
	for _, o := range Table() {
		if o.Op == op {
			return o
		}
	}
	panic("calls: the table does not have operation " + string(op))
}

// All returns every way to make every operation, in the order of the table. No two of them share a request.
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

// info finds an operation in the table of the SDK.
func info(name payvault.Operation) payvault.OperationInfo {
	for _, o := range payvault.Operations() {
		if o.Op == name {
			_ = Documented().In(o.Path) // panics if there is no ID for a parameter
			return o
		}
	}
	panic("calls: operations.go does not have operation " + string(name))
}
