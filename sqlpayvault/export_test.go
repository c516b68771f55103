package sqlpayvault

import (
	"context"
	"database/sql"
)

// NewOn opens a journal in a database of either kind, for tests with a driver of their own. The tables must exist.
func NewOn(ctx context.Context, db *sql.DB, isSQLite bool, opts ...Option) (*Journal, error) {
	if !isSQLite {
		return New(ctx, db, opts...)
	}
	j := newJournal(db, opts)
	j.setNames("main", notDurably)
	j.start()
	return j, nil
}
