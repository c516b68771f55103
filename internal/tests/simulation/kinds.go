package simulation

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

// These are secret values of requests. No error, log record or value for observers may contain them.
const (
	canaryKey      = "canary-canary-key"
	canaryCard     = "4000123498761234"
	canaryAccount  = "55443322110099"
	canaryPayee    = "918273645"
	canaryApp      = "827364519"
	canaryDispute  = "736451829"
	canarySub      = "645182937"
	canaryInvoice  = "invQX7Z918k"
	canaryWebhook  = "whkQX7Z918k"
	canaryFilter   = "filterQZ81k"
	canaryExtra    = "headerQZ82k"
	canaryCallPath = "recordQZ83k"
)

// canaryOf returns the secret text of a field. Some fields need a text of a certain form.
func canaryOf(field string) string {
	switch field {
	case "CardNumber":
		return canaryCard
	case "CardSwipe":
		return "%B4000123498765555^DOE/JANE^30121010000000000?"
	case "CVV2":
		return "c9v7q"
	case "TRNumber", "BankRouting":
		return "998877665"
	case "DDANumber", "BankAccountNumber":
		return canaryAccount
	case "SSN":
		return "987650321"
	case "TaxID":
		return "876509321"
	}
	return "secretQZ" + field
}

// secrets returns the values that must be redacted in the errors of a call.
func (k *kind) secrets() []string {
	return append([]string{canaryKey, encodedKey(), canaryExtra, canaryCard, canaryAccount}, k.private...)
}

// encodedKey returns the base64 part of the Authorization header, which contains the API key.
func encodedKey() string { return base64.StdEncoding.EncodeToString([]byte(":" + canaryKey)) }

// kind describes an operation in one form, such as a single call or a walk.
type kind struct {
	calls.Operation
	form    string
	path    string   // expected path after the base path, with IDs
	reads   bool     // the operation changes nothing; not taken from the SDK's table of operations, which is under test
	same    bool     // performing it twice has the same effect as once; not taken from the SDK's table either
	rcode   bool     // answers have their result code in the field rcode
	request any      // nil if the method has no request parameter
	body    []string // secret values that every complete request body contains
	private []string // all secret values of the request, which must be redacted in errors
	issues  string   // the field of the answer with the new ID; "" if there is none
}

// recordsPerPage is the number of records on each page.
const recordsPerPage = 2

// evidence is a PDF file that is larger than the buffer of a connection (bufferSize).
//
//nolint:gochecknoglobals // never changed
var evidence = []byte("%PDF-1.7\n" + strings.Repeat("x", 150<<10) + "\n%%EOF\n")

// kinds returns the kinds of all operations. An operation with several forms has one kind for each form.
func kinds() []kind { return allKinds }

var allKinds = makeKinds() //nolint:gochecknoglobals // never changed

func kindOf(op payvault.Operation, form string) kind {
	for _, k := range allKinds {
		if k.Op == op && k.form == form {
			return k
		}
	}
	panic("no kind " + string(op) + " " + form)
}

// makeKinds makes the kinds from the table of calls, and one kind for Client.Call. In the request of a kind, a canary
// replaces each Secret that is not empty; see copyOf.
func makeKinds() []kind {
	var all []kind
	for _, o := range calls.Table() {
		all = append(all, newKind(o, ""))
		switch o.Op {
		case payvault.OpTokensTokenize:
			all = append(all, newKind(o, formCard))
		case payvault.OpCustomersList, payvault.OpSubscriptionsTransactions:
			all = append(all, newKind(o, formWalk))
		case payvault.OpAccountUpdaterSubmit:
			all = append(all, newKind(o, formBulk))
		}
	}
	return append(all, newKind(calls.Operation{
		OperationInfo: payvault.OperationInfo{
			Op: payvault.OpCall, Method: http.MethodPut, Path: "/platform/thing/" + canaryCallPath,
		},
		Full: payvault.Request{
			Method: http.MethodPut, Path: []string{"platform", "thing", canaryCallPath},
			Body: map[string]any{"CardNumber": payvault.NewSecret("1")},
		},
	}, ""))
}

func newKind(o calls.Operation, form string) kind {
	k := kind{Operation: o, form: form, path: canaryIDs().In(o.Path), issues: o.NeededID}
	isReplayable := strings.HasPrefix(o.Stated, o.Method+" "+o.Path+" yes ")
	k.reads, k.same = isReplayable && o.Method == http.MethodGet, isReplayable && o.Method != http.MethodGet
	for i, segment := range strings.Split(k.path, "/") {
		isID := strings.Split(o.Path, "/")[i] != segment || segment == canaryCallPath
		if isID && segment != string(canaryIDs().Event) { // the ID of an event is not secret
			k.private = append(k.private, segment)
		}
	}
	switch r := o.Full.(type) {
	case *payvault.ListOptions:
		k.Full = &payvault.ListOptions{
			Count: recordsPerPage, Filters: []payvault.Filter{payvault.Where("customer_email", "EQ", canaryFilter)},
		}
		k.private, k.issues = append(k.private, canaryFilter), ""
	case *payvault.DisputeRespondRequest:
		r.Evidence = payvault.FileFromBytes("receipt.pdf", evidence)
	case *payvault.TokenizeRequest:
		k.rcode, k.issues, k.same = true, "card_id", form == formCard
		if form == "" {
			r.CardID = ""
		}
	}
	if k.Full != nil {
		k.request = copyOf(reflect.ValueOf(k.Full), "", func(canary string) { k.body = append(k.body, canary) }).Interface()
	}
	k.private = append(k.private, k.body...)
	return k
}

