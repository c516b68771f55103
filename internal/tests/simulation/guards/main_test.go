package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGuards checks that the text of each guard occurs exactly once in its file, and that the broken text differs.
//
// The files are outside of this module, so the go command does not see when they change, and keeps the result of the
// test. Run the test with -count=1, as .ci/run modules does.
func TestGuards(t *testing.T) {
	t.Parallel()
	for _, g := range guards() {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", g.file))
		require.NoError(t, err)
		assert.Len(t, g.find(text), 1, "%s: %s", g.name, g.old)
		assert.NotEqual(t, g.old, g.broken, g.name)
	}
}
