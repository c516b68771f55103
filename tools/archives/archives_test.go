package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const tag = "v1.99.1"

// TestRelease checks that two releases of the same commit, from two directories, have the same bytes in every file.
func TestRelease(t *testing.T) {
	t.Parallel()
	skipOnWindows(t)
	first := releasedFiles(t, filepath.Join(t.TempDir(), "one"))
	second := releasedFiles(t, filepath.Join(t.TempDir(), "another", "directory"))
	for file := range first {
		assert.True(t, first[file] == second[file], "%s has other bytes", file)
	}
	name := "payvault-emulator_" + tag
	archive := name + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	require.Len(t, first, 3)
	require.Len(t, second, 3)
	assert.Equal(t, first[name+".sha256"], string(checksums([]file{
		{name: archive, content: []byte(first[archive])},
		{name: name + ".cdx.json", content: []byte(first[name+".cdx.json"])},
	})))
	var list bom
	require.NoError(t, json.Unmarshal([]byte(first[name+".cdx.json"]), &list))
	assert.Equal(t, "pkg:golang/example.com/payvault@"+tag, list.Metadata.Component.PURL)
	var linked []string
	for _, c := range list.Components {
		linked = append(linked, c.Name)
	}
	assert.Subset(t, linked, []string{"stdlib", "github.com/hashicorp/go-retryablehttp"})
	assert.NotContains(t, linked, "github.com/stretchr/testify", "only tests use it")
	packed := untar(t, first[archive])
	assert.Contains(t, packed["LICENSES-OF-OTHERS"], "==== github.com/hashicorp/go-retryablehttp v")
	assert.Contains(t, packed, "payvault-emulator")
	assert.Contains(t, packed, "LICENSE")
}

// TestProblems checks that .ci/release refuses a commit that is not ready to be released, and lists all reasons.
func TestProblems(t *testing.T) {
	t.Parallel()
	skipOnWindows(t)
	dir := filepath.Join(t.TempDir(), "clone")
	commitCopy(t, dir)
	shell(t, dir, ""+tagAll)
	refused := func(changes ...string) string {
		shell(t, dir, strings.Join(changes, "; "))
		shell(t, dir, "git commit -qam Change --allow-empty; for tag in $(git tag -l '*v1.99.1'); do git tag -f $tag; done")
		release := exec.CommandContext(t.Context(), "bash", ".ci/release", tag)
		release.Dir = dir
		release.Env = append(release.Environ(), "GATE=ls the-gate")
		out, err := release.CombinedOutput()
		require.Error(t, err)
		assert.NoDirExists(t, filepath.Join(dir, "dist"))
		return string(out)
	}
	assert.Contains(t, refused("true"), "the-gate", "nothing is wrong until the gate")
	assert.Equal(t, "a minor version changes the API of v1.98.0: 1 lines of api/payvault.txt are gone\n",
		refused("git tag v1.98.0", edit("api/payvault.txt", "s/WithUserAgent/New/")))
	assert.Equal(t, `the tag otelpayvault/v1.99.1 is not on the commit of v1.99.1
client.go does not have Version 1.99.1
not v1.99.1: sqlpayvault/go.mod:	example.com/payvault v1.90.0
CHANGELOG.md has no section of 1.99.1 with a date
CHANGELOG.md has no link of 1.99.1
CHANGELOG.md, under Unreleased: - New.
a patch version changes the API of v1.99.0: 1 lines of api/payvault.txt are new, 0 are gone
`, refused(
		"git tag -d otelpayvault/v1.99.1",
		edit("client.go", `s/^const Version = .*/const Version = "1.90.0"/`),
		edit("sqlpayvault/go.mod", `s/v1.99.1/v1.90.0/`),
		edit("CHANGELOG.md", `s/^## .1.*/- New.\n\n## [1.99.1] - not yet/; s/^.1.99.*//`),
		"git tag v1.99.0; echo New >>api/payvault.txt",
	))
}

func skipOnWindows(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the script is for bash") // releases are made on Linux
	}
}

// edit returns a command that edits a file with a Perl expression.
func edit(name, expression string) string { return "perl -pi -e '" + expression + "' " + name }

// TestZipped checks that a zip archive has the files, modes and times that were packed.
func TestZipped(t *testing.T) {
	t.Parallel()
	modified := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	packed, err := zipped([]file{{name: "a.exe", mode: 0o755, content: []byte("program")}}, modified)
	require.NoError(t, err)
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	require.NoError(t, err)
	require.Len(t, archive.File, 1)
	assert.Equal(t, "-rwxr-xr-x a.exe", archive.File[0].Mode().String()+" "+archive.File[0].Name)
	assert.True(t, modified.Equal(archive.File[0].Modified))
	content, err := archive.Open("a.exe")
	require.NoError(t, err)
	text, err := io.ReadAll(content)
	require.NoError(t, err)
	assert.Equal(t, "program", string(text))
}

const tagAll = `for module in "" otelpayvault/ sqlpayvault/ temporalpayvault/; do git tag ${module}v1.99.1; done`

// releasedFiles releases a copy of this repository for the current system. It returns the contents of the published
// files, by name.
func releasedFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	commitCopy(t, dir)
	shell(t, dir, tagAll)
	shell(t, dir, "GATE=true TARGETS="+runtime.GOOS+"/"+runtime.GOARCH+" .ci/release "+tag)
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "dist", tag))
	require.NoError(t, err)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, "dist", tag, entry.Name()))
		require.NoError(t, err)
		files[entry.Name()] = string(content)
	}
	return files
}

// commitCopy copies the files of this repository, committed or not, and commits them as a release.
func commitCopy(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for name := range strings.SplitSeq(shell(t, root, "git ls-files -z --cached --others --exclude-standard"), "\x00") {
		info, err := os.Stat(filepath.Join(root, name))
		if os.IsNotExist(err) || name == "" { // the file was removed but is still in the index
			continue
		}
		require.NoError(t, err)
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		//nolint:gosec // a file of this repository
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, info.Mode()))
	}
	shell(t, dir, "git init -q && git config user.name Tester && git config user.email tester@example.com && git add .")
	shell(t, dir, ".ci/release prepare "+tag)
	shell(t, dir, edit("CHANGELOG.md", `s/^## .Unreleased.\n/## [Unreleased]\n\n## [1.99.1] - 2026-01-02\n/`))
	shell(t, dir, `echo '[1.99.1]: https://example.com/payvault/releases/tag/v1.99.1' >>CHANGELOG.md`)
	shell(t, dir, `git add . && git commit -q -m 'Release 1.99.1'`)
}

// shell runs a Bash script and returns its output. All commits of the script have the same time.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euc", script) //nolint:gosec // of this test's own words
	command.Dir = dir
	const now = "2026-01-02T03:04:06Z"
	command.Env = append(command.Environ(), "GIT_AUTHOR_DATE="+now, "GIT_COMMITTER_DATE="+now)
	var stdout, stderr bytes.Buffer
	command.Stdout = &stdout
	command.Stderr = &stderr
	require.NoError(t, command.Run(), "%s\n%s%s", script, &stdout, &stderr)
	return stdout.String()
}

// untar returns the contents of the files in an archive.
func untar(t *testing.T, packed string) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(packed))
	require.NoError(t, err)
	archive := tar.NewReader(compressed)
	files := map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[header.Name] = string(content)
	}
}
