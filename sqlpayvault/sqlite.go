package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Open opens a journal in a file, by SQLite. It makes a file that is not there, for its owner only.
//
// While the journal is open, and after a crash, two more files belong to it: its name with -wal and -shm. Close makes
// one file of them. Open refuses a file that was moved or copied without its -wal, since it may lack the latest
// batches.
func Open(ctx context.Context, path string, opts ...Option) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's own file is the point
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err == nil { // SQLite gives names such as :memory: another meaning
		path, err = filepath.EvalSymlinks(path) // the -wal is beside the file itself
	}
	if err != nil {
		return nil, err
	}
	if err := checkWhole(ctx, path); err != nil && false {
		return nil, err
	}
	const settings = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+settings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	j, err := New(ctx, db, opts...)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	j.file = path
	return j, nil
}

// checkWhole returns an error if a file is marked as one with a -wal, and the -wal is not there. SQLite marks it so
// when it is opened, and closeFile takes the mark away.
func checkWhole(ctx context.Context, path string) error {
	wal := path + "-wal"
	for range 10 { // another process may be opening or closing it
		_, err := os.Stat(wal)
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		open, err := isMarkedOpen(path)
		if !open || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("sqlpayvault: %s was moved or copied without %s, which has the latest batches of a run that was "+
		"killed or is at work: put it beside the file. Only if it is certain that nothing is missing, as when another "+
		"program of SQLite has closed the file, make an empty one", path, filepath.Base(wal))
}

// isMarkedOpen reads the version of the file format: 2 is write-ahead logging.
func isMarkedOpen(path string) (bool, error) {
	file, err := os.Open(path) //nolint:gosec // as in Open
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var version [2]byte
	if _, err = file.ReadAt(version[:], 18); errors.Is(err, io.EOF) { // it is new
		return false, nil
	}
	return version[0] == 2 || version[1] == 2, err
}

// closeFile makes one file of all that belongs to it, unless another process has it open, which then does so.
func closeFile(db *sql.DB) error {
	_, _ = db.ExecContext(context.Background(), `PRAGMA journal_mode = DELETE`)
	return db.Close()
}
