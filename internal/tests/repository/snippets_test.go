package repository

import (
	"encoding/json"
	"fmt"
	"go/doc/comment"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
	require.Greater(t, len(snippets), 5)
	bin := t.TempDir()
	goBuild(t, bin, snippets)
	for i, b := range readme {
		if strings.HasPrefix(b.text, "package main") {
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, b.name)).CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Equal(t, readme[i+1].text, string(out))
			return
		}
	}
	assert.Fail(t, "README has no program")
}

// markdownBlocks returns the fenced blocks of files. Indented ones have no language, so there must be none.
func markdownBlocks(t *testing.T, paths ...string) (blocks []block) {
	t.Helper()
	for _, path := range paths {
		text := read(t, path)
		for i, found := range fences().FindAllStringSubmatch(text, -1) {
			blocks = append(blocks, block{filepath.Dir(path), identifier(path, i), found[1], found[2]})
		}
		assert.NotRegexp(t, "\n\n    |(?m)^```", fences().ReplaceAllString(text, "\n"), "%s: indented, or open", path)
	}
	return blocks
}

// commentBlocks returns the code in the comments of the packages that users import. It is Go, but for tables, whose
// every line has columns.
func commentBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	columns := regexp.MustCompile(`^(\s*\S.*\S  +\S.*\n)+$`)
	for _, dir := range publicPackages(t) {
		groups, reader := godoc(t, dir)
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

func identifier(path string, n int) string {
	return regexp.MustCompile(`\W+`).ReplaceAllString(fmt.Sprintf("%s_%d", path, n), "_")
}

// goBuild builds each snippet as a package of its own, which the go command is told to see in this module, and leaves
// the programs in a directory.
func goBuild(t *testing.T, bin string, snippets map[string]string) {
	t.Helper()
	const place = "internal/docsnippets" // where nothing is written
	root, err := os.Getwd()
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
	//nolint:gosec // of this test's own words
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay="+file, "-o", bin+"/", "./"+place+"/...")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
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
	for _, path := range []string{
		"context", "errors", "fmt", "log/slog", "net/http", "os", "slices", "time", "example.com/payvault",
		"example.com/payvault/payvaulttest",
	} {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.[A-Z]`).MatchString(body) {
			imports += fmt.Sprintf("import %q\n", path)
		}
	}
	return "package snippet\n\n" + imports + body
}
