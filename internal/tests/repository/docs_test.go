package repository

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
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

// TestDocLinks checks that the comments of public packages name only pages of docs that exist, and that every name in
// brackets exists, except names of other modules. If a name does not exist, godoc shows no link.
func TestDocLinks(t *testing.T) {
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	library := os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src"))
	// If the parser has not found the name, the printer writes a backslash before the bracket.
	broken := regexp.MustCompile(`(?:^|\W)\\\[(?:\\\*)?[\w/]*\.?[A-Z][\w.]*\]`)
	for _, dir := range publicPackages(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			links := 0
			printer := comment.Printer{DocLinkURL: func(link *comment.DocLink) string {
				links++
				assert.True(t, exists(t, library, link), "%s has no %s %s", link.ImportPath, link.Recv, link.Name)
				return ""
			}}
			groups, reader := godoc(t, repo(), dir)
			for _, group := range groups {
				for _, page := range regexp.MustCompile(`docs/[\w-]+\.md`).FindAllString(group.Text(), -1) {
					assert.NotEmpty(t, list(t, repo(), page), "no page %s", page)
				}
				text := string(printer.Markdown(reader.Parse(group.Text())))
				assert.Empty(t, broken.FindString(strings.ReplaceAll(text, `\[REDACTED]`, "")), "no such name")
			}
			assert.Positive(t, links)
		})
	}
}

// exists reports whether a link leads to an existing name of this repository or of the standard library. The parameter
// library has the files of the standard library. For another module, exists returns true. The parser itself checks only
// names of the package that it parses.
func exists(t *testing.T, library fs.FS, link *comment.DocLink) bool {
	t.Helper()
	own, isOwn := strings.CutPrefix(link.ImportPath, "example.com/payvault")
	from, dir := library, link.ImportPath
	switch {
	case isOwn:
		from, dir = repo(), path.Join(".", own)
	// the parser has checked names of the same package; names of other modules are not checked
	case dir == "" || link.Name == "" || strings.Contains(dir, "."):
		return true
	}
	_, reader := godoc(t, from, dir)
	return reader.LookupSym(link.Recv, link.Name)
}

// fences returns a pattern that matches the fenced code blocks of Markdown, with their language and text.
func fences() *regexp.Regexp { return regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```\n") }

// TestMarkdownLinks checks that links between files of the repository lead to existing files and headings, and that the
// Go files that a text names exist.
func TestMarkdownLinks(t *testing.T) {
	t.Parallel()
	var sources []string
	for _, name := range filesOf(t, ".go") {
		sources = append(sources, path.Base(name))
	}
	prose := func(name string) string { return fences().ReplaceAllString(read(t, name), "") }
	found := 0
	for _, name := range filesOf(t, ".md") {
		for _, file := range regexp.MustCompile("`([\\w/]+\\.go)`").FindAllStringSubmatch(prose(name), -1) {
			assert.True(t, slices.Contains(sources, path.Base(file[1])), "%s: no file %s", name, file[1])
		}
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

// filesOf returns the names of all files with an extension.
func filesOf(t *testing.T, extension string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(repo(), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == extension {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// sections returns the anchors that GitHub makes from the headings of a text.
func sections(text string) (names []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestChangelog checks that CHANGELOG.md has a line with a link for each version. The release script needs these lines.
func TestChangelog(t *testing.T) {
	t.Parallel()
	text := read(t, "CHANGELOG.md")
	versions := regexp.MustCompile(`(?m)^## \[(.+?)\]`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, versions)
	for _, version := range versions {
		assert.Contains(t, text, "\n["+version[1]+"]: https://")
	}
}

// TestOperationTable checks that the table in README.md agrees with payvault.Operations and with package calls.
func TestOperationTable(t *testing.T) {
	t.Parallel()
	repeated := map[payvault.Replay]string{
		payvault.ReplayNever: "no", payvault.ReplayWithCardID: "with a `CardID`", payvault.ReplaySame: "yes",
		payvault.ReplayRead: "yes",
	}
	merchants := map[bool]string{true: "yes", false: "no"}
	table := []string{
		"| operation | method | sent again after a lost answer | works with `ForMerchant` |\n|---|---|---|---|\n",
	}
	for _, op := range payvault.Operations() {
		var methods []string
		for _, c := range calls.All() {
			if name := "`" + c.GoName + "`"; c.Op == op.Op && !slices.Contains(methods, name) {
				methods = append(methods, name)
			}
		}
		table = append(table, fmt.Sprintf("| %s %s | %s | %s | %s |\n",
			op.Method, op.Path, strings.Join(methods, ", "), repeated[op.Replay], merchants[op.Merchant]))
	}
	service.CompareDoc(t, "README.md", "operations", strings.Join(table, ""), *update)
}

