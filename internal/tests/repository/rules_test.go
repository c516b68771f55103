package repository

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/canary"
)

// TestOnePlace: errors.go builds errors, so that their fields fit together, the table of operations has the paths, and
// internal/urlpath, which escapes, fills them.
func TestOnePlace(t *testing.T) {
	t.Parallel()
	noCode := regexp.MustCompile(`(?ms)//[^\n]*|^import \(.*?^\)`)
	for pattern, place := range map[string]string{ // what stands in one file, or in none
		`[^.\w]Error\{|new\(Error\)`: "errors.go", `\burl\.Parse\(`: "client.go", `\burlpath\.Fill\(`: "exchange.go",
		`"(/pg|/%|%s/|[^"\n]*(/platform|vault/))`:                                          "operations.go",
		`\bhttp\.(NewRequest|Get\(|Post\(|PostForm|Head\(|DefaultClient|DefaultTransport)`: "",
		`\burl\.(URL\{|ParseRequestURI|JoinPath|PathEscape)|\bpath\.(Join|Clean)\(`:        "",
	} {
		for _, name := range list(t, repo(), "*.go") {
			if name != place && !strings.HasSuffix(name, "_test.go") {
				code := noCode.ReplaceAllString(read(t, name), "")
				assert.Empty(t, regexp.MustCompile(pattern).FindString(code), "%s: only in %q", name, place)
			}
		}
	}
}

// TestAllTypes keeps the list of types complete: a new one is covered, or this test fails.
func TestAllTypes(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, declared(t, `(?m)^type (\w+)\S*( any\])? struct`), slices.Collect(maps.Keys(canary.Types())))
}

// TestOperationNames: every constant of type Operation names one of the table, but for those of calls without one.
func TestOperationNames(t *testing.T) {
	t.Parallel()
	want := []string{string(payvault.OpCall), string(payvault.OpNewClient)}
	for _, info := range payvault.Operations() {
		want = append(want, string(info.Op))
	}
	assert.ElementsMatch(t, want, declared(t, `\w Operation = "(.*)"`))
}

// TestFewMethods: only types that show something of their own have methods for it, so that a reader of the package page
// finds the others.
func TestFewMethods(t *testing.T) {
	t.Parallel()
	methods := declared(t, `(?m)^func \(\w+ (\S+)\) (?:Format|LogValue|MarshalJSON)\(`)
	assert.NotEmpty(t, methods)
	assert.LessOrEqual(t, len(methods), 20)
}

// declared are the texts that a pattern captures in the exported API of the package.
func declared(t *testing.T, pattern string) (texts []string) {
	t.Helper()
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(exportedAPI(t, "."), -1) {
		texts = append(texts, found[1])
	}
	return texts
}
