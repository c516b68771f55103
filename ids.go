package payvault

// Integer identifiers.
type (
	// MerchantID is the ID of a merchant, as the manager portal shows it. On the wire it is a string in the body of
	// Tokenize and an integer everywhere else.
	MerchantID int64
	// PayeeID is the ID of a payee. The service assigns it.
	PayeeID int64
	// ApplicationID is the app_id of a merchant application.
	ApplicationID int64
	// SubscriptionID is the ID of a recurring-billing subscription.
	SubscriptionID int64
	// DisputeID is the control number rec_id of a dispute.
	DisputeID int64
)

// These IDs are strings, because the service does not document their type. If the service gives an ID as a number, use
// its digits: InvoiceID("17").
type (
	// InvoiceID is the ID of an invoice.
	InvoiceID string
	// WebhookID is the ID of a webhook.
	WebhookID string
)

// ACHAccountType is an ACH account type. The service documents only S, the value used for ACH, and not its meaning.
type ACHAccountType string
