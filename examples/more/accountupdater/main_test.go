package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestMain runs the program itself if ACCOUNTUPDATER_PROGRAM is set, so that TestKilled can start the program and kill
// it.
func TestMain(m *testing.M) {
	if os.Getenv("ACCOUNTUPDATER_PROGRAM") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// fixture has what a run of the program needs: an emulator as the sandbox, a file of cards, arguments and environment
// variables.
type fixture struct {
	srv       *payvaulttest.Server
	cards     string
	args      []string // arguments of a command, such as unresolved; none to submit the cards
	variables map[string]string
}

func newFixture(t *testing.T, cards int) *fixture {
	t.Helper()
	f := &fixture{srv: payvaulttest.NewServer(), cards: filepath.Join(t.TempDir(), "cards.csv")}
	t.Cleanup(f.srv.Close)
	require.NoError(t, generate(f.cards, cards))
	f.variables = map[string]string{
		"PAYVAULT_BASE_URL":    f.srv.URL,
		"PAYVAULT_API_KEY":     f.srv.Merchant().APIKey,
		"PAYVAULT_MERCHANT_ID": strconv.FormatInt(int64(f.srv.Merchant().MerchantID), 10),
	}
	return f
}

func (f *fixture) getenv(name string) string { return f.variables[name] }

// run runs the program and returns its output. It also writes the output to out.
func (f *fixture) run(ctx context.Context, out io.Writer) (string, error) {
	var text bytes.Buffer
	err := run(ctx, f.cards, f.args, f.getenv, io.MultiWriter(&text, out))
	return text.String(), err
}

// arrived returns the number of cards that the emulator has received, and checks that it received no card twice.
func (f *fixture) arrived(t *testing.T) int {
	t.Helper()
	cards := map[string]bool{}
	for _, request := range f.srv.AccountUpdaterRequests.All() {
		for _, card := range request.Cards {
			assert.False(t, cards[card.CardID], "%s was submitted more than once", card.CardID)
			cards[card.CardID] = true
		}
	}
	return len(cards)
}

// TestOffline checks that a run without environment variables submits 100,000 made-up cards to an emulator.
func TestOffline(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "", nil, func(string) string { return "" }, &out))
	assert.True(t, strings.HasPrefix(out.String(), "Offline: "))
	assert.Contains(t, out.String(), "50000 of 100000 cards\n")
	assert.Contains(t, out.String(), "100000 of 100000 cards are accepted, 0 are refused, ")
}

// TestSecondRunSendsNothing checks that a second run with the same file sends nothing if all cards are accepted.
func TestSecondRunSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	for range 2 {
		out, err := f.run(t.Context(), io.Discard)
		require.NoError(t, err)
		assert.Contains(t, out, "250 of 250 cards are accepted, 0 are refused, 0 may have arrived, ")
		assert.Equal(t, 3, f.srv.Commits(payvault.OpAccountUpdaterSubmit))
	}
}

// TestInterrupted checks that a run waits for the requests in flight if ctrl-C cancels its context. A later run must
// send the remaining cards.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 5000)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		out, err := f.run(ctx, writer(func(text string) { // cancel after the first line that reports progress
			if strings.Contains(text, " of 5000 cards\n") {
				cancel()
			}
		}))
		require.ErrorIs(t, err, context.Canceled)
		var accepted, refused, unknown, left int
		_, err = fmt.Sscanf(out[strings.LastIndex(out[:len(out)-1], "\n")+1:],
			"%d of 5000 cards are accepted, %d are refused, %d may have arrived, "+
				"0 cannot be sent, %d are left to the next run.\n",
			&accepted, &refused, &unknown, &left)
		require.NoError(t, err, out)
		assert.Positive(t, accepted)
		assert.Equal(t, []int{0, 0, 5000 - accepted}, []int{refused, unknown, left})
	}
	assert.Less(t, f.arrived(t), 5000)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, 5000, f.arrived(t))
}

