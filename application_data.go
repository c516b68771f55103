package payvault

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
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

// ApplicationData is the data of an application, one field per documented key, and Extra for other keys. Fields that
// are empty are not sent, and neither are nil pointers: new(false) and new(payvault.MustAmount("0")) send what would be
// taken for empty. An empty text that replaces a saved one goes into Extra, by the key of its field. Its JSON form is
// the list of pairs {key, value} of the wire.
//
// Which keys the service requires is reported in [FieldSettings] and by [ApplicationsService.Validate]; it may depend
// on the business type.
type ApplicationData struct {
	LegalName                 string              `json:"legal_name"`
	BusinessName              string              `json:"business_name"`
	BusinessWebsites          string              `json:"business_websites"` // how several are written is not shown
	BusinessEmail             string              `json:"business_email"`
	BusinessPhone             string              `json:"business_phone"` // the form is not shown
	BusinessAddress           ApplicationAddress  `json:"business_address"`
	BusinessType              BusinessType        `json:"business_type"`
	LimitedPartnership        *bool               `json:"limited_partnership"` // nil is not sent
	TradingStatus             TradingStatus       `json:"trading_status"`      // pt or np
	TaxIDType                 TaxIDType           `json:"tax_id_type"`
	TaxID                     Secret              `json:"tax_id"`               // of the kind TaxIDType
	StateFiled                string              `json:"state_filed"`          // U.S. state
	BusinessEstablished       Date                `json:"business_established"` // YYYY-MM-DD
	BusinessMCC               string              `json:"business_mcc"`         // merchant category code
	BusinessDescription       string              `json:"business_description"`
	Ownership                 Ownership           `json:"ownership"`
	ProcessingHistory         *bool               `json:"processing_history"` // nil is not sent
	BusinessServicesProcess   ServicesProcess     `json:"business_services_process"`
	BusinessServicesAuthTime  []AuthTime          `json:"business_services_auth_time"` // a set; written {1,30,30+}
	CardBrands                *CardBrands         `json:"card_brands"`
	CardVolume                *Amount             `json:"card_volume"`  // exact; unit and period are not shown
	ACHVolume                 *Amount             `json:"ach_volume"`   // exact; unit and period are not shown
	TotalVolume               *Amount             `json:"total_volume"` // exact; unit and period are not shown
	HighTicket                *Amount             `json:"high_ticket"`  // exact; the unit is not shown
	FulfillmentProviderFlag   FulfillmentProvider `json:"fulfillment_provider_flag"`
	FulfillmentDeliveryMethod *DeliveryMethods    `json:"fulfillment_delivery_method"`
	DeliveryConfirmation      *bool               `json:"delivery_confirmation"` // nil is not sent
	FulfillmentName           string              `json:"fulfillment_name"`
	FulfillmentContact        string              `json:"fulfillment_contact"`
	FulfillmentEmail          string              `json:"fulfillment_email"`
	FulfillmentPhone          string              `json:"fulfillment_phone"` // the form is not shown
	FulfillmentAddress        ApplicationAddress  `json:"fulfillment_address"`
	FulfillmentProcessFlag    *bool               `json:"fulfillment_process_flag"` // nil is not sent
	BankRouting               Secret              `json:"bank_routing"`             // goes with BankAccountNumber
	BankAccountNumber         Secret              `json:"bank_account_number"`      // goes with BankRouting

	Extra []ApplicationField `json:"-"`
}

// ApplicationField is a pair for a key that [ApplicationData] does not have, or for one that is to become empty: then
// its Value is "". A value that must not be seen is best a [Secret].
type ApplicationField struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // text, or an object for address, checkbox_row and ownership
}

// MarshalJSON writes the list of pairs, with the mark of each [Secret] in it.
func (d ApplicationData) MarshalJSON() ([]byte, error) { return marshalShown(d) }

func (d ApplicationData) writeForm(enc *jsontext.Encoder) error {
	return jsonv2.MarshalEncode(enc, d.fields())
}

// fields gives the pairs of the fields that are set, in the order of the interface.
func (d ApplicationData) fields() []ApplicationField {
	fields := []ApplicationField{}
	for field, value := range reflect.ValueOf(d).Fields() {
		if key := field.Tag.Get("json"); key != "-" && !value.IsZero() {
			fields = append(fields, ApplicationField{key, wireValue(value)})
		}
	}
	return append(fields, d.Extra...)
}

