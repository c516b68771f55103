package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errNoKey = errors.New("the vault is sealed")

// TestDeliveryOfAllAttempts checks Delivery, which describes the last attempt, and Unsure, for many sequences of
// attempts.
func TestDeliveryOfAllAttempts(t *testing.T) {
	t.Parallel()
	const noKey = -1
	for name, test := range map[string]struct {
		steps  []step
		keys   int // number of attempts that get a key; 0 means all, noKey means none
		want   Delivery
		status int
		unsure bool // an earlier attempt may have performed the operation
	}{
		// an earlier attempt may have performed the operation
		"lost, refused":          {[]step{lost(errLost), refused(errRefused)}, 0, NotSent, 0, true},
		"timeout, refused":       {[]step{hang, refused(errRefused)}, 0, NotSent, 0, true},
		"cut off, refused":       {[]step{cut(200), refused(errRefused)}, 0, NotSent, 0, true},
		"no hooks, refused":      {[]step{silent(errLost), refused(errRefused)}, 0, NotSent, 0, true},
		"503, 429, refused":      {[]step{answer(503, ""), answer(429, ""), refused(errRefused)}, 0, NotSent, 0, true},
		"lost, refused, refused": {[]step{lost(errLost), refused(errRefused), refused(errRefused)}, 0, NotSent, 0, true},
		"lost, no key":           {[]step{lost(errLost)}, 1, NotSent, 0, true},
		"lost, 429":              {[]step{lost(errLost), answer(429, "")}, 0, Answered, 429, true},
		"503, 429":               {[]step{answer(503, ""), answer(429, "")}, 0, Answered, 429, true},
		"lost, 200":              {[]step{lost(errLost), answer(200, "")}, 0, Answered, 200, true},

		// no earlier attempt can have performed the operation
		"429, refused":          {[]step{answer(429, ""), refused(errRefused)}, 0, NotSent, 0, false},
		"429 cut off, refused":  {[]step{cut(429), refused(errRefused)}, 0, NotSent, 0, false},
		"refused, 429, refused": {[]step{refused(errRefused), answer(429, ""), refused(errRefused)}, 0, NotSent, 0, false},
		"429, no key":           {[]step{answer(429, "")}, 1, NotSent, 0, false},
		"no key":                {nil, noKey, NotSent, 0, false},
		"refused, lost":         {[]step{refused(errRefused), lost(errLost)}, 0, Unknown, 0, false},
		"429, lost":             {[]step{answer(429, ""), lost(errLost)}, 0, Unknown, 0, false},
		"429, 429":              {[]step{answer(429, ""), answer(429, "")}, 0, Answered, 429, false},
		"refused, cut off":      {[]step{refused(errRefused), cut(200)}, 0, Unknown, 200, false},
		"refused, too large":    {[]step{refused(errRefused), answer(200, repeated(101))}, 0, Unknown, 200, false},
		"429, then 500":         {[]step{answer(429, ""), answer(500, "")}, 0, Answered, 500, false},
		"refused, certificate":  {[]step{refused(errRefused), refused(x509.UnknownAuthorityError{})}, 0, NotSent, 0, false},
	} {
		for _, replay := range []bool{false, true} {
			if test.unsure && !replay {
				continue
			}
			t.Run(fmt.Sprintf("%s, replay %t", name, replay), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &script{steps: test.steps}
					config := testConfig(s)
					config.MaxResponseBytes = 100
					keys := 0
					config.Authorization = func(context.Context) (string, error) {
						if keys++; test.keys != 0 && keys > test.keys {
							return "", errNoKey
						}
						return "Basic key", nil
					}
					request := post(replay)
					request.MaxAttempts = len(test.steps)
					if test.keys != 0 {
						request.MaxAttempts++
					}
					result, err := New(config).Do(t.Context(), request)
					require.NotErrorIs(t, err, errUnscripted)
					assert.Len(t, s.sent, len(test.steps))
					assert.Equal(t, request.MaxAttempts, result.Attempts)
					assert.Equal(t, test.want, result.Delivery, "of the last attempt")
					assert.Equal(t, test.unsure, result.Unsure)
					assert.Equal(t, test.status, result.Status)
				})
			})
		}
	}
}

// TestAuthorizationPerAttempt checks that each attempt gets a new key, and a header map of its own.
func TestAuthorizationPerAttempt(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(429, ""), refused(errRefused), answer(200, "")}}
	config := testConfig(s)
	keys := 0
	config.Authorization = func(context.Context) (string, error) {
		keys++
		return fmt.Sprintf("Basic key%d", keys), nil
	}
	request := post(false)
	request.Header.Set("X-Request", "kept")
	result, err := New(config).Do(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, s.sent, 3)
	for i, sent := range s.sent { // in a shared map, a later key would have replaced this one
		assert.Equal(t, []string{fmt.Sprintf("Basic key%d", i+1)}, sent.header["Authorization"])
		assert.Equal(t, []string{"kept"}, sent.header["X-Request"])
	}
	assert.Equal(t, []string{"Basic key1", "Basic key2", "Basic key3"}, result.Keys)
}

// TestRedirectsAreNotFollowed checks that Do returns a response with a status 3xx unchanged and sends no second
// request.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for _, location := range []string{"https://other.test/x", "/relative", "", "://%zz", "mailto:x@y"} {
			s := &script{steps: []step{answer(status, "moved", "Location", location, "X-Other", "1")}}
			result, err := New(testConfig(s)).Do(t.Context(), post(true))
			require.NoError(t, err, "%d to %q", status, location)
			assert.Equal(t, status, result.Status)
			assert.Equal(t, "moved", string(result.Body))
			assert.Equal(t, location, result.Header.Get("Location"), "the caller sees it")
			assert.Equal(t, "1", result.Header.Get("X-Other"))
			assert.Len(t, s.sent, 1)
			s.assertClosed(t)
		}
	}
}

// TestResponsesThatHandMadeRoundTrippersGive checks that a nil Body or Header in a response of the caller's
// RoundTripper counts as an empty one.
func TestResponsesThatHandMadeRoundTrippersGive(t *testing.T) {
	t.Parallel()
	for _, resp := range []http.Response{
		{StatusCode: 200, Header: http.Header{}},
		{StatusCode: 200},
		{StatusCode: 101},
		{StatusCode: 429},
		{StatusCode: 200, ContentLength: -7},
	} {
		c := New(testConfig(forgetful(func(*http.Request) (*http.Response, error) { return &resp, nil })))
		result, err := c.Do(t.Context(), post(false))
		require.NoError(t, err)
		assert.Equal(t, resp.StatusCode, result.Status)
		assert.Empty(t, result.Body)
		assert.Equal(t, Answered, result.Delivery)
	}
}