// TestInterruptedWhileRefused checks that a run that waits after a 429 stops at once when its context is canceled.
func TestInterruptedWhileRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 5000)
	inject(t, f.srv, payvaulttest.Fault{
		Operation: payvault.OpAccountUpdaterSubmit, Kind: payvaulttest.RateLimit, RetryAfter: "25",
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	_, err := f.run(ctx, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(start), 20*time.Second)
	assert.Zero(t, f.arrived(t))
}

type writer func(text string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// TestLink checks that a run with a symbolic link to a file uses the journal of the file, and so sends nothing twice.
func TestLink(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	link := filepath.Join(t.TempDir(), "link.csv")
	require.NoError(t, os.Symlink(f.cards, link))
	for _, name := range []string{f.cards, link} {
		f.cards = name
		_, err := f.run(t.Context(), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, 250, f.arrived(t))
	}
}

// TestFailures checks that later runs send a batch that was refused with 429, and do not send a batch that may have
// arrived.
func TestFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1000)
	inject(t, f.srv, payvaulttest.Fault{
		Operation: payvault.OpAccountUpdaterSubmit, Kind: payvaulttest.DropAfterCommit, Times: 1,
	})
	inject(t, f.srv, payvaulttest.Fault{
		Operation: payvault.OpAccountUpdaterSubmit, Kind: payvaulttest.RateLimit, RetryAfter: "3600", Times: 1,
	})
	_, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, payvault.ErrRateLimited)
	for range 2 {
		out, err := f.run(t.Context(), io.Discard)
		require.ErrorIs(t, err, errNotAccepted)
		assert.Contains(t, out, "(outcome unknown)\n")
		assert.Contains(t, out, "900 of 1000 cards are accepted, 0 are refused, 100 may have arrived, ")
		assert.Equal(t, 1000, f.arrived(t))
	}
}

// TestServiceThatIsDown checks that the program stops with exit status 5 after 16 batches of unknown outcome in a row,
// and after the 403 of a firewall. The error must say that nobody may start the program again before looking up the
// batches.
func TestServiceThatIsDown(t *testing.T) {
	t.Parallel()
	for status, reason := range map[int]string{
		503: "the last 16 batches are of unknown outcome", 403: "no code: a request was refused with status 403",
	} {
		f := newFixture(t, 5000)
		inject(t, f.srv, payvaulttest.Fault{
			Operation: payvault.OpAccountUpdaterSubmit, Kind: payvaulttest.Respond, Status: status,
		})
		_, err := f.run(t.Context(), io.Discard)
		require.ErrorContains(t, err, reason)
		require.ErrorContains(t, err, "do not start the program again before")
		assert.Equal(t, 5, exitStatus(err))
	}
}

// TestKilled kills the program and starts it again. The program must send no card twice, and report the batches that
// were in flight.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 10_000)
	remove := inject(t, f.srv, payvaulttest.Fault{Kind: payvaulttest.Delay, Delay: 5 * time.Millisecond})
	program := exec.CommandContext(t.Context(), os.Args[0], "-cards", f.cards) //nolint:gosec // the test binary itself
	program.Env = append(os.Environ(), "ACCOUNTUPDATER_PROGRAM=1")
	for name, value := range f.variables {
		program.Env = append(program.Env, name+"="+value)
	}
	require.NoError(t, program.Start())
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for f.srv.Commits(payvault.OpAccountUpdaterSubmit) < 20 {
		<-look.C
	}
	require.NoError(t, program.Process.Kill())
	require.Error(t, program.Wait())
	remove()
	out, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errNotAccepted)
	assert.Contains(t, out, "another run has the lease of the job: waiting for its end\" lease=5s")
	assert.Contains(t, out, "an earlier run began the batch and did not end it (outcome unknown)\n")
	assert.Greater(t, f.arrived(t), 5000)
}

