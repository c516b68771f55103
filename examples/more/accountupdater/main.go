// Accountupdater submits the cards of a CSV file to the account updater. It sends up to 100 cards with each request,
// and up to 8 requests at a time.
//
//	accountupdater -cards cards.csv   # rows of card_number,exp_date,card_id
//
// You can stop the program at any time, with ctrl-C or kill -9. A power cut does no harm either. Start the program
// again with the same file: it sends the remaining batches and no batch twice. For this it keeps a journal beside the
// file, cards.csv.journal. Batches that were in flight when the program was killed or the connection broke may have
// arrived. The program reports these batches and does not send them again. If 16 batches in a row may have arrived, the
// service seems to be down, and the program stops with the exit status 5. It also does so if a proxy or a firewall
// answers in place of the service. A supervisor must not restart it then, because each run would leave more batches to
// look up.
//
// The program skips a header row, empty lines and a byte order mark. It skips each row that cannot be sent, and prints
// the line number of the row and the reason. It refuses a file without any row that can be sent.
//
// The commands unresolved and refused list batches, with their lines in the file. The command resolve records the
// outcome of such a batch, after somebody has looked it up at the service. If the outcome is not-sent, the next run
// sends the batch. If the outcome is accepted or refused, no run sends the batch.
//
//	accountupdater -cards cards.csv unresolved   # batches that may have arrived
//	accountupdater -cards cards.csv refused      # batches that the service has refused
//	accountupdater -cards cards.csv resolve 17 not-sent
//
// The exit status is 0 if all cards are accepted, or if the command has succeeded. Otherwise it is
//
//   - 1 in all cases that are not listed below, for example if the run has stopped early: correct the problem that the
//     program prints, and run it again;
//   - 2 if a flag or a command is invalid;
//   - 3 if the run has come to the end of the file, and batches are refused or may have arrived: use the commands
//     refused and unresolved. If the program prints that cards are left, run it again too;
//   - 4 if all cards are accepted except rows that cannot be sent: correct these rows, and put them into another file;
//   - 5 if the service seems to be down, or something else answers in its place: look up the batches that the command
//     unresolved lists, and record their outcomes, before you run the program again. A supervisor must not restart it.
//
// The program refuses a file that has changed since the first run. The journal contains no cards, so the program cannot
// tell which cards are new. Put new and corrected cards into another file. The program also refuses another base URL or
// merchant for the same file. To submit all cards of a file again, remove the journal.
//
// PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID name a sandbox. Without these variables, the program
// refuses to submit a file, and a run without -cards sends made-up cards to an emulator. The emulator and its journal
// end with the program. The commands need no variables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/examples/more/internal/progress"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// Each of these errors has an exit status of its own. All other errors have the exit status 1.
var (
	errUsage = errors.New("usage: accountupdater -cards FILE " +
		"[unresolved | refused | resolve BATCH accepted|refused|not-sent]")
	errNotAccepted = errors.New("not all cards are accepted: see the commands refused and unresolved")
	errLeftOut     = errors.New("all other cards are accepted: put the rows that cannot be sent into another file")
)

func main() {
	file := flag.String("cards", "", "CSV file of the cards to submit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first ctrl-C lets requests in flight finish; a second one kills the program
	err := run(ctx, *file, flag.Args(), os.Getenv, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "accountupdater:", err)
	}
	os.Exit(exitStatus(err))
}

func exitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errNotAccepted):
		return 3
	case errors.Is(err, errLeftOut):
		return 4
	case mustNotRestart(err):
		return 5
	}
	return 1
}

// mustNotRestart reports whether a run stopped because too many batches in a row are of unknown outcome, or because an
// answer had no code of the service. In both cases each further run may add batches of unknown outcome.
func mustNotRestart(err error) bool {
	stop, isStop := errors.AsType[*payvault.StopError](err)
	return isStop && (stop.Reason == payvault.StopUnknown || stop.Reason == payvault.StopNoCode)
}

