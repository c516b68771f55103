package payvault_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestCall_codes checks which codes of an answer to Client.Call mean success, and that any other answer does not change
// out. A 2xx answer with a code and an rcode is malformed if only one of them means success.
func TestCall_codes(t *testing.T) {
	t.Parallel()
	malformed := []error{payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown}
	for _, test := range []struct {
		status     int
		body, code string
		kinds      []error // nil for a success
	}{
		{200, `{"code":"0","data":[]}`, "", nil},
		{201, `{"rcode":"000"}`, "", nil},
		{200, `{"code":7,"rcode":"000"}`, "000", malformed},
		{200, `{"code":0,"rcode":"905"}`, "0", malformed},
		{400, `{"code":7,"rcode":"000"}`, "7", []error{payvault.ErrRejected}},
		{200, `{"rcode":"905"}`, "905", []error{payvault.ErrRejected}},
		{200, `{"code":2,"data":{"a":["b"]}}`, "2", []error{payvault.ErrRejected, payvault.ErrValidation}},
		{200, `{"message":"hello"}`, "", malformed},
		{404, `{"code":0}`, "0", []error{payvault.ErrNotFound}},
	} {
		var out map[string]any
		err := answering(t, test.status, test.body).Call(t.Context(), request("GET"), &out)
		if test.kinds == nil {
			require.NoError(t, err, test.body)
			assert.NotEmpty(t, out, test.body)
			continue
		}
		service.AssertMatches(t, err, test.kinds...)
		assert.Equal(t, test.code, service.AsError(t, err).Code, test.body)
		assert.Nil(t, out, test.body)
	}
}

// TestCall_refused checks that Client.Call does not send an invalid request, and that the error names all of its
// problems.
func TestCall_refused(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere)
	noMethod, noPointer := []string{"is not an HTTP method"}, []string{"is not a pointer"}
	badName := []string{"is not of at most 64 letters, digits, dots, hyphens and underscores"}
	takenName := []string{"is the name of an operation of this package"}
	withName := func(name string) payvault.Request {
		return payvault.Request{Name: name, Method: "GET", Path: []string{"x"}}
	}
	unwritable := request("POST")
	unwritable.Body = math.NaN()
	for _, test := range []struct {
		request payvault.Request
		out     any
		want    service.Fields
	}{
		{request("GET /x HTTP/1.1\r\nA:"), nil, service.Fields{"method": noMethod}},
		{request("CONNECT"), nil, service.Fields{"method": noMethod}},
		{payvault.Request{Method: "GET"}, nil, service.Fields{"path": {"is required"}}},
		{unwritable, nil, service.Fields{"body": {"cannot be written as JSON: unsupported value: NaN"}}},
		{request("GET"), map[string]any{}, service.Fields{"out": noPointer}},
		{request("GET"), (*int)(nil), service.Fields{"out": noPointer}},
		{payvault.Request{Path: []string{"", "x", ".."}}, 1, service.Fields{
			"method": noMethod, "out": noPointer, "path[0]": {calls.BadSegment}, "path[2]": {calls.BadSegment},
		}},
		{payvault.Request{Method: "GET", Path: []string{"platform/dispute", "7"}}, nil, service.Fields{
			"path[0]": {`has a "/": give each segment as an element of its own`},
		}},
		{withName("with blanks"), nil, service.Fields{"name": badName}},
		{withName(strings.Repeat("x", 65)), nil, service.Fields{"name": badName}},
		{withName("tokens.tokenize"), nil, service.Fields{"name": takenName}},
	} {
		service.AssertInvalid(t, client.Call(t.Context(), test.request, test.out), payvault.OpCall, test.want)
	}
	var none context.Context
	err := client.Call(none, request("GET"), nil)
	service.AssertInvalid(t, err, payvault.OpCall, service.Fields{"context": {"is nil"}})
	err = client.ForMerchant(7).Call(t.Context(), request("GET"), nil)
	service.AssertError(t, err, payvault.Error{Op: payvault.OpCall, Delivery: payvault.DeliveryNotSent},
		payvault.ErrMerchantNotSupported)
}