// TestFilesThatAreRefused checks that the program refuses a file that cannot be read or has no valid card, and says
// why. Nothing may be sent, and no journal may be created.
func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	const heading = "card_number,exp_date,card_id\n"
	for text, want := range map[string]string{
		"":                                     "has no card that can be sent",
		heading:                                "has no card that can be sent",
		"4111111111111111;0130;c1\n":           "line 1 cannot be sent: it has 1 fields",
		heading + "0130,c1,4111111111111111\n": "line 2 cannot be sent: payvault: ",
		"%PDF-1.7\n\x00\"\x01\n":               "line 2 cannot be sent: a quotation mark is wrong",
		heading + strings.Repeat("x", 1<<20):   "token too long",
	} {
		f := newFixture(t, 0)
		require.NoError(t, os.WriteFile(f.cards, []byte(text), 0o600))
		_, err := f.run(t.Context(), io.Discard)
		require.ErrorContains(t, err, want)
		assert.Equal(t, 1, exitStatus(err))
		assert.NotContains(t, err.Error(), "41111111")
		assert.Zero(t, f.srv.Commits(payvault.OpAccountUpdaterSubmit))
		assert.NoFileExists(t, f.cards+".journal")
	}
}

// TestRowsThatCannotBeSent checks that the program skips rows that cannot be sent, even 100 consecutive rows, and
// prints their line numbers. All other cards must be accepted.
func TestRowsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	const good, bad = "4111111111111111,0130,%d\n", "4111-1111,0130,%d\n"
	var text strings.Builder
	text.WriteString("\ufeffcard_number,exp_date,card_id\n4111111111111111,0130,Jos\xe9\n4111111111111111,\"0130,c\n")
	for i := range 348 {
		row := good
		if i >= 98 && i < 198 {
			row = bad
		}
		fmt.Fprintf(&text, row, i)
	}
	require.NoError(t, os.WriteFile(f.cards, []byte(text.String()), 0o600))
	for range 2 {
		out, err := f.run(t.Context(), io.Discard)
		require.ErrorIs(t, err, errLeftOut)
		assert.Equal(t, 4, exitStatus(err))
		for _, want := range []string{
			"line 2 cannot be sent: payvault: ", "card_id is not valid UTF-8",
			"line 3 cannot be sent: a quotation mark is wrong", "line 102 cannot be sent: payvault: ",
			"line 201 cannot be sent: payvault: ", "card_number is not 12 to 19 digits",
			"248 of 350 cards are accepted, 0 are refused, 0 may have arrived, 102 cannot be sent, 0 are left",
		} {
			assert.Contains(t, out, want)
		}
		assert.Equal(t, 102, strings.Count(out, " cannot be sent: "))
		assert.NotRegexp(t, "41111111|4111-1111", out)
		assert.Equal(t, 248, f.arrived(t))
		assert.Equal(t, 3, f.srv.Commits(payvault.OpAccountUpdaterSubmit))
	}
}

// TestRefused checks that the program prints the line number of the card that a refusal names as data[7]. The command
// refused prints it too, in a later run.
func TestRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	text := "number,expiry,id\n4111-1111,0130,c1\n" + strings.Repeat("4111111111111111,0130,c1\n", 50)
	require.NoError(t, os.WriteFile(f.cards, []byte(text), 0o600))
	inject(t, f.srv, payvaulttest.Fault{
		Kind: payvaulttest.Respond, Status: 400, Times: 1,
		Body: `{"code":2,"message":"Invalid","data":{"data[7].exp_date":["is in the past"],"data[70]":["is not there"]}}`,
	})
	out, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errNotAccepted)
	assert.Equal(t, 3, exitStatus(err))
	assert.Contains(t, out, "batch 0, lines 2 to 52: payvault: ")
	assert.Contains(t, out, "; line 10: data[7].exp_date is in the past\n")
	f.args = []string{"refused"}
	out, err = f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Contains(t, out, "; line 10: data[7].exp_date is in the past\n")
}

