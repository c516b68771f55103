package repository

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// block is a piece of code in a text for readers.
type block struct {
	dir      string // of the text
	name     string // an identifier made of the file and the number of the block
	language string
	text     string
}

// TestDocs builds the Go code of all texts for readers, and looks for what their commands name.
func TestDocs(t *testing.T) {
	t.Parallel()
	blocks := append(markdownBlocks(t), commentBlocks(t)...)
	snippets := map[string]string{}
	for _, b := range blocks {
		switch b.language {
		case "go":
			snippets[b.name] = wholeFile(b.text)
		case "sh":
			for _, command := range commands(b.text) {
				assert.NoError(t, checkCommand(b.dir, command), "%s: %s", b.name, command)
			}
		case "text", "mermaid": // what a program prints, and pictures
		default:
			assert.Fail(t, "unknown language", "%s: %q; go, sh, text and mermaid are known", b.name, b.language)
		}
	}
	require.Greater(t, len(snippets), 5)
	out, err := goTool(t, snippets, "build", "./"+snippetDir+"/...")
	assert.NoError(t, err, "%s", out)
}

// TestReadmeProgram runs the first program of README and compares what it prints with what README says.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	blocks := markdownFile(t, "README.md")
	at := slices.IndexFunc(blocks, func(b block) bool { return strings.HasPrefix(b.text, "package main") })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, "text", blocks[at+1].language, "the output follows the program")
	name := blocks[at].name
	out, err := goTool(t, map[string]string{name: blocks[at].text}, "run", "./"+snippetDir+"/"+name)
	require.NoError(t, err, "%s", out)
	assert.Equal(t, blocks[at+1].text, out)
}

// markdownBlocks returns the blocks of every Markdown file of the repository.
func markdownBlocks(t *testing.T) []block {
	t.Helper()
	var blocks []block
	for _, path := range markdownFiles(t) {
		blocks = append(blocks, markdownFile(t, path)...)
	}
	return blocks
}

// markdownFile returns the fenced blocks of a file. Indented ones have no language, so there must be none.
func markdownFile(t *testing.T, path string) []block {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var blocks []block
	var open *block
	before := ""
	for line := range strings.Lines(string(content)) {
		fence, found := strings.CutPrefix(line, "```")
		switch {
		case found && open == nil:
			open = &block{dir: filepath.Dir(path), name: identifier(path, len(blocks)), language: strings.TrimSpace(fence)}
		case found:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		default:
			assert.False(t, strings.HasPrefix(line, "    ") && before == "\n", "%s: an indented block: %s", path, line)
		}
		before = line
	}
	assert.Nil(t, open, "%s: a block without an end", path)
	return blocks
}

// commentBlocks returns the code in the comments of the packages that users import. It is Go, but for tables.
func commentBlocks(t *testing.T) []block {
	t.Helper()
	var blocks []block
	for _, dir := range publicPackages(t) {
		for _, file := range parsePackage(t, dir) {
			for _, group := range file.Comments {
				for _, content := range new(comment.Parser).Parse(group.Text()).Content {
					if code, ok := content.(*comment.Code); ok && isDoc(file, group) {
						blocks = append(blocks, block{dir, identifier("comment_"+dir, len(blocks)), languageOf(code.Text), code.Text})
					}
				}
			}
		}
	}
	return blocks
}

// languageOf tells Go from a table, whose every line has columns. Comments have no languages.
func languageOf(text string) string {
	for line := range strings.Lines(text) {
		if !regexp.MustCompile(`\S  +\S`).MatchString(line) {
			return "go"
		}
	}
	return "text"
}

// isDoc tells a comment that godoc shows from one inside of a function or of nothing.
func isDoc(file *ast.File, group *ast.CommentGroup) bool {
	if group == file.Doc {
		return true
	}
	return slices.ContainsFunc(file.Decls, func(decl ast.Decl) bool {
		f, isFunc := decl.(*ast.FuncDecl)
		if isFunc {
			return f.Doc == group
		}
		return decl.Pos() <= group.End()+1 && group.End() < decl.End()
	})
}

func identifier(path string, n int) string {
	return regexp.MustCompile(`\W+`).ReplaceAllString(fmt.Sprintf("%s_%d", path, n), "_")
}

// snippetDir is where the go command is told to see the snippets; nothing is written there.
const snippetDir = "internal/docsnippets"

// goTool runs the go command in this module, with each snippet as a package of its own.
func goTool(t *testing.T, snippets map[string]string, args ...string) (string, error) {
	t.Helper()
	root, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range snippets {
		file := filepath.Join(dir, name+".go")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		replace[filepath.Join(root, snippetDir, name, "main.go")] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	//nolint:gosec // of this test's own words
	command := exec.CommandContext(t.Context(), "go", slices.Insert(args, 1, "-overlay="+file)...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// given declares what a snippet may use without saying where it comes from.
const given = `
func retryLater(payvault.SubscriptionID) {}
func reconcile(payvault.SubscriptionID) {}
func report(...any) {}

func snippet(ctx context.Context, baseURL, apiKey string, client *payvault.Client, srv *payvaulttest.Server,
	id payvault.SubscriptionID, invoice payvaulttest.Invoice, logger *slog.Logger) error {
	{
`

// wholeFile puts what a snippet leaves out around it; a whole program stays as it is.
func wholeFile(text string) string {
	if strings.HasPrefix(text, "package ") {
		return text
	}
	body := given + text + "\n}\nreturn nil\n}\n"
	var imports strings.Builder
	for _, path := range []string{
		"context", "errors", "fmt", "log/slog", "net/http", "os", "slices", "time", "example.com/payvault",
		"example.com/payvault/payvaulttest",
	} {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.[A-Z]`).MatchString(body) {
			fmt.Fprintf(&imports, "import %q\n", path)
		}
	}
	return "package snippet\n\n" + imports.String() + body
}
