package payvault

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json" // becomes encoding/json/v2 in Go 1.27
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
)

// BusinessType is the legal form of a business.
type BusinessType string

// The business types.
const (
	BusinessSoleProp           BusinessType = "sole-prop"
	BusinessLLC                BusinessType = "llc"
	BusinessCorporationPublic  BusinessType = "corporation-public"
	BusinessCorporationPrivate BusinessType = "corporation-private"
	BusinessPartnership        BusinessType = "partnership"
	BusinessTaxExempt          BusinessType = "tax-exempt"
)

// TradingStatus reports whether a business is publicly traded.
type TradingStatus string

// The trading statuses.
const (
	TradingPublic    TradingStatus = "pt"
	TradingNonPublic TradingStatus = "np"
)

// TaxIDType is the kind of a tax ID.
type TaxIDType string

// The kinds of tax ID.
const (
	TaxIDEIN TaxIDType = "ein"
	TaxIDSSN TaxIDType = "ssn"
)

// ServicesProcess is a value of business_services_process.
type ServicesProcess string

// The values of business_services_process.
const (
	ServicesProcessOrder   ServicesProcess = "order"
	ServicesProcessFulfill ServicesProcess = "fulfill"
)

// AuthTime is one element of the set business_services_auth_time.
type AuthTime string

// AuthTimes is a set of AuthTime elements. On the wire it is a text of the form {1,30,30+}.
type AuthTimes []AuthTime

// MarshalText writes the set in its wire form. Package encoding/json calls this method.
func (s AuthTimes) MarshalText() ([]byte, error) {
	text := []byte("{")
	for i, element := range s {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, element...)
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads a set in its wire form, with or without blanks around the elements. It also reads a single
// element without braces, as a text or a number. The text "{}" gives an empty set that is not nil. The values null,
// false, "", [] and {} give nil. Any other value is an error, such as "1,30" or [1,30].
func (s *AuthTimes) UnmarshalJSON(b []byte) error { return answer.Unfit[AuthTimes](s.read(b)) }

// UnmarshalJSONFrom is like UnmarshalJSON, but its error has the JSON pointer of the value.
func (s *AuthTimes) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return answer.UnmarshalFrom(dec, s)
}

func (s *AuthTimes) read(raw jsontext.Value) error {
	if raw.Kind() != '"' && raw.Kind() != '0' && !answer.IsNone(raw) {
		return errNotSet
	}
	*s = nil
	text := answer.Trimmed(raw)
	if text == "" {
		return nil
	}
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		text = strings.TrimSpace(text[1 : len(text)-1])
		if text == "" {
			*s = AuthTimes{}
			return nil
		}
	} else if strings.Contains(text, ",") {
		return errNotSet
	}
	var elements AuthTimes
	for element := range strings.SplitSeq(text, ",") {
		elements = append(elements, AuthTime(strings.TrimSpace(element)))
	}
	if slices.ContainsFunc(elements, AuthTime.breaksForm) {
		return errNotSet
	}
	*s = elements
	return nil
}

// breaksForm reports whether an element cannot stand in the form {a,b}, because it is empty or has a brace, bracket,
// quote or comma.
func (a AuthTime) breaksForm() bool { return a == "" || strings.ContainsAny(string(a), `{}[]",`) }

var errNotSet = errors.New("not a set of the form {a,b}")

// The elements of business_services_auth_time.
const (
	AuthTime1      AuthTime = "1"
	AuthTime30     AuthTime = "30"
	AuthTime30Plus AuthTime = "30+"
	AuthTime90Plus AuthTime = "90+"
)

// FulfillmentProvider is a value of fulfillment_provider_flag.
type FulfillmentProvider string

// The values of fulfillment_provider_flag.
const (
	FulfillmentBusiness   FulfillmentProvider = "business"
	FulfillmentThirdParty FulfillmentProvider = "thirdparty"
)

