package payvault

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// ApplicationsService boards merchants: it creates an application, fills it with data and validates it. It is for
// partner accounts only.
type ApplicationsService struct{ caller *caller }

// ApplicationCreateRequest starts an application. It requires ChannelID and SalesRep.
type ApplicationCreateRequest struct {
	ChannelID       int64 `json:"channel_id"`                // assigned by the operator
	SalesRep        int64 `json:"sales_rep"`                 // ID of a sales representative
	TerminationNode int64 `json:"termination_node,omitzero"` // point in the hierarchy where the merchant is boarded
}

func (r *ApplicationCreateRequest) prepare(_ *caller, p *problems) {
	require(p, "channel_id", r.ChannelID)
	require(p, "sales_rep", r.SalesRep)
}

// ApplicationStatus is the app_status of an application. The service documents [ApplicationIncomplete] only.
type ApplicationStatus string

// ApplicationIncomplete is the status of an application that has just been created.
const ApplicationIncomplete ApplicationStatus = "INCOMPLETE"

// ApplicationCreated is a new application with its pricing.
type ApplicationCreated struct {
	App     Application `json:"app"`
	Pricing Pricing     `json:"pricing,omitzero"`
}

func (a *ApplicationCreated) missing() string {
	if a.App.ID == 0 {
		return "app/app_id"
	}
	return ""
}

// Application is a merchant application.
type Application struct {
	ID              ApplicationID     `json:"app_id,omitzero" answer:"id"`
	MerchantID      MerchantID        `json:"merchant_id" answer:"id"` // 0 until the application is approved
	Status          ApplicationStatus `json:"app_status,omitzero"`     // such as ApplicationIncomplete
	DBAName         string            `json:"dba_name,omitzero"`
	DBTimestamp     Timestamp         `json:"db_timestamp,omitzero"`     // UTC
	SubmitTimestamp Timestamp         `json:"submit_timestamp,omitzero"` // UTC; zero if the service gives none
	CreditTimestamp Timestamp         `json:"credit_timestamp,omitzero"` // UTC; zero if the service gives none
}

// Pricing is the pricing of an application. The service does not document the content of a plan, so Plan holds the raw
// JSON.
type Pricing struct {
	ID   int64              `json:"pricing_id,omitzero" answer:"id"` // ID of the pricing
	Plan stdjson.RawMessage `json:"plan,omitempty"`                  // raw JSON
}

// savedData is the data of the answer to SaveData.
type savedData struct {
	Fields []savedField[stdjson.RawMessage] `json:"fields"`
}

func (d *savedData) missing() string {
	if d.Fields == nil {
		return "fields"
	}
	return ""
}

// savedReply is the successful answer to SaveData.
type savedReply struct {
	platformReply[savedData, *savedData]
}

// afterRead adds to unread the path of each saved field that has no key, because the caller cannot tell which field it
// is.
func (r *savedReply) afterRead(_ []byte, unread []string) ([]string, error) {
	if r.Data == nil {
		return unread, nil
	}
	for i, field := range r.Data.Fields {
		if field.Key != "" {
			continue
		}
		unread = nameMissing(unread, "/data/fields/"+strconv.Itoa(i)+"/key")
		if len(unread) > answer.MostUnread {
			return unread[:answer.MostUnread], answer.ErrTooMany
		}
	}
	return unread, nil
}

// Validation is the answer of [ApplicationsService.Validate]. Problems has the messages about each field that does not
// pass. The key is the name of the field, or "" for messages that name no field.
type Validation struct {
	Problems map[string][]string `json:"data,omitempty"`
}

// OK reports whether all fields pass. Only then can the application be submitted.
func (v *Validation) OK() bool { return len(v.Problems) == 0 }

// Create starts an application and returns it with its ID, which is App.ID. Before anything is sent, Create refuses a
// request that is nil, or that lacks the channel ID or the sales representative. Create does not take a merchant_id:
// through [Client.ForMerchant] it fails with [ErrMerchantNotSupported].
//
// After [ErrOutcomeUnknown] the service may have created an application whose ID the caller does not know.
//
// Not replayable. POST /platform/application/add.
func (s *ApplicationsService) Create(
	ctx context.Context, req *ApplicationCreateRequest, opts ...CallOption,
) (*ApplicationCreated, error) {
	return doRecord[ApplicationCreated](ctx, s.caller, call{op: OpApplicationsCreate.info(), content: jsonBody(req)}, opts)
}

// SaveData saves the fields of data that are set. It returns every saved field with its type and settings. Before
// anything is sent, SaveData refuses the data in these cases:
//
//   - The data is nil, or no field is set.
//   - Only one of BankRouting and BankAccountNumber is set.
//   - A date is not in the calendar.
//   - An element of BusinessServicesAuthTime is empty or has a brace, bracket, quote or comma.
//   - Extra has an empty key, or a key twice.
//   - Extra has a key that has a field of its own. The Value "" is allowed if that field is not set.
//   - A value contains [REDACTED], or JSON cannot represent it.
//
// Replayable. POST /platform/application/{appId}/data.
func (s *ApplicationsService) SaveData(
	ctx context.Context, id ApplicationID, data *ApplicationData, opts ...CallOption,
) ([]SavedField, error) {
	r := savedReply{platformReply[savedData, *savedData]{isOptional: true}}
	var body *applicationDataBody
	if data != nil {
		body = &applicationDataBody{*data}
	}
	save := call{op: OpApplicationsSaveData.info(), path: inPath(id), content: jsonBody(body), reply: &r}
	if err := s.caller.perform(ctx, save, newCallOptions(opts)); err != nil {
		return nil, err
	}
	saved := make([]SavedField, len(r.Data.Fields))
	for i, field := range r.Data.Fields {
		saved[i] = savedOf(field)
	}
	return saved, nil
}

