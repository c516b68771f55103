package contract

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sdkPath = "example.com/payvault"

// A source is a package of the repository as the type checker sees it, unexported types included, tests left out.
type source struct {
	structs   map[string]*types.Struct // with wire names
	constants map[string][]string      // texts by the name of the constants' type; of plain strings, exported ones only
	literals  map[string]bool          // every text in the code
}

func sdkSource(t *testing.T) source {
	t.Helper()
	return newPackages().load(t, sdkPath)
}

// Packages are what was loaded so far. Of the other packages only those whose types stand in wire types are read, the
// rest is empty: the errors that follow do not touch the declarations that matter here.
type packages map[string]*types.Package

func newPackages() packages { return packages{} }

// Import implements [types.Importer].
func (p packages) Import(name string) (*types.Package, error) {
	if loaded := p[name]; loaded != nil {
		return loaded, nil
	}
	if name == "encoding/json" || name == "time" {
		return importer.Default().Import(name)
	}
	empty := types.NewPackage(name, path.Base(name))
	empty.MarkComplete()
	return empty, nil
}

func (p packages) load(t *testing.T, name string) source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(name, sdkPath), "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			syntax, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			parsed = append(parsed, syntax)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: p, Error: func(error) {}}
	p[name], _ = config.Check(name, fset, parsed, info)
	return newSource(parsed, info)
}

func newSource(files []*ast.File, info *types.Info) source {
	s := source{map[string]*types.Struct{}, map[string][]string{}, map[string]bool{}}
	for _, object := range info.Defs {
		switch object := object.(type) {
		case *types.TypeName:
			structure, ok := object.Type().Underlying().(*types.Struct)
			if ok && isTagged(structure) && object.Parent() == object.Pkg().Scope() { // those in functions write others' fields
				s.structs[object.Name()] = structure
			}
		case *types.Const:
			named, ok := object.Type().(*types.Named)
			switch text := object.Val(); {
			case text.Kind() != constant.String:
			case ok:
				s.constants[named.Obj().Name()] = append(s.constants[named.Obj().Name()], constant.StringVal(text))
			case object.Exported():
				s.constants["string"] = append(s.constants["string"], constant.StringVal(text))
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value)
				s.literals[text] = true
			}
			return true
		})
	}
	return s
}

// A wireField is a field of a struct with the name that it has on the wire.
type wireField struct {
	name   string
	goName string
	goType types.Type
}

// wireFields lists the fields of a struct that are on the wire, and then those of embedded structs that it does not
// hide.
func wireFields(s *types.Struct) []wireField {
	var fields, inner []wireField
	for i := range s.NumFields() {
		field, tag := s.Field(i), tagOf(s.Tag(i))
		if embedded, ok := field.Type().Underlying().(*types.Struct); ok && field.Embedded() && tag == "" {
			inner = append(inner, wireFields(embedded)...)
		} else if name := wireName(tag, field.Name()); field.Exported() && name != "-" {
			fields = append(fields, wireField{name, field.Name(), field.Type()})
		}
	}
	for _, f := range inner {
		hidden := slices.ContainsFunc(fields, func(own wireField) bool { return own.name == f.name })
		if !hidden {
			fields = append(fields, f)
		}
	}
	return fields
}

func isTagged(s *types.Struct) bool {
	for i := range s.NumFields() {
		if tag := tagOf(s.Tag(i)); tag != "" && tag != "-" {
			return true
		}
	}
	return false
}

// tagOf returns the part of a tag that names the field on the wire.
func tagOf(tag string) string {
	for _, key := range []string{"json", "url"} {
		if value, ok := reflect.StructTag(tag).Lookup(key); ok {
			return value
		}
	}
	return ""
}

// wireName is the name in a tag, "-" included, or the name of the field.
func wireName(tag, field string) string {
	name, _, _ := strings.Cut(tag, ",")
	if name == "" {
		return field
	}
	return name
}

func namesOf(s *types.Struct) []string {
	var names []string
	if s == nil {
		return nil
	}
	for _, f := range wireFields(s) {
		names = append(names, f.name)
	}
	return names
}

// anything is the kind of what is not shown, or left open.
const anything = "anything"

// kindOf is the JSON kind of a Go type.
func kindOf(t types.Type) string {
	if kind, ok := ownKinds()[types.TypeString(t, nil)]; ok {
		return kind
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return kindOf(u.Elem())
	case *types.Slice:
		return "array"
	case *types.Struct, *types.Map:
		return "object"
	case *types.Basic:
		return basicKind(u.Info())
	}
	return anything
}

func basicKind(info types.BasicInfo) string {
	switch {
	case info&types.IsString != 0:
		return "string"
	case info&types.IsBoolean != 0:
		return "boolean"
	case info&types.IsInteger != 0:
		return "integer"
	}
	return "number"
}

// ownKinds are the types that write and read themselves in another form than Go has for them: TestTraffic sees it.
func ownKinds() map[string]string {
	return map[string]string{
		"encoding/json.Number":       "number",
		"encoding/json.RawMessage":   anything,
		"time.Time":                  "string",
		sdkPath + ".Amount":          "number",
		sdkPath + ".Date":            "string",
		sdkPath + ".Timestamp":       "string",
		sdkPath + ".Pairs":           "string",
		sdkPath + ".Secret":          "string",
		sdkPath + ".ApplicationData": "array",
		sdkPath + ".flexText":        "string",
		sdkPath + ".resultCode":      anything, // a number or a text
	}
}
