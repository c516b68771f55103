package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestMain lets the test binary be the program itself, so that a test can kill it.
func TestMain(m *testing.M) {
	if os.Getenv("ACCOUNTUPDATER_PROGRAM") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func nothing(string) string { return "" }

// fixture is an emulator and a file of cards.
type fixture struct {
	t   *testing.T
	srv *payvaulttest.Server
	options
}

func newFixture(t *testing.T, cards int, opts ...payvaulttest.Option) *fixture {
	t.Helper()
	f := &fixture{t: t, srv: payvaulttest.NewServer(opts...)}
	t.Cleanup(f.srv.Close)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f.cards, f.concurrency = filepath.Join(dir, "cards.csv"), 4
	f.checkpoint = f.cards + ".checkpoint"
	f.service, f.merchant = f.srv.URL, strconv.FormatInt(int64(f.srv.Merchant().MerchantID), 10)
	require.NoError(t, generate(f.cards, cards))
	return f
}

// heading is that of the checkpoint of some cards.
func (f *fixture) heading(cards *cardFile) heading {
	return heading{Cards: cards.digest(), Service: f.service, Merchant: f.merchant}
}

// run submits what is left, with the flags given in addition, and returns what was printed.
func (f *fixture) run(ctx context.Context, out io.Writer, flags ...string) (string, error) {
	f.t.Helper()
	o, err := parseOptions(append([]string{"-cards", f.cards}, flags...))
	require.NoError(f.t, err)
	o.service, o.merchant = f.service, f.merchant
	var text bytes.Buffer
	client := f.srv.Client(payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 2, MinBackoff: 1, MaxBackoff: 1}))
	err = submitFile(ctx, client, o, io.MultiWriter(&text, out))
	return text.String(), err
}

// arrived counts how often each card has arrived, and checks that none did twice.
func (f *fixture) arrived() map[string]int {
	f.t.Helper()
	times := map[string]int{}
	for _, request := range f.srv.AccountUpdaterRequests() {
		for _, card := range request.Cards {
			times[card.CardID]++
			assert.Equal(f.t, 1, times[card.CardID], "%s was submitted more than once", card.CardID)
		}
	}
	return times
}

// states are those of the batches that the checkpoint knows.
func (f *fixture) states() map[int]state {
	f.t.Helper()
	cards, err := openCards(f.cards)
	require.NoError(f.t, err)
	defer cards.Close() //nolint:errcheck // it was only read
	c, err := openCheckpoint(f.checkpoint, f.heading(cards))
	require.NoError(f.t, err)
	states := map[int]state{}
	for batch, e := range c.last {
		states[batch] = e.State
	}
	require.NoError(f.t, c.Close())
	return states
}

func TestOfflineRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, nothing, &out))
	assert.Contains(t, out.String(), "50000 of 100000 cards\n")
	assert.Contains(t, out.String(), "100000 of 100000 cards are accepted; in this run 1000 batches were sent.\n")
}

func TestSandboxRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	variables := sandboxed(f.srv)
	require.NoError(t, run(t.Context(), []string{"-cards", f.cards}, func(name string) string { return variables[name] }, io.Discard))
	assert.Len(t, f.arrived(), 250)

	variables["PAYVAULT_API_KEY"] = ""
	require.ErrorContains(t, run(t.Context(), nil, func(name string) string { return variables[name] }, io.Discard), "or none of them")
}

// TestOfflineRunLeavesNothing: what the emulator had is still to be sent to the sandbox.
func TestOfflineRunLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-cards", f.cards}, nothing, &out))
	assert.Contains(t, out.String(), "Offline: the cards go to an emulator, and nothing of the run is kept.\n")
	assert.Contains(t, out.String(), "250 of 250 cards are accepted")
	assert.NoFileExists(t, f.checkpoint)
	variables := sandboxed(f.srv)
	require.NoError(t, run(t.Context(), []string{"-cards", f.cards}, func(name string) string { return variables[name] }, io.Discard))
	assert.Len(t, f.arrived(), 250)

	for _, flags := range [][]string{{"-checkpoint", f.checkpoint}, {"-accepted", "1"}, {"-resend", "1"}} {
		require.ErrorContains(t, run(t.Context(), flags, nothing, io.Discard), "need a sandbox")
	}
}

func TestSandboxGetsNoMadeUpCards(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	variables := sandboxed(f.srv)
	require.ErrorContains(t, run(t.Context(), nil, func(name string) string { return variables[name] }, io.Discard), "-cards is required")
	assert.Empty(t, f.arrived())
}

func sandboxed(srv *payvaulttest.Server) map[string]string {
	return map[string]string{
		"PAYVAULT_BASE_URL":    srv.URL,
		"PAYVAULT_API_KEY":     srv.Merchant().APIKey,
		"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(srv.Merchant().MerchantID), 10),
	}
}

func TestFinishedFileIsNotSubmittedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	out, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Contains(t, out, "250 of 250 cards are accepted; in this run 0 batches were sent.\n")
	assert.Len(t, f.arrived(), 250)
}

