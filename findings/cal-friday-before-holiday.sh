#!/usr/bin/env bash
# Guess:        A US business calendar knows the days on which banks settle: when a holiday is a Saturday, the Federal
#               Reserve is open on the Friday before.
# What happens: rickar/cal with us.Holidays takes that Friday for a holiday, as federal offices do. 3 July 2026 and 31
#               December 2027 are no workdays. moov-io/base has the Federal Reserve's rule. Both close on the Monday
#               after a Sunday.
# Versions:     rickar/cal v2.1.13, moov-io/base v0.48.5, Go 1.26.8
# Who meets it: Programs that compute the day on which an ACH payment or a payout arrives.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/rickar/cal/v2@v2.1.13 github.com/moov-io/base@v0.48.5 <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/moov-io/base"
	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/us"
)

func main() {
	calendar := cal.NewBusinessCalendar()
	calendar.AddHoliday(us.Holidays...)
	for _, text := range []string{"2026-07-03", "2027-12-31", "2023-01-02", "2026-07-06"} {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			panic(err)
		}
		fmt.Println(text, day.Weekday(), "rickar/cal:", calendar.IsWorkday(day), "moov-io/base:", base.NewTime(day).IsBankingDay())
	}
}
GO
seen_is <<'END'
2026-07-03 Friday rickar/cal: false moov-io/base: true
2027-12-31 Friday rickar/cal: false moov-io/base: true
2023-01-02 Monday rickar/cal: false moov-io/base: false
2026-07-06 Monday rickar/cal: true moov-io/base: true
END
