package cardfile_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/examples/internal/cardfile"
)

const header, card = "card_number,exp_date,card_id\n", "4111111111111111,0130,c1\n"

// read returns a text for each row: the line number, and the card ID or, if the row cannot be sent, "bad".
func read(t *testing.T, file io.Reader) (rows []string) {
	t.Helper()
	for row, err := range cardfile.Rows(file) {
		require.NoError(t, err)
		text := row.Card.CardID
		if row.Err != nil {
			assert.Error(t, row.Card.Check())
			assert.NotContains(t, row.Err.Error(), "4111")
			text = "bad"
		}
		rows = append(rows, fmt.Sprint(row.Card.Ref, " ", text))
	}
	return rows
}

// TestRows checks that Rows skips a header row, a byte order mark and empty lines. For a bad row it must yield a Row
// with an error and the line number. It must yield all other rows too.
func TestRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                   {"", nil},
		"no header":                 {card + card, []string{"1 c1", "2 c1"}},
		"header":                    {header + card, []string{"2 c1"}},
		"header in quotes":          {`"Card number","Expiry"` + "\n" + card, []string{"2 c1"}},
		"byte order mark":           {"\ufeff" + card, []string{"1 c1"}},
		"mark and header":           {"\ufeff" + header + card, []string{"2 c1"}},
		"mark, quotes and CRLF":     {"\ufeff\"4111111111111111\",\"0130\",\"c,1\"\r\n" + card, []string{"1 c,1", "2 c1"}},
		"empty lines":               {"\n" + header + "\n" + card + " \n\n" + card, []string{"4 c1", "7 c1"}},
		"no ID":                     {"4111111111111111,0130\n", []string{"1 "}},
		"no end of the line":        {card + strings.TrimSpace(card), []string{"1 c1", "2 c1"}},
		"a bad first card":          {"n/a,0130,c0\n" + card, []string{"1 bad", "2 c1"}},
		"a second header":           {header + header + card, []string{"2 bad", "3 c1"}},
		"no number in the first":    {",0130,c1\n" + card, []string{"1 bad", "2 c1"}},
		"Latin-1":                   {"4111111111111111,0130,Jos\xe9\n" + card, []string{"1 bad", "2 c1"}},
		"a wrong number":            {"4111-1111,0130,c1\n" + card, []string{"1 bad", "2 c1"}},
		"a wrong date":              {"4111111111111111,1330,c1\n" + card, []string{"1 bad", "2 c1"}},
		"one field":                 {"4111111111111111\n" + card, []string{"1 bad", "2 c1"}},
		"four fields":               {"4111111111111111,0130,c1,x\n" + card, []string{"1 bad", "2 c1"}},
		"a quotation mark":          {"4111111111111111,\"0130,c1\n" + card, []string{"1 bad", "2 c1"}},
		"a quotation mark later on": {"41111111\"11111111,0130,c1\n" + card, []string{"1 bad", "2 c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, read(t, strings.NewReader(test.text)))
		})
	}
}

// TestFileThatCannotBeRead checks that Rows yields an error and then stops if the file cannot be read to its end.
func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	for want, file := range map[string]io.Reader{
		"input/output error": io.MultiReader(strings.NewReader(card+card[:23]), iotest.ErrReader(broken)),
		"token too long":     strings.NewReader(card + strings.Repeat("x", 1<<20)),
	} {
		var last error
		rows := 0
		for row, err := range cardfile.Rows(file) {
			rows++
			last = err
			if err != nil {
				assert.Zero(t, row)
			}
		}
		require.ErrorContains(t, last, want)
		assert.Equal(t, 2, rows)
	}
}
