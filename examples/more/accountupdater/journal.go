package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	job, err := knownJob(ctx, journal)
	switch {
	case err != nil:
		return err
	case job == "":
		return errors.New(journalOf(file) + " has no job: no run has begun with it")
	case !strings.HasSuffix(job, "@"+cards.sum):
		return otherFile(file, job)
	}
	list := journal.Unresolved
	switch args[0] {
	case "resolve":
		if err := journal.Resolve(ctx, job, batch, payvault.BatchOutcome{Status: status}); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s, is recorded as %s\n", name(cards.batch(batch)), status)
		return nil
	case "refused":
		list = journal.Refused
	}
	batches, err := list(ctx, job)
	for _, b := range batches {
		batch := cards.batch(b.Index)
		fmt.Fprintf(out, "%s: %s%s\n", name(batch), strings.TrimSpace(b.Outcome.Code+" "+b.Outcome.Message),
			explain(batch, b.Outcome.Fields))
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

// knownJob returns the name of the job in a journal, or "" if no run has begun a batch. This program keeps only one job
// in a journal.
func knownJob(ctx context.Context, journal *sqlpayvault.Journal) (string, error) {
	jobs, err := journal.Jobs(ctx)
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	return jobs[0], nil
}

// otherFile returns the error for a journal that belongs to another job.
func otherFile(file, known string) error {
	target, _, _ := strings.Cut(known, "@")
	return fmt.Errorf("%s: it is of %s and of the file as it was then: put new cards into another file",
		journalOf(file), target)
}