// ApplicationData is the data of an application. It has a field for each documented key, and Extra for other keys.
// A field with its zero value is not sent. To send false or the amount 0, use new(false) or
// new(payvault.MustParseAmount("0")). AuthTimes{} is sent as an empty set. To replace a saved text by an empty one, add
// an element to Extra with the key of the field and the Value "". In JSON and on the wire, ApplicationData is a list of
// pairs {key, value}. It is also read from an object such as {"legal_name": "…"}. [ApplicationFields] lists the keys.
//
// Which keys are required may depend on the business type. The service says so in the Settings of each [SavedField],
// and in its answer to [ApplicationsService.Validate].
type ApplicationData struct {
	LegalName                 string              `json:"legal_name"`
	BusinessName              string              `json:"business_name"`
	BusinessWebsites          string              `json:"business_websites"` // the service documents no separator
	BusinessEmail             string              `json:"business_email"`
	BusinessPhone             string              `json:"business_phone"` // the service does not document the form
	BusinessAddress           ApplicationAddress  `json:"business_address"`
	BusinessType              BusinessType        `json:"business_type"`
	LimitedPartnership        *bool               `json:"limited_partnership"` // nil is not sent
	TradingStatus             TradingStatus       `json:"trading_status"`      // TradingPublic or TradingNonPublic
	TaxIDType                 TaxIDType           `json:"tax_id_type"`
	TaxID                     Secret              `json:"tax_id"`               // of the kind TaxIDType
	StateFiled                string              `json:"state_filed"`          // U.S. state
	BusinessEstablished       Date                `json:"business_established"` // YYYY-MM-DD
	BusinessMCC               string              `json:"business_mcc"`         // merchant category code
	BusinessDescription       string              `json:"business_description"`
	Ownership                 Ownership           `json:"ownership"`
	ProcessingHistory         *bool               `json:"processing_history"` // nil is not sent
	BusinessServicesProcess   ServicesProcess     `json:"business_services_process"`
	BusinessServicesAuthTime  AuthTimes           `json:"business_services_auth_time"` // sent in the form {1,30,30+}
	CardBrands                *CardBrands         `json:"card_brands"`
	CardVolume                *Amount             `json:"card_volume"`  // unit and period are not documented
	ACHVolume                 *Amount             `json:"ach_volume"`   // unit and period are not documented
	TotalVolume               *Amount             `json:"total_volume"` // unit and period are not documented
	HighTicket                *Amount             `json:"high_ticket"`  // the unit is not documented
	FulfillmentProviderFlag   FulfillmentProvider `json:"fulfillment_provider_flag"`
	FulfillmentDeliveryMethod *DeliveryMethods    `json:"fulfillment_delivery_method"`
	DeliveryConfirmation      *bool               `json:"delivery_confirmation"` // nil is not sent
	FulfillmentName           string              `json:"fulfillment_name"`
	FulfillmentContact        string              `json:"fulfillment_contact"`
	FulfillmentEmail          string              `json:"fulfillment_email"`
	FulfillmentPhone          string              `json:"fulfillment_phone"` // the service does not document the form
	FulfillmentAddress        ApplicationAddress  `json:"fulfillment_address"`
	FulfillmentProcessFlag    *bool               `json:"fulfillment_process_flag"` // nil is not sent
	BankRouting               Secret              `json:"bank_routing"`             // required with BankAccountNumber
	BankAccountNumber         Secret              `json:"bank_account_number"`      // required with BankRouting

	Extra []ApplicationField `json:"-"`
}

// ApplicationField is a key and a value. Use it for a key that [ApplicationData] has no field for. Use it with the
// Value "" to empty a saved field. If the value must not appear in logs, use a [Secret] as the Value.
type ApplicationField struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // a text, or an object for keys of the types address, checkbox_row and ownership
}

// MarshalJSON writes the list of pairs, with [REDACTED] in place of each [Secret].
func (d ApplicationData) MarshalJSON() ([]byte, error) { return marshalShown(d) }

func (d ApplicationData) writeJSON(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, d.pairs())
}

// pairs returns the fields that are set, in the order of the struct, and then Extra.
func (d ApplicationData) pairs() []ApplicationField {
	pairs := []ApplicationField{}
	for field, value := range reflect.ValueOf(d).Fields() {
		if key := field.Tag.Get("json"); key != "-" && !value.IsZero() {
			pairs = append(pairs, ApplicationField{key, wireValue(value)})
		}
	}
	return append(pairs, d.Extra...)
}

// wireValue returns the value that is sent for a field. A bool or an Amount becomes a text. Any other value stays as it
// is: an Amount within an object, such as Owner.InterestPercent, is sent as a number.
func wireValue(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case bool, Amount:
		return fmt.Sprint(value)
	default:
		return value
	}
}

// pair is one element of a list of pairs, before its value is decoded.
type pair struct {
	Key      string         `json:"key"`
	Value    jsontext.Value `json:"value"`    // empty if the pair has no value
	Type     jsontext.Value `json:"type"`     // ignored, as a pair may be a SavedField
	Settings jsontext.Value `json:"settings"` // ignored too
}

// UnmarshalJSON reads a list of pairs, or an object with a member for each key. It reads null, false and "" as an empty
// list. A pair may also have type and settings, as a [SavedField] has. If a value cannot be read, the error has its
// JSON pointer, such as /ownership/owners/0/dob. A value with [REDACTED] in it is an error. These are errors too,
// because a value would be lost:
//
//   - an unknown name in a pair or in the value of a field, which may be misspelt,
//   - a pair without a value,
//   - a second value for a field, also under the field's key in another case,
//   - an object with a member "key", or with a list of pairs, such as the request body {"data": […]}.
//
// A pair goes into Extra if its key has no field, or if its value is an empty text. So a value with a misspelt key is
// sent. Even if it is a tax ID, it is in clear text wherever you print or log the data.
func (d *ApplicationData) UnmarshalJSON(b []byte) error {
	pairs, err := pairsOf(b)
	if err != nil {
		return err
	}
	*d = ApplicationData{}
	for _, p := range pairs {
		if err := setPair(d, p); err != nil {
			return err
		}
	}
	return nil
}