// TestFileByAnotherName: a link leads to the same checkpoint.
func TestFileByAnotherName(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 10)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link.csv")
	require.NoError(t, os.Symlink(f.cards, link))
	_, err = f.run(t.Context(), io.Discard, "-cards", link)
	require.NoError(t, err)
	assert.Len(t, f.arrived(), 10)
}

// TestFileWithTwoNames: no name of the checkpoint follows from them.
func TestFileWithTwoNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 10)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link.csv")
	require.NoError(t, os.Link(f.cards, link))
	for _, cards := range []string{f.cards, link} {
		_, err = f.run(t.Context(), io.Discard, "-cards", cards)
		require.ErrorContains(t, err, "has 2 names (hard links)")
		_, err = f.run(t.Context(), io.Discard, "-cards", cards, "-checkpoint", f.checkpoint)
		require.NoError(t, err)
	}
	assert.Len(t, f.arrived(), 10)
}

// changes are what may happen to a file while it is read. The first one moves each card to the next line.
func changes() map[string]func(text string) string {
	const heading, card = "card_number,exp_date,card_id\n", "4111111111111111,0130,card-other1\n"
	return map[string]func(string) string{
		"card inserted": func(text string) string { return heading + card + strings.TrimPrefix(text, heading) },
		"card added":    func(text string) string { return text + card },
		"card removed":  func(text string) string { return text[:len(text)-len(card)] },
		"card changed":  func(text string) string { return text[:len(text)-len(card)] + card },
		"emptied":       func(string) string { return "" },
	}
}

// TestFileThatChangesDuringTheRun: no card is sent as one of another batch than the checkpoint knows it by.
func TestFileThatChangesDuringTheRun(t *testing.T) {
	t.Parallel()
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 3000)
			text, err := os.ReadFile(f.cards)
			require.NoError(t, err)
			once := sync.OnceFunc(func() { assert.NoError(t, os.WriteFile(f.cards, []byte(change(string(text))), 0o600)) })
			_, err = f.run(t.Context(), onLine{"of 3000 cards\n", once})
			require.ErrorIs(t, err, errChanged)
			assert.NotEmpty(t, f.arrived())
			assert.NotContains(t, f.arrived(), "card-other1")
			_, err = f.run(t.Context(), io.Discard)
			require.Error(t, err, "it is another file now")

			require.NoError(t, os.WriteFile(f.cards, text, 0o600)) //nolint:gosec // in the directory of the test
			_, err = f.run(t.Context(), io.Discard)
			require.NoError(t, err)
			assert.Len(t, f.arrived(), 3000)
		})
	}
}

// onLine calls f when a line is printed.
type onLine struct {
	line string
	f    func()
}

func (o onLine) Write(p []byte) (int, error) {
	if strings.Contains(string(p), o.line) {
		o.f()
	}
	return len(p), nil
}

func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3050)
	ctx, interrupt := context.WithCancel(t.Context())
	out, err := f.run(ctx, onLine{"of 3050 cards\n", interrupt})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errIncomplete)
	assert.Contains(t, out, "Waiting for the batches in flight")
	assert.NotContains(t, out, "may have arrived", "those in flight are not cut off")
	first := len(f.arrived())
	assert.Less(t, first, 3050)
	assert.Positive(t, first)

	out, err = f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Contains(t, out, "3050 of 3050 cards are accepted; in this run "+strconv.Itoa((3050-first+99)/100)+" batches were sent.\n")
	assert.Len(t, f.arrived(), 3050)
}

func TestLostAnswerIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 450)
	f.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 1})
	f.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.DropBeforeCommit, Times: 1})
	for range 2 {
		out, err := f.run(t.Context(), io.Discard)
		require.ErrorIs(t, err, errIncomplete)
		assert.Equal(t, 2, strings.Count(out, ": unknown: payvault: account_updater.submit: "), out)
		assert.Contains(t, out, " cards may have arrived. They are not sent again; look them up")
	}
	arrived := f.arrived()
	assert.Less(t, len(arrived), 450)

	flags := f.lookUp(arrived)
	require.Len(t, flags, 4, "one has arrived and one has not")
	_, err := f.run(t.Context(), io.Discard, flags...)
	require.NoError(t, err)
	assert.Len(t, f.arrived(), 450)

	_, err = f.run(t.Context(), io.Discard, flags...)
	require.ErrorContains(t, err, "is not unknown")
}

// lookUp returns the flags that settle the batches of unknown outcome.
func (f *fixture) lookUp(arrived map[string]int) []string {
	f.t.Helper()
	var flags []string
	for batch, state := range f.states() {
		if state != unknown {
			continue
		}
		name := "-resend"
		if arrived["card-"+pad(batch*payvault.MaxAccountUpdaterCards)] > 0 {
			name = "-accepted"
		}
		flags = append(flags, name, strconv.Itoa(batch))
	}
	return flags
}

func pad(n int) string {
	text := strconv.Itoa(n)
	return strings.Repeat("0", 6-len(text)) + text
}