// TestCommands checks that the commands unresolved and refused list the right batches, and that the next run obeys the
// outcomes that the command resolve has recorded.
func TestCommands(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 350)
	for _, fault := range []payvaulttest.Fault{
		{Kind: payvaulttest.DropAfterCommit, Times: 2}, {Kind: payvaulttest.OtherCode, Code: 5, Message: "no", Times: 1},
	} {
		fault.Operation = payvault.OpAccountUpdaterSubmit
		inject(t, f.srv, fault)
	}
	command := func(args ...string) string {
		f.args = args
		out, err := f.run(t.Context(), io.Discard)
		require.NoError(t, err)
		f.args = nil
		return out
	}
	_, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errNotAccepted)

	batches := regexp.MustCompile(`(?m)^batch (\d), lines \d+ to \d+: (5 no$)?`)
	unresolved := batches.FindAllStringSubmatch(command("unresolved"), -1)
	require.Len(t, unresolved, 2)
	refused := batches.FindAllStringSubmatch(command("refused"), -1)
	require.Len(t, refused, 1)
	assert.Equal(t, "5 no", refused[0][2])
	assert.Contains(t, command("resolve", unresolved[0][1], "accepted"), " is recorded as accepted\n")
	assert.Contains(t, command("resolve", unresolved[1][1], "refused"), " is recorded as refused\n")
	assert.Contains(t, command("resolve", refused[0][1], "not-sent"), " is recorded as not sent\n")
	assert.Equal(t, "0 batches\n", command("unresolved"))
	assert.Contains(t, command("refused"), "1 batches\n")

	_, err = f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errNotAccepted)
	assert.Equal(t, 350, f.arrived(t), "what was not sent, and nothing else")
	command("resolve", unresolved[1][1], "accepted")
	out, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Contains(t, out, "350 of 350 cards are accepted")
}

// TestWrongCommands checks that an invalid command is an error with exit status 2. If a file has no journal, a command
// must not create one.
func TestWrongCommands(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	for _, args := range [][]string{
		{"unresolve"},
		{"unresolved", "1"},
		{"resolve"},
		{"resolve", "1"},
		{"resolve", "x", "accepted"},
		{"resolve", "1", "unknown"},
		{"resolve", "1", "not", "sent"},
	} {
		f.args = args
		_, err := f.run(t.Context(), io.Discard)
		require.ErrorIs(t, err, errUsage)
		assert.Equal(t, 2, exitStatus(err))
	}
	f.args = []string{"unresolved"}
	_, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.NoFileExists(t, f.cards+".journal")
	require.ErrorIs(t, run(t.Context(), "", f.args, f.getenv, io.Discard), errUsage)
}

// TestFinishedJob checks a file whose cards are all accepted. The command resolve must not change the outcome of a
// batch. If a card is added to the file, the program must refuse the file.
func TestFinishedJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	f.args = []string{"resolve", "1", "not-sent"}
	_, err = f.run(t.Context(), io.Discard)
	require.ErrorContains(t, err, "batch 1 of the job is neither of unknown outcome nor refused")
	require.NoError(t, generate(f.cards, 251))
	_, err = f.run(t.Context(), io.Discard)
	require.ErrorContains(t, err, "put new cards into another file")
}

// TestFileThatHasChanged checks that the program refuses a file that has changed since the first run. With the original
// content, a run must send nothing. After the journal is removed, a run must send all cards again.
func TestFileThatHasChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(text string) string{
		"more":  func(text string) string { return text + strings.Repeat("4111111111111111,0130,more\n", 100) },
		"fewer": func(text string) string { return text[:len(text)/2+strings.Index(text[len(text)/2:], "\n")+1] },
		"other": func(text string) string { return strings.Replace(text, "\n4", "\n5", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 250)
			_, err := f.run(t.Context(), io.Discard)
			require.NoError(t, err)
			content, err := os.ReadFile(f.cards)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(f.cards, []byte(change(string(content))), 0o600))
			for range 2 {
				_, err = f.run(t.Context(), io.Discard)
				require.ErrorContains(t, err, "put new cards into another file")
			}
			assert.Equal(t, 250, f.arrived(t))

			require.NoError(t, generate(f.cards, 250))
			out, err := f.run(t.Context(), io.Discard)
			require.NoError(t, err)
			assert.Contains(t, out, "250 of 250 cards are accepted")
			assert.Equal(t, 3, f.srv.Commits(payvault.OpAccountUpdaterSubmit))

			require.NoError(t, os.Remove(f.cards+".journal"))
			_, err = f.run(t.Context(), io.Discard)
			require.NoError(t, err)
			assert.Equal(t, 6, f.srv.Commits(payvault.OpAccountUpdaterSubmit), "without the journal, all cards are sent again")
		})
	}
}

