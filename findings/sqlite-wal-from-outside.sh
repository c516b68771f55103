#!/usr/bin/env bash
# Guess:        The journal mode belongs to the connection that set it: while one program has the database open with
#               journal_mode=TRUNCATE, another cannot put it into WAL mode.
# What happens: It can, at any moment at which the first is idle. The first gets no error. Its next commit goes to the
#               file -wal, and a copy of the main file alone, which had every commit before, lacks it.
# Versions:     sqlite3 3.40.1 of Debian 12, installed by apt-get
# Who meets it: Programs that rely on TRUNCATE or DELETE for copies or network mounts, beside a tool that sets WAL.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian sqlite3
coproc first { exec sqlite3 main.db; }
servers+=("$first_PID")
# in_first runs SQL in the program that stays open, and reads its one line of output.
in_first() {
	local line
	echo "$1" >&"${first[1]}"
	read -r -t 10 line <&"${first[0]}"
	echo "first program: $line"
}
{
	in_first "PRAGMA journal_mode=TRUNCATE;"
	in_first "CREATE TABLE paid (id); INSERT INTO paid VALUES (1); SELECT 'row 1 is committed';"
	echo "second program: $(sqlite3 main.db 'PRAGMA journal_mode=WAL;')"
	in_first "INSERT INTO paid VALUES (2); SELECT 'row 2 is committed';"
	cp main.db copy.db
	echo "rows in the copy of the main file: $(sqlite3 copy.db 'SELECT count(*) FROM paid;')"
} >seen 2>&1
cat seen
seen_is <<'END'
first program: truncate
first program: row 1 is committed
second program: wal
first program: row 2 is committed
rows in the copy of the main file: 1
END
