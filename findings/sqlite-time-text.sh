#!/usr/bin/env bash
# Guess:        modernc.org/sqlite stores a time.Time as text that SQLite's own date functions read.
# What happens: It stores what time.Time.String prints, with the name of the zone and with "m=+0.01" behind a time from
#               time.Now. datetime() of it is NULL, so "WHERE datetime(until) < datetime('now')" never finds a row. With
#               _time_format=sqlite in the DSN it does.
# Versions:     modernc.org/sqlite v1.62.0, Go 1.26.8
# Who meets it: Job tables and locks with a time at which a lease ends.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
go_run modernc.org/sqlite@v1.62.0 <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	_ "modernc.org/sqlite"
)

func main() {
	for _, source := range []string{"file:a.db", "file:b.db?_time_format=sqlite"} {
		db, err := sql.Open("sqlite", source)
		if err != nil {
			panic(err)
		}
		if _, err := db.Exec("CREATE TABLE lease (until TIMESTAMP)"); err != nil {
			panic(err)
		}
		if _, err := db.Exec("INSERT INTO lease VALUES (?)", time.Now().UTC().Add(-time.Hour)); err != nil {
			panic(err)
		}
		var stored string
		var ended int
		err = db.QueryRow("SELECT until || '', (SELECT count(*) FROM lease WHERE datetime(until) < datetime('now')) FROM lease").Scan(&stored, &ended)
		fmt.Printf("%s: names the zone: %t, ended leases found: %d, %v\n", source, strings.Contains(stored, "UTC"), ended, err)
		db.Close()
	}
}
GO
seen_is <<'END'
file:a.db: names the zone: true, ended leases found: 0, <nil>
file:b.db?_time_format=sqlite: names the zone: false, ended leases found: 1, <nil>
END
