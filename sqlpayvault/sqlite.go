package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Open opens a journal in an SQLite file. If there is no file, Open makes one that only its owner can read. It makes
// the file under a temporary name in the same folder and then links it to its place, so the file system must support
// hard links.
//
// Each batch that Begin has recorded is in this one file when Begin returns. From the first write until Close, SQLite
// keeps a second file beside it, with -journal at the end of its name. If a process is killed during a write, the
// second file has what SQLite needs to undo the write.
//
// Open reads the whole file. It returns an error for
//
//   - a file that is empty, damaged, or has no journal, as after a copy that failed;
//   - a file in the journal mode WAL, which keeps the latest batches in a second file; the error says how to change it;
//   - a path with only a -journal file. The -journal file stays there if the journal was moved away while a run was at
//     work, or after a run was killed.
//
// Move both files together after a kill. If the journal was moved alone and a run has used it, remove the -journal file
// at the old place. If the two files meet again, SQLite can undo what was recorded after the move.
//
// If another program, such as Litestream, switches the file to WAL while a run is at work, the run stops.
func Open(ctx context.Context, path string, opts ...Option) (*Journal, error) {
	if path == ":memory:" || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("sqlpayvault: %q is no path of a file. A journal has to be in a file, because a journal in "+
			"memory is lost with the process", path)
	}
	path, err := findFile(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := checkFile(ctx, path); err != nil {
		return nil, err
	}
	db, err := openFile(path, "TRUNCATE")
	if err != nil {
		return nil, err
	}
	j := newSQLite(db, opts)
	j.file = path
	if j.schema != "" {
		return nil, errors.Join(errors.New("sqlpayvault: WithSchema is for Postgres"), db.Close())
	}
	switch err := j.checkTables(ctx); {
	case isMissing(err):
		return nil, errors.Join(fmt.Errorf("sqlpayvault: %s has no journal of this version of the package. "+
			"If it is a copy, the copy has failed. If another version has made it, finish its jobs with that version: %w",
			path, err), db.Close())
	case err != nil:
		return nil, errors.Join(orRunning(ctx, describe(path, err)), db.Close())
	}
	if err := j.checkMode(ctx, db); err != nil {
		return nil, errors.Join(describe(path, err), db.Close())
	}
	j.start()
	return j, nil
}

// findFile resolves the symbolic links of a path. It makes a new journal if there is no file. It fails if the file is
// empty, or if there is only a -journal file.
//
// The functions of this package never open a journal by package os. When a process closes a file, it loses all locks
// that it has on the file, also those of another Journal.
func findFile(ctx context.Context, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// Look for the -journal file first: between the two looks, another process may make a new journal and write to it.
	_, err = os.Lstat(path + "-journal")
	hasJournalFile := err == nil
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if hasJournalFile {
			return "", fmt.Errorf("sqlpayvault: there is no %[1]s, but a file %[1]s-journal of an earlier run, so the journal "+
				"was moved away. Use it at its new place. If a run has used it there, remove %[1]s-journal before you move the "+
				"journal back. Without the journal, the next run makes a new one here and sends all cards", path)
		}
		if err := makeFile(ctx, path); err != nil {
			return "", err
		}
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("sqlpayvault: %s is empty, as after a copy that failed, so it is no journal. If you remove it, "+
			"the next run makes a new journal and sends all cards", path)
	}
	return path, err
}

// makeFile makes a new journal under a temporary name and links it to its place. If another process has made a file at
// this place meanwhile, makeFile leaves that file alone. At the first commit, SQLite syncs the folder, so the link then
// survives a power cut.
func makeFile(ctx context.Context, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // the file has got another name, or Open fails
	if err := file.Close(); err != nil {
		return err
	}
	db, err := openFile(file.Name(), "DELETE") // in this mode no -journal file is left
	if err != nil {
		return err
	}
	j := newSQLite(db, nil)
	if err := errors.Join(j.createTables(ctx), db.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// newSQLite returns a journal in SQLite that is not started yet. Its statements about batches never run at the same
// time.
func newSQLite(db *sql.DB, opts []Option) *Journal {
	j := newJournal(db, opts)
	j.waiting = make(chan *write)
	j.setNames("main", notDurably)
	return j
}

// notDurably takes the place of durably in SQLite, where the connection has the setting synchronous=FULL.
const notDurably = `(SELECT 1) AS durable`

// openFile opens an existing file. With synchronous=FULL, a commit survives a power cut. If mode is "", SQLite does not
// change the journal mode of the file.
func openFile(path, mode string) (*sql.DB, error) {
	source := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?mode=rw&_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)"
	if mode != "" {
		source += "&_pragma=journal_mode(" + mode + ")"
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// checkFile reads the whole file, and returns an error if it is damaged or in WAL mode. A million batches take about
// 4 s.
func checkFile(ctx context.Context, path string) (err error) {
	db, err := openFile(path, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var mode string
	err = retry(ctx, time.Now().Add(timeout), func(ctx context.Context) error {
		return db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode)
	})
	if err != nil {
		return orRunning(ctx, describe(path, err))
	}
	if mode == "wal" {
		return modeError(path, mode)
	}
	var result string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&result); err != nil {
		return orRunning(ctx, describe(path, err))
	}
	if result != "ok" {
		return fmt.Errorf("sqlpayvault: %s is damaged: was it copied as a whole? If it was moved without the file "+
			"%s-journal of a killed run, put both into one folder: %s", path, filepath.Base(path), result)
	}
	return nil
}

// errMode is the error of a file that is in WAL mode when Open is called, or that has left the mode TRUNCATE since.
var errMode = errors.New("sqlpayvault: the file of the journal is in another journal mode of SQLite")

func modeError(path, mode string) error {
	return fmt.Errorf("%w, %s: another program has switched it, as Litestream does. Stop that program, and keep the "+
		"file %s-wal beside the file, if there is one. Then run: sqlite3 '%s' 'PRAGMA journal_mode=TRUNCATE'",
		errMode, mode, filepath.Base(path), path)
}

// checkMode returns errMode if the file is not in the journal mode TRUNCATE. In WAL mode commits are in a second file,
// which is easily lost. The mode cannot change during a transaction, so a check inside a transaction holds until
// its commit. checkMode does nothing for Postgres.
func (j *Journal) checkMode(ctx context.Context, db querier) error {
	if j.file == "" {
		return nil
	}
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return err
	}
	if mode != "truncate" {
		return modeError(j.file, mode)
	}
	return nil
}
