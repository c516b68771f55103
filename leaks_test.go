package payvault_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryTestBinaryLooksForLeaks asks of each directory with tests, in all modules, a TestMain that looks for goroutines left behind.
func TestEveryTestBinaryLooksForLeaks(t *testing.T) {
	t.Parallel()
	looks := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.ContainsAny(d.Name()[:1], "._") || d.Name() == "testdata"):
			return filepath.SkipDir // as the go command does
		case strings.HasSuffix(path, "_test.go"):
			dir := filepath.Dir(path)
			looks[dir] = looksForLeaks(t, path) || looks[dir]
		}
		return nil
	}))
	require.Greater(t, len(looks), 15)
	for dir, ok := range looks {
		assert.True(t, ok, "%s: no test file has: func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }", dir)
	}
}

// looksForLeaks tells whether a file has a TestMain that calls goleak.VerifyTestMain.
func looksForLeaks(t *testing.T, path string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	found := false
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "TestMain" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			found = found || ok && source(t, call.Fun) == "goleak.VerifyTestMain"
			return true
		})
	}
	return found
}