// TestMethodComments checks that the comment of each method that performs an operation ends with the class of replay
// and the endpoint.
func TestMethodComments(t *testing.T) {
	t.Parallel()
	classes := map[payvault.Replay]string{
		payvault.ReplayNever: "Not replayable", payvault.ReplayWithCardID: "Replayable with a CardID",
		payvault.ReplaySame: "Replayable", payvault.ReplayRead: "Replayable",
	}
	set, declared := methods(t)
	for _, c := range calls.All() {
		method := strings.Replace(c.GoName, ".", "Service.", 1)
		require.Contains(t, declared, method)
		last := fmt.Sprintf("\n\n%s. %s %s.\n", classes[c.Replay], c.Method, c.Path)
		assert.True(t, strings.HasSuffix(declared[method].Doc.Text(), last), "%s: the comment of %s does not end with %q",
			set.Position(declared[method].Pos()), method, last)
	}
}

// methods returns the methods of the SDK by names such as "PayeesService.Delete".
func methods(t *testing.T) (set *token.FileSet, byName map[string]*ast.FuncDecl) {
	t.Helper()
	byName = map[string]*ast.FuncDecl{}
	set, files := parse(t, repo(), ".", parser.ParseComments)
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				byName[typeName(f.Recv.List[0].Type)+"."+f.Name.Name] = f
			}
		}
	}
	return set, byName
}

// TestExamples checks that example_test.go has an example for each iterator.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples := read(t, "example_test.go")
	for _, c := range calls.All() {
		if strings.Contains(c.Name, " by ") { // by an iterator
			name := "Example" + strings.Replace(c.GoName, ".", "Service_", 1)
			assert.True(t, strings.Contains(examples, "func "+name+"("), "example_test.go has no function %s", name)
		}
	}
}

// TestUnknownOutcomes checks that docs/unknown.md has a section for each operation that is not a read.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/unknown.md")
	for _, o := range calls.Table() {
		if o.Replay != payvault.ReplayRead {
			assert.True(t, strings.Contains(page, "## "+o.GoName), "docs/unknown.md has no section %s", o.GoName)
		}
	}
}

// TestTestsOfOperations checks that each file with a method that performs an operation has a test beside it, or names
// the folder of its tests, which must call the method. Tests of the emulator must call Commits for each operation.
func TestTestsOfOperations(t *testing.T) {
	t.Parallel()
	emulator := calledIn(t, "payvaulttest")
	named := regexp.MustCompile(`(?m)^// The tests of this file are in (internal/tests/\w+)`)
	set, declared := methods(t)
	for _, c := range calls.All() {
		service, method, _ := strings.Cut(c.GoName, ".")
		require.Contains(t, declared, service+"Service."+method)
		source := set.Position(declared[service+"Service."+method].Pos()).Filename
		beside := strings.TrimSuffix(source, ".go") + "_test.go"
		if folder := named.FindStringSubmatch(read(t, source)); folder != nil {
			assert.True(t, calledIn(t, folder[1])[method], "%s names %s, where no test calls %s", source, folder[1], method)
		} else if assert.Len(t, list(t, repo(), beside), 1, "%s has no tests in %s", c.Name, beside) {
			assert.Contains(t, read(t, beside), "\nfunc Test", beside)
		}
	}
	for _, o := range calls.Table() {
		counted := "Commits(payvault.Op" + strings.Replace(o.GoName, ".", "", 1) + ")"
		assert.True(t, emulator[counted], "no test in payvaulttest checks %s: add one to the test file of the resource there",
			counted)
	}
}

// calledIn returns the names of the methods that tests in a directory call, such as Commits, and their calls with one
// argument, such as Commits(payvault.OpPayeesCreate).
func calledIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	called := map[string]bool{}
	for _, name := range list(t, repo(), path.Join(dir, "*_test.go")) {
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if method, ok := call.Fun.(*ast.SelectorExpr); ok {
					called[method.Sel.Name] = true
					if len(call.Args) == 1 {
						called[method.Sel.Name+"("+types.ExprString(call.Args[0])+")"] = true
					}
				}
			}
			return true
		})
	}
	return called
}

// TestNumberTable checks that docs/answers.md has the current table of the rules for JSON numbers.
func TestNumberTable(t *testing.T) {
	t.Parallel()
	service.CompareDoc(t, "docs/answers.md", "numbers", calls.NumberTable(), *update)
}

// block is a code block in a document.
type block struct {
	// the directory of the document, and a Go identifier for the block
	dir, name      string
	language, text string
}