var errNoData = errors.New("neither a list of pairs {key, value} nor an object")

// pairsOf reads a list of pairs, or an object with a member for each pair. For null, false and "" it returns no pairs.
func pairsOf(raw jsontext.Value) (pairs []pair, err error) {
	switch raw.Kind() {
	case 'n':
		return nil, nil
	case '{':
		return pairsOfObject(raw)
	}
	err = answer.ReadGiven(raw, &pairs)
	if within, ok := errors.AsType[*answer.PlaceError](err); ok && within.Place != "" {
		return nil, within
	}
	if err != nil {
		return nil, errNoData
	}
	for i, p := range pairs {
		if len(p.Value) == 0 {
			return nil, &answer.PlaceError{Place: "/" + strconv.Itoa(i), Why: "a pair without a value"}
		}
	}
	return pairs, nil
}

// pairsOfObject returns a pair for each member of an object, sorted by key. An object with a member "key", or with a
// list of pairs as a member, is an error.
func pairsOfObject(raw jsontext.Value) (pairs []pair, err error) {
	var members map[string]jsontext.Value
	if answer.Read(raw, &members) != nil {
		return nil, errNoData
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value := members[key]
		switch {
		case strings.EqualFold(key, "key"):
			return nil, &answer.PlaceError{Place: "/" + key, Why: "a pair outside a list"}
		case hasPair(value):
			return nil, &answer.PlaceError{Place: "/" + key, Why: "a list of pairs within an object"}
		}
		pairs = append(pairs, pair{Key: key, Value: value})
	}
	return pairs, nil
}

// hasPair reports whether a value is a list with an object that has a member "key", in upper or lower case.
func hasPair(value jsontext.Value) bool {
	if value.Kind() != '[' {
		return false
	}
	var elements []map[string]jsontext.Value
	_, _ = answer.ReadLenient(value, &elements) // skip elements that are no objects
	for _, element := range elements {
		for name := range element {
			if strings.EqualFold(name, "key") {
				return true
			}
		}
	}
	return false
}

// setPair reads a pair into its field. A pair goes into Extra if its key has no field, or if its value is an empty
// text. A value with [REDACTED] in it is an error, and so is a second value for a field.
func setPair(d *ApplicationData, p pair) error {
	if hasMark(string(p.Value)) {
		return redactedAt(p.Key, p.Value)
	}
	if field := fieldOf(d, p.Key); field.IsValid() && string(p.Value) != `""` {
		if !field.IsZero() {
			return &answer.PlaceError{Place: "/" + p.Key, Why: "a second value"}
		}
		return readSaved(p.Key, p.Value, field.Addr().Interface(), answer.ReadGiven)
	}
	extra := ApplicationField{Key: p.Key}
	if err := readSaved(p.Key, p.Value, &extra.Value, answer.ReadExactly); err != nil {
		return err
	}
	d.Extra = append(d.Extra, extra)
	return nil
}

// fieldOf returns the field of d for a key, or the zero Value if there is none.
func fieldOf(d *ApplicationData, key string) reflect.Value {
	for field, value := range reflect.ValueOf(d).Elem().Fields() {
		if tag := field.Tag.Get("json"); strings.EqualFold(tag, key) && tag != "-" {
			return value
		}
	}
	return reflect.Value{}
}

// ApplicationDataOf returns the data that saved fields hold. A saved field is left out if [ApplicationData] has no
// field for its key. The error names the keys of all values that do not fit their fields.
func ApplicationDataOf(fields []SavedField) (ApplicationData, error) {
	var data ApplicationData
	var misfits []error
	for _, f := range fields {
		if field := fieldOf(&data, f.Key); field.IsValid() {
			misfits = append(misfits, f.Decode(field.Addr().Interface()))
		}
	}
	if err := errors.Join(misfits...); err != nil {
		return ApplicationData{}, err
	}
	return data, nil
}

