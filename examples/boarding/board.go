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

// maxRounds is the maximum number of times that the data is corrected. A corrected field can make other fields
// required, so one round may not be enough.
const maxRounds = 4

// filledIn returns the keys of the fields that the merchant has already filled in.
func filledIn() []string {
	return []string{"legal_name", "business_name", "business_email", "business_type"}
}

type boarding struct {
	partner *payvault.Client
	onFile  record
	out     io.Writer
}

// board creates an application and saves the fields that the merchant has filled in. Then it validates the application,
// and saves values from the merchant's file for the fields that do not pass. It repeats these two steps until the
// application passes, at most maxRounds times.
func (b *boarding) board(ctx context.Context, request *payvault.ApplicationCreateRequest) error {
	created, err := b.partner.Applications.Create(ctx, request)
	if err != nil {
		return err
	}
	id := created.App.ID
	fmt.Fprintf(b.out, "Application %d is %s.\n", id, created.App.Status)
	if err := b.save(ctx, id, filledIn()); err != nil {
		return err
	}
	for range maxRounds {
		validation, err := b.partner.Applications.Validate(ctx, id)
		if err != nil {
			return err
		}
		if validation.OK() {
			fmt.Fprintf(b.out, "Application %d passes. The interface documents no operation that submits it: "+
				"the service's own process goes on from here.\n", id)
			return nil
		}
		b.report(validation.Problems)
		if err := b.save(ctx, id, fieldsOf(validation.Problems)); err != nil {
			return err
		}
	}
	return errors.New("the application does not pass with what is on file")
}

// save saves the fields with the given keys. The values come from the merchant's file. Saving a field twice is
// harmless, so the client retries the request after a lost answer.
func (b *boarding) save(ctx context.Context, id payvault.ApplicationID, keys []string) error {
	data, found, err := b.onFile.pick(keys)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("nothing on file of: %s", strings.Join(keys, ", "))
	}
	fields, err := b.partner.Applications.SaveData(ctx, id, &data)
	if err != nil {
		return err
	}
	saved, err := payvault.ApplicationDataOf(fields) // all data that the application has now
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "Saved %s; %d fields of %s are there now, with %d owners.\n",
		strings.Join(found, ", "), len(fields), saved.LegalName, len(saved.Ownership.Owners))
	return nil
}

func (b *boarding) report(problems map[string][]string) {
	fmt.Fprintf(b.out, "%d fields do not pass:\n", len(problems))
	for _, field := range slices.Sorted(maps.Keys(problems)) {
		fmt.Fprintf(b.out, "  %s: %s\n", field, strings.Join(problems[field], "; "))
	}
}

// fieldsOf returns the keys of the fields to save again. A path such as "ownership.owners[0].dob" belongs to the field
// ownership, which is saved as a whole. The routing number and the account number are always saved together.
func fieldsOf(problems map[string][]string) []string {
	fields := map[string]bool{}
	for path := range problems {
		field, _, _ := strings.Cut(path, ".")
		field, _, _ = strings.Cut(field, "[")
		fields[field] = true
	}
	if fields["bank_routing"] || fields["bank_account_number"] {
		fields["bank_routing"], fields["bank_account_number"] = true, true
	}
	return slices.Sorted(maps.Keys(fields))
}
