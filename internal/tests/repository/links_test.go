package repository

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestDocLinks: what a comment puts into brackets has to exist, or godoc shows the brackets.
func TestDocLinks(t *testing.T) {
	t.Parallel()
	for _, dir := range publicPackages(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			parse := godoc(t, dir).Parser()
			links := 0
			for _, file := range parsePackage(t, dir) {
				for _, group := range file.Comments {
					if !isDoc(file, group) {
						continue
					}
					resolved, broken := linksOf(parse.Parse(group.Text()).Content)
					assert.Empty(t, broken, "there is no such name")
					links += len(resolved)
					for _, link := range resolved {
						assertNameExists(t, link)
					}
				}
			}
			assert.Positive(t, links)
		})
	}
}

// godoc is what the go command knows of a package.
func godoc(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	p, err := doc.NewFromFiles(set, files, dir)
	require.NoError(t, err)
	return p
}

// linksOf returns the links to names of Go in a comment, and what looks like one and is none.
func linksOf(blocks []comment.Block) (resolved []*comment.DocLink, broken []string) {
	var texts []comment.Text
	for _, block := range blocks {
		switch b := block.(type) {
		case *comment.Paragraph:
			texts = append(texts, b.Text...)
		case *comment.Heading:
			texts = append(texts, b.Text...)
		case *comment.List:
			for _, item := range b.Items {
				more, notLinks := linksOf(item.Content)
				resolved, broken = append(resolved, more...), append(broken, notLinks...)
			}
		}
	}
	for _, text := range texts {
		switch text := text.(type) {
		case *comment.DocLink:
			resolved = append(resolved, text)
		case comment.Plain:
			for _, found := range regexp.MustCompile(
				`(?:^|\W)(\[\*?[\w/]*\.?[A-Z][\w.]*\])`,
			).FindAllStringSubmatch(string(text), -1) {
				if found[1] != "[REDACTED]" {
					broken = append(broken, found[1])
				}
			}
		}
	}
	return resolved, broken
}

// assertNameExists looks for a name of another package, of the standard library or of this one: the parser takes any.
func assertNameExists(t *testing.T, link *comment.DocLink) {
	t.Helper()
	if link.ImportPath == "" || link.Name == "" {
		return
	}
	dir := filepath.Join(build.Default.GOROOT, "src", link.ImportPath)
	if own, ok := strings.CutPrefix(link.ImportPath, "example.com/payvault"); ok {
		dir = "." + own
	} else if strings.Contains(link.ImportPath, ".") {
		return // of another module
	}
	name := link.Name
	if link.Recv != "" {
		name = link.Recv + "." + name
	}
	// The parser of that package knows its names.
	_, broken := linksOf(godoc(t, dir).Parser().Parse("See [" + name + "] there.").Content)
	assert.Empty(t, broken, "%s has no %s", link.ImportPath, name)
}

// TestMarkdownLinks: a link to a file of the repository has to lead there, and one to a section to its heading.
func TestMarkdownLinks(t *testing.T) {
	t.Parallel()
	found := 0
	for _, path := range markdownFiles(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(t, path), -1) {
			target, section, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, ":") { // of the web
				continue
			}
			found++
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
				assert.FileExists(t, withReadme(file), "%s: %s", path, link[1])
			}
			if section != "" {
				assert.Contains(t, sections(prose(t, file)), section, "%s: %s", path, link[1])
			}
		}
	}
	assert.Greater(t, found, 10)
}

func markdownFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// prose is a Markdown file without its blocks of code.
func prose(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(string(content), "")
}

// withReadme stands for a directory, which need not have a README: any file of it will do.
func withReadme(path string) string {
	if entries, err := os.ReadDir(path); err == nil {
		for _, entry := range entries {
			if !entry.IsDir() {
				return filepath.Join(path, entry.Name())
			}
		}
	}
	return path
}

// sections are the names under which GitHub finds the headings of a text.
func sections(text string) []string {
	var names []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestOperationTable holds the table of README against the table of operations, and against the methods of the
// services.
func TestOperationTable(t *testing.T) {
	t.Parallel()
	calls := map[string][]string{} // by the method that makes one request
	for service := range reflect.TypeFor[payvault.Client]().Fields() {
		if !service.IsExported() {
			continue
		}
		for method := range service.Type.Methods() {
			once := service.Name + "." + cmp.Or(strings.Replace(method.Name, "All", "", 1), "List")
			calls[once] = append(calls[once], "`"+service.Name+"."+method.Name+"`")
		}
	}
	repeated := map[payvault.Replay]string{
		payvault.ReplayNever: "no", payvault.ReplayWithCardID: "with a `CardID`", payvault.ReplaySame: "yes",
		payvault.ReplayRead: "yes",
	}
	var table strings.Builder
	table.WriteString("| operation | method | sent again after a lost answer |\n|---|---|---|\n")
	for _, op := range payvault.Operations() {
		once := methodOf(op.Op)
		require.NotEmpty(t, calls[once], "no method %s", once)
		slices.SortFunc(calls[once],
			func(a, b string) int { return cmp.Compare(strings.Count(a, "All"), strings.Count(b, "All")) })
		fmt.Fprintf(&table, "| %s %s | %s | %s |\n", op.Method, op.Path, strings.Join(calls[once], ", "), repeated[op.Replay])
		delete(calls, once)
	}
	assert.Empty(t, calls, "methods of no operation")
	service.CompareDoc(t, "README.md", "operations", table.String(), *update)
}

// TestExamples wants an example with its output for each method of each service, and for what else a reader looks for
// first.
func TestExamples(t *testing.T) {
	t.Parallel()
	content, err := parser.ParseFile(token.NewFileSet(), "example_test.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var shown []string
	for _, example := range doc.Examples(content) {
		if example.Output != "" {
			shown = append(shown, example.Name)
		}
	}
	wanted := []string{"", "_afterFailure", "_rateLimit", "NewClient", "Error", "Journal", "OpenFile", "WithLogger"}
	for service := range reflect.TypeFor[payvault.Client]().Fields() {
		if service.IsExported() {
			for method := range service.Type.Methods() {
				wanted = append(wanted, service.Type.Elem().Name()+"_"+method.Name)
			}
		}
	}
	assert.Subset(t, shown, wanted)
}

// methodOf gives the method of an operation: "Applications.SaveData" for "applications.save_data".
func methodOf(op payvault.Operation) string {
	name := regexp.MustCompile(`(^|[._])[a-z]`).ReplaceAllStringFunc(string(op), strings.ToUpper)
	return strings.ReplaceAll(name, "_", "")
}