func run(ctx context.Context, file string, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) > 0 {
		return command(ctx, file, args, out)
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	target := "merchant " + getenv("PAYVAULT_MERCHANT_ID") + " at " + strings.TrimRight(getenv("PAYVAULT_BASE_URL"), "/")
	if client == nil {
		if err := sandbox.Offline(out, file != ""); err != nil {
			return err
		}
		srv := payvaulttest.NewServer(payvaulttest.WithRequestHistory(0))
		defer srv.Close()
		dir, err := os.MkdirTemp("", "payvault-accountupdater-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // the directory is temporary
		client, file = srv.Client(), filepath.Join(dir, "cards.csv")
		if err := generate(file, 100_000); err != nil {
			return err
		}
	} else if file == "" {
		return errors.New("-cards is required: a sandbox gets no made-up cards")
	}
	if file, err = filepath.EvalSymlinks(file); err != nil { // a symbolic link belongs to the same job as its file
		return err
	}
	return submit(ctx, client, file, target, out)
}

// fieldsOf returns the messages about fields in an error, or nil.
func fieldsOf(err error) map[string][]string {
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		return e.Fields
	}
	return nil
}

// submit sends the batches of a file that are new to the journal or recorded as not sent, and prints the outcome. It
// returns an error unless all cards are accepted.
func submit(ctx context.Context, client *payvault.Client, file, target string, out io.Writer) (err error) {
	cards, err := readCards(file)
	if err != nil {
		return err
	}
	for _, row := range cards.bad {
		fmt.Fprintln(out, row)
	}
	logger := slog.New(slog.NewTextHandler(out, nil)) // it says when the program waits for the lease of a killed run
	journal, err := sqlpayvault.Open(ctx, journalOf(file), sqlpayvault.WithLogger(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	options := &payvault.SubmitAllOptions{Concurrency: 8, Journal: journal, Job: target + "@" + cards.sum}
	switch known, err := knownJob(ctx, journal); {
	case err != nil:
		return err
	case known != "" && known != options.Job: // all cards would be sent again under the new name
		return otherFile(file, known)
	}
	total := len(cards.lines)
	bar := progress.New(out, "cards", total)
	accepted, refused, unknown := 0, 0, 0
	var stopped error
	for batch, err := range client.AccountUpdater.SubmitAll(ctx, cards.stream(), options) {
		if stopped = err; err != nil {
			break
		}
		bar.Add(len(batch.Invalid)) // submit has printed these cards already
		sent := batch.End - batch.Start - len(batch.Invalid)
		switch {
		case sent == 0:
		case batch.Status == payvault.BatchNotSent: // the next run sends it
			continue
		case batch.Status == payvault.BatchAccepted:
			accepted += sent
		case batch.Status == payvault.BatchRefused:
			refused += sent
		default:
			unknown += sent
		}
		if batch.Err != nil && sent > 0 {
			fmt.Fprintf(out, "%s: %v%s\n", name(batch), batch.Err, explain(batch, fieldsOf(batch.Err)))
		}
		bar.Add(sent)
	}
	bar.Stop()
	left := total - len(cards.bad) - accepted - refused - unknown
	fmt.Fprintf(out, "%d of %d cards are accepted, %d are refused, %d may have arrived, %d cannot be sent, "+
		"%d are left to the next run.\n", accepted, total, refused, unknown, len(cards.bad), left)
	switch {
	case mustNotRestart(stopped):
		return fmt.Errorf("%w: the service seems to be down, or something else answers in its place. Each run may leave "+
			"more batches to look up, so do not start the program again before you have looked up the batches that the "+
			"command unresolved lists", stopped)
	case stopped != nil:
		return stopped
	case refused+unknown > 0:
		return errNotAccepted
	case left > 0:
		return errors.New("cards are left to the next run")
	case len(cards.bad) > 0:
		return errLeftOut
	}
	return nil
}
