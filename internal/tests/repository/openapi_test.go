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

// TestOpenAPI checks that api/openapi.json says the same as api/openapi.yaml, but without the status 2XX, which some
// tools refuse. The fields must have the same order too, because generators give the parameters this order.
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
	assert.Equal(t, is, want.String(), "go test ./internal/tests/repository -update writes %s anew", golden)
	assert.NotContains(t, is, `"2XX"`)
}

// writeJSON writes a YAML node as JSON. An anchor fails the test, because the OpenAPI Generator 5 refuses aliases.
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