// UnmarshalJSON reads a list of pairs. A value that does not fit its field is an error that names the key.
func (d *ApplicationData) UnmarshalJSON(b []byte) error { return unmarshalForm(b, d) }

func (d *ApplicationData) readForm(r *reader, dec *jsontext.Decoder) error {
	var pairs []struct {
		Key   string         `json:"key"`
		Value jsontext.Value `json:"value"`
	}
	if jsonv2.UnmarshalDecode(dec, &pairs) != nil {
		return errors.New("not a list of pairs {key, value}")
	}
	*d = ApplicationData{}
	for _, pair := range pairs {
		if err := r.readPair(pair.Key, pair.Value, d); err != nil {
			return fmt.Errorf("%s: %w", pair.Key, err)
		}
	}
	return nil
}

func (r *reader) readPair(key string, raw jsontext.Value, d *ApplicationData) error {
	if i, ok := fieldOf(key); ok && string(raw) != `""` {
		return r.readField(raw, reflect.ValueOf(d).Elem().Field(i))
	}
	if isMarked(raw) {
		return errRedacted
	}
	field := ApplicationField{Key: key}
	if len(raw) > 0 {
		if err := r.within(raw, &field.Value); err != nil {
			return err
		}
	}
	d.Extra = append(d.Extra, field)
	return nil
}

// fieldOf finds the field of a key.
func fieldOf(key string) (i int, ok bool) {
	t := reflect.TypeFor[ApplicationData]()
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("json"); strings.EqualFold(tag, key) && tag != "-" {
			return i, true
		}
	}
	return 0, false
}

// checkKeys refuses data without a field, and keys in Extra that are empty, given twice, or have a field of their own,
// unless that field is to become empty.
func (d ApplicationData) checkKeys(p *problems) {
	if len(d.fields()) == 0 {
		p.add("data", "has no field")
	}
	seen := make(map[string]bool, len(d.Extra))
	for _, field := range d.Extra {
		i, known := fieldOf(field.Key)
		known = known && (field.Value != "" || !reflect.ValueOf(d).Field(i).IsZero())
		switch {
		case field.Key == "":
			p.add("data", "has a field without a key")
		case known:
			p.add(field.Key, "has a field of its own and cannot be in Extra")
		case seen[field.Key]:
			p.add(field.Key, "is set twice")
		}
		seen[field.Key] = true
	}
	for _, element := range d.BusinessServicesAuthTime {
		if element == "" || strings.ContainsAny(string(element), "{},") {
			p.add("business_services_auth_time", "has an element that is empty or contains a brace or comma")
		}
	}
}

// wireValue is the wire form of a field of ApplicationData: toggles and amounts are texts, a set is {a,b}.
func wireValue(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case bool, Amount:
		return fmt.Sprint(value)
	case []AuthTime:
		return "{" + strings.Join(asStrings(value), ",") + "}"
	default:
		return value
	}
}

func asStrings[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}

// readField reads the wire form of a field of ApplicationData; null leaves it empty. The error repeats nothing of the
// value.
func (r *reader) readField(raw jsontext.Value, field reflect.Value) error {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return nil
	}
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	var text string
	target := field.Addr().Interface()
	set, isSet := target.(*[]AuthTime)
	if isSet {
		target = &text
	}
	if isSet && len(raw) > longestSet {
		return errLongSet
	}
	switch err := r.within(raw, target); {
	case errors.Is(err, errRedacted):
		return errRedacted
	case err != nil:
		return fmt.Errorf("cannot be read as %s", typeName(reflect.TypeOf(target).Elem()))
	case isSet:
		*set = authTimes(text)
		r.allocated += 3 * uintptr(len(*set)) * reflect.TypeFor[AuthTime]().Size()
	}
	return nil
}

const longestSet = 4 << 10 // of its text

var errLongSet = errors.New("is too long")

// authTimes reads {1,30,30+}.
func authTimes(text string) (set []AuthTime) {
	for element := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("{},", r) }) {
		if element = strings.TrimSpace(element); element != "" {
			set = append(set, AuthTime(element))
		}
	}
	return set
}