// Validate lets the service check all fields of an application and their dependencies. If the application does not
// pass, Validate returns the problems and no error. The problems are the messages about fields in an answer with code
// 2, if its HTTP status is 400, 422 or below 300. Messages in the data of an answer with code 0 are problems too.
//
// Any other refusal is an error. Code 2 is an error if the data names no field, because an empty Validation would mean
// that all fields pass. Data of more than 64 KiB is an error, because the SDK does not search it for messages;
// [WithResponse] has the whole answer.
//
// Replayable. GET /platform/application/{appId}/validate.
func (s *ApplicationsService) Validate(ctx context.Context, id ApplicationID, opts ...CallOption) (*Validation, error) {
	var r validationReply
	validate := call{op: OpApplicationsValidate.info(), path: inPath(id), reply: &r}
	if err := s.caller.perform(ctx, validate, newCallOptions(opts)); err != nil {
		return nil, err
	}
	if r.problems == nil { // code 0, but the data may still have messages
		r.problems = problemsBeside(r.Data.Value)
	}
	return &Validation{Problems: r.problems}, nil
}

// validationReply is the answer to Validate. A refusal with code 2 and messages about fields is a normal answer too.
// The service does not document the HTTP status of such a refusal, so accept takes 400, 422 and any status below 300.
type validationReply struct {
	envelope

	Data     excerpt `json:"data"`
	problems map[string][]string
}

// afterRead refuses data that is too long to be searched for messages.
func (r *validationReply) afterRead(_ []byte, unread []string) ([]string, error) {
	if r.Data.isTooLong {
		return unread, errLongData
	}
	return unread, nil
}

// accept reports whether a refusal is a normal answer to Validate. If so, it keeps the messages of the refusal.
func (r *validationReply) accept(e *Error, private []string) bool {
	isAnswer := e.StatusCode < 300 || e.StatusCode == http.StatusBadRequest ||
		e.StatusCode == http.StatusUnprocessableEntity
	if !isAnswer || !errors.Is(e, ErrValidation) || len(e.Fields) == 0 {
		return false
	}
	// The ID in the path is not redacted, because a message may contain the same number, for example as a limit.
	e.clear(private)
	r.problems, r.Code = e.Fields, answer.Code(e.Code)
	return true
}

// problemsBeside returns the messages in the data of an answer with code 0. The key of a message is the name of the
// member of data that has the message, or "" if the data itself is a text or a list. Each text, object or element of a
// list counts as a message, unless it is empty or is the text data.message. Card numbers are redacted.
func problemsBeside(data jsontext.Value) map[string][]string {
	var members map[string]jsontext.Value
	if data.Kind() != '{' || answer.Read(data, &members) != nil {
		members = map[string]jsontext.Value{"": data}
	}
	takeMessage(members)
	e := &Error{Fields: map[string][]string{}}
	for name, member := range members {
		kind := member.Kind()
		if kind == 't' || kind == '0' || answer.IsNone(member) {
			continue
		}
		texts, _ := messages(member)
		if texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" }); len(texts) > 0 {
			e.Fields[name] = texts
		}
	}
	if len(e.Fields) == 0 {
		return nil
	}
	e.clear(nil)
	return e.Fields
}

// applicationDataBody is the body of SaveData.
type applicationDataBody struct {
	Data ApplicationData `json:"data"`
}

// byKey takes the names of a JSON pointer, and replaces the names that lead to the value of a pair by the key of the
// pair. For example, the names of /data/3/value/owners become those of /ownership/owners, if ownership is the key of
// the pair with the index 3.
func (b *applicationDataBody) byKey(names []string) []string {
	if len(names) < 2 {
		return names
	}
	pairs := b.Data.pairs()
	i, err := strconv.Atoi(names[1])
	if err != nil || i >= len(pairs) {
		return names[1:]
	}
	within := names[min(3, len(names)):] // the names after the index and "value"
	return append([]string{pairs[i].Key}, within...)
}

// prepare checks that the routing number and the account number are set together and that dates are in the calendar.
// checkKeys checks the keys.
func (b *applicationDataBody) prepare(_ *caller, p *problems) {
	d := &b.Data
	if d.BankRouting.IsZero() != d.BankAccountNumber.IsZero() {
		p.add("bank_routing", "and bank_account_number are required together")
	}
	checkDate("business_established", d.BusinessEstablished, p)
	for i, owner := range d.Ownership.Owners {
		checkDate("ownership.owners["+strconv.Itoa(i)+"].dob", owner.DOB, p)
	}
	d.checkKeys(p)
}
