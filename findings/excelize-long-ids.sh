#!/usr/bin/env bash
# Guess:        excelize writes an int64 as an integer. An ID of 16 or 17 digits comes back as it was, at least with
#               RawCellValue.
# What happens: The file itself holds 15 significant digits with an exponent: 8.61E+16 for 86100000000000001. There is
#               no error. An ID of 15 digits and a string are kept.
# Versions:     xuri/excelize v2.11.1, Go 1.26.8
# Who meets it: Reports for the bookkeeping with the IDs of transactions in a column. SetCellStr keeps them.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/xuri/excelize/v2@v2.11.1 <<'GO'
package main

import (
	"fmt"

	"github.com/xuri/excelize/v2"
)

func main() {
	file := excelize.NewFile()
	for _, id := range []any{int64(861000000000001), int64(8610000000000001), int64(86100000000000001), "86100000000000001"} {
		if err := file.SetCellValue("Sheet1", "A1", id); err != nil {
			panic(err)
		}
		shown, err := file.GetCellValue("Sheet1", "A1")
		if err != nil {
			panic(err)
		}
		raw, err := file.GetCellValue("Sheet1", "A1", excelize.Options{RawCellValue: true})
		fmt.Printf("%T %v is read as %s, raw %s, %v\n", id, id, shown, raw, err)
	}
}
GO
seen_is <<'END'
int64 861000000000001 is read as 861000000000001, raw 861000000000001, <nil>
int64 8610000000000001 is read as 8.61E+15, raw 8.61E+15, <nil>
int64 86100000000000001 is read as 8.61E+16, raw 8.61E+16, <nil>
string 86100000000000001 is read as 86100000000000001, raw 86100000000000001, <nil>
END