// SavedField is a field of an application as the service has saved it.
//
// Value has the type of the field in [ApplicationData], pointers resolved: string, [Secret], bool, [Date], [Amount],
// []AuthTime, [ApplicationAddress], [CardBrands], [DeliveryMethods], [Ownership] and the string types. A value that
// does not fit is a Secret with its JSON text, quotes of a string included, which [MarshalWire] writes as it is. One of
// an unknown key is what JSON says, with numbers as [encoding/json.Number], but a Secret for the types tax_id,
// bank_routing and bank_dda, and one with the JSON text for ownership. Null is nil.
type SavedField struct {
	Key      string        `json:"key"`
	Value    any           `json:"value"` // see above
	Type     string        `json:"type"`  // kind of field, such as "text" or "toggle"
	Settings FieldSettings `json:"settings"`
}

// FieldSettings tells what a field takes.
type FieldSettings struct {
	Required bool          `json:"required"`          // as the service reports it
	Options  []FieldOption `json:"options,omitempty"` // the allowed values; none for a free field
}

// FieldOption is one of the values that a field takes.
type FieldOption struct {
	Label    string `json:"label"`
	Value    any    `json:"value"` // its type is not shown; numbers are read as [encoding/json.Number]
	Disabled bool   `json:"disabled,omitzero"`
}

// UnmarshalJSON reads the wire form.
func (o *FieldOption) UnmarshalJSON(b []byte) error { return unmarshalForm(b, o) }

func (o *FieldOption) readForm(_ *reader, dec *jsontext.Decoder) error {
	type fields FieldOption // which have no form of their own
	return jsonv2.UnmarshalDecode(dec, (*fields)(o))
}

// savedField is the wire form of a SavedField.
type savedField[T any] struct {
	Key      string        `json:"key"`
	Value    T             `json:"value"`
	Type     string        `json:"type"`
	Settings FieldSettings `json:"settings"`
}

// MarshalJSON writes the wire form, with the mark of each [Secret] in it.
func (f SavedField) MarshalJSON() ([]byte, error) { return marshalShown(f) }

func (f SavedField) writeForm(enc *jsontext.Encoder) error {
	form := savedField[any]{f.Key, nil, f.Type, f.Settings}
	if secret, ok := f.Value.(Secret); ok && keepsJSON(f.Key, f.Type) {
		form.Value = rawSecret{secret}
	} else if f.Value != nil {
		form.Value = wireValue(reflect.ValueOf(f.Value))
	}
	return jsonv2.MarshalEncode(enc, form)
}

// rawSecret is a secret whose text is JSON.
type rawSecret struct{ Secret }

// keepsJSON reports whether a secret that is the value of a field is JSON, and not a text.
func keepsJSON(key, kind string) bool {
	i, known := fieldOf(key)
	if !known {
		return kind == "ownership"
	}
	return reflect.TypeFor[ApplicationData]().Field(i).Type != reflect.TypeFor[Secret]()
}

// UnmarshalJSON reads the wire form.
func (f *SavedField) UnmarshalJSON(b []byte) error { return unmarshalForm(b, f) }

func (f *SavedField) readForm(r *reader, dec *jsontext.Decoder) error {
	var wire savedField[jsontext.Value]
	if err := jsonv2.UnmarshalDecode(dec, &wire); err != nil {
		return err
	}
	value, misfit := r.savedValue(wire.Key, wire.Type, wire.Value)
	*f = SavedField{wire.Key, value, wire.Type, wire.Settings}
	switch {
	case r.err != nil:
		return r.err
	case misfit == nil:
	case value == nil && !r.lenient:
		return misfit
	case len(r.unread) < mostUnread:
		r.note(r.place(dec.StackPointer())+"/value", fmt.Errorf("%w: %w", errUnreadable, misfit))
	}
	return nil
}

// savedValue reads a value as its key and its kind say. One that does not fit is given as a secret, with the reason.
func (r *reader) savedValue(key, kind string, raw jsontext.Value) (value any, misfit error) {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return nil, nil
	}
	i, known := fieldOf(key)
	if known {
		field := reflect.New(reflect.TypeFor[ApplicationData]().Field(i).Type).Elem()
		if misfit = r.readField(raw, field); misfit == nil {
			return reflect.Indirect(field).Interface(), nil
		}
	}
	if !known && !slices.Contains([]string{"ownership", "tax_id", "bank_routing", "bank_dda"}, kind) {
		err := r.within(raw, &value) // of which nothing is documented
		return value, err
	}
	if r.err == nil && r.isTooLong(raw) {
		r.err = errTooMany
	}
	if r.err != nil {
		return nil, r.err
	}
	if isMarked(raw) {
		return nil, errRedacted
	}
	if keepsJSON(key, kind) {
		return NewSecret(string(raw)), misfit
	}
	return NewSecret(textOf(raw)), misfit
}

