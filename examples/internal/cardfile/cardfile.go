// Package cardfile reads the CSV files of cards that the examples submit.
package cardfile

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode"

	"example.com/payvault"
)

// Row is a row of a file. If the row cannot be sent, Err has the reason.
type Row struct {
	// Card has the line number in Ref, counted from 1. If the row cannot be split into two or three fields, the other
	// fields of Card are empty, so that Check refuses the card.
	Card payvault.AccountUpdaterCard
	Err  error // reason why the row cannot be sent, without data of the card; nil if it can be sent
}

// Rows yields the rows of a file. A row has a card number, an expiration date as MMYY, and an ID, which may be missing.
// Rows skips a byte order mark, empty lines and a header row. A header row is a first row with letters in its first
// field and no digit in its first two fields. Each line is parsed by itself, so the rows after a bad row are read too.
// If the file cannot be read, or has a line of 64 KiB or more, Rows yields an error and ends.
func Rows(file io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		lines := bufio.NewScanner(file)
		first := true
		for number := 1; lines.Scan() && lines.Err() == nil; number++ { // if reading has failed, the line may be incomplete
			line := lines.Text()
			if number == 1 {
				line = strings.TrimPrefix(line, "\ufeff")
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			fields, err := split(line)
			if first && isHeader(fields) {
				first = false
				continue
			}
			first = false
			if !yield(newRow(number, fields, err), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Row{}, err)
		}
	}
}

// split returns the fields of a line. Its error contains no text of the line.
func split(line string) ([]string, error) {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ","), nil
	}
	fields, err := csv.NewReader(strings.NewReader(line)).Read()
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		err = fmt.Errorf("a quotation mark is wrong: %w", parse.Err)
	}
	return fields, err
}

func isHeader(fields []string) bool {
	names := fields[:min(2, len(fields))]
	return len(fields) > 0 && strings.ContainsFunc(fields[0], unicode.IsLetter) &&
		!strings.ContainsFunc(strings.Join(names, ""), unicode.IsDigit)
}

func newRow(line int, fields []string, err error) Row {
	row := Row{Card: payvault.AccountUpdaterCard{Ref: strconv.Itoa(line)}, Err: err}
	switch {
	case err != nil:
	case len(fields) < 2 || len(fields) > 3:
		row.Err = fmt.Errorf("it has %d fields and not card_number,exp_date,card_id", len(fields))
	default:
		row.Card.CardNumber, row.Card.ExpDate = payvault.NewSecret(fields[0]), fields[1]
		if len(fields) == 3 {
			row.Card.CardID = fields[2]
		}
		row.Err = row.Card.Check()
	}
	return row
}
