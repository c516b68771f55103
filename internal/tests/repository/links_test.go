package repository

import (
	"fmt"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
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
			groups, reader := godoc(t, repo(), dir)
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
	own, isOwn := strings.CutPrefix(link.ImportPath, "example.com/payvault")
	from, dir := os.DirFS(filepath.Join(build.Default.GOROOT, "src")), link.ImportPath
	switch {
	case isOwn:
		from, dir = repo(), path.Join(".", own)
	case dir == "" || link.Name == "" || strings.Contains(dir, "."): // known to the parser, or of another module
		return true
	}
	_, reader := godoc(t, from, dir)
	return reader.LookupSym(link.Recv, link.Name)
}

// fences are blocks of code, with their language and text.
func fences() *regexp.Regexp { return regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```\n") }

// TestMarkdownLinks: a link to a file of the repository has to lead there, and one to a section to its heading.
func TestMarkdownLinks(t *testing.T) {
	t.Parallel()
	prose := func(name string) string { return fences().ReplaceAllString(read(t, name), "") }
	found := 0
	for _, name := range markdownFiles(t) {
		for _, link := range regexp.MustCompile(`\]\(([^):\s]+)\)`).FindAllStringSubmatch(prose(name), -1) {
			found++
			target, section, _ := strings.Cut(link[1], "#")
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
				assert.NotEmpty(t, list(t, repo(), file), "%s: %s", name, link[1])
			}
			if section != "" {
				assert.Contains(t, sections(prose(file)), section, "%s: %s", name, link[1])
			}
		}
	}
	assert.Greater(t, found, 10)
}

func markdownFiles(t *testing.T) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(repo(), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// sections are the names under which GitHub finds the headings of a text.
func sections(text string) (names []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestOperationTable writes the table of README from those of operations and of calls.
func TestOperationTable(t *testing.T) {
	t.Parallel()
	repeated := map[payvault.Replay]string{
		payvault.ReplayNever: "no", payvault.ReplayWithCardID: "with a `CardID`", payvault.ReplaySame: "yes",
		payvault.ReplayRead: "yes",
	}
	table := "| operation | method | sent again after a lost answer |\n|---|---|---|\n"
	for _, op := range payvault.Operations() {
		var methods []string
		for _, c := range calls.All() {
			if name := "`" + c.GoName + "`"; c.Op == op.Op && !slices.Contains(methods, name) {
				methods = append(methods, name)
			}
		}
		table += fmt.Sprintf("| %s %s | %s | %s |\n", op.Method, op.Path, strings.Join(methods, ", "), repeated[op.Replay])
	}
	service.CompareDoc(t, "README.md", "operations", table, *update)
}

// TestExamples wants an example for each method of each service, and for what else a reader looks for first. The
// linter testableexamples wants their output.
func TestExamples(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "", read(t, "example_test.go"), parser.ParseComments)
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
