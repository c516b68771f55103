package payvaulttest

import (
	"encoding/json"
	"slices"
	"strings"
)

// A fieldKind is the type of an application field, by its name on the wire.
type fieldKind string

const (
	addressField  fieldKind = "address_suggest"
	bankAccount   fieldKind = "bank_dda"
	bankRouting   fieldKind = "bank_routing"
	checkboxGroup fieldKind = "checkbox_group"
	checkboxRow   fieldKind = "checkbox_row"
	currencyField fieldKind = "currency"
	dateField     fieldKind = "date"
	emailField    fieldKind = "email"
	mccField      fieldKind = "mcc"
	nameField     fieldKind = "name"
	ownershipData fieldKind = "ownership"
	phoneField    fieldKind = "phone"
	radioField    fieldKind = "radio"
	selectField   fieldKind = "select"
	taxIDField    fieldKind = "tax_id"
	textField     fieldKind = "text"
	toggleField   fieldKind = "toggle"
	urlListField  fieldKind = "url_list"
	usStateField  fieldKind = "us_state"
	openField     fieldKind = "" // a key that the interface does not list
)

// wireName is the type in a saved field; keys that are not listed come back as texts.
func (k fieldKind) wireName() string {
	if k == openField {
		return string(textField)
	}
	return string(k)
}

type option struct {
	Label    string `json:"label"`
	Value    string `json:"value"`
	Disabled bool   `json:"disabled,omitempty"`
}

// An applicationField is one row of the table of keys in interface §2.4.
type applicationField struct {
	key      string
	kind     fieldKind
	required bool
	options  []option
}

func applicationFields() []applicationField {
	return []applicationField{
		{key: "legal_name", kind: textField, required: true},
		{key: "business_name", kind: textField, required: true},
		{key: "business_websites", kind: urlListField, required: true},
		{key: "business_email", kind: emailField, required: true},
		{key: "business_phone", kind: phoneField},
		{key: "business_address", kind: addressField, required: true},
		{key: "business_type", kind: selectField, required: true, options: options(
			"sole-prop", "llc", "corporation-public", "corporation-private", "partnership", "tax-exempt")},
		{key: "limited_partnership", kind: toggleField, required: true},
		{key: "trading_status", kind: radioField, required: true, options: []option{
			{Label: "publicly traded", Value: "pt"}, {Label: "non-public", Value: "np"},
		}},
		{key: "tax_id_type", kind: selectField, required: true, options: options("ein", "ssn")},
		{key: "tax_id", kind: taxIDField, required: true},
		{key: "state_filed", kind: usStateField, required: true},
		{key: "business_established", kind: dateField, required: true},
		{key: "business_mcc", kind: mccField, required: true},
		{key: "business_description", kind: textField, required: true},
		{key: "ownership", kind: ownershipData, required: true},
		{key: "processing_history", kind: toggleField, required: true},
		{key: "business_services_process", kind: radioField, required: true, options: options("order", "fulfill")},
		{key: "business_services_auth_time", kind: checkboxGroup, required: true, options: options("1", "30", "30+", "90+")},
		{key: "card_brands", kind: checkboxRow, required: true, options: options("vi", "mc", "di", "am", "gp")},
		{key: "card_volume", kind: currencyField, required: true},
		{key: "ach_volume", kind: currencyField},
		{key: "total_volume", kind: currencyField, required: true},
		{key: "high_ticket", kind: currencyField, required: true},
		{key: "fulfillment_provider_flag", kind: radioField, required: true, options: options("business", "thirdparty")},
		{key: "fulfillment_delivery_method", kind: checkboxRow, required: true, options: options(
			"digitally", "pickup", "delivery", "Service")},
		{key: "delivery_confirmation", kind: toggleField, required: true},
		{key: "fulfillment_name", kind: textField},
		{key: "fulfillment_contact", kind: nameField},
		{key: "fulfillment_email", kind: emailField},
		{key: "fulfillment_phone", kind: phoneField},
		{key: "fulfillment_address", kind: addressField},
		{key: "fulfillment_process_flag", kind: toggleField},
		{key: "bank_routing", kind: bankRouting, required: true},
		{key: "bank_account_number", kind: bankAccount, required: true},
	}
}

func options(values ...string) []option {
	list := make([]option, 0, len(values))
	for _, value := range values {
		list = append(list, option{Label: value, Value: value})
	}
	return list
}

// check looks at the JSON type and the form of a value. A blank string stands for no value, except where the interface
// shows what a value looks like: choices, toggles and dates.
func (f applicationField) check(p problems, value json.RawMessage) {
	switch f.kind {
	case addressField:
		f.checkAddress(p, value)
	case ownershipData:
		f.checkOwnership(p, value)
	case checkboxRow:
		f.checkRow(p, value)
	case openField:
		p.check(value[0] == '"' || value[0] == '{', f.key, "must be a string or an object")
	default:
		var text string
		if value[0] != '"' || json.Unmarshal(value, &text) != nil {
			p.add(f.key, "must be a string")
			return
		}
		p.check(f.accepts(text) || isBlank(text) && !f.isShown(), f.key, f.wants())
	}
}

