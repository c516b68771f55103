package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"example.com/payvault"
)

// countCards reads the file once, so that one that cannot be read is found before anything is sent.
func countCards(path string) (n int, err error) {
	for range readCards(path, func(failed error) { err = failed }) {
		n++
	}
	return n, err
}

// readCards yields the cards of a file. It calls fail before it returns, unless it has come to the end of the file.
func readCards(path string, fail func(error)) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		file, err := os.Open(path) //nolint:gosec // the user's own file is the point
		if err != nil {
			fail(err)
			return
		}
		defer file.Close() //nolint:errcheck // it was only read
		rows := csv.NewReader(file)
		rows.FieldsPerRecord = 3
		heading, err := rows.Read()
		if err == nil && heading[0] != "card_number" {
			err = errors.New("the first line is not card_number,exp_date,card_id")
		}
		for err == nil {
			var row []string
			if row, err = rows.Read(); err == nil && !yield(payvault.AccountUpdaterCard{
				CardNumber: payvault.NewSecret(row[0]), ExpDate: row[1], CardID: row[2],
			}) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			fail(fmt.Errorf("%s: %w", path, err))
		}
	}
}

// generate writes a file of made-up cards. Only the user can read it, and a file that is there already is kept.
func generate(path string, n int) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // as above
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
