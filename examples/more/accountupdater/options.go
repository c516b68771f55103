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
	settled           map[int]state // what somebody has found out
	service, merchant string        // to whom the cards go; not flags
}

func parseOptions(args []string) (options, error) {
	o := options{settled: map[int]state{}}
	flags := flag.NewFlagSet("accountupdater", flag.ContinueOnError)
	flags.StringVar(&o.cards, "cards", "", "CSV file of the cards to submit")
	flags.StringVar(&o.checkpoint, "checkpoint", "", "checkpoint; the file of the cards with .checkpoint by default")
	flags.StringVar(&o.generate, "generate", "", "write a CSV file of made-up cards, and do nothing else")
	flags.IntVar(&o.concurrency, "concurrency", 4, "requests in flight")
	flags.Func("accepted", "batches of unknown outcome that have arrived, such as 17,18", settle(o.settled, accepted))
	flags.Func("resend", "batches of unknown outcome that have not arrived, to send them again", settle(o.settled, notSent))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// settle takes a list of batches of which the same was found out.
func settle(settled map[int]state, found state) func(string) error {
	return func(text string) error {
		for number := range strings.SplitSeq(text, ",") {
			batch, err := strconv.Atoi(number)
			if err != nil {
				return fmt.Errorf("%q is not the number of a batch", number)
			}
			if before, twice := settled[batch]; twice && before != found {
				return fmt.Errorf("batch %d is in both lists", batch)
			}
			settled[batch] = found
		}
		return nil
	}
}
