// Package repository holds what is written for readers against the code: links, commands, snippets, the API file, and
// rules for the code.
package repository

import (
	"cmp"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/tests/calls"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "write anew what a test compares with")

// TestMain runs the suite in the directory of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir(calls.Root()); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// publicPackages are the directories of the packages that users import: all of this module, of otelpayvault, of
// sqlpayvault and of temporalpayvault that are neither internal nor programs.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		_, notAModule := os.Stat(filepath.Join(path, "go.mod"))
		switch {
		case path == ".", path == "otelpayvault", path == "sqlpayvault", path == "temporalpayvault":
		case name == "internal", name == "testdata", strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"),
			notAModule == nil:
			return fs.SkipDir
		}
		if files := parsePackage(t, path); len(files) > 0 && files[0].Name.Name != "main" {
			dirs = append(dirs, path)
		}
		return nil
	}))
	return dirs
}

// TestAPI keeps api/payvault.txt true, so that a review sees each change of what users build on.
func TestAPI(t *testing.T) {
	t.Parallel()
	const golden = "api/payvault.txt"
	var is []string
	for _, dir := range publicPackages(t) {
		is = append(is, exportedAPI(t, parsePackage(t, dir))...)
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(is, "\n")+"\n"), 0o600))
	}
	content, err := os.ReadFile(golden)
	require.NoError(t, err)
	was := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	const hint = "the exported API has changed; write %s anew with: go test -run 'TestAPI$' " +
		"./internal/tests/repository -update"
	assert.Empty(t, without(is, was), "added: "+hint, golden)
	assert.Empty(t, without(was, is), "removed: "+hint, golden)
	assert.True(t, slices.Equal(was, is), "order or repetition: "+hint, golden)
}

// TestOneName: what has one name on the wire has one name in Go, in the client and in its emulator. A record calls its
// own ID just that.
func TestOneName(t *testing.T) {
	t.Parallel()
	field := regexp.MustCompile("struct, (\\w+) \\S+ `(?:json|url):\"(\\w+)")
	names := map[string]string{}
	for _, dir := range []string{".", "payvaulttest"} {
		for _, line := range exportedAPI(t, parsePackage(t, dir)) {
			found := field.FindStringSubmatch(line)
			if found == nil || found[1] == "ID" || found[2] == "data" { // data is all of an answer
				continue
			}
			name, wire := found[1], found[2]
			assert.Equal(t, cmp.Or(names[wire], name), name, "%s in %s", wire, line)
			names[wire] = name
		}
	}
	assert.Greater(t, len(names), 100)
}

// without returns the lines of a that b does not have.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

// exportedAPI has a line for each exported name of a package, sorted.
func exportedAPI(t *testing.T, files []*ast.File) []string {
	t.Helper()
	p := declarations(files)
	var lines []string
	for _, file := range files {
		for _, decl := range file.Decls {
			for _, line := range p.apiOf(t, decl) {
				lines = append(lines, "pkg "+file.Name.Name+", "+line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// declared are the types of a package and their methods, by the name of the type.
type declared struct {
	types   map[string]*ast.TypeSpec
	methods map[string][]*ast.FuncDecl
}

func declarations(files []*ast.File) declared {
	p := declared{map[string]*ast.TypeSpec{}, map[string][]*ast.FuncDecl{}}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					p.methods[receiver(d)] = append(p.methods[receiver(d)], d)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if spec, ok := s.(*ast.TypeSpec); ok {
						p.types[spec.Name.Name] = spec
					}
				}
			}
		}
	}
	return p
}

// parsePackage parses the files of a package, tests left out.
func parsePackage(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

// apiOf has a line for each exported name of a declaration.
func (p declared) apiOf(t *testing.T, decl ast.Decl) []string {
	t.Helper()
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return funcAPI(d)
	case *ast.GenDecl:
		if d.Tok == token.TYPE {
			var lines []string
			for _, spec := range d.Specs {
				lines = append(lines, p.typeAPI(spec.(*ast.TypeSpec))...)
			}
			return lines
		}
		return valueAPI(t, d)
	}
	return nil
}

func funcAPI(d *ast.FuncDecl) []string {
	if !isPublic(d) {
		return nil
	}
	if d.Recv == nil {
		return []string{"func " + signature(d)}
	}
	return []string{"method (" + types.ExprString(d.Recv.List[0].Type) + ") " + signature(d)}
}

func signature(d *ast.FuncDecl) string {
	return d.Name.Name + typeParams(d.Type.TypeParams) + strings.TrimPrefix(types.ExprString(d.Type), "func")
}

// isPublic reports whether a function is exported, and the type that it is a method of.
func isPublic(d *ast.FuncDecl) bool {
	return d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d)))
}

