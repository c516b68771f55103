package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.com/payvault"
)

// send answers the dispute. The file is read from disk while it is sent, whatever its size.
func (a *answer) send(ctx context.Context, client *payvault.Client, out io.Writer) error {
	if a.file != "" {
		file, err := payvault.OpenFile(a.file)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // the file was only read
		a.response.Evidence = file
	}
	id := payvault.DisputeID(a.dispute)
	if err := client.Disputes.Respond(ctx, id, &a.response); err != nil {
		return explain(err)
	}
	fmt.Fprintf(out, "Dispute %d is answered.\n", id)
	if a.response.Evidence != nil {
		fmt.Fprintf(out, "Sent %s, %d bytes.\n", a.response.Evidence.Name, a.response.Evidence.Size)
	}
	return nil
}

// explain adds advice to an error. If the outcome is unknown, the user must ask the operator of the service before
// answering again, because no documented operation shows whether the answer has arrived.
func explain(err error) error {
	switch {
	case errors.Is(err, payvault.ErrInvalidRequest):
		return fmt.Errorf("nothing was sent, correct it: %s: %w", fields(err), err)
	case errors.Is(err, payvault.ErrOutcomeUnknown):
		return fmt.Errorf("the answer may have arrived, ask the operator of the service before answering again: %w", err)
	case payvault.SafeToRetry(err):
		return fmt.Errorf("the dispute is not answered, try again later: %w", err)
	}
	return fmt.Errorf("the service refused the answer: %w", err)
}

func fields(err error) string {
	failed, ok := errors.AsType[*payvault.Error](err)
	if !ok {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(failed.Fields)), ", ")
}
