#!/usr/bin/env bash
# Guess:        A SQLite column declared as STRING keeps text.
# What happens: STRING has numeric affinity, because it is none of the names that SQLite knows. The routing number
#               011000015 loses its zero and becomes an integer, and an ID of 20 digits becomes 8.61e+19. TEXT and
#               VARCHAR(20) keep both.
# Versions:     sqlite3 3.40.1 of Debian 12, installed by apt-get
# Who meets it: Schemas that come from BigQuery, Hive or a generator that writes STRING.
# Date:         2026-11-28
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
debian sqlite3
for type in STRING TEXT 'VARCHAR(20)'; do
	sqlite3 :memory: "CREATE TABLE t (v $type); INSERT INTO t VALUES ('011000015'), ('86100000000000000001');
		SELECT '$type', v, typeof(v) FROM t;"
done 2>&1 | tee seen
seen_is <<'END'
STRING|11000015|integer
STRING|8.61e+19|real
TEXT|011000015|text
TEXT|86100000000000000001|text
VARCHAR(20)|011000015|text
VARCHAR(20)|86100000000000000001|text
END
