// Dispute answers a dispute with a PDF from disk.
//
//	dispute -id 4711 -file receipt.pdf -message "The signed receipt is attached."   # a retrieval dispute
//	dispute -id 4711 -file receipt.pdf -type CE -evidence … -amount 12.50           # a first-time dispute
//
// The program runs offline against the emulator, and accepts no flags, unless PAYVAULT_BASE_URL, PAYVAULT_API_KEY and
// PAYVAULT_MERCHANT_ID name a sandbox.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "dispute:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	a, err := parseAnswer(args)
	if err != nil {
		return err
	}
	client, err := sandbox.Client(getenv)
	if err != nil {
		return err
	}
	if client == nil {
		if err := sandbox.Offline(out, a.given); err != nil {
			return err
		}
		return a.sendOffline(ctx, out)
	}
	if err := a.complete(); err != nil {
		return err
	}
	return a.send(ctx, client, out)
}

// answer has the values of the program's flags.
type answer struct {
	given    bool // at least one flag was given
	dispute  int64
	file     string
	response payvault.DisputeRespondRequest
}

func parseAnswer(args []string) (answer, error) {
	var a answer
	flags := flag.NewFlagSet("dispute", flag.ContinueOnError)
	flags.Int64Var(&a.dispute, "id", 0, "control number (rec_id) of the dispute")
	flags.StringVar(&a.file, "file", "", "PDF of supporting documents")
	flags.StringVar(&a.response.Message, "message", "The signed receipt is attached.", "message, at most 5,000 characters")
	flags.StringVar((*string)(&a.response.Type), "type", "",
		"kind of answer to a first-time dispute: ND, CP, CE, OT or ID")
	flags.StringVar(&a.response.EvidenceType, "evidence", "", "kind of compelling evidence, with -type CE")
	flags.Func("amount", "amount of the transaction, such as 12.50", func(text string) (err error) {
		a.response.AmtTran, err = payvault.ParseAmount(text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return a, err
	}
	if flags.NArg() > 0 {
		return a, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	a.given = flags.NFlag() > 0
	return a, nil
}

// complete returns an error that names the first missing flag. Without -type the dispute is a retrieval dispute, which
// needs a file and a message.
func (a *answer) complete() error {
	switch {
	case a.dispute < 1:
		return errors.New("-id is required")
	case a.file == "" && a.response.Type == "":
		return errors.New("-file is required without -type")
	case a.response.Message == "" && a.response.Type == "":
		return errors.New("-message is required without -type")
	}
	return nil
}
