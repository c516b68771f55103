package payvaulttest

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault"
	"example.com/payvault/internal/openapi"
)

// ApplicationIncomplete is the status of an application that was created.
const ApplicationIncomplete = "INCOMPLETE"

const onlyPartners = "only partner accounts may board merchants"

// Application is a merchant application, its fields named as on the wire. Its saved values, which hold tax IDs and
// the like, are shown by [Application.Value] only.
type Application struct {
	ID              payvault.ApplicationID `json:"app_id"`
	Partner         payvault.MerchantID    `json:"partner"`          // of the account that created it
	Status          string                 `json:"app_status"`       // such as INCOMPLETE
	ChannelID       int64                  `json:"channel_id"`       // as it was sent
	SalesRep        int64                  `json:"sales_rep"`        // as it was sent
	TerminationNode int64                  `json:"termination_node"` // 0 for none
	Created         time.Time              `json:"-"`                // by the clock of the server
	Keys            []string               `json:"-"`                // of the saved data, in order of saving

	values func() map[string]jsontext.Value
}

// Value returns the saved value of a key as JSON.
func (a Application) Value(key string) (jsontext.Value, bool) {
	if a.values == nil {
		return nil, false
	}
	value, ok := a.values()[key]
	return value.Clone(), ok
}

func (a Application) clone() Application {
	view := a
	values := map[string]jsontext.Value{}
	if a.values != nil {
		values = maps.Clone(a.values())
	}
	view.Keys = slices.Clone(a.Keys)
	view.values = func() map[string]jsontext.Value { return values }
	return view
}

func (v *service) prepareApplication(a *Application) error {
	a.ID = freshNumber(v.ids, "application", v.Applications, a.ID)
	a.Partner = cmp.Or(a.Partner, v.accounts.partner().MerchantID)
	a.Status = ApplicationIncomplete
	if a.Created.IsZero() {
		a.Created = v.now().UTC()
	}
	return v.seedMerchant(&a.Partner)
}

// createApplication performs POST /platform/application/add.
func (v *service) createApplication(c *call) (any, error) {
	if !c.account.Partner {
		return nil, refuse(http.StatusForbidden, onlyPartners)
	}
	app, err := bind[Application](c.body)
	if err != nil {
		return nil, err
	}
	app.Partner = c.account.MerchantID
	app, err = v.Applications.seed(app)
	return success(map[string]any{
		"app": map[string]any{
			"app_id": app.ID, "merchant_id": 0, "app_status": app.Status, "dba_name": "",
			"db_timestamp": app.Created, "submit_timestamp": app.Created, "credit_timestamp": app.Created,
		},
		"pricing": map[string]any{"pricing_id": v.ids.number("pricing"), "plan": map[string]string{"name": "standard"}},
	}), err
}

// application finds the application of the path, if it is the partner's.
func (v *service) application(c *call) (*Application, error) {
	if !c.account.Partner {
		return nil, refuse(http.StatusForbidden, onlyPartners)
	}
	app := v.Applications.rows[payvault.ApplicationID(c.id("appId"))]
	if app == nil || app.Partner != c.account.MerchantID {
		return nil, notFound("application", "app_id")
	}
	return app, nil
}

// An applicationField is what the document says of a key of application data.
type applicationField struct {
	kind     string
	required bool
	options  []option
	schema   *openapi.Schema
}

type option struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// field finds a key of the document. Other keys are taken as optional texts or objects.
func (v *service) field(key string) applicationField {
	if field, ok := v.document.fields[key]; ok {
		return field
	}
	return applicationField{kind: "text"}
}

type applicationPairs struct {
	Data []struct {
		Key   string         `json:"key"`
		Value jsontext.Value `json:"value"`
	} `json:"data"`
}

type savedField struct {
	Key      string         `json:"key"`
	Value    jsontext.Value `json:"value"`
	Type     string         `json:"type"`
	Settings fieldSettings  `json:"settings"`
}