// TestSum checks that readCards computes the same name for a file as payvault.JobName.
func TestSum(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	cards, err := readCards(f.cards)
	require.NoError(t, err)
	content, err := os.ReadFile(f.cards)
	require.NoError(t, err)
	want, err := payvault.JobName(bytes.NewReader(content))
	require.NoError(t, err)
	assert.Equal(t, want, cards.sum)
}

// TestOfflineTakesNoCards checks that a run without environment variables refuses a file of cards.
func TestOfflineTakesNoCards(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	var out bytes.Buffer
	require.ErrorContains(t, run(t.Context(), f.cards, nil, func(string) string { return "" }, &out),
		"set PAYVAULT_BASE_URL, ")
	assert.Empty(t, out.String())
}

// TestFileThatBreaksOff checks that a run fails if the file is truncated while the cards are submitted. A run with the
// original file must send the remaining cards.
func TestFileThatBreaksOff(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(whole string) int{
		"in a number": func(whole string) int { return strings.LastIndex(whole[:len(whole)/2], "\n") + 5 },
		"at a line":   func(whole string) int { return strings.LastIndex(whole[:len(whole)/2], "\n") + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 8000)
			whole, err := os.ReadFile(f.cards)
			require.NoError(t, err)
			out, err := f.run(t.Context(), writer(func(text string) {
				if strings.HasPrefix(text, "800 of") {
					assert.NoError(t, os.Truncate(f.cards, int64(at(string(whole)))))
				}
			}))
			require.ErrorContains(t, err, "cards.csv has changed")
			assert.NotContains(t, out, " 0 are left")
			require.NoError(t, generate(f.cards, 8000))
			_, err = f.run(t.Context(), io.Discard)
			require.NoError(t, err)
			assert.Equal(t, 8000, f.arrived(t))
		})
	}
}

// TestBaseURLs checks that a slash at the end of the base URL makes no difference: the second run must send nothing.
func TestBaseURLs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	for range 2 {
		_, err := f.run(t.Context(), io.Discard)
		require.NoError(t, err)
		f.variables["PAYVAULT_BASE_URL"] += "/"
	}
	assert.Equal(t, 250, f.arrived(t))
}

// TestJournalOfAnotherService checks that a file is refused if its journal belongs to another base URL or merchant.
func TestJournalOfAnotherService(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 250)
	_, err := f.run(t.Context(), io.Discard)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"PAYVAULT_BASE_URL": strings.Replace(f.srv.URL, "127.0.0.1", "localhost", 1), "PAYVAULT_MERCHANT_ID": "4",
	} {
		was := f.variables[name]
		f.variables[name] = value
		_, err = f.run(t.Context(), io.Discard)
		require.ErrorContains(t, err, "put new cards into another file")
		f.variables[name] = was
	}
	assert.Equal(t, 250, f.arrived(t))
}

// TestBlankLines checks that the program prints the right line numbers of refused batches if the file has blank lines.
func TestBlankLines(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	text := "card_number,exp_date,card_id\n" + strings.Repeat("\n4111111111111111,0130,c1\n", 250)
	require.NoError(t, os.WriteFile(f.cards, []byte(text), 0o600))
	inject(t, f.srv, payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 5, Message: "Example refusal"})
	out, err := f.run(t.Context(), io.Discard)
	require.ErrorIs(t, err, errNotAccepted)
	assert.Contains(t, out, "batch 0, lines 3 to 201: payvault: ")
	assert.Contains(t, out, "batch 2, lines 403 to 501: payvault: ")
}

// TestSandboxGetsNoMadeUpCards checks that a run against a sandbox fails if -cards is missing, or if one of the three
// PAYVAULT variables is not set.
func TestSandboxGetsNoMadeUpCards(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	require.ErrorContains(t, run(t.Context(), "", nil, f.getenv, io.Discard), "-cards is required")
	f.variables["PAYVAULT_API_KEY"] = ""
	require.ErrorContains(t, run(t.Context(), "", nil, f.getenv, io.Discard), "or none of them")
}

// inject injects a fault into the emulator. It returns a function that removes the fault.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) func() {
	t.Helper()
	remove, err := srv.Inject(fault)
	require.NoError(t, err)
	return remove
}