// receiver is the name of the type that a function is a method of.
func receiver(d *ast.FuncDecl) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*"), "[")
	return name
}

func typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var params []string
	for _, field := range list.List {
		for _, name := range field.Names {
			params = append(params, name.Name+" "+types.ExprString(field.Type))
		}
	}
	return "[" + strings.Join(params, ", ") + "]"
}

func (p declared) typeAPI(spec *ast.TypeSpec) []string {
	if !spec.Name.IsExported() {
		return nil
	}
	name := "type " + spec.Name.Name + typeParams(spec.TypeParams)
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		return append([]string{name + " struct"}, p.memberAPI(name+" struct, ", kind.Fields)...)
	case *ast.InterfaceType:
		return append([]string{name + " interface"}, p.memberAPI(name+" interface, ", kind.Methods)...)
	}
	if spec.Assign.IsValid() {
		name += " ="
	}
	name += " " + types.ExprString(spec.Type)
	return append([]string{name}, p.hiddenAPI(name+", ", spec.Type, spec.Assign.IsValid())...)
}

// hiddenAPI has a line for each exported field and method that comes from an unexported type.
func (p declared) hiddenAPI(prefix string, expr ast.Expr, withMethods bool) []string {
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(expr), "*"), "[")
	spec := p.types[name]
	if spec == nil || spec.Name.IsExported() {
		return nil
	}
	var lines []string
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		lines = p.memberAPI(prefix, kind.Fields)
	case *ast.InterfaceType:
		lines = p.memberAPI(prefix, kind.Methods)
	}
	for _, method := range p.methods[name] {
		if withMethods && method.Name.IsExported() {
			lines = append(lines, prefix+signature(method))
		}
	}
	return lines
}

// memberAPI has a line for each exported field, with its tag, or method, and one for what is embedded.
func (p declared) memberAPI(prefix string, members *ast.FieldList) []string {
	var lines []string
	for _, member := range members.List {
		kind := types.ExprString(member.Type)
		if len(member.Names) == 0 {
			lines = append(append(lines, prefix+"embedded "+kind), p.hiddenAPI(prefix, member.Type, true)...)
		}
		if member.Tag != nil {
			kind += " " + member.Tag.Value
		}
		for _, name := range member.Names {
			if name.IsExported() {
				lines = append(lines, prefix+name.Name+" "+kind)
			}
		}
	}
	return lines
}

// valueAPI has a line for each constant or variable, with its value; one that repeats the expression above has that.
func valueAPI(t *testing.T, d *ast.GenDecl) []string {
	t.Helper()
	var lines []string
	var kind ast.Expr
	var values []ast.Expr
	for i, s := range d.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok {
			continue // an import
		}
		if spec.Type != nil || spec.Values != nil {
			kind, values = spec.Type, spec.Values
		}
		for j, name := range spec.Names {
			if !name.IsExported() {
				continue
			}
			line := d.Tok.String() + " " + name.Name
			if kind != nil {
				line += " " + types.ExprString(kind)
			}
			if j < len(values) {
				line += " = " + strings.ReplaceAll(source(t, values[j]), "iota", strconv.Itoa(i))
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// source prints an expression on one line.
func source(t *testing.T, expr ast.Expr) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, printer.Fprint(&text, token.NewFileSet(), expr))
	return strings.Join(strings.Fields(text.String()), " ")
}
