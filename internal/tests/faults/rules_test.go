package faults

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// attemptsAtMost is the MaxAttempts of all clients of this package.
const attemptsAtMost = 3

// effect says what happens to a request when a fault strikes. ruleFor returns how the client must react.
type effect string

const (
	healed     effect = "net/http gets over it" // net/http repeats the request within one attempt of the client
	unsent     effect = "no connection"
	distrusted effect = "no trust" // no connection, and a retry would fail in the same way
	noKey      effect = "no key"   // nothing was sent, and the key source is not asked again
	lost       effect = "no answer"
	turnedAway effect = "429" // the operation was not performed
	// The operation was not performed, and the Retry-After is longer than the client accepts.
	heldOff     effect = "429 for long"
	gatewayDown effect = "502, 503 or 504"          // the service behind the gateway may have performed the operation
	failed      effect = "another 5xx"              // also a 503 whose Retry-After is too long
	blocked     effect = "403 without a code"       // a firewall may have refused the answer of the service
	refused     effect = "another 4xx"              // the service has refused the operation
	rejected    effect = "2xx with another code"    // the service has refused the operation
	malformed   effect = "2xx that is none"         // the operation may have been performed
	tooLarge    effect = "2xx above the size limit" // the operation may have been performed
	redirected  effect = "3xx"                      // the client does not follow the redirect
	// The outcome is unknown. SafeToRetry returns false, because a new call would be redirected too.
	cutRedirect effect = "3xx that is cut off"
)

// when selects the calls for which a rule holds.
type when int

const (
	never when = iota
	// ifRepeated selects the calls that the client by default retries even if an attempt may have performed the operation.
	// In the field repeats of a rule, it also selects the calls with WithReplay.
	ifRepeated
	always
)

func (w when) holds(repeats bool) bool { return w == always || w == ifRepeated && repeats }

// rule describes the required reaction of the client to an effect.
type rule struct {
	repeats  when              // whether the client retries
	delivery payvault.Delivery // Delivery of the error
	safe     when              // whether SafeToRetry returns true
	is       error             // a further sentinel, besides those of the status, code and delivery
}

func ruleFor(e effect) rule {
	return map[effect]rule{
		unsent:      {always, payvault.DeliveryNotSent, always, nil},
		distrusted:  {never, payvault.DeliveryNotSent, always, nil},
		noKey:       {never, payvault.DeliveryNotSent, always, nil},
		lost:        {ifRepeated, payvault.DeliveryUnknown, ifRepeated, nil},
		turnedAway:  {always, payvault.DeliveryAnswered, always, nil},
		heldOff:     {never, payvault.DeliveryAnswered, always, nil},
		gatewayDown: {ifRepeated, payvault.DeliveryUnknown, ifRepeated, nil},
		failed:      {never, payvault.DeliveryUnknown, ifRepeated, nil},
		blocked:     {never, payvault.DeliveryUnknown, never, nil},
		refused:     {never, payvault.DeliveryAnswered, never, nil},
		rejected:    {never, payvault.DeliveryAnswered, never, nil},
		malformed:   {never, payvault.DeliveryUnknown, ifRepeated, payvault.ErrMalformedResponse},
		tooLarge:    {never, payvault.DeliveryUnknown, never, payvault.ErrResponseTooLarge},
		cutRedirect: {ifRepeated, payvault.DeliveryUnknown, never, nil},
		redirected:  {never, payvault.DeliveryUnknown, never, payvault.ErrMalformedResponse},
	}[e]
}

// outcome is the actual or the expected result of a call. performed is the number of times that the service performed
// the operation. All fields after attempts describe the error.
type outcome struct {
	performed int
	attempts  int
	status    int
	code      string
	delivery  string
	safe      bool
	is        []string
}

// expected computes the expected result of a cell from the rule for its fault.
func (c *cell) expected() (o outcome) {
	rule := ruleFor(c.fault.is)
	if c.fault.toUpload != "" && c.call.Op == payvault.OpDisputesRespond {
		rule = ruleFor(c.fault.toUpload)
	}
	for {
		if o.attempts++; o.attempts > 1 && !c.stays {
			return c.succeeds(o)
		}
		if c.performs {
			o.performed, _ = c.performing(o.performed)
		}
		switch {
		case c.fault.is == healed:
			return c.succeeds(o)
		case !rule.repeats.holds(c.call.Repeats || c.withReplay) || o.attempts == attemptsAtMost:
			return c.fails(o, rule)
		}
	}
}

