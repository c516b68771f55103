package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// durably makes the transaction of a statement in Postgres survive the end of the database's processes. Without it,
// Postgres can lose transactions whose commit it has reported, if a role or a database has a weaker synchronous_commit.
// durably keeps remote_apply, the only level above on. Postgres does not optimize set_config away, because set_config
// is volatile.
const durably = `(SELECT set_config('synchronous_commit',
	CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)) AS durable`

// WithSchema names the schema of the tables in Postgres. The schema must exist. If it has no journal, [New] makes a new
// one, even if another schema has a journal. Without WithSchema, New uses the current schema of its first connection,
// which depends on the search_path. [Open] refuses WithSchema.
func WithSchema(name string) Option {
	return func(j *Journal) { j.schema = name }
}

// New opens a journal in Postgres, through a driver such as github.com/jackc/pgx/v5/stdlib. For SQLite use [Open]. New
// makes the tables if they do not exist. Close does not close db.
//
// If db has no limit of connections, Begin and End record batches over two connections at most. Other statements may
// use further connections. For more than some hundred batches a second, set a higher limit by SetMaxOpenConns, and the
// same number by SetMaxIdleConns, before you call New. Then Begin and End use up to this number of connections.
//
// New chooses the schema once, and all statements of the journal name it. Without [WithSchema] it is the current
// schema. If this schema has no journal, but another schema of the database has one, New fails: the search_path has
// probably changed, and all cards would be sent again. If several schemas have a journal, use WithSchema, because the
// current schema depends on the search_path. New also fails if the table payvault_batches is unlogged, because such a
// table is empty after a crash.
//
// Begin, End and Resolve commit with synchronous_commit=on, also where a role or a database has a weaker setting. They
// keep the stronger setting remote_apply.
//
// Behind pgbouncer in transaction mode, pgx needs default_query_exec_mode=exec in its connection string, unless
// pgbouncer keeps prepared statements (max_prepared_statements). This is so for all statements of pgx, not only for
// those of the journal. The journal needs no further setting, because each of its statements is a transaction of its
// own.
func New(ctx context.Context, db *sql.DB, opts ...Option) (*Journal, error) {
	j := newJournal(db, opts)
	if err := j.chooseSchema(ctx); err != nil {
		return nil, err
	}
	j.setNames(`"`+strings.ReplaceAll(j.schema, `"`, `""`)+`"`, durably)
	if err := j.createTables(ctx); err != nil {
		return nil, err
	}
	j.start()
	return j, nil
}

// chooseSchema sets the schema of the journal to the current schema, unless WithSchema has set it. Without WithSchema
// it fails if there is no current schema, or if the current schema has no table of batches and another schema has one.
// With and without WithSchema it fails if the table of batches is unlogged.
func (j *Journal) chooseSchema(ctx context.Context) error {
	isNewAllowed := j.schema != ""
	if !isNewAllowed {
		row := j.db.QueryRowContext(ctx, `SELECT coalesce(current_schema(), '')`)
		if err := row.Scan(&j.schema); err != nil {
			return describe("", err)
		}
	}
	if j.schema == "" {
		return errors.New("sqlpayvault: no schema of the search_path exists: use WithSchema")
	}
	rows, err := j.db.QueryContext(ctx, `SELECT nspname, relpersistence = 'u' FROM pg_catalog.pg_class
		JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace WHERE relname = 'payvault_batches' ORDER BY 1`)
	if err != nil {
		return describe("", err)
	}
	defer rows.Close() //nolint:errcheck // Err has it
	var others []string
	for rows.Next() {
		var schema string
		var isUnlogged bool
		if err := rows.Scan(&schema, &isUnlogged); err != nil {
			return describe("", err)
		}
		switch {
		case schema != j.schema:
			others = append(others, fmt.Sprintf("%q", schema))
		case isUnlogged:
			return fmt.Errorf("sqlpayvault: the table payvault_batches of schema %q is unlogged, so it is empty after a "+
				"crash: run ALTER TABLE ... SET LOGGED", schema)
		default:
			isNewAllowed = true // the journal is not new
		}
	}
	if err := rows.Err(); err != nil {
		return describe("", err)
	}
	if !isNewAllowed && len(others) > 0 {
		return fmt.Errorf("sqlpayvault: schema %q has no journal, but the same database has one in schema %s. In a new "+
			"journal all cards count as not sent. If you want a new journal, use WithSchema(%q). Otherwise name the schema "+
			"of your journal by WithSchema", j.schema, strings.Join(others, ", "), j.schema)
	}
	return nil
}
