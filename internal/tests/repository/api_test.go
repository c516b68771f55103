// Package repository compares the documents with the code, and checks rules of the code, such as the layers of files.
package repository

import (
	"cmp"
	"flag"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "write anew what a test compares with")

// repo returns the files of the repository. The go command runs a cached test again when a file that the test opens has
// changed.
func repo() fs.FS { return os.DirFS(calls.Root()) }

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := fs.ReadFile(repo(), name)
	require.NoError(t, err)
	return string(content)
}

// list returns the names of the files that match a pattern.
func list(t *testing.T, from fs.FS, pattern string) []string {
	t.Helper()
	names, err := fs.Glob(from, pattern)
	require.NoError(t, err)
	return names
}

// TestAPI checks that api/payvault.txt has the present public declarations, so that a review shows each change.
func TestAPI(t *testing.T) {
	t.Parallel()
	const golden = "api/payvault.txt"
	var is strings.Builder
	for _, dir := range publicPackages(t) {
		is.WriteString(exportedAPI(t, dir))
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(calls.Root(), golden), []byte(is.String()), 0o600))
	}
	if read(t, golden) != is.String() {
		assert.Fail(t, golden+" is out of date: go test ./internal/tests/repository -update writes it anew; see git diff")
	}
}

// TestOneName checks that fields with the same JSON or query name have the same Go name, in the client and the
// emulator.
func TestOneName(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	field := regexp.MustCompile("(?m)^\t(\\w+) \\S+ `(?:json|url):\"(\\w+)")
	for _, found := range field.FindAllStringSubmatch(exportedAPI(t, ".")+exportedAPI(t, "payvaulttest"), -1) {
		// customer_id, for example, is the field ID of a Customer and CustomerID elsewhere; data has several meanings
		if name, wire := found[1], found[2]; name != "ID" && wire != "data" {
			assert.Equal(t, cmp.Or(names[wire], name), name,
				"two Go names for %s on the wire: rename the field of the new type, here or in payvaulttest", wire)
			names[wire] = name
		}
	}
	assert.Greater(t, len(names), 100)
}

// publicPackages returns the directories of the packages that users can import, in the released modules.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	released := []string{".", "otelpayvault", "sqlpayvault", "temporalpayvault"}
	hidden := regexp.MustCompile(`^(internal|testdata|[._].+)$`)
	require.NoError(t, fs.WalkDir(repo(), ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		isModule := len(list(t, repo(), path.Join(dir, "go.mod"))) > 0
		if hidden.MatchString(d.Name()) || isModule && !slices.Contains(released, dir) {
			return fs.SkipDir
		}
		if _, files := parse(t, repo(), dir, parser.PackageClauseOnly); len(files) > 0 && files[0].Name.Name != "main" {
			dirs = append(dirs, dir)
		}
		return nil
	}))
	return dirs
}

// parse parses the files of a package, except its tests.
func parse(t *testing.T, from fs.FS, dir string, mode parser.Mode) (set *token.FileSet, files []*ast.File) {
	t.Helper()
	set = token.NewFileSet()
	for _, name := range list(t, from, path.Join(dir, "*.go")) {
		if !strings.HasSuffix(name, "_test.go") {
			content, err := fs.ReadFile(from, name)
			require.NoError(t, err)
			file, err := parser.ParseFile(set, name, content, mode|parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	return set, files
}

// godoc returns the comments of a package outside function bodies, and a parser that finds the links in comments.
func godoc(t *testing.T, from fs.FS, dir string) (groups []*ast.CommentGroup, reader *comment.Parser) {
	t.Helper()
	set, files := parse(t, from, dir, parser.ParseComments)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if group, ok := n.(*ast.CommentGroup); ok {
				groups = append(groups, group)
			}
			_, isBody := n.(*ast.BlockStmt)
			return !isBody
		})
	}
	p, err := doc.NewFromFiles(set, files, dir, doc.PreserveAST)
	require.NoError(t, err)
	return groups, p.Parser()
}

// exportedAPI returns the public declarations of a package, without comments and bodies.
func exportedAPI(t *testing.T, dir string) string {
	t.Helper()
	set, files := parse(t, repo(), dir, 0)
	var api []string
	for _, file := range files {
		ast.FilterFile(file, ast.IsExported)
		for _, decl := range file.Decls {
			if !shows(decl) {
				continue
			}
			var text strings.Builder
			require.NoError(t, (&printer.Config{Mode: printer.RawFormat}).Fprint(&text, set, decl))
			lines := regexp.MustCompile(`\n\s*\n`).ReplaceAllString(text.String(), "\n")
			api = append(api, regexp.MustCompile(`(\S)[ \t]+`).ReplaceAllString(lines, "$1 "))
		}
	}
	slices.Sort(api)
	return "package " + files[0].Name.Name + "\n\n" + strings.Join(api, "\n") + "\n\n"
}

// shows removes private types and the body of a function from a declaration. It reports whether the rest belongs to the
// public API.
func shows(decl ast.Decl) bool {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		d.Body = nil
		return d.Recv == nil || ast.IsExported(typeName(d.Recv.List[0].Type))
	case *ast.GenDecl:
		d.Specs = slices.DeleteFunc(d.Specs, func(spec ast.Spec) bool {
			s, isType := spec.(*ast.TypeSpec)
			return isType && !ast.IsExported(s.Name.Name)
		})
		return len(d.Specs) > 0
	}
	return false
}

// typeName returns the name of a type without its pointer and type parameters.
func typeName(expr ast.Expr) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(expr), "*"), "[")
	return name
}

// TestAllTypes checks that canary.Types returns every exported struct type of package payvault, for the tests of
// secrets.
func TestAllTypes(t *testing.T) {
	t.Parallel()
	var declared []string
	name := regexp.MustCompile(`(?m)^type (\w+)(?:\[.*\])? struct`)
	for _, found := range name.FindAllStringSubmatch(exportedAPI(t, "."), -1) {
		declared = append(declared, found[1])
	}
	assert.ElementsMatch(t, declared, slices.Collect(maps.Keys(canary.Types())))
}
