package inspect

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCommand checks that a shell passes the right arguments to curl, even if they have characters that are special to
// the shell.
func TestCommand(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:8700/x"
	for name, test := range map[string]struct {
		command Command
		want    []string
	}{
		"get":    {Command{Method: "GET", URL: url, Key: "k"}, []string{"-u", ":k", url}},
		"head":   {Command{Method: "HEAD", URL: url, Key: "k"}, []string{"-u", ":k", "-I", url}},
		"delete": {Command{Method: "DELETE", URL: url, Key: "k"}, []string{"-u", ":k", "-X", "DELETE", url}},
		"TLS":    {Command{Method: "GET", URL: "https://x", Key: "k"}, []string{"-k", "-u", ":k", "https://x"}},
		"JSON": {
			Command{Method: "POST", URL: url, Key: "k", JSON: `{"a":"it's $HOME"}`},
			[]string{"-u", ":k", "-H", "Content-Type: application/json", "-d", `{"a":"it's $HOME"}`, url},
		},
		"put": {
			Command{Method: "PUT", URL: url, Key: "k", JSON: "1"},
			[]string{"-u", ":k", "-X", "PUT", "-H", "Content-Type: application/json", "-d", "1", url},
		},
		"form": {
			Command{
				Method: "POST", URL: url, Key: "k",
				Texts: map[string]string{"b": "@x", "a": "\n;"}, Files: map[string]string{"f": "x.pdf"},
			},
			[]string{"-u", ":k", "--form-string", "a=\n;", "--form-string", "b=@x", "-F", "f=@x.pdf", url},
		},
		"signs of the shell": {
			Command{Method: "A;B", URL: url + "?a=$(id)&b=`id`", Key: "a b'\"\\*"},
			[]string{"-u", ":a b'\"\\*", "-X", "A;B", url + "?a=$(id)&b=`id`"},
		},
	} {
		script := `curl() { printf '%s\0' "$@"; }; ` + test.command.String()
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output() //nolint:gosec // commands of this test
		require.NoError(t, err, name)
		assert.Equal(t, test.want, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), name)
	}
}
