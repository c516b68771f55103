#!/usr/bin/env bash
# Guess:        The two SQLite drivers of Go store a time.Time as text that SQLite's own date functions read.
# What happens: modernc.org/sqlite stores what time.Time.String prints, with the name of the zone and with "m=+0.01" behind
#               a time from time.Now. datetime() of it is NULL, so "WHERE datetime(until) < datetime('now')" never finds a
#               row. With _time_format=sqlite in the DSN it works, as it does with mattn/go-sqlite3.
# Versions:     modernc.org/sqlite v1.62.0, mattn/go-sqlite3 v1.14.53 (needs a C compiler), Go 1.26.8
# Who meets it: Job tables and locks with a time at which a lease ends.
# Date:         2026-11-28
source "$(dirname "$0")/lib.sh"
debian gcc libc6-dev
CGO_ENABLED=1 go_run modernc.org/sqlite@v1.62.0 github.com/mattn/go-sqlite3@v1.14.53 <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"
)

func main() {
	for _, source := range [][2]string{{"sqlite", "file:a.db"}, {"sqlite", "file:b.db?_time_format=sqlite"}, {"sqlite3", "file:c.db"}} {
		db, err := sql.Open(source[0], source[1])
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
		fmt.Printf("%s %s: names the zone: %t, ended leases found: %d, %v\n", source[0], source[1], strings.Contains(stored, "UTC"), ended, err)
		db.Close()
	}
}
GO
seen_is <<'END'
sqlite file:a.db: names the zone: true, ended leases found: 0, <nil>
sqlite file:b.db?_time_format=sqlite: names the zone: false, ended leases found: 1, <nil>
sqlite3 file:c.db: names the zone: false, ended leases found: 1, <nil>
END