type fieldSettings struct {
	Required bool     `json:"required"`
	Options  []option `json:"options,omitzero"`
}

// saveApplication performs POST /platform/application/{appId}/data: it saves every value or none.
func (v *service) saveApplication(c *call) (any, error) {
	app, err := v.application(c)
	if err != nil {
		return nil, err
	}
	in, err := bind[applicationPairs](c.body)
	if err != nil {
		return nil, err
	}
	if err := v.checkPairs(in); err != nil {
		return nil, err
	}
	for _, pair := range in.Data {
		if _, saved := app.values()[pair.Key]; !saved {
			app.Keys = append(app.Keys, pair.Key)
		}
		app.values()[pair.Key] = pair.Value.Clone()
	}
	fields := []savedField{}
	for _, key := range app.Keys {
		field := v.field(key)
		value, _ := app.Value(key)
		settings := fieldSettings{Required: app.requires(key, field), Options: field.options}
		fields = append(fields, savedField{Key: key, Value: value, Type: field.kind, Settings: settings})
	}
	return success(map[string]any{"fields": fields}), nil
}

// checkPairs compares each value with the schema of its key.
func (v *service) checkPairs(in applicationPairs) error {
	p := problems{}
	seen := map[string]bool{}
	for i, pair := range in.Data {
		p.check(pair.Key != "", fmt.Sprintf("data[%d].key", i), "is required")
		p.check(!seen[pair.Key], pair.Key, "is given twice")
		seen[pair.Key] = true
		field := v.field(pair.Key)
		if field.schema == nil {
			p.check(pair.Value.Kind() == '"' || pair.Value.Kind() == '{', pair.Key, "must be a string or an object")
			continue
		}
		value, _ := openapi.Parse(pair.Key, pair.Value) // it was read before
		p.addAll(field.schema.Check(pair.Key, value))
	}
	return p.err()
}

// validateApplication performs GET /platform/application/{appId}/validate.
func (v *service) validateApplication(c *call) (any, error) {
	app, err := v.application(c)
	if err != nil {
		return nil, err
	}
	if p := v.validate(app); len(p) > 0 {
		return envelope{Code: 2, Message: "Request validation failed", Data: p}, nil
	}
	return success(nil), nil
}

// validate checks that an application holds the keys that the document requires, those of a third party that fulfils
// orders if there is one, and routing and account number of the bank together.
func (v *service) validate(app *Application) problems {
	p := problems{}
	for key, field := range v.document.fields {
		message := "This field is required"
		if !field.required {
			message += " when a third party fulfils orders"
		}
		p.check(!app.requires(key, field) || app.has(key), key, message)
	}
	for _, key := range []string{"bank_routing", "bank_account_number"} {
		together := app.has("bank_routing") == app.has("bank_account_number")
		p.check(together, key, "Bank account and routing number are required together")
	}
	return p
}

// requires reports whether a validation of what is saved now wants a field: those of a third party that fulfils
// orders only if there is one.
func (a Application) requires(key string, field applicationField) bool {
	party, _ := a.Value("fulfillment_provider_flag")
	return field.required || strings.HasPrefix(key, "fulfillment_") && key != "fulfillment_process_flag" &&
		string(party) == `"thirdparty"`
}

// has reports whether a key is saved with a value that is not empty.
func (a Application) has(key string) bool {
	text, saved := a.Value(key)
	value, _ := openapi.Parse(key, text)
	return saved && !isEmpty(value)
}

// isEmpty reports whether a value counts as none: a blank text, an empty set, nothing ticked, or no more than that.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return isBlank(strings.Trim(v, "{}"))
	case bool:
		return !v
	case stdjson.Number:
		return false
	case []any:
		return !slices.ContainsFunc(v, func(element any) bool { return !isEmpty(element) })
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(member any) bool { return !isEmpty(member) })
	default:
		return true
	}
}
