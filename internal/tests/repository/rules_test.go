package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/canary"
)

// rootSources parses the package without its tests, by file name.
func rootSources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
	}
	require.Greater(t, len(files), 15)
	return files
}

func isIdent(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

// selector gives "http.NewRequest" for the expression of that text, "" for others.
func selector(e ast.Node) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

// TestOnePlaceForPaths: paths stand in the table of operations only, and internal/urlpath, which escapes, fills them.
func TestOnePlaceForPaths(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{ // what would build a path, and the only function that may use it
		"url.Parse": "checkBaseURL", "urlpath.Fill": "newRequest", "url.URL{}": "", "url.ParseRequestURI": "",
		"url.JoinPath":   "",
		"url.PathEscape": "", "http.NewRequest": "", "http.NewRequestWithContext": "", "path.Join": "", "path.Clean": "",
		"http.Get": "", "http.Post": "", "http.PostForm": "", "http.Head": "", "http.DefaultClient": "",
		"http.DefaultTransport": "",
	}
	for name, file := range rootSources(t) {
		for _, decl := range file.Decls {
			function := ""
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				function = decl.Name.Name
			case *ast.GenDecl:
				if decl.Tok == token.IMPORT {
					continue
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				text := selector(n)
				if literal, ok := n.(*ast.CompositeLit); ok {
					text = selector(literal.Type) + "{}"
				}
				if only, guarded := allowed[text]; guarded {
					assert.Equal(t, only, function, "%s uses %s", name, text)
				}
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && function != "userAgent" &&
					name != "operations.go" {
					for _, part := range []string{"/pg", "/platform", "/%", "vault/", "%s/"} {
						assert.NotContains(t, literal.Value, part, "%s: %s", name, function)
					}
				}
				return true
			})
		}
	}
}

// TestOnePlaceForErrors keeps the fields of an Error consistent: errors.go builds them all.
func TestOnePlaceForErrors(t *testing.T) {
	t.Parallel()
	for name, file := range rootSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				assert.False(t, isIdent(n.Type, "Error") && name != "errors.go", "%s builds an Error", name)
			case *ast.CallExpr:
				made := isIdent(n.Fun, "new") && len(n.Args) == 1 && isIdent(n.Args[0], "Error")
				assert.False(t, made && name != "errors.go", "%s builds an Error", name)
			}
			return true
		})
	}
}

// TestAllTypes keeps the list of types complete: a new one is covered, or this test fails.
func TestAllTypes(t *testing.T) {
	t.Parallel()
	var want []string
	for _, file := range rootSources(t) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					if _, isStruct := spec.Type.(*ast.StructType); isStruct {
						want = append(want, spec.Name.Name)
					}
				}
			}
		}
	}
	assert.ElementsMatch(t, want, slices.Collect(maps.Keys(canary.Types())))
}

// TestOperationNames: every constant of type Operation names one of the table, but for those of calls without one.
func TestOperationNames(t *testing.T) {
	t.Parallel()
	want := []payvault.Operation{payvault.OpCall, payvault.OpNewClient}
	for _, info := range payvault.Operations() {
		want = append(want, info.Op)
	}
	var got []payvault.Operation
	for _, file := range rootSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && isIdent(spec.Type, "Operation") {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				got = append(got, payvault.Operation(value))
			}
			return true
		})
	}
	assert.ElementsMatch(t, want, got)
}
