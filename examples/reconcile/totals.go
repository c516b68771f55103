package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/govalues/decimal"

	"example.com/payvault"
)

// kind is the status and the currency of transactions that are added up together.
type kind struct {
	status   payvault.TransactionStatus
	currency string // numeric code, such as 840
}

// total has the sums of the transactions of one kind.
type total struct {
	count                     int
	amount, refunded, balance decimal.Decimal
}

// add adds the amounts of a transaction to the sums. It fails if a sum would have to be rounded.
func (t *total) add(amount, refunded decimal.Decimal) error {
	var err error
	if t.amount, err = exactly(t.amount.AddExact, t.amount, amount); err != nil {
		return err
	}
	if t.refunded, err = exactly(t.refunded.AddExact, t.refunded, refunded); err != nil {
		return err
	}
	t.count++
	t.balance, err = exactly(t.amount.SubExact, t.amount, t.refunded)
	return err
}

// exactly returns a + b or a - b, with all decimal places of both numbers. The argument operation has to be a.AddExact
// or a.SubExact. If the result has more digits than a Decimal can have, exactly returns an error.
func exactly(
	operation func(decimal.Decimal, int) (decimal.Decimal, error), a, b decimal.Decimal,
) (decimal.Decimal, error) {
	return operation(b, max(a.Scale(), b.Scale()))
}

type totals map[kind]total

// ask adds up all transactions from the day q.from to the day q.to. The service selects them by a filter.
func (q *question) ask(ctx context.Context, client *payvault.Client) (totals, error) {
	sums := totals{}
	transactions := client.Subscriptions.AllTransactions(ctx, q.subscription, &payvault.ListOptions{
		Filters: []payvault.Filter{payvault.BetweenDates("tran_date", q.from, q.to)},
		OrderOn: "tran_time", OrderBy: payvault.Ascending, // so that new transactions come at the end of the list
		Count: 100, Prefetch: 2,
	})
	for transaction, err := range transactions {
		if err != nil {
			return nil, err
		}
		k := kind{transaction.Status, transaction.Currency}
		sum := sums[k]
		if err := sum.add(transaction.AmtTran.Decimal(), transaction.AmtRefunded.Decimal()); err != nil {
			return nil, fmt.Errorf("transaction %s: %w", transaction.PGID, err)
		}
		sums[k] = sum
	}
	return sums, nil
}

// print writes one line for each kind.
func (s totals) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "status\tcurrency\tcount\tamount\trefunded\tbalance\t")
	for _, k := range slices.SortedFunc(maps.Keys(s), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.status, b.status), cmp.Compare(a.currency, b.currency))
	}) {
		sum := s[k]
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t\n", k.status, k.currency, sum.count, sum.amount, sum.refunded, sum.balance)
	}
	return w.Flush()
}
