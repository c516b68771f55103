package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestMutants changes one thing at a time in the fullest request of every operation. What the document refuses the
// emulator has to refuse, and what the document does not require, or just permits, the emulator has to take.
func TestMutants(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for _, o := range allCalls(t) {
		t.Run(string(o.op), func(t *testing.T) {
			t.Parallel()
			hold := func() heldRequest { return holdRequest(t, c, string(o.op), o.full) }
			whole := hold()
			assert.Empty(t, c.checkRequest(whole.message(t, c)))
			for _, m := range mutantsOf(t, c, whole) {
				changed := whole.with(m)
				problems := c.checkRequest(changed.message(t, c))
				switch {
				case len(problems) > 0 && changed.accepted(t, c):
					t.Errorf("the emulator takes what the document refuses: %s (%s)", m.name, problems[0])
					whole = hold() // it is performed by now
				case len(problems) == 0 && m.permitted:
					took, own := hold().with(m).accepted(t, c), slices.Contains(ownChoices()[o.op], m.name)
					assert.True(t, took || own, "the emulator refuses what the document permits: %s", m.name)
					assert.False(t, took && own, "the emulator takes it, so it is no longer to be listed in ownChoices: %s", m.name)
				}
			}
			assert.True(t, whole.accepted(t, c), "the request itself is refused after its mutants")
		})
	}
}

// OwnChoices are mutants that the emulator refuses though the interface does not say that the field is required.
func ownChoices() map[payvault.Operation][]string {
	return map[payvault.Operation][]string{
		payvault.OpTokensTokenize: {"no .type_id", "no .tr_number", "no .dda_number"},
		payvault.OpCustomersCreate: {
			"no .billing_cards[0].type_id", "no .billing_cards[0].tr_number", "no .billing_cards[0].dda_number",
		},
		payvault.OpPayeesCreate:    {"no .payee_account.tr_number", "no .payee_account.dda_number"},
		payvault.OpDisputesRespond: {"no .cbr_response_type"},
	}
}

// A mutant replaces one part of a request by another.
type mutant struct {
	name      string
	permitted bool // the emulator has to take it if the document does
	change    func(r *http.Request, body []byte) []byte
}

// A heldRequest is a request that the SDK made in a run of an operation, and that has not reached the emulator.
type heldRequest struct {
	env     *env
	request *http.Request
	body    []byte
}

var errHeld = errors.New("the request is held")

// A holder keeps the request of one operation back and lets the others pass.
type holder struct {
	contract  *contract
	operation string
	base      http.RoundTripper
	held      *heldRequest
}

// RoundTrip implements [http.RoundTripper].
func (h *holder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = readAll(req.Body); err != nil {
			return nil, err
		}
	}
	if m, err := h.contract.find(req, body); err == nil && m.Route.Operation.OperationID == h.operation {
		h.held = &heldRequest{request: req.Clone(req.Context()), body: body}
		return nil, errHeld
	}
	clone := req.Clone(req.Context())
	clone.Body = io.NopCloser(bytes.NewReader(body))
	return h.base.RoundTrip(clone)
}

// holdRequest prepares an emulator as a call does, and holds the request of the operation.
func holdRequest(t *testing.T, c *contract, operation string, call call) heldRequest {
	t.Helper()
	e := newEnv(t)
	account := e.srv.Merchant()
	if forPartners(operation) {
		account = e.srv.Partner()
	}
	h := &holder{contract: c, operation: operation, base: e.wire.base}
	e.client = e.clientThrough(account, h)
	_, err := call(t.Context(), e)
	require.ErrorIs(t, err, errHeld)
	h.held.env = e
	return *h.held
}

func (r heldRequest) with(m mutant) heldRequest {
	r.request = r.request.Clone(r.request.Context())
	r.body = m.change(r.request, r.body)
	return r
}

func (r heldRequest) message(t *testing.T, c *contract) message {
	t.Helper()
	m, err := c.find(r.request, r.body)
	require.NoError(t, err)
	return m
}

// accepted sends the request and tells whether it was performed. The answer has to follow the document in any case.
func (r heldRequest) accepted(t *testing.T, c *contract) bool {
	t.Helper()
	request := r.request.Clone(t.Context())
	request.Body, request.ContentLength, request.GetBody = io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body)), nil
	resp, err := r.env.wire.base.RoundTrip(request)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	report(t, "the answer", c.checkResponse(r.message(t, c), resp.StatusCode, resp.Header, text))
	code := codeOf(text)
	return resp.StatusCode == http.StatusOK && (code == "0" || code == "000")
}

func mutantsOf(t *testing.T, c *contract, whole heldRequest) []mutant {
	t.Helper()
	m := whole.message(t, c)
	all := slices.Concat(headerMutants(), pathMutants(m), queryMutants(m))
	payload, schema := whole.body, (*openapi3.Schema)(nil)
	for _, ref := range requestSchemas(m.Route.Operation) {
		schema = ref.Value
	}
	if _, parts, _ := formParts(m); parts != nil {
		payload, schema = []byte(parts["disputeResponse"]), c.schema(t, "DisputeResponse").Value
		all = append(all, replaced("another name of the part disputeResponse", `name="disputeResponse"`, `name="other"`),
			replaced("another name of the part file", `name="file"`, `name="other"`))
	}
	if len(payload) == 0 {
		return append(all, mutant{"a body", false, func(*http.Request, []byte) []byte { return []byte("{}") }})
	}
	all = append(all, replaced("no JSON", string(payload), `{"a":`), mutant{"no body", false, func(r *http.Request, _ []byte) []byte {
		r.Header.Del("Content-Type")
		return nil
	}})
	value, err := decodeJSON(payload)
	require.NoError(t, err)
	for name, changed := range valueMutants("", value, schema) {
		text, err := json.Marshal(changed)
		require.NoError(t, err)
		one := replaced(name, string(payload), string(text))
		one.permitted = strings.HasPrefix(name, "no ") || strings.HasPrefix(name, "longest ")
		all = append(all, one)
	}
	return all
}

