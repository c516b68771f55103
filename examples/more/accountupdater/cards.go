package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"example.com/payvault"
	"example.com/payvault/examples/internal/cardfile"
)

// cards has the results of reading a file of cards once, from beginning to end.
type cards struct {
	path  string
	sum   string   // the payvault.JobName of the file, which must stay as private as the cards
	lines []string // line number of each card, by the position of the card
	isBad []bool   // whether the card cannot be sent, by the position of the card
	bad   []string // for each row that cannot be sent, a text with its line number and the reason
}

// readCards reads a file of cards. It also fails if no row can be sent, because the file is then probably the wrong
// one.
func readCards(path string) (*cards, error) {
	c := &cards{path: path}
	sum, err := eachRow(path, func(row cardfile.Row) bool {
		if row.Err != nil {
			c.bad = append(c.bad, fmt.Sprintf("line %s cannot be sent: %v", row.Card.Ref, row.Err))
		}
		c.lines, c.isBad = append(c.lines, row.Card.Ref), append(c.isBad, row.Err != nil)
		return true
	})
	if err == nil && len(c.bad) == len(c.lines) {
		reasons := []string{"it has no rows besides a header"}
		if len(c.bad) > 0 {
			reasons = c.bad[:min(3, len(c.bad))]
		}
		err = fmt.Errorf("%s has no card that can be sent: want rows of card_number,exp_date,card_id. %s",
			path, strings.Join(reasons, "; "))
	}
	c.sum = sum
	return c, err
}

// stream returns an iterator that reads the file again and yields its cards. If the file cannot be read or has changed
// since readCards, the iterator ends with an error.
func (c *cards) stream() iter.Seq2[payvault.AccountUpdaterCard, error] {
	return func(yield func(payvault.AccountUpdaterCard, error) bool) {
		wanted := true
		sum, err := eachRow(c.path, func(row cardfile.Row) bool {
			wanted = yield(row.Card, nil)
			return wanted
		})
		if wanted && (err != nil || sum != c.sum) {
			yield(payvault.AccountUpdaterCard{}, cmp.Or(err, errors.New(c.path+" has changed")))
		}
	}
}

// batch returns a batch with its range of cards, their line numbers, and the positions of its invalid cards. The batch
// is empty if its index is beyond the end of the file.
func (c *cards) batch(index int) *payvault.AccountUpdaterBatch {
	start := min(index*payvault.MaxAccountUpdaterCards, len(c.lines))
	end := min(start+payvault.MaxAccountUpdaterCards, len(c.lines))
	b := &payvault.AccountUpdaterBatch{Index: index, Start: start, End: end, Refs: c.lines[start:end]}
	for position := start; position < end; position++ {
		if c.isBad[position] {
			b.Invalid = append(b.Invalid, payvault.InvalidCard{Position: position})
		}
	}
	return b
}

// name returns a text with the number of a batch, and with the line numbers of its first and its last card. For an
// empty batch, the text says that the batch is beyond the end of the file.
func name(b *payvault.AccountUpdaterBatch) string {
	if len(b.Refs) == 0 {
		return fmt.Sprintf("batch %d, beyond the end of the file", b.Index)
	}
	return fmt.Sprintf("batch %d, lines %s to %s", b.Index, b.Refs[0], b.Refs[len(b.Refs)-1])
}

// explain returns the messages about cards of a batch, with the line numbers of these cards. The argument fields has
// the messages of an error. Its keys name a card as data[i]. If no key names a card of the batch, the result is "".
func explain(b *payvault.AccountUpdaterBatch, fields map[string][]string) string {
	var text strings.Builder
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		var i int
		if _, err := fmt.Sscanf(field, "data[%d]", &i); err != nil || i < 0 || i >= len(b.Refs) {
			continue
		}
		if at := b.Position(i) - b.Start; at < len(b.Refs) {
			fmt.Fprintf(&text, "; line %s: %s %s", b.Refs[at], field, strings.Join(fields[field], ", "))
		}
	}
	return text.String()
}

// eachRow calls a function for each row of a file, until the function returns false. It returns the SHA-256 of the
// bytes that were read.
func eachRow(path string, each func(cardfile.Row) bool) (sum string, err error) {
	file, err := os.Open(path) //nolint:gosec // the user chooses the file
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // the file was only read
	hash := sha256.New()
	for row, err := range cardfile.Rows(io.TeeReader(file, hash)) {
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if !each(row) {
			break
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// generate writes a CSV file with n made-up cards.
func generate(path string, n int) error {
	text := []byte("card_number,exp_date,card_id\n")
	for i := range n {
		text = fmt.Appendf(text, "4%015d,%s,card-%06d\n", i, payvault.FormatExpDate(1+i%12, 2027+i%4), i)
	}
	return os.WriteFile(path, text, 0o600)
}
