package payvault

import "slices"

// Operation is the name of an operation of the service, as in [Error.Op] and in log records.
type Operation string

// The names of operations. [Operations] describes all of them except OpCall and OpNewClient.
//
//nolint:gosec // names, no credentials
const (
	OpTokensTokenize            Operation = "tokens.tokenize"
	OpCustomersCreate           Operation = "customers.create"
	OpCustomersList             Operation = "customers.list"
	OpPayeesCreate              Operation = "payees.create"
	OpPayeesDelete              Operation = "payees.delete"
	OpApplicationsCreate        Operation = "applications.create"
	OpApplicationsSaveData      Operation = "applications.save_data"
	OpApplicationsValidate      Operation = "applications.validate"
	OpDisputesRespond           Operation = "disputes.respond"
	OpSubscriptionsTransactions Operation = "subscriptions.transactions"
	OpSubscriptionsCancel       Operation = "subscriptions.cancel"
	OpInvoicesSend              Operation = "invoices.send"
	OpAccountUpdaterSubmit      Operation = "account_updater.submit"
	OpWebhooksAddEvent          Operation = "webhooks.add_event"

	OpCall      Operation = "client.call" // Op of [Client.Call] without [Request.Name], in errors and log records
	OpNewClient Operation = "client.new"  // Op of [NewClient], in errors
)

// Replay is the class of an operation. It depends on the effect of performing the operation twice.
type Replay string

// The classes of replay. The SDK repeats an operation of any class after status 429, and if there was no connection.
// After a lost connection, a timeout of the attempt, or status 502, 503 or 504, the SDK repeats an operation only if
// its class is not ReplayNever, or if the call has [WithReplay].
const (
	ReplayNever      Replay = "never"          // performing it twice may move money, send a message or store data twice
	ReplayWithCardID Replay = "with a card_id" // ReplaySame if the request has a card_id, else ReplayNever
	ReplaySame       Replay = "same"           // performing it twice saves the same data in the same place
	ReplayRead       Replay = "read"           // the operation changes nothing
)

// OperationInfo describes an operation of the service.
type OperationInfo struct {
	Op       Operation // such as "payees.delete"
	Method   string    // HTTP method
	Path     string    // template below the base URL, such as "/platform/vault/payee/{payee_id}"
	Replay   Replay    // effect of performing the operation twice
	Merchant bool      // the request takes a merchant_id, so a client of [Client.ForMerchant] can call the operation
	Result   string    // JSON pointer to the result in the answer; "" for the whole answer; "-" if no result is documented
}

// Operations lists the operations of the service that have a method of their own.
func Operations() []OperationInfo { return slices.Clone(operations) }

// operations has one row for each operation. Calls, errors, logs and tests read it. Package contract compares it with
// api/openapi.yaml.
//
//nolint:gochecknoglobals // never changed
var operations = []OperationInfo{
	{OpTokensTokenize, "POST", "/pg/tokenize", ReplayWithCardID, true, ""},
	{OpCustomersCreate, "POST", "/platform/vault/customer", ReplayNever, true, "/data"},
	{OpCustomersList, "GET", "/platform/vault/customer", ReplayRead, true, "/data"},
	{OpPayeesCreate, "POST", "/platform/vault/payee", ReplayNever, true, "/data"},
	{OpPayeesDelete, "DELETE", "/platform/vault/payee/{payee_id}", ReplayNever, true, "-"},
	{OpApplicationsCreate, "POST", "/platform/application/add", ReplayNever, false, "/data"},
	{OpApplicationsSaveData, "POST", "/platform/application/{appId}/data", ReplaySame, false, "/data/fields"},
	{OpApplicationsValidate, "GET", "/platform/application/{appId}/validate", ReplayRead, false, "-"},
	{OpDisputesRespond, "POST", "/platform/dispute/{rec_id}/respond", ReplayNever, false, "-"},
	{
		OpSubscriptionsTransactions, "GET", "/platform/subscription/transactions/{subscription_id}", ReplayRead, true,
		"/data",
	},
	{OpSubscriptionsCancel, "POST", "/platform/subscription/{subscription_id}/cancel", ReplayNever, true, "/data"},
	{OpInvoicesSend, "POST", "/platform/invoice/{invoice_id}/send", ReplayNever, false, "-"},
	{OpAccountUpdaterSubmit, "POST", "/platform/aus/add", ReplayNever, false, "/data"},
	{OpWebhooksAddEvent, "POST", "/platform/webhook/{webhook_id}/event/{event}", ReplayNever, false, "/data"},
}

// isTyped reports whether the operation has a method of its own. The operations of [Client.Call] have none.
func (op Operation) isTyped() bool {
	return slices.ContainsFunc(operations, func(o OperationInfo) bool { return o.Op == op })
}

// info returns the row of an operation in the table operations.
func (op Operation) info() OperationInfo {
	i := slices.IndexFunc(operations, func(o OperationInfo) bool { return o.Op == op })
	return operations[i]
}