// TestCall_path checks that a segment of the path is redacted in the texts of the service, unless it occurs in a
// documented path or in Request.Name.
func TestCall_path(t *testing.T) {
	t.Parallel()
	client := answering(t, 400, `{"code":2,"message":"customer JANE1","data":{"customer_email":["of JANE1"]}}`)
	request := payvault.Request{Method: "POST", Path: []string{"platform", "vault", "customer", "JANE1"}}
	err := service.AsError(t, client.Call(t.Context(), request, nil))
	assert.Equal(t, "customer [REDACTED]", err.Message)
	assert.Equal(t, service.Fields{"customer_email": {"of [REDACTED]"}}, err.Fields)

	client = answering(t, 400, `{"code":2,"data":{"accept_reason":["of the refund 4711 is required by tomorrow"]}}`)
	request = payvault.Request{
		Name:   "refund.accept_by-tomorrow" + strings.Repeat("_", 39), // a longer name is refused
		Method: "POST", Path: []string{"refund", "4711", "accept", "tomorrow"},
	}
	err = service.AsError(t, client.Call(t.Context(), request, nil))
	assert.Equal(t, service.Fields{"accept_reason": {"of the refund [REDACTED] is required by tomorrow"}}, err.Fields)
}

// TestCall_replay checks that a request is repeated after status 503 only if Replay is set, whatever its method is.
func TestCall_replay(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "PUT", "DELETE", "POST"} {
		for replay, want := range map[bool]int{true: 4, false: 1} {
			r := payvault.Request{Method: method, Path: []string{"x"}, Replay: replay}
			err := answering(t, 503, "").Call(t.Context(), r, nil)
			assert.Equal(t, want, service.AsError(t, err).Attempts, method)
			assert.Equal(t, replay, payvault.SafeToRetry(err))
			assert.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
		}
	}
}

// TestCall_answers checks that Client.Call reads types of the caller as encoding/json does, and that numbers in a map
// keep their digits. If reading fails, the error has the path of the value, but not the value.
func TestCall_answers(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"Any":[12345678901234567890,null,{"a":{"b":[]}}]`, `"bytes":"YWI="`, `"array":[1,2,3]`, `"quoted":"7"`,
		`"record":{"inner":"a"},"RECORD":{"other":"b"}`, `"map":{"2":"b","1":"a"}`, `"list":[{"inner":"a"},null]`,
		`"snakecase":5`, `"time":"2026-01-15T10:20:30Z"`, `"inner":"` + "\xff" + `"`, `"number":1.50`, `"raw":{"a": 1}`,
	} {
		body := `{"code":0,` + member + `}`
		var want, got callerForm
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&want), member)
		require.NoError(t, answering(t, 200, body).Call(t.Context(), request("GET"), &got), member)
		assert.Equal(t, want, got, member)
	}
	var numbers map[string]any
	client := answering(t, 200, `{"code":0,"id":12345678901234567890}`)
	require.NoError(t, client.Call(t.Context(), request("GET"), &numbers))
	assert.Equal(t, json.Number("12345678901234567890"), numbers["id"], "no digit is lost")
	for member, place := range map[string]string{
		`"list":[{},{"inner":1}]`: "/list/1/inner", `"map":{"` + garbageCanary + `":5}`: "/map",
		`"time":"` + garbageCanary + `"`: "/time", `"quoted":7`: "/quoted", `"bytes":"*"`: "/bytes",
	} {
		err := answering(t, 200, `{"code":0,`+member+`}`).Call(t.Context(), request("POST"), new(callerForm))
		service.AssertMatches(t, err, payvault.ErrMalformedResponse, payvault.ErrOutcomeUnknown) // status 200
		assert.Regexp(t, ": "+place+` cannot be read \(`, err.Error(), member)
		service.AssertHidden(t, err, garbageCanary)
	}
}
