package calls

import (
	"slices"
	"strings"
)

// NumberRule says how a JSON number is read into certain fields of results.
type NumberRule struct {
	Fields  []string // names on the wire, such as "id"; "Type.name" if the rule is only for the field of one type
	Meaning string   // text of the rule in docs/answers.md
}

// Each of these rules is for one kind of field: IDs; secret numbers of accounts, persons and documents; expiration
// dates; ISO codes.
//
//nolint:gochecknoglobals // never changed
var (
	NumberID = NumberRule{
		[]string{
			"app_id", "batch_id", "batch_number", "card_id", "customer_id", "developer_id", "id", "merch_ref_num",
			"merchant_id", "node_id", "payee_id", "pg_id", "pricing_id", "purchase_id", "rec_id", "reference_id",
			"request_id", "shipping_id", "subscription_id",
		},
		"an ID. With an exponent or a fraction it is unreadable, and so is `true`",
	}
	NumberSecret = NumberRule{
		[]string{
			"bank_account_number", "bank_routing", "dda_number", "dl_number", "passport", "ssn", "tax_id", "tr_number",
		},
		"read like an ID. A `bank_routing` or `tr_number` of fewer than nine digits is unreadable. In all others, a lost " +
			"zero at the beginning goes unnoticed",
	}
	NumberMMYY = NumberRule{[]string{"exp_date"}, "MMYY. 420 is read as 0420"}
	NumberISO  = NumberRule{
		[]string{
			"ApplicationAddress.country", "billing_country_code", "country_code", "funded_currency",
			"shipping_country_code", "tran_currency",
		},
		"an ISO code of three digits. 36 is read as 036, and `Response.Unread` names it after a write",
	}
)

// NumberTable returns the table of the rules for docs/answers.md.
func NumberTable() string {
	var table strings.Builder
	table.WriteString("| fields | how a JSON number is read |\n|---|---|\n")
	for _, rule := range []NumberRule{NumberID, NumberSecret, NumberMMYY, NumberISO} {
		table.WriteString("| `" + strings.Join(rule.Fields, "`, `") + "` | " + rule.Meaning + " |\n")
	}
	return table.String()
}

// Covers reports whether the rule is for a field. typeName is the name of the type that has the field, and wire is the
// name of the field on the wire.
func (r NumberRule) Covers(typeName, wire string) bool {
	return slices.Contains(r.Fields, wire) || slices.Contains(r.Fields, typeName+"."+wire)
}
