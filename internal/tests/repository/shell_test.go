package repository

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestEmulatorCurl sends the requests that the README of the program shows to the emulator, seeded as the program is,
// in their order: each succeeds, and none is there twice.
func TestEmulatorCurl(t *testing.T) {
	t.Parallel()
	file, err := os.Open("cmd/payvault-emulator/seed.json")
	require.NoError(t, err)
	seed, err := payvaulttest.LoadSeed(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	srv := payvaulttest.NewServer(payvaulttest.WithSeed(seed))
	t.Cleanup(srv.Close)

	var called []payvault.Operation
	for _, b := range markdownFile(t, "cmd/payvault-emulator/README.md") {
		for _, command := range commands(b.text) {
			if b.language != "sh" || command[0] != "curl" {
				continue
			}
			req := curlRequest(t, srv.URL, command[1:])
			resp, err := srv.HTTPClient().Do(req)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", command, body)
			requests := srv.Requests()
			called = append(called, requests[len(requests)-1].Operation)
		}
	}
	assert.NotEmpty(t, called)
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(called))), len(called))
}

// curlRequest makes the request of a curl command, as far as that README uses curl.
func curlRequest(t *testing.T, url string, words []string) *http.Request {
	t.Helper()
	method, target, user := http.MethodGet, "", ""
	header := http.Header{"Accept": {"*/*"}}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for len(words) > 0 {
		option := words[0]
		words = words[1:]
		if !strings.HasPrefix(option, "-") {
			target = strings.Replace(option, "$url", url, 1)
			continue
		}
		value := words[0]
		words = words[1:]
		switch option {
		case "-u":
			user = value
		case "-X":
			method = value
		case "--json":
			method = http.MethodPost
			header.Set("Content-Type", "application/json")
			header.Set("Accept", "application/json")
			body.WriteString(value)
		case "-F":
			method = http.MethodPost
			header.Set("Content-Type", form.FormDataContentType())
			addPart(t, form, value)
		default:
			require.Fail(t, "an option of curl that this test does not know", option)
		}
	}
	if header.Get("Content-Type") == form.FormDataContentType() {
		require.NoError(t, form.Close())
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target, &body)
	require.NoError(t, err)
	req.Header = header
	name, key, _ := strings.Cut(user, ":")
	req.SetBasicAuth(name, key)
	return req
}

// addPart adds name=value, or name=@file;type=kind.
func addPart(t *testing.T, form *multipart.Writer, part string) {
	t.Helper()
	name, value, _ := strings.Cut(part, "=")
	path, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		require.NoError(t, form.WriteField(name, value))
		return
	}
	path, kind, _ := strings.Cut(path, ";type=")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	w, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf("form-data; name=%q; filename=%q", name, filepath.Base(path))},
		"Content-Type":        {kind},
	})
	require.NoError(t, err)
	_, err = w.Write(content)
	require.NoError(t, err)
}

// commands returns the words of each command of a shell block.
func commands(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		for part := range strings.SplitSeq(line, " && ") {
			if words := shellWords(part); len(words) > 0 {
				all = append(all, words)
			}
		}
	}
	return all
}

// shellWords splits a command as a shell does, as far as the texts need it. It ends at a comment or a pipe.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range line {
		switch {
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
		case r == ' ' || r == '\t' || r == '\n':
			flush()
		case word.Len() == 0 && (r == '#' || r == '|'):
			return words
		default:
			word.WriteRune(r)
		}
	}
	flush()
	return words
}

// checkCommand looks for the packages, tests, flags, targets and steps that a command names. Paths may start at the
// root or at the directory of the text.
func checkCommand(textDir string, words []string) error {
	for len(words) > 0 && regexp.MustCompile(`^\w+=`).MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	switch name, args := words[0], words[1:]; name {
	case "go":
		return checkGo(textDir, args)
	case "make":
		return named("Makefile", args, "(?m)^%s:")
	case ".ci/run":
		return named(".ci/run", args, `(?m)^step_%s\(\)`)
	case "curl", "git", "mkdir", "cd", "cp": // curl has a test of its own
		return nil
	default:
		return fmt.Errorf("unknown command %q", name)
	}
}

// named looks for each name in a file; the pattern says how it stands there.
func named(file string, names []string, pattern string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !regexp.MustCompile(fmt.Sprintf(pattern, regexp.QuoteMeta(name))).Match(content) {
			return fmt.Errorf("%s has no %q", file, name)
		}
	}
	return nil
}

// checkGo looks for the directories that a go command names, for the tests that -run names, and for the flags of a
// program.
func checkGo(textDir string, args []string) error {
	dir := "."
	if len(args) > 1 && args[0] == "-C" {
		dir, args = args[1], args[2:]
	}
	named := textDir // the last directory that is named
	for i, arg := range args {
		switch path, isPath := strings.CutPrefix(arg, "./"); {
		case isPath && path != "...":
			bases := []string{dir, textDir}
			found := slices.IndexFunc(bases, func(base string) bool {
				files, err := filepath.Glob(filepath.Join(base, path, "*.go"))
				return err == nil && len(files) > 0
			})
			if found < 0 {
				return fmt.Errorf("no package %s", arg)
			}
			named = filepath.Join(bases[found], path)
		case arg == "-run" || arg == "-bench":
			name, _, _ := strings.Cut(strings.Trim(args[i+1], "^$"), "/") // without that of a part
			pattern := regexp.MustCompile(`func (Test|Benchmark|Example|Fuzz)\w*` + strings.TrimPrefix(name, "Test"))
			if err := contains(named, "*_test.go", pattern); err != nil {
				return err
			}
		case named != textDir && args[0] == "run" && strings.HasPrefix(arg, "-"):
			if err := checkFlag(named, strings.TrimLeft(arg, "-")); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFlag(program, name string) error {
	return contains(program, "*.go", regexp.MustCompile(`(?i)flags?\.\w+\(([^",]+, )?"`+regexp.QuoteMeta(name)+`"`))
}

// contains looks for a pattern in the files of a directory.
func contains(dir, files string, pattern *regexp.Regexp) error {
	names, err := filepath.Glob(filepath.Join(dir, files))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if pattern.Match(content) {
			return nil
		}
	}
	return fmt.Errorf("%s: nothing like %s", dir, pattern)
}
