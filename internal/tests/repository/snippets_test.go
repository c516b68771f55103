package repository

import (
	"encoding/json"
	"fmt"
	"go/doc/comment"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/payvault/internal/tests/calls"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// block is a piece of code in a text for readers.
type block struct {
	dir, name      string // of the text, and an identifier made of its file and the number of the block
	language, text string
}

// TestDocs builds the Go code of all texts for readers, looks for what their commands name, and runs the first program
// of README, which prints what README says.
func TestDocs(t *testing.T) {
	t.Parallel()
	readme := markdownBlocks(t, "README.md")
	snippets := map[string]string{}
	for _, b := range append(commentBlocks(t), markdownBlocks(t, markdownFiles(t)...)...) {
		switch b.language {
		case "go":
			snippets[b.name] = wholeFile(b.text)
		case "sh":
			for _, command := range commands(b.text) {
				checkCommand(t, b.dir, command)
			}
		default: // what a program prints, and pictures
			assert.Contains(t, []string{"text", "mermaid"}, b.language, "%s is in no known language", b.name)
		}
	}
	run := goCommand(t, snippets)
	run("build", "...")
	at := slices.IndexFunc(readme, func(b block) bool { return strings.HasPrefix(b.text, "package main") })
	assert.Equal(t, readme[at+1].text, run("run", readme[at].name))
}

// markdownBlocks returns the fenced blocks of files. Indented ones have no language, so there must be none.
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

// commentBlocks returns the code in the comments of the packages that users import. It is Go, but for tables, whose
// every line has columns.
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

// goCommand returns a function that runs the go command in this module, which is told to see each snippet as a package
// of its own; nothing is written there.
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
	imports := ""
	for _, name := range []string{
		"context", "errors", "fmt", "log/slog", "net/http", "os", "slices", "time", "example.com/payvault",
		"example.com/payvault/payvaulttest",
	} {
		if regexp.MustCompile(`\b` + path.Base(name) + `\.[A-Z]`).MatchString(body) {
			imports += fmt.Sprintf("import %q\n", name)
		}
	}
	return "package snippet\n\n" + imports + body
}
