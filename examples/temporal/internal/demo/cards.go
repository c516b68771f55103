package demo

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/examples/internal/cardfile"
	"example.com/payvault/temporalpayvault"
)

// rows yields the rows of a CSV file of cards.
func rows(name string) iter.Seq2[cardfile.Row, error] {
	return func(yield func(cardfile.Row, error) bool) {
		file, err := os.Open(name) //nolint:gosec // the user who starts a job chooses the file
		if err != nil {
			yield(cardfile.Row{}, err)
			return
		}
		defer file.Close() //nolint:errcheck // the file is only read
		for row, err := range cardfile.Rows(file) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// Check reads a file before it is submitted. It returns the number of rows and the checksum of the file, and a text for
// each row that cannot be sent. If no row can be sent, it returns an error, because the file is probably the wrong one.
func Check(ctx context.Context, name string) (snapshot temporalpayvault.Snapshot, bad []string, err error) {
	for row, err := range rows(name) {
		if err != nil {
			return snapshot, nil, err
		}
		snapshot.Cards++
		if row.Err != nil {
			bad = append(bad, fmt.Sprintf("line %s: %v", row.Card.Ref, row.Err))
		}
	}
	if len(bad) == snapshot.Cards {
		return snapshot, nil, fmt.Errorf("%s has no card that can be sent: a row is number,MMYY,ID. %s",
			name, strings.Join(bad[:min(len(bad), 3)], "; "))
	}
	snapshot, err = File{}.Snapshot(ctx, name)
	return snapshot, bad, err
}

// File is a card source that reads CSV files. The parameter ref of its methods is the path of a file that all workers
// can read. Errors contain no card data.
type File struct{}

// Snapshot counts the rows of a file and computes its checksum. Each call reads the whole file. If your files are
// large, keep the result while the size and the modification time of the file stay the same.
func (File) Snapshot(_ context.Context, ref string) (s temporalpayvault.Snapshot, err error) {
	file, err := os.Open(ref) //nolint:gosec // the user who starts a job chooses the file
	if err != nil {
		return s, readError(err)
	}
	defer file.Close() //nolint:errcheck // the file is only read
	if s.Checksum, err = payvault.JobName(file); err != nil {
		return s, readError(err)
	}
	for _, err := range rows(ref) {
		if err != nil {
			return s, readError(err)
		}
		s.Cards++
	}
	return s, nil
}

// Cards returns the cards from position start to position end-1. To find them, it also reads the earlier rows. A source
// that reads a database table would select a range of keys instead.
func (File) Cards(_ context.Context, ref string, start, end int) (cards []payvault.AccountUpdaterCard, err error) {
	n := 0
	for row, err := range rows(ref) {
		if err != nil {
			return nil, readError(err)
		}
		if n++; n > start {
			cards = append(cards, row.Card)
		}
		if n == end {
			break
		}
	}
	return cards, nil
}

// readError returns the error of a file that cannot be read. The error permits a retry, because another worker may be
// able to read the file. If the retries fail for too long, the job pauses: somebody has to correct the problem and
// resume the job. The text of the error is stored in the history of the workflow, so that the operator can read it.
func readError(err error) error {
	return temporal.NewApplicationError(err.Error(), "File")
}

// MakeUp writes a CSV file with n made-up cards.
func MakeUp(name string, n int) error {
	text := []byte("card_number,exp_date,card_id\n")
	for i := range n {
		text = fmt.Appendf(text, "41111111%08d,1230,card-%d\n", i, i)
	}
	return os.WriteFile(name, text, 0o600)
}

// WriteReport writes a CSV row for each card that the summary lists as left out, each batch that it lists as refused or
// unknown, and each range of batches that a canceled job may not have sent. A summary lists at most 1,000 cards, 1,000
// refused batches and 1,000 unknown ones. A row has the first and the last line number in the file, the status and the
// reason. WriteReport returns the number of these rows.
func WriteReport(w io.Writer, file string, s *temporalpayvault.Summary) (written int, err error) {
	var numbers []string // line numbers of the cards
	for row, err := range rows(file) {
		if err != nil {
			return 0, err
		}
		numbers = append(numbers, row.Card.Ref)
	}
	out := csv.NewWriter(w)
	_ = out.Write([]string{"first_line", "last_line", "status", "reason"}) // out.Error returns its error later
	write := func(from, to int, status, reason string) {                   // from is included, and to is not
		written++
		_ = out.Write([]string{numbers[from], numbers[min(to, len(numbers))-1], status, reason})
	}
	const batch = payvault.MaxAccountUpdaterCards
	for _, card := range s.InvalidCards {
		write(card.Card, card.Card+1, "left out", card.Reason)
	}
	for _, b := range s.RefusedBatches {
		write(b.Batch*batch, (b.Batch+1)*batch, "refused", b.Reason)
	}
	for _, b := range s.UnknownBatches {
		write(b*batch, (b+1)*batch, "unknown", "may have been performed: look it up before you send it again")
	}
	for _, r := range s.NotDone {
		write(r.From*batch, r.To*batch, "perhaps not sent", "the job was canceled: start it again, to send what is not sent")
	}
	out.Flush()
	return written, out.Error()
}
