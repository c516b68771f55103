package payvaulttest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// TestExamplesOfTheDocument checks that a server with the emulator's seed.json performs at least one example of each
// operation in api/openapi.yaml.
func TestExamplesOfTheDocument(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../cmd/payvault-emulator/seed.json")
	require.NoError(t, err)
	seed, err := payvaulttest.LoadSeed(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	text, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	document := openapi.MustLoad(text)
	for _, o := range document.Operations {
		place := []string{"paths", o.Path, strings.ToLower(o.Method)}
		path := o.Path
		parameters, _ := document.At(place...)["parameters"].([]any)
		for _, one := range parameters {
			parameter, _ := one.(map[string]any)
			if ref, ok := parameter["$ref"].(string); ok {
				parameter = document.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			path = strings.ReplaceAll(path, fmt.Sprintf("{%v}", parameter["name"]), fmt.Sprint(parameter["example"]))
		}
		examples := document.At(append(place, "requestBody", "content", o.Media, "examples")...)
		if examples == nil {
			examples = map[string]any{"no body": nil}
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, payvaulttest.WithSeed(seed))
			var answers []string
			for _, example := range examples {
				value, _ := example.(map[string]any)
				answers = append(answers, a.sendExample(t, o, path, value["value"]).body,
					a.partner().sendExample(t, o, path, value["value"]).body)
			}
			assert.NotZero(t, a.srv.Commits(payvault.Operation(o.ID)), "no example works. Does cmd/payvault-emulator/seed.json "+
				"have the records that the examples in api/openapi.yaml name? The answers: %q", answers)
		})
	}
}

// sendExample sends a request whose body is the example, as JSON or as a form. If the operation takes no body, the
// request has none.
func (a api) sendExample(t *testing.T, o *openapi.Operation, path string, example any) reply {
	t.Helper()
	switch o.Media {
	case openapi.JSON:
		body, err := json.Marshal(example)
		require.NoError(t, err)
		return a.do(t, o.Method, path, string(body))
	case openapi.Form:
		f := form("")
		parts, _ := example.(map[string]any)
		for name, content := range parts {
			f = f.part(name, map[string]string{"file": "a.pdf"}[name], fmt.Sprint(content))
		}
		return a.postForm(t, path, f)
	default:
		return a.do(t, o.Method, path, "")
	}
}
