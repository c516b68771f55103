package main

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
)

// options is what the flags say.
type options struct {
	cards, checkpoint string
	generate          string
	concurrency       int
	accepted, resend  []int
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("accountupdater", flag.ContinueOnError)
	flags.StringVar(&o.cards, "cards", "", "CSV file of the cards to submit")
	flags.StringVar(&o.checkpoint, "checkpoint", "", "checkpoint; the file of the cards with .checkpoint by default")
	flags.StringVar(&o.generate, "generate", "", "write a CSV file of made-up cards, and do nothing else")
	flags.IntVar(&o.concurrency, "concurrency", 4, "requests in flight")
	flags.Func("accepted", "batches of unknown outcome that have arrived, such as 17,18", batchList(&o.accepted))
	flags.Func("resend", "batches of unknown outcome that have not arrived, to send them again", batchList(&o.resend))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

func batchList(list *[]int) func(string) error {
	return func(text string) error {
		for number := range strings.SplitSeq(text, ",") {
			batch, err := strconv.Atoi(number)
			if err != nil {
				return fmt.Errorf("%q is not the number of a batch", number)
			}
			*list = append(*list, batch)
		}
		return nil
	}
}
