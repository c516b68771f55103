// Package payvaulttest emulates the whole service for tests: a real HTTP server on loopback, with the
// state, the rules and the limits that the service interface shows, and with failures on demand.
//
//	srv := payvaulttest.NewServer()
//	defer srv.Close()
//	client := srv.Client() // a *payvault.Client of the default merchant
//	page, err := client.Customers.List(ctx, nil)
//	if err != nil {
//		return err
//	}
//	fmt.Println(page.TotalRecords, srv.Commits(payvault.OpCustomersList)) // 0 1
//
// Each server has its own state, so tests can run in parallel, each with a server of its own. Servers
// are safe for concurrent use and need no testing package: cmd/payvault-emulator is the same server
// as a program, for tests in any language.
//
// # Records that have no create operation
//
// Invoices, subscriptions with their transactions, disputes and webhooks come from the Seed methods,
// such as [Server.SeedInvoice], or from [WithSeed]. Getters such as [Server.Invoice], [Server.Cards]
// and [Server.Customers] return copies of the state. [Server.Commits] counts how often an operation
// was really performed, and [Server.Requests] shows what arrived.
//
// The event transaction_status_updated occurs only when a test calls [Server.SetTransactionStatus] or
// [Server.TriggerEvent]: no request changes the status of a transaction. The account updater's events
// occur with its requests.
//
// # Failures
//
// [Server.Inject], which only Go programs can call, makes requests fail the ways networks and
// services fail. The one that matters most to money is the lost answer:
//
//	srv.Inject(payvaulttest.Fault{
//		Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1,
//	})
//
// A fault takes a request as it arrives, before authentication and whether or not the request is
// valid. Requests that a fault answers without AfterCommit are recorded, but not performed.
//
// # Secrets
//
// The emulator keeps no card number, security code, track, wallet payload or bank account of cards,
// customers and payees: cards are kept masked. What arrived stays available in [Request] and in
// [Application.Value], but only on request: no fmt verb and no slog handler prints it, and the record
// that [WithLogger] writes for each request has neither path, query, header nor body. The one for
// each delivery to a webhook has the webhook ID, the event and the status; that of a failed one also has
// the class of the error and the notification URL without its user, query and fragment. A
// request's merchant_id is that of its key, not that of the merchant for whom a partner acts. A panic
// is answered with 500 and logged with its type and its lines of code, not with its value.
//
// These are methods of the types, and fmt calls none on an unexported field: a struct of yours that
// holds an [Account] or a [Request] in one should have its own Format or String method.
//
// # The emulator's own choices
//
// Everything else follows the interface. What the interface does not show, the emulator had to
// decide, and the real service may do otherwise; do not build on
// what the next sections say.
//
// # Its choices: answers
//
//   - A refusal has a 4xx status, and code (tokenize: rcode, in three digits) repeats that status:
//     400 invalid, 401 no or unknown key, 403 not permitted or not enabled, 404 unknown, 405 method,
//     406 accept header, 409 state, 413 too large, 415 content type. Of an invalid request the data
//     maps wire paths to messages (tokenize: all in rmsg).
//   - Only application validation answers code 2, with HTTP 200. Every success is HTTP 200.
//   - All message texts but Success and Request validation failed.
//   - An unknown path (404) or method (405) is answered before the key is looked at (401). A second
//     Authorization header is refused (401), whatever it says.
//   - [Server.Commits] counts every answer with HTTP 200, so a validation that answers code 2, too.
//
// # Its choices: requests are read strictly
//
//   - Unknown, misspelt or repeated fields and query parameters, null, and anything after the JSON are
//     refused, and so are bodies where the operation takes none. Null is taken
//     only in what has no shape of its own: the elements of relatedBusinesses, and objects under keys
//     that the interface does not list.
//   - An empty string counts as absent, except where it is refused like any other wrong value: as a
//     merchant_id, as an expiry date, in the choices and dates of a dispute response, in the choices,
//     toggles, sets and dates of an application and of its owners, and in paths and queries. Nothing but
//     blanks counts as absent where a text is required: in names, in the customer_id of cancel, in the
//     message of a retrieval dispute and in the data of an application.
//   - JSON bodies are at most 1 MiB and nested at most 64 deep; a list that the interface names has at
//     most 1,000 elements, and a number that is compared or added up at most 64 characters; an escape of
//     half a surrogate pair is refused. Forms are at most 64 MiB (see [WithMaxUpload]) and have at most 8
//     parts.
//   - Accept must allow application/json, with a quality above 0, and the content type must be right and
//     be given once. A body with a content encoding is refused (415). A comma in a query must be encoded.
//   - Paths match exactly: only IDs and event names may be percent-encoded. IDs in paths and queries are written as plain integers.
//   - Records of other merchants answer 404, like those that do not exist.
//
// # Its choices: tokens and customers
//
//   - Tokenize takes a card number (12 to 19 digits) with exp_date, a swipe, ACH data (tr_number,
//     dda_number, type_id and cardholder_name) or a wallet payload; of several, the first one in this
//     order counts. With card_id, what is given replaces what is saved, and the rest stays, except
//     that an expiry date does not outlast its kind of payment data, and ACH data has none. Without
//     payment data there must be another thing to update: exp_date, cvv2, type_id, cardholder_name,
//     avs_address, avs_zip, email_address or single_use.
//   - Partners must send their own vendor_id; that of other accounts is ignored. The second
//     wallet needs Account.SecondWallet.
//   - echo_fields and report_data are refused if an object in them has no name, two, or one twice.
//   - ACH data answers no card_number; a wallet answers a made-up one. Check digits are not verified.
//   - A customer_id is unique among the customers of its merchant, and one that is sent goes before
//     auto_generate_customer_id. A billing card may name a saved card with card_id alone, which does
//     not update it. Customers show their cards as they are now, whatever updated them. One card_id
//     twice, and more than one primary card or shipping address, are refused; without a primary card the
//     first one counts.
//   - An exp_date may be in the past. Of the email addresses those of payees, invoices, applications and
//     owners must be well-formed; those of tokenize, customers and billing cards, and client_ip, are taken
//     as they are.
//   - cvv2 has 3 or 4 digits, tr_number 9, dda_number up to 17, a country code up to 3.
//   - card_type is VI, MC, AM or DI. verified_date is set for cards with verify, in the clock's zone.
//   - merchant_id inside an address or a card must be permitted, and does nothing else.
//   - Payees come back with their account as it was sent, verified at once, and an empty payee_phone.
//     An account needs tr_number and dda_number.
//
// # Its choices: lists
//
//   - The default count is 25, with no maximum. By default customers are in order of creation and
//     transactions in order of tran_time; order_by alone applies to that order.
//   - order_on and filter take every field of the record that is neither object nor array, and
//     tran_date. The conditionals are BETWEEN_DATES (dates and times), EQUALS and NOT_EQUALS (every
//     type), GREATER_THAN and LESS_THAN (numbers, dates and times) and CONTAINS (texts). Filters are
//     repeated parameters and all must hold; a text compares with case. A value is refused if it is
//     empty or holds a comma, which cannot be told from the one between two values.
//   - BETWEEN_DATES looks at the day that a time has in its own offset.
//   - A page after the last is empty.
//
// # Its choices: applications
//
//   - The three timestamps are the time of creation, dba_name is empty, and the plan is made up.
//   - Saving refuses values of a wrong type or form, and then saves none. Keys that the interface does
//     not list are saved as optional texts or objects, and come back with the type text, whichever
//     they are. The answer repeats all fields saved so far. Texts and objects can be emptied again, as
//     described above; choices, toggles, sets and dates can only be replaced.
//   - settings.required says whether a validation of the data saved by then wants the field.
//   - The keys of a validation that fails (code 2) are keys of the application, and inside an ownership
//     paths such as ownership.owners[0].dob.
//   - A mcc has 4 digits, a tax ID 9 (dashes do not count), a routing number 9, an account up to 17, a
//     phone number 7 to 15 (with blanks, dots, dashes, brackets and a plus).
//   - business_websites are separated by commas, blanks or line feeds, and each has a dot; they need no
//     scheme. Of an owner only the dates, the email, the interestPercent and the country of the address are
//     checked: phone, ssn, passport, dl_number and dl_state are any texts.
//   - A currency has up to 12 digits and 2 decimals and no sign, a state the two letters of a U.S. state,
//     of the federal district or of a territory, the country of an address up to 3 digits. An
//     interestPercent has no exponent.
//   - Of a sole-prop, the option pt of trading_status is disabled; it is taken all the same.
//   - In a validation a sole-prop needs no limited_partnership, trading_status and state_filed, and among
//     its persons exactly one with personType.owner; a tax-exempt needs no limited_partnership and
//     trading_status.
//   - A tax-exempt and a corporation-public need a person with control; the others need one with
//     personType.owner, and of each person the dob, ssn or passport, address and interestPercent.
//     An interestCount is the number of owners that are listed. Interests are 0 to 100 percent, and at
//     most 100 in all.
//   - An address that holds nothing but flags and blanks is none, and so is an object of booleans
//     without a true. With a thirdparty fulfillment provider the other fulfillment fields are required,
//     but for fulfillment_process_flag.
//
// # Its choices: disputes, subscriptions and invoices
//
//   - A first-time dispute needs cbr_response_type and nothing else; other fields are taken with every
//     type. A retrieval dispute needs what the interface says. A dispute is answered once.
//   - The file must have a name and begin like a PDF; if its part has a Content-Type, this must be
//     application/pdf or application/octet-stream. Nothing but one line break may follow the closing
//     boundary of the form.
//   - A customer_id that is not the subscription's is invalid. Canceling twice, and sending an invoice
//     that is not saved, answer 409.
//   - A transaction has no texts, dates and batch numbers that are not set; its amounts are 0 then.
//   - An invoice may be sent without any address; the body may then be empty. Phone numbers have 8 to
//     15 digits; U.S. numbers have eleven, the first of them 1.
//
// # Its choices: account updater and webhooks
//
//   - A request is completed at once: both events occur, created first. There is no daily limit.
//   - Events other than the three that are named are taken if they are lower-case letters and
//     underscores, except transactions_status_updated. Adding an event twice is the same as once.
//   - A delivery is a JSON object with event, webhook_id, merchant_id, occurred_at and data. There is
//     one attempt, of at most 5 seconds, without signature and redirects, and only to loopback unless
//     [WithRemoteNotifications] is given. The order of events is kept for each webhook, not between
//     webhooks. Any number of deliveries may wait; [Server.Close] drops those that do.
package payvaulttest
