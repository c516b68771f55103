#!/usr/bin/env bash
# Guess:        A schedule "30 1 * * *" is due once a day.
# What happens: With robfig/cron in New York it is due twice on the day on which the clocks go back: at 01:30 EDT and at
#               01:30 EST. "30 2 * * *" is not due at all on the day in spring. croner and cron-parser for Node are due
#               once.
# Versions:     robfig/cron v3.0.1 with Go 1.26.8; croner 11.0.1 and cron-parser 5.10.6 with Node 20
# Who meets it: Nightly billing runs and settlements that have a time zone.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run github.com/robfig/cron/v3@v3.0.1 <<'GO'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	for _, day := range []struct {
		schedule string
		month    time.Month
		day      int
	}{{"30 1 * * *", time.November, 1}, {"30 2 * * *", time.March, 8}} {
		schedule, err := cron.ParseStandard(day.schedule)
		if err != nil {
			panic(err)
		}
		start := time.Date(2026, day.month, day.day, 0, 0, 0, 0, newYork)
		fmt.Printf("robfig/cron %s on %s:", day.schedule, start.Format(time.DateOnly))
		for due := schedule.Next(start); due.Day() == day.day; due = schedule.Next(due) {
			fmt.Print(" ", due.Format("15:04 MST"))
		}
		fmt.Println()
	}
}
GO
npm_install croner@11.0.1 cron-parser@5.10.6
cat >due.mjs <<'JS'
import { Cron } from "croner";
import { CronExpressionParser } from "cron-parser";

const zone = "America/New_York";
const [start, end] = [new Date("2026-11-01T04:00:00Z"), new Date("2026-11-02T05:00:00Z")];
const due = new Cron("30 1 * * *", { timezone: zone }).nextRuns(3, start).filter((at) => at < end);
console.log("croner:", due.length, "time");
const schedule = CronExpressionParser.parse("30 1 * * *", { tz: zone, currentDate: start });
console.log("cron-parser:", schedule.take(3).map((at) => at.toDate()).filter((at) => at < end).length, "time");
JS
node due.mjs 2>&1 | tee -a seen
seen_is <<'END'
robfig/cron 30 1 * * * on 2026-11-01: 01:30 EDT 01:30 EST
robfig/cron 30 2 * * * on 2026-03-08:
croner: 1 time
cron-parser: 1 time
END