// ApplicationAddress is an address in an application. Country is a numeric code.
type ApplicationAddress struct {
	FirmName  string `json:"firm_name,omitzero"`
	Address1  string `json:"address1,omitzero"`
	Address2  string `json:"address2,omitzero"`
	City      string `json:"city,omitzero"`
	State     string `json:"state,omitzero"`   // the form is not shown
	Zip       string `json:"zip,omitzero"`     // postal code
	Zip4      string `json:"zip4,omitzero"`    // extension of the postal code
	Country   string `json:"country,omitzero"` // numeric code
	Attempted bool   `json:"attempted,omitzero"`
	Validated bool   `json:"validated,omitzero"`
}

// CardBrands says which card brands a business takes; all five are sent.
type CardBrands struct {
	VI bool `json:"vi"`
	MC bool `json:"mc"`
	DI bool `json:"di"`
	AM bool `json:"am"`
	GP bool `json:"gp"`
}

// DeliveryMethods says how a business delivers; all four are sent.
type DeliveryMethods struct {
	Digitally bool `json:"digitally"`
	Pickup    bool `json:"pickup"`
	Delivery  bool `json:"delivery"`
	Service   bool `json:"Service"` // with a capital letter on the wire
}

// Ownership lists the owners of a business.
type Ownership struct {
	InterestCount int64   `json:"interestCount"`   // sent as given
	Owners        []Owner `json:"owners,omitzero"` // nil is not sent, an empty list is
}

// Owner is an owner, a controlling person or a user of a business. What is required depends on the business type. The
// formats of the passport and driver's license dates, and what RelatedBusinesses, CbExp and LegalExp hold, are not
// shown.
type Owner struct {
	Name                   OwnerName    `json:"name,omitzero"`
	PersonType             *PersonType  `json:"personType,omitzero"` // nil is not sent
	ID                     string       `json:"id,omitzero"`
	ContactType            *ContactType `json:"contactType,omitzero"` // nil is not sent
	Phone                  string       `json:"phone,omitzero"`       // the form is not shown
	Email                  string       `json:"email,omitzero"`
	DOB                    Date         `json:"dob,omitzero"`                      // date of birth
	SSN                    Secret       `json:"ssn,omitzero"`                      // social security number
	Passport               Secret       `json:"passport,omitzero"`                 // number of the passport
	PassportExpirationDate string       `json:"passport_expiration_date,omitzero"` // the form is not shown
	PassportIssueDate      string       `json:"passport_issue_date,omitzero"`      // the form is not shown
	DLNumber               Secret       `json:"dl_number,omitzero"`                // driver's license
	DLState                string       `json:"dl_state,omitzero"`                 // state of the driver's license
	DLExpirationDate       string       `json:"dl_expiration_date,omitzero"`       // the form is not shown
	DLIssueDate            string       `json:"dl_issue_date,omitzero"`            // the form is not shown
	InterestPercent        *Amount      `json:"interestPercent,omitzero"`          // exact; nil is not sent
	// Raw JSON; its shape is not shown.
	RelatedBusinesses []json.RawMessage  `json:"relatedBusinesses,omitzero"` // nil is not sent, an empty list is
	CbExp             string             `json:"cbExp,omitzero"`
	Legal             *bool              `json:"legal,omitzero"` // nil is not sent
	LegalExp          string             `json:"legalExp,omitzero"`
	Title             string             `json:"title,omitzero"`
	Address           ApplicationAddress `json:"address,omitzero"`
}

// OwnerName is the name of an owner.
type OwnerName struct {
	FirstName string `json:"first_name,omitzero"`
	LastName  string `json:"last_name,omitzero"`
}

// PersonType says what an owner is; all three are sent.
type PersonType struct {
	Owner   bool `json:"owner"`
	Control bool `json:"control"`
	User    bool `json:"user"`
}

// ContactType says what an owner is contacted for.
type ContactType struct {
	Admin bool `json:"admin"`
}
