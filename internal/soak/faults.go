package main

import (
	"math/rand/v2"
	"net/http"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const (
	responseCap = 64 << 10
	htmlPage    = "<html><body>Bad Gateway</body></html>"
	success     = `{"code":0,"rcode":"000","message":"Success","data":{}}`
)

// faults are those that do not take long. They are met in turn, so that even a short run meets every one.
func faults() []payvaulttest.Fault {
	list := []payvaulttest.Fault{
		{Kind: payvaulttest.ResetConnection},
		{Kind: payvaulttest.DropBeforeCommit},
		{Kind: payvaulttest.DropAfterCommit},
		{Kind: payvaulttest.Delay, Delay: time.Millisecond},
		{Kind: payvaulttest.RateLimit, RetryAfter: "99999999999999999999"},
		{Kind: payvaulttest.Respond, Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/elsewhere"}}},
		{Kind: payvaulttest.Respond, AfterCommit: true},
		{Kind: payvaulttest.OtherCode, Code: 7, Message: "Declined"},
		{Kind: payvaulttest.MalformedJSON, AfterCommit: true},
		{Kind: payvaulttest.TruncatedJSON, AfterCommit: true, Body: success},
		{Kind: payvaulttest.CutBody, AfterCommit: true, Body: success},
		{Kind: payvaulttest.OversizedBody, AfterCommit: true, Size: 2 * responseCap},
		{Kind: payvaulttest.SlowDrip, AfterCommit: true, Body: success, Delay: 10 * time.Microsecond},
	}
	for _, status := range []int{401, 403, 404, 409} {
		list = append(list, payvaulttest.Fault{Kind: payvaulttest.Respond, Status: status, Body: htmlPage})
	}
	for _, status := range []int{500, 502, 503, 504, 509} {
		list = append(list,
			payvaulttest.Fault{Kind: payvaulttest.Respond, Status: status, Body: htmlPage},
			payvaulttest.Fault{Kind: payvaulttest.Respond, Status: status, Body: htmlPage, AfterCommit: true})
	}
	return list
}

// nextFault is a fault for one request of an operation.
func (s *soak) nextFault(op payvault.Operation) payvaulttest.Fault {
	n := int(s.met.Add(1))
	if n%200 == 0 {
		return payvaulttest.Fault{Kind: payvaulttest.ResetConnection, Times: 1}
	}
	if op == opTokenizeSaved {
		op = payvault.OpTokensTokenize
	}
	fault := s.faultList[n%len(s.faultList)]
	fault.Operation, fault.Times = op, 1
	return fault
}

// pick and chance mix calls and faults, which need not be unpredictable.
func pick[T any](list []T) T { return list[rand.IntN(len(list))] } //nolint:gosec // see above

func chance(p float64) bool { return rand.Float64() < p } //nolint:gosec // see above