// isShown tells whether the interface shows which texts are values of the field.
func (f applicationField) isShown() bool {
	switch f.kind {
	case toggleField, selectField, radioField, checkboxGroup, dateField:
		return true
	default:
		return false
	}
}

// accepts tells whether a text that is not blank is a value of the field.
func (f applicationField) accepts(text string) bool {
	switch f.kind {
	case toggleField:
		return text == "true" || text == "false"
	case selectField, radioField:
		return f.hasOption(text)
	case checkboxGroup:
		return f.isSet(text)
	case emailField:
		return isEmail(text)
	case phoneField:
		return isDigits(strings.NewReplacer("+", "", "-", "", " ", "", "(", "", ")", "", ".", "").Replace(text), 7, 15)
	case taxIDField:
		return isDigits(strings.ReplaceAll(text, "-", ""), 9, 9)
	case usStateField:
		return isUSState(text)
	case dateField:
		return isDate(text)
	case mccField:
		return isDigits(text, 4, 4)
	case currencyField:
		return isAmount(text)
	case urlListField:
		return isURLList(text)
	case bankRouting:
		return isDigits(text, 9, 9)
	case bankAccount:
		return isDigits(text, 1, 17)
	default:
		return true
	}
}

// wants says what accepts accepts.
func (f applicationField) wants() string {
	switch f.kind {
	case toggleField:
		return "must be the string true or false"
	case selectField, radioField:
		return "must be one of its options"
	case checkboxGroup:
		return "must be a set of its options, such as {1,30}"
	case currencyField:
		return "must be an amount such as 1500.00"
	case dateField:
		return "must be YYYY-MM-DD"
	default:
		return "is not a valid " + string(f.kind)
	}
}

func (f applicationField) hasOption(value string) bool {
	return slices.ContainsFunc(f.options, func(o option) bool { return o.Value == value })
}

// isSet tells whether a text is a set such as {1,30,30+}, each option at most once.
func (f applicationField) isSet(text string) bool {
	inner, opened := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !opened || !closed {
		return false
	}
	if inner == "" {
		return true
	}
	seen := map[string]bool{}
	for member := range strings.SplitSeq(inner, ",") {
		if seen[member] || !f.hasOption(member) {
			return false
		}
		seen[member] = true
	}
	return true
}

// checkRow wants an object of booleans, keyed by the options.
func (f applicationField) checkRow(p problems, value json.RawMessage) {
	var row map[string]*bool
	if value[0] != '{' || json.Unmarshal(value, &row) != nil {
		p.add(f.key, "must be an object of booleans")
		return
	}
	for key, ticked := range row {
		p.check(f.hasOption(key), f.key+"."+key, "is not one of its options")
		p.check(ticked != nil, f.key+"."+key, "must be a boolean")
	}
}

// checkAddress looks at the form of an address.
func (f applicationField) checkAddress(p problems, value json.RawMessage) {
	var address applicationAddress
	if f.checkObject(p, value, &address) {
		address.check(p, f.key)
	}
}

// checkObject wants an object with the members of v and adds what is wrong with it.
func (f applicationField) checkObject(p problems, value json.RawMessage, v any) bool {
	err := decodeAt(f.key, value, v)
	if r, ok := err.(*refusal); ok { //nolint:errorlint // decodeAt returns nothing else
		p.merge(f.key, r)
	}
	return err == nil
}

// isEmpty tells whether a saved value counts as none: a blank text, an empty set, or nothing ticked.
func (f applicationField) isEmpty(value json.RawMessage) bool {
	switch f.kind {
	case checkboxRow:
		var row map[string]bool
		return json.Unmarshal(value, &row) != nil || !anyTrue(row)
	case addressField:
		var address applicationAddress
		return json.Unmarshal(value, &address) != nil || address.isEmpty()
	case ownershipData:
		var members map[string]json.RawMessage
		return json.Unmarshal(value, &members) != nil || len(members) == 0
	default:
		var text string
		return json.Unmarshal(value, &text) != nil || isBlank(text) || f.kind == checkboxGroup && text == "{}"
	}
}

func anyTrue(row map[string]bool) bool {
	for _, ticked := range row {
		if ticked {
			return true
		}
	}
	return false
}

func isAmount(s string) bool {
	whole, cents, _ := strings.Cut(s, ".")
	return isDigits(whole, 1, 12) && (!strings.Contains(s, ".") || isDigits(cents, 1, 2))
}

// isURLList accepts addresses, with or without a scheme, that are separated by commas or blanks.
func isURLList(s string) bool {
	list := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	return len(list) > 0 && !slices.ContainsFunc(list, func(u string) bool { return !strings.Contains(u, ".") })
}

// isUSState knows the states, the federal district and the territories.
func isUSState(s string) bool {
	const codes = "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY " +
		"NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY AS GU MP PR VI"
	return slices.Contains(strings.Fields(codes), s)
}
