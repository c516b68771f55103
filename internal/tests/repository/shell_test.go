package repository

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path"
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
	seed, err := payvaulttest.LoadSeed(strings.NewReader(read(t, "cmd/payvault-emulator/seed.json")))
	require.NoError(t, err)
	srv := payvaulttest.NewServer(payvaulttest.WithSeed(seed))
	t.Cleanup(srv.Close)
	for _, b := range markdownBlocks(t, "cmd/payvault-emulator/README.md") {
		for _, command := range commands(b.text) {
			if b.language == "sh" && command[0] == "curl" {
				resp, err := srv.HTTPClient().Do(curlRequest(t, srv.URL, command[1:]))
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", command, body)
			}
		}
	}
	var called []payvault.Operation
	for _, r := range srv.Requests() {
		assert.NotContains(t, called, r.Operation)
		called = append(called, r.Operation)
	}
	assert.NotEmpty(t, called)
}

// curlRequest makes the request of a curl command, as far as that README uses curl.
func curlRequest(t *testing.T, url string, words []string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form, header := multipart.NewWriter(&body), http.Header{"Accept": {"*/*"}}
	curl := flag.NewFlagSet("curl", flag.ContinueOnError)
	user, method := curl.String("u", "", ""), curl.String("X", http.MethodGet, "")
	curl.Func("json", "", func(text string) error {
		*method = http.MethodPost
		header.Set("Content-Type", "application/json")
		body.WriteString(text)
		return nil
	})
	curl.Func("F", "", func(part string) error { // name=value, or name=@file;type=kind
		*method = http.MethodPost
		header.Set("Content-Type", form.FormDataContentType())
		name, value, _ := strings.Cut(part, "=")
		file, isFile := strings.CutPrefix(value, "@")
		if !isFile {
			return form.WriteField(name, value)
		}
		file, kind, _ := strings.Cut(file, ";type=")
		disposition := fmt.Sprintf("form-data; name=%q; filename=%q", name, path.Base(file))
		w, err := form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {kind}})
		require.NoError(t, err)
		_, err = io.WriteString(w, read(t, file))
		return err
	})
	require.NoError(t, curl.Parse(words))
	if header.Get("Content-Type") == form.FormDataContentType() {
		require.NoError(t, form.Close())
	}
	target := strings.Replace(curl.Arg(0), "$url", url, 1)
	req, err := http.NewRequestWithContext(t.Context(), *method, target, &body)
	require.NoError(t, err)
	req.Header = header
	name, key, _ := strings.Cut(*user, ":")
	req.SetBasicAuth(name, key)
	return req
}

// commands returns the words of each command of a shell block, up to a comment or a pipe, as far as the texts need it.
func commands(text string) (all [][]string) {
	text = regexp.MustCompile(`(?m)(^|\s)[#|].*$`).ReplaceAllString(strings.ReplaceAll(text, "\\\n", " "), "")
	for command := range strings.SplitSeq(strings.ReplaceAll(text, " && ", "\n"), "\n") {
		words := regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(command, -1)
		for i, word := range words {
			words[i] = regexp.MustCompile(`'([^']*)'|"([^"]*)"`).ReplaceAllString(word, "$1$2")
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// checkCommand looks for the packages, tests, flags, targets and steps that a command names. Paths may start at the
// root or at the directory of the text.
func checkCommand(t *testing.T, dir string, words []string) {
	t.Helper()
	isVariable := regexp.MustCompile(`^\w+=`).MatchString
	for len(words) > 0 && isVariable(words[0]) {
		words = words[1:]
	}
	switch strings.Join(words[:min(1, len(words))], "") {
	case "go":
		checkGo(t, dir, words[1:])
	case "make":
		for _, target := range words[1:] {
			assertFound(t, "(?m)^"+target+":", "Makefile")
		}
	case ".ci/run":
		for _, step := range words[1:] {
			assertFound(t, `(?m)^step_`+step+`\(\)`, ".ci/run")
		}
	case "", "curl", "git", "mkdir", "cd", "cp": // curl has a test of its own
	default:
		assert.Fail(t, "an unknown command", "%q", words)
	}
}

// checkGo looks for the directories that a go command names, for the tests that -run names, and for the flags of a
// program.
func checkGo(t *testing.T, dir string, args []string) {
	t.Helper()
	root, program := ".", dir // where the command is run, and the package that it names
	for i, arg := range args {
		dirName, isPath := strings.CutPrefix(arg, "./")
		switch {
		case arg == "-C":
			root = args[i+1]
			assertFound(t, "module", path.Join(root, "go.mod"))
		case isPath && dirName != "...":
			program = path.Join(root, dirName)
			if len(list(t, repo(), program)) == 0 {
				program = path.Join(dir, dirName)
			}
			assertFound(t, "package", path.Join(program, "*.go"))
		case arg == "-run" || arg == "-bench":
			name, _, _ := strings.Cut(strings.Trim(args[i+1], "^$"), "/") // without that of a part
			name = `func (Test|Benchmark|Example|Fuzz)\w*` + strings.TrimPrefix(name, "Test")
			assertFound(t, name, path.Join(program, "*_test.go"))
		case program != dir && args[0] == "run" && strings.HasPrefix(arg, "-"):
			assertFound(t, `(?i)flags?\.\w+\(([^",]+, )?"`+strings.TrimLeft(arg, "-")+`"`, path.Join(program, "*.go"))
		}
	}
}

// assertFound wants a pattern in one of the files.
func assertFound(t *testing.T, pattern, files string) {
	t.Helper()
	assert.True(t, slices.ContainsFunc(list(t, repo(), files), func(name string) bool {
		return regexp.MustCompile(pattern).MatchString(read(t, name))
	}), "%s: nothing like %s", files, pattern)
}
