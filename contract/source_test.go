package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A source is what the Go files of a package say about the wire.
type source struct {
	wire      map[string][]string // wire names by the name of the struct type, of types that have any
	fields    map[string][]string // names of the fields by the name of the struct type
	embedded  map[string][]string // names of the embedded types by the name of the struct type
	constants map[string][]string // texts by the name of the constants' type
}

// parseSource reads the files of a package, tests left out, so that no type can be forgotten.
func parseSource(t *testing.T, dir string) source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	s := source{map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.TypeSpec:
				s.addType(node)
			case *ast.ValueSpec:
				s.addConstants(node)
			}
			return true
		})
	}
	for name, types := range s.embedded {
		for _, embedded := range types {
			if len(s.wire[name]) > 0 {
				s.wire[name] = append(s.wire[name], s.wire[embedded]...)
			}
		}
	}
	return s
}

func (s source) addType(spec *ast.TypeSpec) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	var names []string
	tagged := false
	for _, field := range structure.Fields.List {
		key, value := tagOf(field)
		tagged = tagged || key != ""
		if embedded, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
			s.embedded[spec.Name.Name] = append(s.embedded[spec.Name.Name], embedded.Name)
		}
		for _, name := range field.Names {
			s.fields[spec.Name.Name] = append(s.fields[spec.Name.Name], name.Name)
			if wire := wireName(value, name.Name); name.IsExported() && wire != "-" {
				names = append(names, wire)
			}
		}
	}
	if tagged {
		s.wire[spec.Name.Name] = names
	}
}

// tagOf gives the key and the value of the tag of a field that names it on the wire.
func tagOf(field *ast.Field) (key, value string) {
	if field.Tag == nil {
		return "", ""
	}
	text, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return "", ""
	}
	for _, key := range []string{"json", "url"} {
		if value, ok := reflect.StructTag(text).Lookup(key); ok {
			return key, value
		}
	}
	return "", ""
}

func (s source) addConstants(spec *ast.ValueSpec) {
	typeName, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range spec.Values {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			s.constants[typeName.Name] = append(s.constants[typeName.Name], text)
		}
	}
}
