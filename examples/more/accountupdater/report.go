package main

import (
	"fmt"

	"example.com/payvault"
)

// report tells what is known of all batches, and fails unless all are accepted.
func (s *submission) report() error {
	count := map[state]int{}
	for batch := range s.cards.batches() {
		e := s.checkpoint.last[batch]
		count[e.State] += s.cards.size(batch)
		switch e.State {
		case refused, unknown, notSent:
			fmt.Fprintf(s.out, "Batch %d (%s): %s: %s\n", batch, s.lines(batch), e.State, e.why())
		case accepted, sending:
		}
	}
	fmt.Fprintf(s.out, "%d of %d cards are accepted; in this run %d batches were sent.\n", count[accepted], s.cards.count, len(s.sent))
	if count[unknown] > 0 {
		fmt.Fprintf(s.out, "%d cards may have arrived. They are not sent again; look them up and use -accepted or -resend.\n", count[unknown])
	}
	if left := count[""] + count[notSent] + count[refused]; left > 0 {
		fmt.Fprintf(s.out, "%d cards are left.\n", left)
	}
	if count[accepted] < s.cards.count {
		return errIncomplete
	}
	return nil
}

// lines names the lines of the file that a batch has; the first line of the file is the heading.
func (s *submission) lines(batch int) string {
	first := batch*payvault.MaxAccountUpdaterCards + 2
	return fmt.Sprintf("lines %d to %d", first, first+s.cards.size(batch)-1)
}

func (e entry) why() string {
	if e.Error == "" {
		return "the program ended while it was being sent"
	}
	return e.Error
}
