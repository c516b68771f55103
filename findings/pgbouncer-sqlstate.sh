#!/usr/bin/env bash
# Guess:        pgbouncer's errors have the SQLSTATE that Postgres has for the same: 53300 for too many clients, class
#               08 or 57 for a server that is down, 3D000 for an unknown database, 57014 for a time limit.
# What happens: All of them are 08P01, "protocol violation". Only the text tells them apart. A retry that looks for
#               53300 or 57P03 never happens; one that repeats class 08 also repeats for a name that does not exist.
# Versions:     pgbouncer 1.18.0 and Postgres 15 of Debian 12, pgx v5.13.0 with Go 1.26.8
# Who meets it: Programs behind pgbouncer that choose by SQLSTATE what to repeat.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian postgresql-15 pgbouncer
chmod 755 "$dir"
mkdir server
port=$((20000 + RANDOM % 10000))
cat >server/pgbouncer.ini <<INI
[databases]
known = host=$dir/server dbname=postgres user=postgres pool_size=1
down = host=127.0.0.1 port=1 dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 2
query_wait_timeout = 1
INI
chown -R postgres server
as_postgres() { exec setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
bin=/usr/lib/postgresql/15/bin
(as_postgres $bin/initdb -D server/data -A trust) >log
(as_postgres $bin/postgres -D server/data -k "$dir/server" -h "") >>log 2>&1 &
servers+=($!)
(as_postgres pgbouncer server/pgbouncer.ini) >>log 2>&1 &
servers+=($!)
for _ in {1..100}; do
	$bin/pg_isready -q -h "$dir/server" && $bin/pg_isready -q -h 127.0.0.1 -p $port && break
	sleep 0.1
done
export PGBOUNCER="host=127.0.0.1 port=$port user=postgres sslmode=disable default_query_exec_mode=simple_protocol dbname="
go_run github.com/jackc/pgx/v5@v5.13.0 <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var ctx = context.Background()

func connect(database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, os.Getenv("PGBOUNCER")+database)
}

func show(what string, err error) {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		fmt.Printf("%s: %v\n", what, err)
		return
	}
	fmt.Printf("%s: %s %s\n", what, server.Code, server.Message)
}

func main() {
	_, err := connect("unknown")
	show("unknown database", err)
	_, err = connect("down")
	show("server down", err)

	holder, err := connect("known")
	if err != nil {
		panic(err)
	}
	tx, err := holder.Begin(ctx) // has the one connection of the pool from here on
	if err != nil {
		panic(err)
	}
	waiting, err := connect("known")
	if err != nil {
		panic(err)
	}
	_, err = connect("known")
	show("third client of two", err)
	_, err = waiting.Exec(ctx, "SELECT 1")
	show("no connection within 1 s", err)
	_ = tx.Rollback(ctx)
}
GO
seen_is <<'END'
unknown database: 08P01 bouncer config error
server down: 08P01 query_wait_timeout
third client of two: 08P01 no more connections allowed (max_client_conn)
no connection within 1 s: 08P01 query_wait_timeout
END
