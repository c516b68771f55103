package repository

import (
	"bytes"
	"flag"
	"io"
	"mime/multipart"
	"net/http"
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

// TestEmulatorCurl checks that all curl commands in the emulator's README succeed one after the other, and that no two
// of them call the same operation.
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

// curlRequest returns the request that a curl command would send. It supports only the flags that the README uses.
func curlRequest(t *testing.T, url string, words []string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form, kind := multipart.NewWriter(&body), ""
	curl := flag.NewFlagSet("curl", flag.ContinueOnError)
	user, method := curl.String("u", "", ""), curl.String("X", "", "")
	curl.Func("H", "", func(header string) error {
		kind = strings.TrimPrefix(header, "Content-Type: ")
		return nil
	})
	curl.Func("d", "", func(text string) error {
		_, err := body.WriteString(text)
		return err
	})
	curl.Func("F", "", func(part string) error { // name=value or name=@file;type=kind; the kind is ignored
		kind = form.FormDataContentType()
		name, value, _ := strings.Cut(part, "=")
		file, isFile := strings.CutPrefix(value, "@")
		if !isFile {
			return form.WriteField(name, value)
		}
		file, _, _ = strings.Cut(file, ";")
		w, err := form.CreateFormFile(name, path.Base(file))
		require.NoError(t, err)
		_, err = io.WriteString(w, read(t, file))
		return err
	})
	require.NoError(t, curl.Parse(words))
	if kind == form.FormDataContentType() {
		require.NoError(t, form.Close())
	}
	if kind != "" && *method == "" {
		*method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), *method, strings.Replace(curl.Arg(0), "$url", url, 1), &body)
	require.NoError(t, err)
	req.Header = http.Header{"Accept": {"*/*"}, "Content-Type": {kind}}
	name, key, _ := strings.Cut(*user, ":")
	req.SetBasicAuth(name, key)
	return req
}

// commands returns the words of each command in a shell block. It drops comments, variable assignments before a
// command, and everything after a pipe.
func commands(text string) (all [][]string) {
	text = strings.NewReplacer("\\\n", " ", " && ", "\n").Replace(text)
	text = regexp.MustCompile(`(?m)(^|\s)[#|].*$|^(\w+=\S* ?)+`).ReplaceAllString(text, "")
	for command := range strings.Lines(text) {
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

// checkCommand checks that the make targets, CI steps, packages, tests and benchmarks in a command exist. For go run,
// it also checks the program's flags. Paths may start at the root of the repository or at the directory of the
// document.
func checkCommand(t *testing.T, dir string, words []string) {
	t.Helper()
	known := []string{"go", "make", ".ci/run", "curl", "git", "mkdir", "cd", "cp"} // TestEmulatorCurl checks curl
	assert.Contains(t, known, words[0])
	root, program := ".", dir // the directory in which the command runs, and the package that it names
	for i, word := range words[1:] {
		switch {
		case words[0] == "curl":
			assert.NotEqual(t, "--json", word, "importers of curl commands make a GET without a body of it")
		case words[0] == "make":
			assertFound(t, "(?m)^"+word+":", "Makefile")
		case words[0] == ".ci/run":
			assertFound(t, `(?m)^step_`+word+`\(\)`, ".ci/run")
		case words[0] != "go":
		case word == "-C":
			root = words[i+2]
			assertFound(t, "module", path.Join(root, "go.mod"))
		case strings.HasPrefix(word, "./") && word != "./...":
			if program = path.Join(root, word); len(list(t, repo(), program)) == 0 {
				program = path.Join(dir, word)
			}
			assertFound(t, "package", path.Join(program, "*.go"))
		case word == "-run" || word == "-bench":
			name, _, _ := strings.Cut(strings.Trim(words[i+2], "^$"), "/") // without the name of a subtest
			name = `func (Test|Benchmark|Example|Fuzz)\w*` + strings.TrimPrefix(name, "Test")
			assertFound(t, name, path.Join(program, "*_test.go"))
		case slices.Contains(words, "run") && strings.HasPrefix(word, "-"):
			assertFound(t, `(?i)flags?\.\w+\(([^",]+, )?"`+strings.TrimLeft(word, "-")+`"`, path.Join(program, "*.go"))
		}
	}
}

// assertFound checks that a regular expression matches at least one file. The parameter files is a glob pattern for
// the paths.
func assertFound(t *testing.T, pattern, files string) {
	t.Helper()
	assert.True(t, slices.ContainsFunc(list(t, repo(), files), func(name string) bool {
		return regexp.MustCompile(pattern).MatchString(read(t, name))
	}), "%s: nothing like %s", files, pattern)
}