// newRequest returns a copy of the kind's request, or nil if it has none.
func (k *kind) newRequest() any {
	if k.request == nil {
		return nil
	}
	return copyOf(reflect.ValueOf(k.request), "", func(string) {}).Interface()
}

// copyOf returns a deep copy of a request or of a field's value. It replaces each Secret that is not empty with the
// canary of its field, and passes that canary to the callback. It empties the fields that the client fills in.
func copyOf(v reflect.Value, field string, found func(canary string)) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch {
	case v.IsZero(): // a nil pointer, an empty Secret or the like
	case v.Type() == reflect.TypeFor[payvault.Secret]():
		found(canaryOf(field))
		out.Set(reflect.ValueOf(payvault.NewSecret(canaryOf(field))))
	case v.Kind() == reflect.Pointer:
		out.Set(copyOf(v.Elem(), field, found).Addr())
	case v.Kind() == reflect.Interface:
		out.Set(copyOf(v.Elem(), field, found))
	case v.Kind() == reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copyOf(v.Index(i), field, found))
		}
	case v.Kind() == reflect.Map:
		out.Set(reflect.MakeMap(v.Type()))
		for key, value := range v.Seq2() {
			out.SetMapIndex(key, copyOf(value, key.String(), found))
		}
	case v.Kind() == reflect.Struct:
		for f, value := range v.Fields() {
			switch {
			case f.Name == "MerchantID", f.Name == "DeveloperID": // the client fills these in, and must do so in a copy
				out.FieldByIndex(f.Index).SetZero()
			case f.IsExported():
				out.FieldByIndex(f.Index).Set(copyOf(value, f.Name, found))
			}
		}
	}
	return out
}

// isComplete reports whether a request body is complete and contains its secrets. The form of an upload ends with two
// hyphens and a line break.
func (k *kind) isComplete(body []byte) bool {
	if k.Full == nil || k.Lists() {
		return len(body) == 0
	}
	for _, secret := range k.body {
		if !bytes.Contains(body, []byte(secret)) {
			return false
		}
	}
	if k.Op == payvault.OpDisputesRespond {
		return bytes.Contains(body, evidence) && bytes.HasSuffix(body, []byte("--\r\n"))
	}
	return json.Valid(body)
}

// canaryIDs returns the IDs that all calls use in their paths.
func canaryIDs() calls.IDs {
	return calls.IDs{
		Payee: payvault.PayeeID(number(canaryPayee)), Application: payvault.ApplicationID(number(canaryApp)),
		Dispute: payvault.DisputeID(number(canaryDispute)), Subscription: payvault.SubscriptionID(number(canarySub)),
		Invoice: canaryInvoice, Webhook: canaryWebhook, Event: payvault.EventTransactionStatusUpdated,
	}
}

func number(canary string) int64 {
	n, err := strconv.ParseInt(canary, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// do makes the call and returns the ID that the service has issued, or "" if there is none.
func (k *kind) do(
	ctx context.Context, c *payvault.Client, request any, opts []payvault.CallOption,
) (id string, err error) {
	if call, ok := request.(payvault.Request); ok {
		return "", c.Call(ctx, call, nil, opts...)
	}
	result, err := k.Do(ctx, c, canaryIDs(), request, opts...)
	switch {
	case (result == nil) == (err == nil):
		return "", noResult{both: err != nil}
	case err != nil:
		return "", err
	}
	return fieldOf(reflect.ValueOf(result), k.issues), nil
}

// noResult is the error of a call that returns both a result and an error, or neither.
type noResult struct{ both bool }

func (e noResult) Error() string { return fmt.Sprintf("result and error: both %t, or none", e.both) }

// fieldOf looks for the field with the given JSON name in v and in the structs inside v. It returns the value as text,
// or "" if there is no such field.
func fieldOf(v reflect.Value, name string) string {
	v = reflect.Indirect(v)
	if name == "" || v.Kind() != reflect.Struct {
		return ""
	}
	for field, value := range v.Fields() {
		if !field.IsExported() {
			continue
		}
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			return fmt.Sprint(value.Interface())
		}
		if found := fieldOf(value, name); found != "" {
			return found
		}
	}
	return ""
}
