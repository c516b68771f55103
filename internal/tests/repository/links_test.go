package repository

import (
	"cmp"
	"fmt"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
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
	// An escaped bracket in front of a name, with its package or without, is that of no link.
	broken := regexp.MustCompile(`(?:^|\W)\\\[(?:\\\*)?[\w/]*\.?[A-Z][\w.]*\]`)
	for _, dir := range publicPackages(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			links := 0
			printer := comment.Printer{DocLinkURL: func(link *comment.DocLink) string {
				links++
				assert.True(t, exists(t, link), "%s has no %s %s", link.ImportPath, link.Recv, link.Name)
				return ""
			}}
			groups, reader := godoc(t, dir)
			for _, group := range groups {
				text := string(printer.Markdown(reader.Parse(group.Text())))
				assert.Empty(t, broken.FindString(strings.ReplaceAll(text, `\[REDACTED]`, "")), "no such name")
			}
			assert.Positive(t, links)
		})
	}
}

// exists looks for a name of another package, of the standard library or of this repository: the parser takes any.
func exists(t *testing.T, link *comment.DocLink) bool {
	t.Helper()
	dir := filepath.Join(build.Default.GOROOT, "src", link.ImportPath)
	own, isOwn := strings.CutPrefix(link.ImportPath, "example.com/payvault")
	switch {
	case link.ImportPath == "" || link.Name == "": // which the parser knows
		return true
	case isOwn:
		dir = "." + own
	case strings.Contains(link.ImportPath, "."): // of another module
		return true
	}
	_, reader := godoc(t, dir)
	return reader.LookupSym(link.Recv, link.Name)
}

// fences are blocks of code, with their language and text.
func fences() *regexp.Regexp { return regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```\n") }

// TestMarkdownLinks: a link to a file of the repository has to lead there, and one to a section to its heading.
func TestMarkdownLinks(t *testing.T) {
	t.Parallel()
	prose := func(path string) string { return fences().ReplaceAllString(read(t, path), "") }
	found := 0
	for _, path := range markdownFiles(t) {
		for _, link := range regexp.MustCompile(`\]\(([^):\s]+)\)`).FindAllStringSubmatch(prose(path), -1) {
			found++
			target, section, _ := strings.Cut(link[1], "#")
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
				matches, _ := filepath.Glob(file)
				assert.NotEmpty(t, matches, "%s: %s", path, link[1])
			}
			if section != "" {
				assert.Contains(t, sections(prose(file)), section, "%s: %s", path, link[1])
			}
		}
	}
	assert.Greater(t, found, 10)
}

func markdownFiles(t *testing.T) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// sections are the names under which GitHub finds the headings of a text.
func sections(text string) (names []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestOperationTable writes the table of README from that of operations and from the methods of the services.
func TestOperationTable(t *testing.T) {
	t.Parallel()
	methods := map[string][]string{} // by the method that makes one request
	for _, method := range service.Methods() {
		once := strings.Replace(method, "All", "", 1)
		if strings.HasSuffix(once, ".") {
			once += "List"
		}
		methods[once] = append(methods[once], "`"+method+"`")
	}
	repeated := map[payvault.Replay]string{
		payvault.ReplayNever: "no", payvault.ReplayWithCardID: "with a `CardID`", payvault.ReplaySame: "yes",
		payvault.ReplayRead: "yes",
	}
	table := "| operation | method | sent again after a lost answer |\n|---|---|---|\n"
	for _, op := range payvault.Operations() {
		words := regexp.MustCompile(`(^|[._])[a-z]`).ReplaceAllStringFunc(string(op.Op), strings.ToUpper)
		once := strings.ReplaceAll(words, "_", "")
		slices.SortFunc(methods[once], func(a, b string) int {
			return cmp.Compare(strings.Count(a, "All"), strings.Count(b, "All"))
		})
		table += fmt.Sprintf("| %s %s | %s | %s |\n", op.Method, op.Path, strings.Join(methods[once], ", "), repeated[op.Replay])
		assert.NotEmpty(t, methods[once], "no method %s", once)
		delete(methods, once)
	}
	assert.Empty(t, methods, "methods of no operation")
	service.CompareDoc(t, "README.md", "operations", table, *update)
}

// TestExamples wants an example for each method of each service, and for what else a reader looks for first. The
// linter testableexamples wants their output.
func TestExamples(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "example_test.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var shown []string
	for _, example := range doc.Examples(file) {
		shown = append(shown, example.Name)
	}
	wanted := []string{"", "_afterFailure", "_rateLimit", "NewClient", "Error", "Journal", "OpenFile", "WithLogger"}
	for _, method := range service.Methods() {
		wanted = append(wanted, strings.Replace(method, ".", "Service_", 1))
	}
	assert.Subset(t, shown, wanted)
}
