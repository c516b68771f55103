package payvaulttest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

type applicationAddress struct {
	FirmName  string `json:"firm_name"`
	Address1  string `json:"address1"`
	Address2  string `json:"address2"`
	City      string `json:"city"`
	State     string `json:"state"`
	Zip       string `json:"zip"`
	Zip4      string `json:"zip4"`
	Country   string `json:"country"`
	Attempted bool   `json:"attempted"`
	Validated bool   `json:"validated"`
}

// isEmpty tells whether an address holds nothing, or nothing but flags and blanks.
func (a applicationAddress) isEmpty() bool {
	return isBlank(a.FirmName + a.Address1 + a.Address2 + a.City + a.State + a.Zip + a.Zip4 + a.Country)
}

func (a applicationAddress) check(p problems, path string) {
	p.check(isNumericCode(a.Country), join(path, "country"), "must be a numeric code")
}

type ownership struct {
	InterestCount *int64  `json:"interestCount"`
	Owners        []owner `json:"owners"`
}

type owner struct {
	Name struct {
		First string `json:"first_name"`
		Last  string `json:"last_name"`
	} `json:"name"`
	PersonType struct {
		Owner   bool `json:"owner"`
		Control bool `json:"control"`
		User    bool `json:"user"`
	} `json:"personType"`
	ID          string `json:"id"`
	ContactType struct {
		Admin bool `json:"admin"`
	} `json:"contactType"`
	Phone             string              `json:"phone"`
	Email             string              `json:"email"`
	DOB               *string             `json:"dob"`
	SSN               string              `json:"ssn"`
	Passport          string              `json:"passport"`
	PassportExpires   *string             `json:"passport_expiration_date"`
	PassportIssued    *string             `json:"passport_issue_date"`
	LicenseNumber     string              `json:"dl_number"`
	LicenseState      string              `json:"dl_state"`
	LicenseExpires    *string             `json:"dl_expiration_date"`
	LicenseIssued     *string             `json:"dl_issue_date"`
	Interest          *json.Number        `json:"interestPercent"`
	RelatedBusinesses []json.RawMessage   `json:"relatedBusinesses"`
	CBExp             string              `json:"cbExp"`
	Legal             bool                `json:"legal"`
	LegalExp          string              `json:"legalExp"`
	Title             string              `json:"title"`
	Address           *applicationAddress `json:"address"`
}

// merge adds the problems of a refusal; one that names no field counts for the given one.
func (p problems) merge(field string, r *refusal) {
	if len(r.fields) == 0 {
		p.add(field, "%s", r.message)
	}
	for name, messages := range r.fields {
		p[name] = append(p[name], messages...)
	}
}

// checkOwnership looks at the form of an ownership value, not at what it lacks.
func (f applicationField) checkOwnership(p problems, value json.RawMessage) {
	var in ownership
	if !f.checkObject(p, value, &in) {
		return
	}
	for i, o := range in.Owners {
		path := fmt.Sprintf("%s.owners[%d]", f.key, i)
		for name, date := range map[string]*string{
			"dob": o.DOB, "passport_expiration_date": o.PassportExpires, "passport_issue_date": o.PassportIssued,
			"dl_expiration_date": o.LicenseExpires, "dl_issue_date": o.LicenseIssued,
		} {
			p.check(date == nil || isDate(*date), join(path, name), "must be YYYY-MM-DD")
		}
		_, decimal := parseNumber(deref(o.Interest).String())
		p.check(o.Interest == nil || decimal, join(path, "interestPercent"), "must be a number without exponent, of at most 64 characters")
		p.check(o.Email == "" || isEmail(o.Email), join(path, "email"), "is not a valid email")
		deref(o.Address).check(p, join(path, "address"))
	}
}

// validate checks that the application holds all required fields and fulfils their dependencies.
// The rules that depend on business_type are the emulator's own choice, see the package documentation.
func (v *service) validate(app *application) problems {
	p := problems{}
	businessType := app.text("business_type")
	for _, field := range v.fields {
		message := "This field is required"
		if !field.required { // always
			message += " when a third party fulfils orders"
		}
		p.check(!app.requires(field) || app.has(field), field.key, message)
	}
	v.validateBank(p, app)
	v.validateOwnership(p, app, businessType)
	return p
}