func TestRunEndsWhenAnswersKeepGettingLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3000)
	f.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit})
	_, err := f.run(t.Context(), io.Discard)
	require.ErrorContains(t, err, "stopped after batch 2: ")
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	assert.LessOrEqual(t, len(f.arrived()), (maxUnknown+2*f.concurrency-2)*payvault.MaxAccountUpdaterCards)
}

func TestRunEndsWhenItCannotGoOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault payvaulttest.Fault
		want  error
		state state
	}{
		"rate limit":   {payvaulttest.Fault{Kind: payvaulttest.RateLimit}, payvault.ErrRateLimited, notSent},
		"unreachable":  {payvaulttest.Fault{Kind: payvaulttest.RefuseConnection}, nil, ""},
		"unauthorized": {payvaulttest.Fault{Kind: payvaulttest.OtherCode, Status: 401, Code: 401}, payvault.ErrUnauthorized, refused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 3000)
			remove := f.srv.Inject(test.fault)
			out, err := f.run(t.Context(), io.Discard)
			require.ErrorIs(t, err, errIncomplete)
			assert.Contains(t, out, "0 of 3000 cards are accepted; in this run ")
			assert.LessOrEqual(t, len(f.states()), maxUnknown+2*f.concurrency-2, "a refused connection may have taken a request")
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
				assert.Equal(t, test.state, f.states()[0])
			}
			remove()
			_, _ = f.run(t.Context(), io.Discard)
			if flags := f.lookUp(f.arrived()); len(flags) > 0 {
				_, err = f.run(t.Context(), io.Discard, flags...)
				require.NoError(t, err)
			}
			assert.Len(t, f.arrived(), 3000)
		})
	}
}

// TestRefusedBatch: it was not performed, so the next run may send it; this one goes on with the others.
func TestRefusedBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 650)
	f.srv.Inject(payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 7, Message: "no", Times: 1})
	out, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errIncomplete)
	assert.Contains(t, out, ": refused: payvault: account_updater.submit: status 200 OK: code 7: no\n")
	assert.Contains(t, out, "100 cards are left.\n")
	_, err = f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Len(t, f.arrived(), 650)
}

// TestCardThatCannotBeSent spoils its batch, not the others.
func TestCardThatCannotBeSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	file, err := os.OpenFile(f.cards, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	for i := range 250 {
		expires := "0130"
		if i == 150 {
			expires = "1330"
		}
		_, err = io.WriteString(file, "4111111111111111,"+expires+",card-"+pad(i)+"\n")
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	out, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errIncomplete)
	assert.Contains(t, out, "Batch 1 (lines 102 to 201): not sent: payvault: account_updater.submit: ")
	assert.Contains(t, out, "data[50].exp_date")
	assert.NotContains(t, out, "4111111111111111")
	assert.Len(t, f.arrived(), 150)
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	for text, want := range map[string]string{
		"":                                  "the first line is not",
		"number,date,id\n":                  "the first line is not",
		"card_number,exp_date,card_id\n4,1": "wrong number of fields",
	} {
		require.NoError(t, os.WriteFile(f.cards, []byte(text), 0o600))
		_, err := f.run(t.Context(), io.Discard)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, f.cards)
	}
	_, err := f.run(t.Context(), io.Discard, "-cards", f.cards+"x")
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Empty(t, f.arrived())
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, run(t.Context(), []string{"-generate", path}, nothing, io.Discard))
	cards, err := openCards(path)
	require.NoError(t, err)
	assert.Equal(t, 100_000, cards.count)
	assert.Equal(t, 1000, cards.batches())
	require.NoError(t, cards.Close())
	require.ErrorIs(t, run(t.Context(), []string{"-generate", path}, nothing, io.Discard), os.ErrExist)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, nothing, io.Discard), flag.ErrHelp)
	require.ErrorContains(t, run(t.Context(), []string{"cards.csv"}, nothing, io.Discard), `unexpected argument "cards.csv"`)
	require.ErrorContains(t, run(t.Context(), []string{"-resend", "1,x"}, nothing, io.Discard), `"x" is not the number of a batch`)
	require.ErrorContains(t, run(t.Context(), []string{"-accepted", "3", "-resend", "2,3"}, nothing, io.Discard), "batch 3 is in both lists")
}

func TestOutlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		calls, cancel := outlive(ctx, grace)
		defer cancel()
		start := time.Now()
		interrupt()
		<-calls.Done()
		assert.Equal(t, grace, time.Since(start))

		calls, cancel = outlive(t.Context(), grace)
		cancel()
		require.ErrorIs(t, calls.Err(), context.Canceled)
	})
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	assert.Equal(t, accepted, outcome(nil))
	assert.Equal(t, unknown, outcome(errors.New("of something else")))
	assert.Equal(t, unknown, outcome(&payvault.Error{StatusCode: 429, Delivery: payvault.Unknown}), "an attempt before was lost")
	assert.Equal(t, notSent, outcome(&payvault.Error{StatusCode: 429, Delivery: payvault.Answered}))
	assert.Equal(t, refused, outcome(&payvault.Error{StatusCode: 400, Delivery: payvault.Answered}))
}
