package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"example.com/payvault/internal/tests/calls"
)

// TestOpenAPI checks that api/openapi.json is the JSON form of api/openapi.yaml, without the responses for status 2XX,
// which some tools refuse. The order of names must be the same too, because code generators write parameters in this
// order.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	const golden = "api/openapi.json"
	wide := regexp.MustCompile(`\n +'2XX':\n.*|\n    Other\w+:(?:\n {6}.*)+`)
	text := wide.ReplaceAllString(read(t, "api/openapi.yaml"), "")
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &document))
	var want strings.Builder
	writeJSON(t, jsontext.NewEncoder(&want, jsontext.WithIndent("  ")), document.Content[0])
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(calls.Root(), golden), []byte(want.String()), 0o600))
	}
	is := read(t, golden)
	if is != want.String() {
		assert.Fail(t, golden+" is out of date: go test ./internal/tests/repository -update writes it anew; see git diff")
	}
	assert.NotContains(t, is, `"2XX"`)
}

// writeJSON writes a YAML node as JSON. A YAML anchor fails the test, because anchors are for aliases, and version 5 of
// OpenAPI Generator refuses aliases.
func writeJSON(t *testing.T, enc *jsontext.Encoder, node *yaml.Node) {
	t.Helper()
	require.Empty(t, node.Anchor, "api/openapi.yaml has an anchor")
	begin, end := jsontext.BeginArray, jsontext.EndArray
	switch node.Kind {
	case yaml.MappingNode:
		begin, end = jsontext.BeginObject, jsontext.EndObject
	case yaml.ScalarNode:
		var value any
		require.NoError(t, node.Decode(&value))
		require.NoError(t, json.MarshalEncode(enc, value))
		return
	}
	require.NoError(t, enc.WriteToken(begin))
	for _, content := range node.Content {
		writeJSON(t, enc, content)
	}
	require.NoError(t, enc.WriteToken(end))
}
