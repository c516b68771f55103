package payvault_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEveryExportedNameHasAComment asks of each package that users import: a comment for every type, function and method, of its
// own; for a constant or variable, of its own or of its group; for a field, of its own, unless the comment of its type
// names the section of the interface that its fields are from.
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
	if kind, ok := spec.Type.(*ast.StructType); ok {
		names = append(names, undocumentedFields(spec.Name.Name, strings.Contains(doc.Text(), "interface §"), kind)...)
	}
	return names
}

func undocumentedFields(owner string, sectionNamed bool, kind *ast.StructType) []string {
	var names []string
	for _, field := range kind.Fields.List {
		if field.Doc != nil || field.Comment != nil || sectionNamed {
			continue
		}
		for _, name := range field.Names {
			if name.IsExported() {
				names = append(names, owner+"."+name.Name)
			}
		}
	}
	return names
}
