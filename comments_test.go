package payvault_test

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEveryExportedNameHasAComment asks of each package that users import: a comment for every type, function and method, of its
// own; for a constant or variable, of its own or of its group; for a field, of its own, unless the comment of its type names the
// section of the interface that its fields are from, or says that they are named as on the wire, and its name says it all; for a method of an interface and what is embedded, of its own.
func TestEveryExportedNameHasAComment(t *testing.T) {
	t.Parallel()
	for _, dir := range publicPackages(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			documented := false
			var names []string
			for _, file := range parsePackage(t, dir) {
				documented = documented || file.Doc != nil
				for _, decl := range file.Decls {
					names = append(names, undocumented(decl)...)
				}
			}
			assert.True(t, documented, "the package has no comment")
			assert.Empty(t, names, "without a comment")
		})
	}
}

// undocumented names what a declaration exports without a comment.
func undocumented(decl ast.Decl) []string {
	var names []string
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if isPublic(d) && !startsWith(d.Doc, d.Name.Name) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch spec := s.(type) {
			case *ast.TypeSpec:
				names = append(names, undocumentedType(d, spec)...)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// startsWith tells whether a comment begins with the name, as godoc wants it.
func startsWith(doc *ast.CommentGroup, name string) bool {
	return strings.HasPrefix(doc.Text(), name+" ")
}

func undocumentedType(d *ast.GenDecl, spec *ast.TypeSpec) []string {
	if !spec.Name.IsExported() {
		return nil
	}
	doc := spec.Doc
	if doc == nil {
		doc = d.Doc
	}
	var names []string
	if !startsWith(doc, spec.Name.Name) {
		names = append(names, spec.Name.Name)
	}
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		names = append(names, undocumentedFields(spec.Name.Name, regexp.MustCompile("interface §|on the wire").MatchString(doc.Text()), kind.Fields)...)
	case *ast.InterfaceType:
		names = append(names, undocumentedFields(spec.Name.Name, false, kind.Methods)...)
	}
	return names
}

// undocumentedFields names the fields, methods and embedded types without a comment of their own. The comment of a type that names its section is
// enough for the fields whose names say it all.
func undocumentedFields(owner string, sectionNamed bool, fields *ast.FieldList) []string {
	var names []string
	for _, field := range fields.List {
		if field.Doc != nil || field.Comment != nil {
			continue
		}
		kind := types.ExprString(field.Type)
		if len(field.Names) == 0 {
			names = append(names, owner+"."+kind)
		}
		for _, name := range field.Names {
			if name.IsExported() && (!sectionNamed || needsFormat(name.Name, kind)) {
				names = append(names, owner+"."+name.Name)
			}
		}
	}
	return names
}

// needsFormat tells whether a field has a unit, a format, a limit or a meaning of its zero value that its name does not say.
func needsFormat(name, kind string) bool {
	return regexp.MustCompile(`^(\*bool|\*?Amount|Date|Timestamp|CompactTime|Int|u?int\d*|float\d*|any|json\.RawMessage|Secret)$`).MatchString(kind) ||
		regexp.MustCompile(`Phone|Zip|Country|Currency|Number|Code|Date|Time|Status|Expir|MCC`).MatchString(name)
}
