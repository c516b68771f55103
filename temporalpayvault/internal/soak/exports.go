package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/temporalpayvault"
)

const (
	perList   = 25 // transactions
	pageCount = 10
)

// numbers are the subscriptions of the IDs from 1 on, as many as a reference says.
type numbers struct{}

func (numbers) Count(_ context.Context, ref string) (int, error) { return strconv.Atoi(ref) }

func (numbers) Subscriptions(_ context.Context, _ string, start, end int) (ids []payvault.SubscriptionID, _ error) {
	for i := start; i < end; i++ {
		ids = append(ids, payvault.SubscriptionID(i+1))
	}
	return ids, nil
}

// folder is a sink of a file for each page.
type folder string

func (f folder) WriteCustomers(_ context.Context, at temporalpayvault.Position, page []payvault.Customer) error {
	return write(string(f), at, page)
}

func (f folder) WriteTransactions(_ context.Context, at temporalpayvault.Position, page []payvault.Transaction) error {
	return write(string(f), at, page)
}

// EndList removes what was written while a list was longer. No list of the soak is.
func (f folder) EndList(_ context.Context, at temporalpayvault.Position) error {
	name := fmt.Sprintf("%s-%d-%d-*.json", at.Export, at.Subscription, at.Page)
	late, err := filepath.Glob(filepath.Join(string(f), name))
	if len(late) > 0 {
		err = errors.Join(err, fmt.Errorf("there is a page after the end: %q", late))
	}
	return err
}

func write[T any](dir string, at temporalpayvault.Position, page []T) error {
	text, err := json.Marshal(page)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, "part-")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	name := fmt.Sprintf("%s-%d-%d-%d.json", at.Export, at.Subscription, at.Page, at.Offset)
	return errors.Join(err, part.Close(), os.Rename(part.Name(), filepath.Join(dir, name)))
}

// seed gives the emulator n subscriptions.
func (w *world) seed(n int) {
	for i := range n {
		sub := payvaulttest.Subscription{ID: payvault.SubscriptionID(i + 1), MerchantID: w.emulator.Merchant().MerchantID}
		for k := range perList {
			sub.Transactions = append(sub.Transactions, payvaulttest.Transaction{PGID: fmt.Sprint(i, "-", k)})
		}
		w.emulator.Subscriptions.Seed(sub)
	}
}

// exports is an export amid which requests fail and workers are killed. Each page has to be there once.
func (w *world) exports(ctx context.Context, out io.Writer) error {
	const id = "export"
	lists := w.cards / batch
	w.seed(lists)
	var sum temporalpayvault.ExportSummary
	pages := lists * ((perList + pageCount - 1) / pageCount)
	err := w.harmed(ctx, out, id, payvault.OpSubscriptionsTransactions, pages, func() error {
		run, err := w.start(ctx, id, queue, temporalpayvault.ExportLists, temporalpayvault.ExportJob{
			Name: id, Subscriptions: strconv.Itoa(lists), List: payvault.ListOptions{Count: pageCount},
			HeartbeatTimeout: heartbeat,
			ListsPerActivity: 20,
		})
		if err != nil {
			return err
		}
		return run.Get(ctx, &sum)
	})
	if err != nil {
		return err
	}
	written, records, err := w.shelf(id, lists)
	say(out, "%s: %d pages of %d lists and %d records; written %d pages and %d different records",
		id, sum.Pages, sum.Lists, sum.Records, written, records)
	if err == nil && (written != pages || records != lists*perList || sum.Pages != written || sum.Records != records) {
		err = errors.New("pages are missing, or there twice")
	}
	return err
}

// shelf counts the pages of an export, and their different records.
func (w *world) shelf(export string, lists int) (pages, records int, err error) {
	seen := map[string]bool{}
	for i := range lists {
		for page, offset := 0, 0; offset < perList; page++ {
			name := export + "-" + strconv.Itoa(i+1) + fmt.Sprintf("-%d-%d.json", page, offset)
			text, err := os.ReadFile(filepath.Join(w.dir, name)) //nolint:gosec // its own file
			if err != nil {
				return pages, records, err
			}
			var page []payvault.Transaction
			if err := json.Unmarshal(text, &page); err != nil {
				return pages, records, err
			}
			for _, x := range page {
				seen[x.PGID] = true
			}
			pages, offset = pages+1, offset+len(page)
		}
	}
	all, err := filepath.Glob(filepath.Join(w.dir, export+"-*.json"))
	if len(all) != pages {
		err = errors.Join(err, fmt.Errorf("%d files", len(all)))
	}
	return pages, len(seen), err
}
