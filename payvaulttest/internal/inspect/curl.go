package inspect

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// A Command is a request that can be written as a curl command.
type Command struct {
	Method string
	URL    string
	Key    string            // API key
	JSON   string            // JSON body; empty if there is none
	Texts  map[string]string // contents of the text parts of a form, by name
	Files  map[string]string // file names of the file parts of a form, by name
}

// plain matches a word that needs no quotes in a shell.
var plain = regexp.MustCompile(`^[\w.:/@%+=-]+$`)

// String returns the curl command, for a POSIX shell.
func (c Command) String() string {
	words := []string{"curl"}
	if strings.HasPrefix(c.URL, "https:") {
		words = append(words, "-k") // curl does not trust the emulator's certificate
	}
	words = append(words, "-u", ":"+c.Key)
	method := http.MethodGet
	if c.JSON != "" || len(c.Texts)+len(c.Files) > 0 {
		method = http.MethodPost
	}
	switch {
	case c.Method == http.MethodHead:
		words = append(words, "-I")
	case c.Method != method:
		words = append(words, "-X", c.Method)
	}
	if c.JSON != "" {
		words = append(words, "-H", "Content-Type: application/json", "-d", c.JSON) // importers of commands ignore --json
	}
	for _, name := range slices.Sorted(maps.Keys(c.Texts)) {
		words = append(words, "--form-string", name+"="+c.Texts[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		words = append(words, "-F", name+"=@"+c.Files[name])
	}
	words = append(words, c.URL)
	for i, word := range words {
		if !plain.MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Fill returns a value with the structure of a shape that [Shape] returned. It has 0 for each number, true for each
// flag, nil for each null and fillIn for every other value. Fill leaves out the names and elements that Shape left out.
func Fill(shape any) any {
	switch v := shape.(type) {
	case map[string]any:
		filled := map[string]any{}
		for name, value := range v {
			if name != unknown && name != more {
				filled[name] = Fill(value)
			}
		}
		return filled
	case []any:
		filled := []any{}
		for _, value := range v {
			if text, ok := value.(string); !ok || !strings.HasPrefix(text, more) {
				filled = append(filled, Fill(value))
			}
		}
		return filled
	}
	switch shape {
	case "flag":
		return true
	case "number":
		return 0
	case "null":
		return nil
	}
	return FillIn
}
