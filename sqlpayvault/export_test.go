package sqlpayvault

import "database/sql"

// NewOn returns a journal in SQLite or in Postgres, for tests with a driver of their own. The tables must exist.
func NewOn(db *sql.DB, isSQLite bool, opts ...Option) *Journal {
	var j *Journal
	if isSQLite {
		db.SetMaxOpenConns(1)
		j = newSQLite(db, opts)
	} else {
		j = newJournal(db, opts)
		j.setNames("public", durably)
	}
	j.start()
	return j
}
