package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/tests/calls"
)

// TestLayers compares the files of large packages with the lists of layers in docs/layout.md and in READMEs. A file may
// use files on the lines above its own line, and files to its left on the same line. If a bar (|) stands between two
// files of a line, neither may use the other.
func TestLayers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ dir, document, heading string }{
		{".", "docs/layout.md", "## The library"},
		{"payvaulttest", "docs/layout.md", "## The emulator"},
		{"internal/tests/simulation", "internal/tests/simulation/README.md", "## Files"},
		{"temporalpayvault", "temporalpayvault/README.md", "## Files"},
	} {
		t.Run(test.dir, func(t *testing.T) {
			t.Parallel()
			pkg := load(t, test.dir)
			layers := readLayers(t, test.document, test.heading)
			for _, name := range pkg.files {
				assert.Contains(t, layers, name, "%s has no layer for this file of %s", test.document, test.dir)
			}
			for name := range layers {
				assert.Contains(t, pkg.files, name, "%s has a layer for what is no file of %s", test.document, test.dir)
			}
			for ident, object := range pkg.uses {
				from, to := pkg.place(ident.Pos()), pkg.place(object.Pos())
				assert.True(t, layers[from.Filename].mayUse(layers[to.Filename]),
					"%s uses %s of %s, which %s does not put below it: move the declaration down, or change the list", from,
					ident.Name, to, test.document)
			}
		})
	}
}

// TestDependencies checks that the library links the two modules that the owner of the project chose, and that
// docs/in-your-service.md names the linked modules with the licence MPL 2.0.
func TestDependencies(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/in-your-service.md")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}", ".")
	cmd.Dir = filepath.FromSlash(calls.Root())
	out, err := cmd.Output()
	require.NoError(t, err)
	var linked []string
	found := 0
	for line := range strings.Lines(string(out)) {
		module, dir, isModule := strings.Cut(strings.TrimSpace(line), " ")
		if !isModule || slices.Contains(linked, module) { // of the standard library, or another package of the module
			continue
		}
		linked = append(linked, module)
		licence, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
		require.NoError(t, err)
		if bytes.Contains(licence, []byte("Mozilla Public License")) {
			found++
			assert.Contains(t, page, "`"+module+"`")
		}
	}
	assert.Equal(t, 2, found, "the page names two")
	assert.Subset(t, linked, []string{"github.com/hashicorp/go-retryablehttp", "github.com/google/go-querystring"})
}

// layer is the place of a file in a list of layers.
type layer struct{ line, group, position int }

func (l layer) mayUse(other layer) bool {
	if l.line == other.line {
		return l.group == other.group && l.position >= other.position
	}
	return l.line > other.line
}

// readLayers reads the list that follows a heading of a document.
func readLayers(t *testing.T, document, heading string) map[string]layer {
	t.Helper()
	_, text, found := strings.Cut(read(t, document), "\n"+heading+"\n")
	require.True(t, found, "%s has no heading %q", document, heading)
	_, text, _ = strings.Cut(text, "```text\n")
	text, _, _ = strings.Cut(text, "```")
	layers := map[string]layer{}
	for line, names := range strings.Split(text, "\n") {
		for group, part := range strings.Split(names, "|") {
			for name := range strings.FieldsSeq(part) {
				layers[name+".go"] = layer{line, group, len(layers)}
			}
		}
	}
	return layers
}

// checked is a type-checked package.
type checked struct {
	set   *token.FileSet
	files []string
	uses  map[*ast.Ident]types.Object // identifiers that refer to declarations of the package
}

func (c checked) place(pos token.Pos) token.Position {
	place := c.set.Position(pos)
	place.Filename = filepath.Base(place.Filename)
	return place
}

// load type-checks the package in a directory.
func load(t *testing.T, dir string) checked {
	t.Helper()
	fields := "-json=ImportPath,Export,GoFiles,DepOnly"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", fields, ".")
	cmd.Dir = filepath.Join(filepath.FromSlash(calls.Root()), dir)
	out, err := cmd.Output()
	require.NoError(t, err)
	var path string
	exports := map[string]string{}
	c := checked{set: token.NewFileSet(), uses: map[*ast.Ident]types.Object{}}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath, Export string
			GoFiles            []string
			DepOnly            bool
		}
		err := dec.Decode(&pkg) //nolint:musttag // the go command writes the names of the fields
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		exports[pkg.ImportPath] = pkg.Export
		if !pkg.DepOnly {
			path, c.files = pkg.ImportPath, pkg.GoFiles
		}
	}
	var files []*ast.File
	for _, name := range c.files {
		file, err := parser.ParseFile(c.set, filepath.Join(cmd.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := conf.Check(path, c.set, files, &info)
	require.NoError(t, err)
	for ident, object := range info.Uses {
		if object.Pkg() == pkg && object.Pos().IsValid() {
			c.uses[ident] = object
		}
	}
	return c
}