// replaced is a mutant that has another text in its body.
func replaced(name, old, text string) mutant {
	return mutant{name, false, func(_ *http.Request, body []byte) []byte {
		return bytes.Replace(body, []byte(old), []byte(text), 1)
	}}
}

func headerMutants() []mutant {
	change := func(name string, set func(http.Header)) mutant {
		return mutant{name, false, func(r *http.Request, body []byte) []byte {
			set(r.Header)
			return body
		}}
	}
	return []mutant{
		change("no Authorization", func(h http.Header) { h.Del("Authorization") }),
		change("a user part", func(h http.Header) { h.Set("Authorization", "Basic dXNlcjptZXJjaGFudC1hcGkta2V5") }),
		change("another Accept", func(h http.Header) { h.Set("Accept", "text/html") }),
		change("another key", func(h http.Header) { h.Set("Authorization", payvaulttest.BasicToken("")) }),
	}
}

func pathMutants(m message) []mutant {
	var all []mutant
	for name, value := range m.PathParams {
		for _, text := range []string{"text", "1.5"} {
			all = append(all, mutant{fmt.Sprintf("%s in the path as %s", name, text), false, func(r *http.Request, body []byte) []byte {
				r.URL.Path = strings.Replace(r.URL.Path, "/"+value, "/"+text, 1)
				r.URL.RawPath = ""
				return body
			}})
		}
	}
	return all
}

func queryMutants(m message) []mutant {
	whole := m.Request.URL.Query()
	change := func(name string, permitted bool, set func(url.Values)) mutant {
		return mutant{name, permitted, func(r *http.Request, body []byte) []byte {
			query := r.URL.Query()
			set(query)
			r.URL.RawQuery = query.Encode()
			return body
		}}
	}
	all := []mutant{change("an unknown parameter", false, func(q url.Values) { q.Set("unknown", "1") })}
	for name := range whole {
		all = append(all, change("no parameter "+name, true, func(q url.Values) { q.Del(name) }))
		for _, text := range []string{"", "text", "1.5", "-1", "a,b", "tran_date,BETWEEN_DATES,2026-01-01"} {
			all = append(all, change(fmt.Sprintf("parameter %s as %q", name, text), false, func(q url.Values) { q.Set(name, text) }))
		}
		all = append(all, change("parameter "+name+" twice", false, func(q url.Values) { q.Add(name, q.Get(name)) }))
	}
	return all
}

// valueMutants gives copies of a JSON value with one thing changed, by a name that says what.
func valueMutants(at string, value any, schema *openapi3.Schema) map[string]any {
	all := map[string]any{}
	for _, other := range []any{nil, true, 7.0, 1.5, "?", []any{}, map[string]any{}} {
		all[fmt.Sprintf("%s as %v", at, other)] = other
	}
	if schema != nil && schema.MaxLength != nil {
		longest := strings.Repeat("é", int(*schema.MaxLength)) //nolint:gosec // small
		all["longest "+at], all["too long "+at] = longest, longest+"é"
	}
	switch value := value.(type) {
	case map[string]any:
		all["unknown member in "+at] = withMember(value, "unknown", 1.0)
		for name, member := range value {
			rest := maps.Clone(value)
			delete(rest, name)
			all["no "+at+"."+name] = rest
			for what, changed := range valueMutants(at+"."+name, member, propertyOf(schema, name)) {
				all[what] = withMember(value, name, changed)
			}
		}
	case []any:
		if schema != nil && schema.MaxItems != nil {
			all["too many "+at] = slices.Repeat(value[:1], int(*schema.MaxItems)+1) //nolint:gosec // small
			all["longest "+at] = slices.Repeat(value[:1], int(*schema.MaxItems))    //nolint:gosec // small
		}
		for i, element := range value {
			if i > 0 && fmt.Sprint(element) == fmt.Sprint(value[0]) {
				continue // another of the same
			}
			for what, changed := range valueMutants(fmt.Sprintf("%s[%s]", at, keyOf(element, i)), element, itemsOf(schema)) {
				all[what] = []any{changed} // the others would only take time
			}
		}
	}
	return all
}

func withMember(record map[string]any, name string, member any) map[string]any {
	changed := maps.Clone(record)
	changed[name] = member
	return changed
}

// keyOf names an element: by its key, if it is a pair.
func keyOf(element any, i int) string {
	pair, _ := element.(map[string]any)
	if key, ok := pair["key"].(string); ok {
		return key
	}
	return strconv.Itoa(i)
}

func propertyOf(schema *openapi3.Schema, name string) *openapi3.Schema {
	if schema == nil || schema.Properties[name] == nil {
		return nil
	}
	return schema.Properties[name].Value
}

func itemsOf(schema *openapi3.Schema) *openapi3.Schema {
	if schema == nil || schema.Items == nil {
		return nil
	}
	return schema.Items.Value
}
