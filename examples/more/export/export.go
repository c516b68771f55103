package main

import (
	"context"
	"encoding/csv"
	"io"
	"strings"

	"example.com/payvault"
	"example.com/payvault/examples/more/internal/progress"
)

// export writes a CSV line for each customer, in the order of their IDs.
func export(ctx context.Context, client *payvault.Client, out, show io.Writer) error {
	total, err := count(ctx, client)
	if err != nil {
		return err
	}
	bar := progress.New(show, "customers", total)
	defer bar.Stop()
	rows := csv.NewWriter(out)
	if err := rows.Write(columns()); err != nil {
		return err
	}
	customers := client.Customers.All(ctx, &payvault.ListOptions{
		OrderOn: "customer_id", OrderBy: payvault.Ascending, Count: 50, Prefetch: 8,
	})
	for customer, err := range customers {
		if err != nil {
			return err
		}
		if err := rows.Write(row(customer)); err != nil {
			return err
		}
		bar.Add(1)
	}
	rows.Flush()
	return rows.Error()
}

// count returns the number of customers. It requests a page of only one customer, because any page has the total
// number.
func count(ctx context.Context, client *payvault.Client) (int, error) {
	page, err := client.Customers.List(ctx, &payvault.ListOptions{Count: 1})
	if err != nil {
		return 0, err
	}
	return page.TotalRecords, nil
}

func columns() []string {
	return []string{
		"customer_id", "first_name", "last_name", "firm_name", "email", "phone", "reference_id",
		"primary_card",
	}
}

func row(c *payvault.Customer) []string {
	cells := []string{c.ID, c.FirstName, c.LastName, c.FirmName, c.Email, c.Phone, c.ReferenceID, c.PrimaryCardNumber}
	for i, cell := range cells {
		cells[i] = plain(cell)
	}
	return cells
}

// plain puts an apostrophe in front of a cell that a spreadsheet would read as a formula. It returns other cells
// unchanged.
func plain(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
