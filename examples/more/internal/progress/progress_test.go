package progress

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPlainLines checks the lines that are printed for 30 cards if the output is no terminal.
func TestPlainLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := New(&out, "cards", 30)
	for range 10 {
		p.Add(3)
	}
	p.Stop()
	assert.Equal(t, `3 of 30 cards
6 of 30 cards
9 of 30 cards
12 of 30 cards
15 of 30 cards
18 of 30 cards
21 of 30 cards
24 of 30 cards
27 of 30 cards
30 of 30 cards
`, out.String())
}

// TestFewLinesForManyThings checks that only ten lines are printed for 1,000 things.
func TestFewLinesForManyThings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := New(&out, "customers", 1000)
	for range 250 {
		p.Add(4)
	}
	assert.Equal(t, lines, bytes.Count(out.Bytes(), []byte("\n")))
}

// TestNothingToDo checks that nothing is printed if the total is 0.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := New(&out, "cards", 0)
	p.Stop()
	assert.Empty(t, out.String())
}

// TestBar checks that the bar shows 100 % after all things are done, and that Stop ends it with a line break.
func TestBar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Progress{out: &out, bar: newBar(&out, "cards", 200)}
	p.Add(200)
	p.Stop()
	assert.Contains(t, out.String(), "cards 100%")
	assert.Contains(t, out.String(), "(200/200")
	assert.True(t, bytes.HasSuffix(out.Bytes(), []byte("\n")))
}
