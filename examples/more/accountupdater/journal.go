package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"example.com/payvault"
	"example.com/payvault/sqlpayvault"
)

// journalOf returns the path of the journal for a file of cards.
func journalOf(file string) string { return file + ".journal" }

// command runs one of the commands unresolved, refused and resolve. The commands unresolved and refused list batches.
// The command resolve records the outcome of a batch that somebody has looked up at the service.
func command(ctx context.Context, file string, args []string, out io.Writer) (err error) {
	batch, status, err := parse(args)
	if err != nil || file == "" {
		return errors.Join(err, errUsage)
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return err
	}
	if _, err := os.Stat(journalOf(file)); err != nil { // sqlpayvault.Open would create a journal
		return err
	}
	cards, err := readCards(file)
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.Open(ctx, journalOf(file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	job, err := knownJob(ctx, file)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(job, "@"+cards.sum) {
		return otherFile(file, job)
	}
	list := journal.Unresolved
	switch args[0] {
	case "resolve":
		if err := journal.Resolve(ctx, job, batch, payvault.BatchOutcome{Status: status}); err != nil {
			return err
		}
		start := batch * payvault.MaxAccountUpdaterCards
		rows := cards.rows(start, start+payvault.MaxAccountUpdaterCards)
		fmt.Fprintf(out, "batch %d, %s, is recorded as %s\n", batch, rows, status)
		return nil
	case "refused":
		list = journal.Refused
	}
	batches, err := list(ctx, job)
	for _, b := range batches {
		fmt.Fprintf(out, "batch %d, %s: %s\n", b.Index, cards.rows(b.Start, b.Start+payvault.MaxAccountUpdaterCards),
			strings.TrimSpace(b.Outcome.Code+" "+b.Outcome.Message))
	}
	fmt.Fprintln(out, len(batches), "batches")
	return err
}

// parse reads the arguments of a command. It returns the batch and the status of the command resolve, and an error for
// an invalid command.
func parse(args []string) (batch int, status payvault.BatchStatus, err error) {
	switch {
	case len(args) == 1 && (args[0] == "unresolved" || args[0] == "refused"):
		return 0, "", nil
	case len(args) != 3 || args[0] != "resolve":
		return 0, "", fmt.Errorf("wrong command %q", strings.Join(args, " "))
	}
	switch args[2] {
	case "accepted", "refused":
		status = payvault.BatchStatus(args[2])
	case "not-sent":
		status = payvault.BatchNotSent
	default:
		return 0, "", fmt.Errorf("%q is not accepted, refused or not-sent", args[2])
	}
	batch, err = strconv.Atoi(args[1])
	return batch, status, err
}

// onlyJob records the name of the job in the journal of a file. It returns an error if the journal has another job,
// because all cards would be sent again under the new name.
func onlyJob(ctx context.Context, file, job string) error {
	db, err := openTable(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // each statement is a commit
	_, err = db.ExecContext(ctx, `INSERT INTO only_job SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM only_job)`, job)
	if err != nil {
		return err
	}
	known, err := readTable(ctx, db)
	if err == nil && known != job {
		err = otherFile(file, known)
	}
	return err
}

// knownJob returns the name of the job that onlyJob has recorded in the journal of a file.
func knownJob(ctx context.Context, file string) (string, error) {
	db, err := openTable(ctx, file)
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // as above
	job, err := readTable(ctx, db)
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New(journalOf(file) + " has no job: no run has begun with it")
	}
	return job, err
}

// openTable opens the journal with the driver of sqlpayvault, and creates the table only_job if it does not exist.
func openTable(ctx context.Context, file string) (*sql.DB, error) {
	path := (&url.URL{Path: journalOf(file)}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS only_job (name TEXT NOT NULL)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func readTable(ctx context.Context, db *sql.DB) (job string, err error) {
	err = db.QueryRowContext(ctx, `SELECT name FROM only_job`).Scan(&job)
	return job, err
}

// otherFile returns the error for a journal that belongs to another job.
func otherFile(file, known string) error {
	target, _, _ := strings.Cut(known, "@")
	return fmt.Errorf("%s: it is of %s and of the file as it was then: put new cards into another file",
		journalOf(file), target)
}
