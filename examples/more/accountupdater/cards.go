package main

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"example.com/payvault"
)

// countCards finds what is wrong with the file before anything is sent. The sum is too short to give a card away.
func countCards(path string) (n int, sum string, err error) {
	hash := sha256.New()
	for card := range readCards(path, func(failed error) { err = failed }) {
		if _, malformed := time.Parse("0106", card.ExpDate); card.CardNumber.Reveal() == "" || malformed != nil {
			return 0, "", fmt.Errorf("%s: card %d has no number, or an exp_date that is not MMYY", path, n+1)
		}
		fmt.Fprintf(hash, "%q", []string{card.CardNumber.Reveal(), card.ExpDate, card.CardID})
		n++
	}
	return n, hex.EncodeToString(hash.Sum(nil)[:2]), err
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
		heading, err := rows.Read()
		if err == nil && strings.Join(heading, ",") != "card_number,exp_date,card_id" {
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

// generate writes a file of made-up cards.
func generate(path string, n int) error {
	text := []byte("card_number,exp_date,card_id\n")
	for i := range n {
		text = fmt.Appendf(text, "4%015d,%s,card-%06d\n", i, payvault.ExpDate(1+i%12, 2027+i%4), i)
	}
	return os.WriteFile(path, text, 0o600)
}