// checkKeys adds a problem if the data is empty, and if an element of business_services_auth_time would break the form
// of the set. It also adds a problem for each of these keys in Extra:
//
//   - an empty key,
//   - a key that occurs twice,
//   - a key that has a field of its own, if that field is set or the Value is not an empty text.
func (d ApplicationData) checkKeys(p *problems) {
	if len(d.pairs()) == 0 {
		p.add("data", "has no field")
	}
	seen := make(map[string]bool, len(d.Extra))
	for _, extra := range d.Extra {
		field := fieldOf(&d, extra.Key)
		empties := extra.Value == "" && field.IsValid() && field.IsZero()
		switch {
		case extra.Key == "":
			p.add("data", "has a field without a key")
		case field.IsValid() && !empties:
			p.add(extra.Key, "has a field of its own and cannot be in Extra")
		case seen[extra.Key]:
			p.add(extra.Key, "is set twice")
		}
		seen[extra.Key] = true
	}
	for _, element := range d.BusinessServicesAuthTime {
		if element.breaksForm() {
			p.add("business_services_auth_time",
				"has an element that is empty or contains a brace, bracket, quote or comma")
		}
	}
}

// ApplicationAddress is an address in an application. Country is a numeric code.
type ApplicationAddress struct {
	FirmName  string `json:"firm_name,omitzero"`
	Address1  string `json:"address1,omitzero"`
	Address2  string `json:"address2,omitzero"`
	City      string `json:"city,omitzero"`
	State     string `json:"state,omitzero"`                // the service does not document the form
	Zip       string `json:"zip,omitzero"`                  // postal code
	Zip4      string `json:"zip4,omitzero"`                 // extension of the postal code
	Country   string `json:"country,omitzero" answer:"iso"` // numeric code
	Attempted bool   `json:"attempted,omitzero"`
	Validated bool   `json:"validated,omitzero"`
}

// CardBrands says which card brands a business takes. All five fields are sent. The service documents only the keys vi,
// mc, di, am and gp, and not the names of the brands. Ask the operator which key stands for which brand.
type CardBrands struct {
	VI bool `json:"vi"`
	MC bool `json:"mc"`
	DI bool `json:"di"`
	AM bool `json:"am"`
	GP bool `json:"gp"`
}

// DeliveryMethods says how a business delivers. All four fields are sent.
type DeliveryMethods struct {
	Digitally bool `json:"digitally"`
	Pickup    bool `json:"pickup"`
	Delivery  bool `json:"delivery"`
	Service   bool `json:"Service"` // with a capital letter on the wire
}

// Ownership lists the owners of a business.
type Ownership struct {
	InterestCount int64   `json:"interestCount"`   // always sent; not compared with Owners
	Owners        []Owner `json:"owners,omitzero"` // nil is not sent; an empty list is sent
}

// Owner is an owner, a controlling person or a user of a business. The required fields depend on the business type. The
// service documents neither the formats of the passport and driver's license dates, nor the content of
// RelatedBusinesses, CbExp and LegalExp.
type Owner struct {
	Name                   OwnerName    `json:"name,omitzero"`
	PersonType             *PersonType  `json:"personType,omitzero"` // nil is not sent
	ID                     string       `json:"id,omitzero" answer:"id"`
	ContactType            *ContactType `json:"contactType,omitzero"` // nil is not sent
	Phone                  string       `json:"phone,omitzero"`       // the service does not document the form
	Email                  string       `json:"email,omitzero"`
	DOB                    Date         `json:"dob,omitzero"`                      // date of birth
	SSN                    Secret       `json:"ssn,omitzero"`                      // social security number
	Passport               Secret       `json:"passport,omitzero"`                 // number of the passport
	PassportExpirationDate string       `json:"passport_expiration_date,omitzero"` // the format is not documented
	PassportIssueDate      string       `json:"passport_issue_date,omitzero"`      // the format is not documented
	DLNumber               Secret       `json:"dl_number,omitzero"`                // number of the driver's license
	DLState                string       `json:"dl_state,omitzero"`                 // state of the driver's license
	DLExpirationDate       string       `json:"dl_expiration_date,omitzero"`       // the format is not documented
	DLIssueDate            string       `json:"dl_issue_date,omitzero"`            // the format is not documented
	InterestPercent        *Amount      `json:"interestPercent,omitzero"`          // nil is not sent
	// Each element is raw JSON, because the service does not document its shape.
	RelatedBusinesses []stdjson.RawMessage `json:"relatedBusinesses,omitzero"` // nil is not sent; an empty list is sent
	CbExp             string               `json:"cbExp,omitzero"`
	Legal             *bool                `json:"legal,omitzero"` // nil is not sent
	LegalExp          string               `json:"legalExp,omitzero"`
	Title             string               `json:"title,omitzero"`
	Address           ApplicationAddress   `json:"address,omitzero"`
}

// OwnerName is the name of an owner.
type OwnerName struct {
	FirstName string `json:"first_name,omitzero"`
	LastName  string `json:"last_name,omitzero"`
}

// PersonType holds the roles of an owner. All three fields are sent.
type PersonType struct {
	Owner   bool `json:"owner"`
	Control bool `json:"control"`
	User    bool `json:"user"`
}

// ContactType says for which matters an owner is the contact.
type ContactType struct {
	Admin bool `json:"admin"`
}
