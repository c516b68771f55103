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

// readCards yields the cards of a file. Before it returns it calls end, with their sum and with what is wrong. The sum
// is kept as private as the cards: of a file with few of them, whoever has it can try all numbers.
func readCards(path string, end func(sum string, err error)) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		hash := sha256.New()
		err := eachCard(path, hash, yield)
		end(hex.EncodeToString(hash.Sum(nil)), err)
	}
}

func eachCard(path string, hash io.Writer, yield func(payvault.AccountUpdaterCard) bool) error {
	file, err := os.Open(path) //nolint:gosec // the user's own file is the point
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	rows := csv.NewReader(file)
	row, err := rows.Read()
	if heading := "card_number,exp_date,card_id"; strings.Join(row, ",") != heading {
		return errors.Join(errors.New("the first line is not "+heading), err)
	}
	for row, err = rows.Read(); err == nil; row, err = rows.Read() {
		if _, malformed := time.Parse("0106", row[1]); row[0] == "" || malformed != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d has no number, or an exp_date that is not MMYY", line)
		}
		fmt.Fprintf(hash, "%q", row)
		if !yield(payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(row[0]), ExpDate: row[1], CardID: row[2]}) {
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// generate writes a file of made-up cards.
func generate(path string, n int) error {
	text := []byte("card_number,exp_date,card_id\n")
	for i := range n {
		text = fmt.Appendf(text, "4%015d,%s,card-%06d\n", i, payvault.ExpDate(1+i%12, 2027+i%4), i)
	}
	return os.WriteFile(path, text, 0o600)
}
