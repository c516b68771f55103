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
	lines []int    // line number of each card, by the position of the card
	isBad []bool   // whether the card cannot be sent, by the position of the card
	bad   []string // for each row that cannot be sent, a text with its line number and the reason
}

// readCards reads a file of cards. It also fails if no row can be sent, because the file is then probably the wrong
// one.
func readCards(path string) (*cards, error) {
	c := &cards{path: path}
	sum, err := eachRow(path, func(row cardfile.Row) bool {
		if row.Err != nil {
			c.bad = append(c.bad, fmt.Sprintf("line %d cannot be sent: %v", row.Line, row.Err))
		}
		c.lines, c.isBad = append(c.lines, row.Line), append(c.isBad, row.Err != nil)
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

// rows returns a text with the first and the last line number of the cards from position start to position end-1.
func (c *cards) rows(start, end int) string {
	end = min(end, len(c.lines))
	if start >= end {
		return fmt.Sprintf("cards %d and later", start+1)
	}
	return fmt.Sprintf("lines %d to %d", c.lines[start], c.lines[end-1])
}

// explain returns a text with the line numbers of the cards that the fields of an error name as data[i], and with the
// messages about them. The batch has the cards from position start to position end-1. The result is "" if the error
// names no card.
func (c *cards) explain(fields map[string][]string, start, end int) string {
	var sent []int // line numbers of the cards that were sent
	for position := start; position < min(end, len(c.lines)); position++ {
		if !c.isBad[position] {
			sent = append(sent, c.lines[position])
		}
	}
	var text strings.Builder
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		var i int
		if _, err := fmt.Sscanf(field, "data[%d]", &i); err == nil && i >= 0 && i < len(sent) {
			fmt.Fprintf(&text, "; line %d: %s %s", sent[i], field, strings.Join(fields[field], ", "))
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
