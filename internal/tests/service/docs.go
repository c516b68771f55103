package service

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/tests/calls"
)

// CompareDoc compares a text with what stands in a document between the comments "<!-- name: … -->" and
// "<!-- end of name -->", or writes it there.
func CompareDoc(t *testing.T, document, name, want string, update bool) {
	t.Helper()
	document = filepath.Join(calls.Root(), document)
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	at := regexp.MustCompile(`(?s)(<!-- ` + name + `\b[^\n]*-->\n).*?(<!-- end of ` + name +
		` -->)`).FindSubmatchIndex(content)
	require.NotNil(t, at, document)
	begin, end := at[3], at[4]
	if update {
		//nolint:gosec // a document is read by all
		require.NoError(t, os.WriteFile(document, slices.Concat(content[:begin], []byte(want), content[end:]), 0o644))
		return
	}
	assert.Equal(t, want, string(content[begin:end]), "%s: run the test with -update to write it anew", document)
}
