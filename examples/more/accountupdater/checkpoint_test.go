package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// these are the cards, the service and the merchant of a checkpoint.
func these() heading {
	return heading{Cards: "d1gest", Service: "https://sandbox.example.com", Merchant: "1"}
}

// reopen returns the checkpoint as the next run finds it.
func reopen(t *testing.T, path string) *checkpoint {
	t.Helper()
	c, err := openCheckpoint(path, these())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestCheckpointRemembers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoint")
	c := reopen(t, path)
	for batch := range 5 {
		require.NoError(t, c.intend(batch))
	}
	for batch, state := range []state{accepted, refused, notSent, unknown} { // 4 was being sent when the program died
		require.NoError(t, c.record(entry{Batch: batch, State: state}))
	}
	require.NoError(t, c.Close())

	c = reopen(t, path)
	for batch, want := range []state{accepted, refused, notSent, unknown, unknown, ""} {
		assert.Equal(t, want, c.last[batch].State, batch)
		if want.mayBeSent() {
			require.NoError(t, c.intend(batch))
		} else {
			require.Error(t, c.intend(batch))
		}
	}
}

func TestCheckpointLocksOutOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoint")
	c := reopen(t, path)
	_, err := openCheckpoint(path, these())
	require.ErrorIs(t, err, errInUse)
	symlink, hardLink := path+".symlink", path+".link"
	require.NoError(t, os.Symlink(path, symlink))
	require.NoError(t, os.Link(path, hardLink))
	for _, name := range []string{symlink, hardLink} {
		_, err = openCheckpoint(name, these())
		require.ErrorIs(t, err, errInUse, name)
	}
	require.NoError(t, c.Close())
	reopen(t, path)
}

// TestCheckpointBehindALink is one that is not there yet.
func TestCheckpointBehindALink(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoint")
	require.NoError(t, os.Symlink(path, path+".symlink"))
	require.NoError(t, reopen(t, path+".symlink").intend(0))
	_, err := openCheckpoint(path, these())
	require.ErrorIs(t, err, errInUse)
}

func TestSettleIsAllOrNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoint")
	c := reopen(t, path)
	require.NoError(t, c.intend(3))
	require.NoError(t, c.Close())
	c = reopen(t, path)
	require.EqualError(t, c.settle(map[int]state{3: accepted, 4: notSent}), "the outcome of batch 4 is not unknown; nothing was settled")
	assert.Equal(t, unknown, c.last[3].State)
	require.NoError(t, c.settle(map[int]state{3: notSent}))
	require.NoError(t, c.intend(3))
}

func TestCheckpointIsThatOfItsCards(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 5)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	require.NoError(t, os.Remove(f.cards))
	require.NoError(t, generate(f.cards, 6))
	_, err = f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errOtherCards)
	assert.Len(t, f.arrived(), 5)
}

// TestCheckpointIsThatOfItsService: what one service or merchant has, another one has not.
func TestCheckpointIsThatOfItsService(t *testing.T) {
	t.Parallel()
	f, other := newFixture(t, 5), newFixture(t, 5)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	before, err := os.ReadFile(f.checkpoint)
	require.NoError(t, err)

	other.cards = f.cards
	_, err = other.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errOtherService)
	require.ErrorContains(t, err, "of merchant "+f.merchant+" at "+f.service+", not of merchant "+other.merchant+" at "+other.service)
	assert.Empty(t, other.arrived())
	f.merchant = "2"
	_, err = f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errOtherService)

	after, err := os.ReadFile(f.checkpoint)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

// TestCheckpointCutOffAnywhere cuts the checkpoint off at each byte, as a crash would. Whatever is left, a batch whose intent
// was on disk is never taken for unsent, and what is added later can be read.
func TestCheckpointCutOffAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := reopen(t, filepath.Join(dir, "whole"))
	require.NoError(t, c.intend(0))
	intended, err := os.ReadFile(filepath.Join(dir, "whole"))
	require.NoError(t, err)
	require.NoError(t, c.record(entry{Batch: 0, State: accepted, RequestID: "R1"}))
	whole, err := os.ReadFile(filepath.Join(dir, "whole"))
	require.NoError(t, err)
	for length := range len(whole) {
		path := filepath.Join(dir, "cut")
		require.NoError(t, os.WriteFile(path, whole[:length], 0o600)) //nolint:gosec // in the directory of the test
		c, err := openCheckpoint(path, these())
		require.NoError(t, err)
		if length >= len(intended) {
			assert.Equal(t, unknown, c.last[0].State)
		} else {
			assert.Empty(t, c.last)
		}
		require.NoError(t, c.intend(1))
		require.NoError(t, c.Close())
		c, err = openCheckpoint(path, these())
		require.NoError(t, err)
		assert.Equal(t, unknown, c.last[1].State)
		require.NoError(t, c.Close())
	}
}

func TestDamagedCheckpoints(t *testing.T) {
	t.Parallel()
	const heading = `{"cards_sha256":"d1gest","base_url":"https://sandbox.example.com","merchant_id":"1"}` + "\n"
	for text, want := range map[string]string{
		"my shopping list\n":                       "not a checkpoint",
		"my shopping list":                         "not a checkpoint",
		"{}\n":                                     "not a checkpoint",
		`{"cards_sha256":"?"}` + "\n":              errOtherCards.Error(),
		`{"cards_sha256":"d1gest"}` + "\n":         errOtherService.Error(),
		heading + "\x00\x00\n":                     "damaged",
		heading + `{"batch":1,"state":"?"}` + "\n": `damaged: batch 1 is "?"`,
	} {
		path := filepath.Join(t.TempDir(), "checkpoint")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := openCheckpoint(path, these())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(left), "it is left as it is")
	}
	_, err := openCheckpoint(filepath.Join(t.TempDir(), "no", "checkpoint"), these())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestNothingIsSentThatCannotBeRecorded closes the checkpoint behind the program's back.
func TestNothingIsSentThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 500)
	cards, err := openCards(f.cards)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cards.Close() })
	c := reopen(t, f.checkpoint)
	require.NoError(t, c.file.Close())
	var out strings.Builder
	s := &submission{cards: cards, checkpoint: c, out: &out}
	s.run(t.Context(), f.srv.Client(), f.concurrency)
	require.ErrorIs(t, s.failed, os.ErrClosed)
	require.ErrorIs(t, c.record(entry{}), os.ErrClosed, "no line may follow")
	assert.Empty(t, f.arrived())
}

// TestResultThatCannotBeRecorded: no further batch is sent, and the one that was is reported later.
func TestResultThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3000)
	cards, err := openCards(f.cards)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cards.Close() })
	c, err := openCheckpoint(f.checkpoint, f.heading(cards))
	require.NoError(t, err)
	s := &submission{cards: cards, checkpoint: c, out: onLine{"of 3000 cards\n", func() { _ = c.file.Close() }}}
	s.run(t.Context(), f.srv.Client(), f.concurrency)
	require.ErrorIs(t, s.failed, os.ErrClosed)
	require.Error(t, c.Close())

	before := f.arrived()
	assert.Less(t, len(before), 3000)
	require.ErrorIs(t, second(f.run(t.Context(), io.Discard)), errIncomplete)
	flags := f.lookUp(before)
	require.NotEmpty(t, flags)
	require.NoError(t, second(f.run(t.Context(), io.Discard, flags...)))
	assert.Len(t, f.arrived(), 3000)
}

func second(_ string, err error) error { return err }