// TestDocs checks that the Go code in Markdown files and doc comments compiles, and that shell commands name existing
// make targets, packages, tests and flags. The first program of README.md must print the output that README.md shows.
func TestDocs(t *testing.T) {
	t.Parallel()
	readme := markdownBlocks(t, "README.md")
	snippets := map[string]string{}
	for _, b := range append(commentBlocks(t), markdownBlocks(t, filesOf(t, ".md")...)...) {
		switch b.language {
		case "go":
			snippets[b.name] = wholeFile(b.text)
		case "sh":
			for _, command := range commands(b.text) {
				checkCommand(t, b.dir, command)
			}
		default: // output of programs, other text and diagrams are not checked, and TestQueries checks queries
			assert.Contains(t, []string{"text", "mermaid", "promql"}, b.language, "%s is in no known language", b.name)
		}
	}
	run := goCommand(t, snippets)
	run("build", "...")
	at := slices.IndexFunc(readme, func(b block) bool { return strings.HasPrefix(b.text, "package main") })
	assert.Equal(t, readme[at+1].text, run("run", readme[at].name))
}

// TestQueries checks that the comment of package otelpayvault names the metrics and attributes in the queries of the
// Markdown files. Prometheus writes _ for each dot in a name, and appends the unit and the kind of series to the name
// of a metric.
func TestQueries(t *testing.T) {
	t.Parallel()
	documented := strings.ReplaceAll(read(t, "otelpayvault/doc.go"), ".", "_")
	suffix := regexp.MustCompile(`(_seconds)?(_count|_bucket|_total)$`)
	found := 0
	for _, b := range markdownBlocks(t, filesOf(t, ".md")...) {
		if b.language == "promql" {
			for _, name := range regexp.MustCompile(`\b(payvault|http|error)_\w+`).FindAllString(b.text, -1) {
				found++
				assert.Regexp(t, `\b`+suffix.ReplaceAllString(name, "")+`\b`, documented)
			}
		}
	}
	assert.Greater(t, found, 10)
}

// markdownBlocks returns the fenced code blocks of Markdown files. An indented code block fails the test, because it
// has no language.
func markdownBlocks(t *testing.T, names ...string) (blocks []block) {
	t.Helper()
	for _, name := range names {
		text := read(t, name)
		for i, found := range fences().FindAllStringSubmatch(text, -1) {
			blocks = append(blocks, block{path.Dir(name), identifier(name, i), found[1], found[2]})
		}
		assert.NotRegexp(t, "\n\n    |(?m)^```", fences().ReplaceAllString(text, "\n"), "%s: indented, or open", name)
	}
	return blocks
}

// commentBlocks returns the Go code in the comments of public packages. It skips tables, in which every line has
// columns.
func commentBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	columns := regexp.MustCompile(`^(\s*\S.*\S  +\S.*\n)+$`)
	for _, dir := range publicPackages(t) {
		groups, reader := godoc(t, repo(), dir)
		for _, group := range groups {
			for _, content := range reader.Parse(group.Text()).Content {
				if code, ok := content.(*comment.Code); ok && !columns.MatchString(code.Text) {
					blocks = append(blocks, block{dir, identifier("comment_"+dir, len(blocks)), "go", code.Text})
				}
			}
		}
	}
	return blocks
}

func identifier(name string, n int) string {
	return regexp.MustCompile(`\W+`).ReplaceAllString(fmt.Sprintf("%s_%d", name, n), "_")
}

// goCommand returns a function that runs the go command for a snippet. The flag -overlay makes each snippet a package
// of the repository.
func goCommand(t *testing.T, snippets map[string]string) func(command, name string) string {
	t.Helper()
	const place = "internal/docsnippets"
	root, err := filepath.Abs(calls.Root())
	require.NoError(t, err)
	dir, replace := t.TempDir(), map[string]string{}
	for name, text := range snippets {
		file := filepath.Join(dir, name+".go")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		replace[filepath.Join(root, place, name, "main.go")] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	return func(command, name string) string {
		//nolint:gosec // of this test's own words
		cmd := exec.CommandContext(t.Context(), "go", command, "-overlay="+file, "./"+path.Join(place, name))
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
}

// given declares names that snippets in documents may use.
const given = `
func retryLater(payvault.SubscriptionID) {}
func reconcile(payvault.SubscriptionID) {}
func report(...any) {}

func snippet(t *testing.T, ctx context.Context, baseURL, apiKey string, client *payvault.Client,
	srv *payvaulttest.Server, id payvault.SubscriptionID, invoice payvaulttest.Invoice, logger *slog.Logger,
	db *sql.DB) error {
	{
`

// wholeFile returns a Go file with a snippet inside a function. A snippet with a package clause stays unchanged.
func wholeFile(text string) string {
	if strings.HasPrefix(text, "package ") {
		return text
	}
	body := given + text + "\n}\nreturn nil\n}\n"
	imports := []string{"package snippet"}
	for name := range strings.FieldsSeq(`context crypto/x509 database/sql errors fmt log/slog net/http net/url os
		slices strings testing testing/synctest time
		example.com/payvault example.com/payvault/payvaulttest`) {
		if regexp.MustCompile(`\b` + path.Base(name) + `\.[A-Z]`).MatchString(body) {
			imports = append(imports, fmt.Sprintf("import %q", name))
		}
	}
	return strings.Join(imports, "\n") + body
}
