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

// Open opens a journal in an SQLite file. If the file does not exist, Open makes a file that only its owner can read.
//
// While the journal is open, and after a crash, two more files belong to it. Their names are the name of the file with
// -wal and -shm at the end. When the last open journal of the file is closed, only the file itself is left.
//
// Open reads the whole file, and refuses it in these cases:
//
//   - The file is damaged, for example because a part of it is missing.
//   - The file was moved or copied without its -wal file, so it may lack the latest batches.
//   - A run was killed at the moment when it opened or closed the file, or another program has closed the file of a
//     killed run. Open cannot tell these cases from the previous one. The error says how to proceed.
//   - The file is an older backup beside the -wal file of a killed run.
func Open(ctx context.Context, path string, opts ...Option) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller chooses the file
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err == nil { // a name such as :memory: means something else to SQLite
		path, err = filepath.EvalSymlinks(path) // the -wal file is beside the file, not beside a link
	}
	if err != nil {
		return nil, err
	}
	if err := checkWhole(ctx, path); err != nil {
		return nil, err
	}
	db, err := openFile(path, "FULL")
	if err != nil {
		return nil, err
	}
	// The first statement is repeated, because it fails if another process opens a new file at the same time.
	if err := retry(ctx, db.PingContext); err != nil {
		return nil, errors.Join(orRunning(ctx, err), db.Close())
	}
	if err := checkPages(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	j, err := New(ctx, db, opts...)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	ends, err := openFile(path, "NORMAL")
	if err != nil {
		return nil, errors.Join(err, j.Close(), db.Close())
	}
	j.file, j.ends = path, ends
	return j, nil
}

// openFile opens a file. The argument synchronous is FULL or NORMAL. With FULL, a commit survives a power cut. With
// NORMAL, the latest commits may be lost, but on a slow disk a commit takes only half as long. NORMAL is enough for
// outcomes: a batch whose outcome is lost counts as a batch of unknown outcome.
func openFile(path, synchronous string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// checkWhole returns an error if the header of a file says that the database uses a -wal file, but there is none. It
// also returns an error if there is a -wal file, but the header does not say so: then the file is new or an older
// backup.
func checkWhole(ctx context.Context, path string) error {
	wal, hasWAL := path+"-wal", false
	for range 10 { // another process may be opening or closing the file
		isOpen, err := inspect(path)
		if err != nil {
			return err
		}
		_, err = os.Stat(wal)
		hasWAL = err == nil
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if hasWAL == isOpen {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	remedy := "Only if nothing was moved or copied, so that the run was killed while it opened or closed the file, or " +
		"another program of SQLite has closed it, nothing is missing: then make an empty %[2]s"
	if hasWAL {
		remedy = "The file at this place is new or an older backup. Only if no batch of %[2]s is needed, remove %[2]s"
	}
	return fmt.Errorf("sqlpayvault: %s was moved or copied without %s, which has the latest batches of a run that was "+
		"killed or is at work: put both of them into one folder. "+remedy, path, filepath.Base(wal))
}

// checkPages reads the whole file, and returns an error if it is damaged, for example because the disk was full during
// a copy. A million batches take about 4 s.
func checkPages(ctx context.Context, db *sql.DB) error {
	var result string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&result); err != nil {
		return orRunning(ctx, describe(err))
	}
	if result != "ok" {
		return fmt.Errorf("sqlpayvault: the file is damaged: was it copied as a whole? %s", result)
	}
	return nil
}

// inspect reports whether the header of a database file says that the database uses a -wal file (format version 2).
// closeFile resets this version, so a file with version 2 is still open or was not closed properly.
func inspect(path string) (isOpen bool, err error) {
	file, err := os.Open(path) //nolint:gosec // as in Open
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var header [20]byte
	_, err = io.ReadFull(file, header[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the file is new, or SQLite will refuse it
		return false, nil
	}
	return header[18] == 2 || header[19] == 2, err
}

// closeFile merges the -wal file into the database file, resets the format version in its header (see inspect), and
// closes the database. If another process has the database open, that process does this when it closes the database.
func closeFile(db *sql.DB) error {
	_, _ = db.ExecContext(context.Background(), `PRAGMA journal_mode = DELETE`)
	return db.Close()
}
