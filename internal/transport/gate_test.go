package transport

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/overload"
)

// gated returns a request of a walk, and a list that records the calls of Begin and Unbegin. In the list, "send" stands
// for an attempt.
func gated() (request *Request, told *[]string) {
	request, told = post(true), new([]string)
	tell := func(text string) { *told = append(*told, text) }
	request.Pace = overload.NewPace()
	request.Gate = &Gate{
		Patience: time.Minute,
		Begin: func() bool {
			tell("begin")
			return true
		},
		Unbegin: func(status int) { tell(fmt.Sprint("unbegin ", status)) },
	}
	request.Observe = func(Attempt) { tell("send") }
	return request, told
}

// TestGate checks when a call of a walk calls Begin and Unbegin: Begin before each attempt, and Unbegin after each
// attempt except the last. Once an attempt may have performed the operation, neither is called again. Attempts with a
// 429 do not count toward MaxAttempts. A 429 whose Retry-After is longer than Patience ends the call.
func TestGate(t *testing.T) {
	t.Parallel()
	succeeds, refuses := answer(200, ""), answer(429, "")
	for name, test := range map[string]struct {
		steps []step
		max   int
		told  []string
	}{
		"impatient": {[]step{answer(429, "", "Retry-After", "61")}, 3, []string{"begin", "send"}},
		"lost, then refused": {
			[]step{lost(errLost), refuses, refuses, refused(errRefused), succeeds},
			3,
			[]string{"begin", "send", "send", "send", "send", "send"},
		},
		"refused, then lost": {
			[]step{answer(429, "", "Retry-After", "60"), lost(errLost), succeeds},
			2,
			[]string{"begin", "send", "unbegin 429", "begin", "send", "send"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			request, told := gated()
			request.MaxAttempts = test.max
			result, err := New(testConfig(&script{steps: test.steps})).Do(t.Context(), request)
			require.NoError(t, err, name)
			assert.Equal(t, test.told, *told, name)
			assert.Equal(t, len(test.steps), result.Attempts, name)
		})
	}
}

// TestGateWaitsOutRefusals checks that a call of a walk goes on after many 429s, and that these 429s do not lengthen
// the backoff of a later retry.
func TestGateWaitsOutRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const refusals = 40
		s := &script{steps: append(times(refusals, answer(429, "")), answer(503, ""), answer(200, ""))}
		config := testConfig(s)
		config.Policy.MinBackoff, config.Policy.MaxBackoff = time.Second, time.Hour
		request, _ := gated()
		request.MaxAttempts = 2
		result, err := New(config).Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, []int{200, refusals + 2}, []int{result.Status, result.Attempts})
		lastWait := s.sent[refusals+1].at.Sub(s.sent[refusals].at)
		perRequest := 10 * time.Second // at the lowest rate
		assert.LessOrEqual(t, lastWait, config.Policy.MinBackoff+perRequest)
	})
}
