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

// errChanged: what a batch has is no longer what the checkpoint takes it for.
var errChanged = errors.New("the file of the cards has changed during the run")

// cardFile is a CSV file of cards. It is read from its beginning to its end, in batches: once to learn what they are, and
// once to send them. The second time each has to be what it was the first time.
type cardFile struct {
	file    *os.File
	rows    *csv.Reader
	batch   int // the number of the next one
	count   int // of the cards
	digests [][sha256.Size]byte
}

// openCards reads the file once, to learn the digests of its batches and the number of its cards.
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
	if err := c.rewind(); err != nil {
		return err
	}
	for {
		cards, digest, err := c.read()
		if err != nil {
			return err
		}
		if len(cards) == 0 {
			return c.rewind()
		}
		c.count += len(cards)
		c.digests = append(c.digests, digest)
	}
}

// rewind goes to the first card.
func (c *cardFile) rewind() error {
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	c.batch, c.rows = 0, csv.NewReader(c.file)
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
	cards, digest, err := c.read()
	if _, broken := errors.AsType[*csv.ParseError](err); broken { // it was not, the first time
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	if err != nil {
		return nil, err
	}
	atEnd := c.batch == len(c.digests)
	if atEnd != (len(cards) == 0) || !atEnd && digest != c.digests[c.batch] {
		return nil, errChanged
	}
	c.batch++
	return cards, nil
}

// read reads up to a batch of cards, and their digest.
func (c *cardFile) read() (batch []payvault.AccountUpdaterCard, digest [sha256.Size]byte, err error) {
	hash := sha256.New()
	for len(batch) < payvault.MaxAccountUpdaterCards {
		row, err := c.rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, digest, err
		}
		fmt.Fprintf(hash, "%q\n", row)
		batch = append(batch, payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(row[0]), ExpDate: row[1], CardID: row[2]})
	}
	return batch, [sha256.Size]byte(hash.Sum(nil)), nil
}

// digest is that of all cards and of how they are cut into batches.
func (c *cardFile) digest() string {
	hash := sha256.New()
	for _, batch := range c.digests {
		hash.Write(batch[:])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// size is how many cards a batch has.
func (c *cardFile) size(batch int) int {
	return min(payvault.MaxAccountUpdaterCards, c.count-batch*payvault.MaxAccountUpdaterCards)
}

// batches is how many there are.
func (c *cardFile) batches() int { return len(c.digests) }

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
