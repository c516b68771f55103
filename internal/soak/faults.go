package main

import (
	"math/rand/v2"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const (
	responseCap = 64 << 10
	htmlPage    = "<html><body>Bad Gateway</body></html>"
	success     = `{"code":0,"rcode":"000","message":"Success","data":{}}`
)

// anyFault is one of the faults that do not take long, for one request of an operation.
func anyFault(op payvault.Operation) payvaulttest.Fault {
	if op == opTokenizeSaved {
		op = payvault.OpTokensTokenize
	}
	refusals, failures := []int{401, 403, 404, 409}, []int{500, 502, 503, 504, 509}
	faults := []payvaulttest.Fault{
		{Kind: payvaulttest.ResetConnection},
		{Kind: payvaulttest.DropDuringRead},
		{Kind: payvaulttest.DropBeforeCommit},
		{Kind: payvaulttest.DropAfterCommit},
		{Kind: payvaulttest.Delay, Delay: time.Millisecond},
		{Kind: payvaulttest.Respond, Status: pick(refusals), Body: htmlPage},
		{Kind: payvaulttest.Respond, Status: pick(failures), Body: htmlPage},
		{Kind: payvaulttest.Respond, Status: pick(failures), Body: htmlPage, AfterCommit: true},
		{Kind: payvaulttest.RateLimit, RetryAfter: "99999999999999999999"},
		{Kind: payvaulttest.Redirect, Location: "http://127.0.0.1:1/elsewhere"},
		{Kind: payvaulttest.EmptyBody, AfterCommit: true},
		{Kind: payvaulttest.OtherCode, Code: 7, Message: "Declined"},
		{Kind: payvaulttest.MalformedJSON, AfterCommit: true},
		{Kind: payvaulttest.TruncatedJSON, AfterCommit: true, Body: success},
		{Kind: payvaulttest.CutBody, AfterCommit: true, Body: success},
		{Kind: payvaulttest.OversizedBody, AfterCommit: true, Size: 2 * responseCap},
		{Kind: payvaulttest.GzipBomb, AfterCommit: true, Size: 4 * responseCap},
		{Kind: payvaulttest.SlowDrip, AfterCommit: true, Body: success, Delay: 10 * time.Microsecond},
	}
	if chance(0.005) {
		return payvaulttest.Fault{Kind: payvaulttest.RefuseConnection, Times: 1} // it closes all idle connections
	}
	fault := pick(faults)
	fault.Operation, fault.Times = op, 1
	return fault
}

// pick and chance mix calls and faults, which need not be unpredictable.
func pick[T any](list []T) T { return list[rand.IntN(len(list))] } //nolint:gosec // see above

func chance(p float64) bool { return rand.Float64() < p } //nolint:gosec // see above
