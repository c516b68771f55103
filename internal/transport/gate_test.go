package transport

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type textUpload string

func (u textUpload) Open() io.Reader { return strings.NewReader(string(u)) }
func (u textUpload) Len() int64      { return int64(len(u)) }

// TestGate: after an attempt nobody reads the upload any more, from however many readers net/http has opened.
func TestGate(t *testing.T) {
	t.Parallel()
	g := &gate{Upload: textUpload("content")}
	first, second := g.Open(), g.Open()
	head := make([]byte, 3)
	n, err := first.Read(head)
	require.NoError(t, err)
	assert.Equal(t, "con", string(head[:n]))

	g.close()
	for _, r := range []io.Reader{first, second, g.Open()} {
		_, err := r.Read(head)
		require.ErrorIs(t, err, io.ErrClosedPipe)
	}
}