// requires tells whether a validation of what is saved now wants a field.
func (a *application) requires(field applicationField) bool {
	switch field.key {
	case "fulfillment_name", "fulfillment_contact", "fulfillment_email", "fulfillment_phone", "fulfillment_address":
		return a.text("fulfillment_provider_flag") == "thirdparty"
	case "limited_partnership", "trading_status":
		return !slices.Contains([]string{"sole-prop", "tax-exempt"}, a.text("business_type"))
	case "state_filed":
		return a.text("business_type") != "sole-prop"
	default:
		return field.required
	}
}

// validateBank wants routing and account number together, or neither.
func (v *service) validateBank(p problems, app *application) {
	if app.has(v.field("bank_routing")) == app.has(v.field("bank_account_number")) {
		return
	}
	const message = "Bank account and routing number are required together"
	p.add("bank_routing", message)
	p.add("bank_account_number", message)
}

// validateOwnership applies what depends on the kind of business: who must be named, and what must
// be known about each owner.
func (v *service) validateOwnership(p problems, app *application, businessType string) {
	value, _ := app.values.get("ownership")
	var in ownership
	if !app.has(v.field("ownership")) || json.Unmarshal(value, &in) != nil {
		return
	}
	p.check(in.InterestCount == nil || *in.InterestCount == int64(len(in.Owners)), "ownership.interestCount", "is not the number of owners")
	switch businessType {
	case "sole-prop":
		p.check(in.count(owner.owns) == 1, "ownership.owners", "A sole proprietorship has exactly one owner")
	case "corporation-public", "tax-exempt":
		p.check(in.count(owner.controls) > 0, "ownership.owners", "A person with control is required")
	default:
		p.check(in.count(owner.owns) > 0, "ownership.owners", "At least one owner is required")
	}
	p.check(interests(in.Owners).Cmp(big.NewRat(100, 1)) <= 0, "ownership.owners", "The interests are above 100 percent")
	personal := businessType != "corporation-public" && businessType != "tax-exempt"
	for i, o := range in.Owners {
		o.validate(p, fmt.Sprintf("ownership.owners[%d]", i), personal)
	}
}

func (o owner) owns() bool     { return o.PersonType.Owner }
func (o owner) controls() bool { return o.PersonType.Control }

// count tells how many of the persons, all of which the interface lists as owners, are of a type.
func (in ownership) count(is func(owner) bool) int {
	n := 0
	for _, o := range in.Owners {
		if is(o) {
			n++
		}
	}
	return n
}

// validate checks one owner; personal data is wanted of the owners of businesses that are not public.
func (o owner) validate(p problems, path string, personal bool) {
	const required = "This field is required"
	p.check(!isBlank(o.Name.First) && !isBlank(o.Name.Last), join(path, "name"), required)
	share, _ := parseNumber(deref(o.Interest).String())
	p.check(share.Sign() >= 0 && share.Cmp(big.NewRat(100, 1)) <= 0, join(path, "interestPercent"), "must be 0 to 100")
	if !personal {
		return
	}
	p.check(o.DOB != nil, join(path, "dob"), required)
	p.check(!isBlank(o.SSN) || !isBlank(o.Passport), join(path, "ssn"), "A social security number or a passport is required")
	p.check(!deref(o.Address).isEmpty(), join(path, "address"), required)
	p.check(o.Interest != nil, join(path, "interestPercent"), required)
}

func interests(owners []owner) *big.Rat {
	sum := new(big.Rat)
	for _, o := range owners {
		share, _ := parseNumber(deref(o.Interest).String())
		sum.Add(sum, share)
	}
	return sum
}

// has tells whether a field is saved with a value that is not empty.
func (a *application) has(field applicationField) bool {
	value, saved := a.values.get(field.key)
	return saved && !field.isEmpty(value)
}

// text is the saved text of a key, or nothing.
func (a *application) text(key string) string {
	value, _ := a.values.get(key)
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}
