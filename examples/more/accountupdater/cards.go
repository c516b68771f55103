package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"example.com/payvault"
)

func columns() []string { return []string{"card_number", "exp_date", "card_id"} }

// cardFile is a CSV file of cards. It is read from its beginning to its end, in batches.
type cardFile struct {
	file   *os.File
	rows   *csv.Reader
	digest string // of the whole content
	count  int
}

// openCards reads the file once, to learn its digest and the number of its cards.
func openCards(path string) (*cardFile, error) {
	file, err := os.Open(path) //nolint:gosec // the user's own file is the point
	if err != nil {
		return nil, err
	}
	c := &cardFile{file: file}
	if err := c.measure(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return c, nil
}

func (c *cardFile) Close() error { return c.file.Close() }

func (c *cardFile) measure() error {
	hash := sha256.New()
	if err := c.rewind(io.TeeReader(c.file, hash)); err != nil {
		return err
	}
	for {
		_, err := c.rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c.count++
	}
	c.digest = hex.EncodeToString(hash.Sum(nil))
	return c.rewind(c.file)
}

// rewind goes to the first card.
func (c *cardFile) rewind(r io.Reader) error {
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	c.rows = csv.NewReader(r)
	c.rows.FieldsPerRecord = len(columns())
	header, err := c.rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !slices.Equal(header, columns()) {
		return fmt.Errorf("the first line is not %q", columns())
	}
	c.rows.ReuseRecord = true
	return nil
}

// next reads the cards of the next batch; none at the end.
func (c *cardFile) next() ([]payvault.AccountUpdaterCard, error) {
	batch := make([]payvault.AccountUpdaterCard, 0, payvault.MaxAccountUpdaterCards)
	for len(batch) < payvault.MaxAccountUpdaterCards {
		row, err := c.rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		batch = append(batch, payvault.AccountUpdaterCard{CardNumber: payvault.Secret(row[0]), ExpDate: row[1], CardID: row[2]})
	}
	return batch, nil
}

// size is how many cards a batch has.
func (c *cardFile) size(batch int) int {
	return min(payvault.MaxAccountUpdaterCards, c.count-batch*payvault.MaxAccountUpdaterCards)
}

// batches is how many there are.
func (c *cardFile) batches() int {
	return (c.count + payvault.MaxAccountUpdaterCards - 1) / payvault.MaxAccountUpdaterCards
}

// generate writes a file of made-up cards. Only the user can read it, and a file that is there already is kept.
func generate(path string, n int) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user's own file is the point
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	fmt.Fprintln(w, "card_number,exp_date,card_id")
	for i := range n {
		fmt.Fprintf(w, "4%015d,%s,card-%06d\n", i, payvault.ExpDate(1+i%12, 2027+i%4), i)
	}
	return errors.Join(w.Flush(), file.Close())
}
