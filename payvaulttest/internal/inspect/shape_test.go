package inspect

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestShape checks that a shape has the known names and the types of the values, but no value, and that Fill returns
// values of these types. A shape has no parts that are nil or an empty map.
func TestShape(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"a": true, "b": true, "list": true}
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	for text, want := range map[string]struct{ shape, filled string }{
		`{"a":"canary","b":1.5}`:                      {`{"a":"•••","b":"number"}`, `{"a":"fillIn","b":0}`},
		`{"a":true,"b":null}`:                         {`{"a":"flag","b":"null"}`, `{"a":true,"b":null}`},
		`{"canary":1,"4111111111111111":"x","a":"b"}`: {`{"a":"•••","?":"2 unknown"}`, `{"a":"fillIn"}`},
		`{"list":["canary",{"a":"canary"},[1],2,3]}`: {
			`{"list":["•••",{"a":"•••"},["number"],"… 5 in all"]}`, `{"list":["fillIn",{"a":"fillIn"},[0]]}`,
		},
		`[]`: {`[]`, `[]`},
		deep: {
			`{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":"…"}}}}}}}}`, `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":"fillIn"}}}}}}}}`,
		},
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(text), &value))
		shape := Shape(map[string]any{"body": value, "query": map[string]any{}, "form": nil}, known)
		assertBody(t, want.shape, shape)
		assertBody(t, want.filled, Fill(shape))
	}
}

// assertBody checks that body is the only part of a request, and that its JSON is want.
func assertBody(t *testing.T, want string, parts any) {
	t.Helper()
	encoded, err := json.Marshal(parts)
	require.NoError(t, err)
	assert.JSONEq(t, `{"body":`+want+`}`, string(encoded))
}

// TestNames checks that Names finds the names of the fields and parameters in a document.
func TestNames(t *testing.T) {
	t.Parallel()
	var document any
	require.NoError(t, json.Unmarshal([]byte(`{"info":{"name":"none"},
		"parameters":[{"name":"page","in":"query"}],
		"schemas":{"Thing":{"properties":{"list":{"items":{"properties":{"day":{}}}}}}}}`), &document))
	assert.Equal(t, map[string]bool{"page": true, "list": true, "day": true}, Names(document))
}

// TestShapeIsBounded checks that the shape of a large request has a limited size.
func TestShapeIsBounded(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	wide := map[string]any{}
	for i := range 20 {
		name := strings.Repeat("n", i+1)
		known[name], wide[name] = true, map[string]any{}
	}
	for _, value := range wide {
		object, _ := value.(map[string]any)
		for name := range wide {
			object[name] = []any{map[string]any{"n": "x"}, map[string]any{"n": "x"}, map[string]any{"n": "x"}}
		}
	}
	text, err := json.Marshal(Shape(map[string]any{"body": wide}, known))
	require.NoError(t, err)
	assert.Less(t, len(text), 20*shapeNodes)
}

// TestGoLine checks that the Go code of a fault has the names of the constants for operations and kinds, and fillIn in
// place of a long text.
func TestGoLine(t *testing.T) {
	t.Parallel()
	type Fault struct {
		Operation, Kind string
		Delay           time.Duration
		AfterCommit     bool
		Rate            float64
		Header          http.Header
		Body            string
	}
	for want, fault := range map[string]Fault{
		"Operation: payvault.OpApplicationsSaveData, Kind: payvaulttest.MalformedJSON": {
			Operation: "applications.save_data", Kind: "malformed JSON",
		},
		`Operation: "GET /\"x", Kind: payvaulttest.Hang`:           {Operation: `GET /"x`, Kind: "hang"},
		"Kind: payvaulttest.Delay, Delay: 1500 * time.Millisecond": {Kind: "delay", Delay: 1500 * time.Millisecond},
		"Kind: payvaulttest.Delay, Delay: 1500 * time.Nanosecond":  {Kind: "delay", Delay: 1500},
		"Kind: payvaulttest.PermitRate, AfterCommit: true, Rate: 0.5": {
			Kind: "permit rate", Rate: 0.5, AfterCommit: true,
		},
		`Kind: payvaulttest.Respond, Header: http.Header{"X":[]string{"y"}}, Body: fillIn`: {
			Kind: "respond", Body: strings.Repeat("x", 200), Header: http.Header{"X": {"y"}},
		},
	} {
		lines := "\t" + strings.ReplaceAll(want, ", ", ",\n\t") + ",\n"
		assert.Equal(t, "if _, err := srv.Inject(payvaulttest.Fault{\n"+lines+"}); err != nil {\n\tt.Fatal(err)\n}",
			GoLine(fault))
	}
}