// performing returns how often the service has performed the operation after one more request. The argument is this
// number before the request. The second result is true if the operation is possible only once and was performed before.
func (c *cell) performing(performed int) (n int, again bool) {
	if performed > 0 && c.call.Once {
		return performed, true
	}
	return performed + 1, false
}

// fails returns the expected result of a call that ends with the error of the fault.
func (c *cell) fails(o outcome, r rule) outcome {
	o.status, o.code, o.delivery = c.fault.status, c.fault.code, r.delivery.String()
	o.safe = r.safe.holds(c.call.Repeats)
	o.is = c.sentinels(o.status, r.is == nil && o.code != "" && o.code != zero, r)
	return o
}

// succeeds returns the expected result of a call if the fault does not make its last attempt fail.
func (c *cell) succeeds(o outcome) outcome {
	var again bool
	if o.performed, again = c.performing(o.performed); !again {
		return o
	}
	// The service refuses this attempt because an earlier one performed the operation. The client cannot know that, so the
	// outcome must be unknown.
	o.status, o.code, o.delivery = statusAgain, codeAgain, payvault.DeliveryUnknown.String()
	o.is = c.sentinels(statusAgain, true, rule{delivery: payvault.DeliveryUnknown})
	return o
}

// sentinels returns the names of the sentinels that the error must match.
func (c *cell) sentinels(status int, rejection bool, r rule) []string {
	byStatus := map[int]error{
		401: payvault.ErrUnauthorized, 403: payvault.ErrForbidden, 404: payvault.ErrNotFound, 409: payvault.ErrConflict,
		429: payvault.ErrRateLimited,
	}
	want := []error{byStatus[status], r.is}
	switch {
	case status >= 500:
		want = append(want, payvault.ErrUnavailable)
	case rejection:
		want = append(want, payvault.ErrRejected)
	}
	// errors of reads never match ErrOutcomeUnknown
	if r.delivery == payvault.DeliveryUnknown && c.call.Replay != payvault.ReplayRead {
		want = append(want, payvault.ErrOutcomeUnknown)
	}
	return names(func(sentinel error) bool { return slices.Contains(want, sentinel) })
}

// names returns the sorted names of the sentinels for which the function returns true.
func names(holds func(sentinel error) bool) []string {
	all := service.Sentinels()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !holds(all[name]) })
}

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "write anew what a test compares with")

// TestDocs checks that the table in docs/failures.md agrees with ruleFor, and that its rows cover the effects of all
// faults and no other effect.
func TestDocs(t *testing.T) {
	t.Parallel()
	told, struck := map[effect]bool{}, map[effect]bool{}
	var table strings.Builder
	table.WriteString("| failure | replayable, or `WithReplay` | all others |\n|---|---|---|\n")
	for _, row := range []struct {
		title   string
		effects []effect
	}{
		{"no connection, DNS failure, TLS handshake cut off", []effect{unsent}},
		{"untrusted certificate, no API key", []effect{distrusted, noKey}},
		{"idle connection closed, nothing written", []effect{healed}},
		{"connection closed while the request is written", []effect{lost, unsent}},
		{"connection lost or attempt timed out", []effect{lost, cutRedirect}},
		{"429", []effect{turnedAway}},
		{"429 with too long a Retry-After", []effect{heldOff}},
		{"502, 503, 504", []effect{gatewayDown}},
		{"any other 5xx; 503 with too long a Retry-After", []effect{failed}},
		{"403 without a code that refuses", []effect{blocked}},
		{"any other 4xx; 200 with another code", []effect{refused, rejected}},
		{"200 empty, cut off, malformed or without a code", []effect{malformed}},
		{"endless body, compressed bomb, redirect", []effect{tooLarge, redirected}},
	} {
		table.WriteString("| " + row.title)
		for _, repeats := range []bool{true, false} {
			words := map[string]bool{}
			for _, e := range row.effects {
				words[e.word(repeats)], told[e] = true, true
			}
			table.WriteString(" | " + strings.Join(slices.Sorted(maps.Keys(words)), " or "))
		}
		table.WriteString(" |\n")
	}
	for _, f := range faults() {
		struck[f.is] = true
	}
	assert.Equal(t, struck, told)
	service.CompareDoc(t, "docs/failures.md", "matrix", table.String(), *update)
}

// word returns the reaction of the client to an effect, as the table in docs/failures.md writes it: "retried", or
// "error: " and the Delivery. repeats is true if the client may repeat the call.
func (e effect) word(repeats bool) string {
	if rule := ruleFor(e); e != healed && !rule.repeats.holds(repeats) {
		return "error: " + rule.delivery.String()
	}
	return "retried"
}
