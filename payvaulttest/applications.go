package payvaulttest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// Application is a merchant application. Only [Application.Data] returns its saved values, because they may contain tax
// IDs.
type Application struct {
	ID              payvault.ApplicationID `json:"app_id"`
	Partner         payvault.MerchantID    `json:"partner"`          // ID of the partner that created the application
	Status          string                 `json:"app_status"`       // such as INCOMPLETE
	ChannelID       int64                  `json:"channel_id"`       // unchanged from the request
	SalesRep        int64                  `json:"sales_rep"`        // unchanged from the request
	TerminationNode int64                  `json:"termination_node"` // 0 if there is none
	Created         time.Time              `json:"-"`                // time of creation by the server's clock

	keys   []string                         // keys of the values, in the order in which the keys were first saved
	values func() map[string]jsontext.Value // a func, because printing a func shows only its address
}

// Data returns the saved values: a map from the key to the JSON of the value.
func (a Application) Data() map[string]jsontext.Value {
	data := map[string]jsontext.Value{}
	if a.values != nil {
		for key, value := range a.values() {
			data[key] = value.Clone()
		}
	}
	return data
}

type applications struct {
	*state
	*Store[payvault.ApplicationID, Application]
}

func newApplications(s *state) *Store[payvault.ApplicationID, Application] {
	v := &applications{state: s}
	v.Store = newStore(s, "application", v)
	v.home = cmp.Or(s.accounts.partner().MerchantID, v.home)
	s.actions[payvault.OpApplicationsCreate] = reading(v.createApplication)
	s.actions[payvault.OpApplicationsSaveData] = reading(v.saveApplication)
	s.actions[payvault.OpApplicationsValidate] = v.validateApplication
	return v.Store
}

func (*applications) key(a *Application) (payvault.ApplicationID, *payvault.MerchantID) {
	return a.ID, &a.Partner
}

func (v *applications) prepare(a *Application) {
	freshNumber(v.Store, &a.ID)
	a.Status = "INCOMPLETE"
	if a.Created.IsZero() {
		a.Created = v.now().UTC()
	}
}

func (*applications) permits(*Application) error { return nil }

func (*applications) detach(*Application) {} // a copy may share keys and values, which are replaced but never changed

// createApplication performs POST /platform/application/add.
func (v *applications) createApplication(c *call, in Application) (any, error) {
	if err := onlyPartners(c); err != nil {
		return nil, err
	}
	in.Partner = c.merchant
	app := v.put(in)
	return success(map[string]any{
		"app": map[string]any{
			"app_id": app.ID, "merchant_id": 0, "app_status": app.Status, "dba_name": "",
			"db_timestamp": app.Created, "submit_timestamp": app.Created, "credit_timestamp": app.Created,
		},
		"pricing": map[string]any{"pricing_id": v.ids.number("pricing"), "plan": map[string]string{"name": "standard"}},
	}), nil
}

func onlyPartners(c *call) error {
	if !c.account.Partner {
		return refuse(http.StatusForbidden, "only partner accounts may board merchants")
	}
	return nil
}

// application returns the application whose ID is in the path of the request. It refuses accounts that are not
// partners, and applications of other partners.
func (v *applications) application(c *call) (*Application, error) {
	if err := onlyPartners(c); err != nil {
		return nil, err
	}
	return v.find(c, payvault.ApplicationID(c.id("appId")))
}

type applicationPairs struct {
	Data []struct {
		Key   string         `json:"key"`
		Value jsontext.Value `json:"value"`
	} `json:"data"`
}

// saveApplication performs POST /platform/application/{appId}/data. If one value is invalid, it saves no value.
func (v *applications) saveApplication(c *call, in applicationPairs) (any, error) {
	app, err := v.application(c)
	if err != nil {
		return nil, err
	}
	p, keys, saved := problems{}, slices.Clone(app.keys), app.Data()
	for _, pair := range in.Data { // first check every value against the schema of its key
		if schema := v.document.fields[pair.Key].schema; schema != nil {
			value, _ := openapi.Parse(pair.Key, pair.Value) // cannot fail: the JSON of the request was checked before
			maps.Copy(p, schema.Check(pair.Key, value))
		} else {
			p.check(pair.Value.Kind() == '"' || pair.Value.Kind() == '{', pair.Key, "must be a string or an object")
		}
		if saved[pair.Key] == nil {
			keys = append(keys, pair.Key)
		}
		saved[pair.Key] = pair.Value.Clone()
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	app.keys, app.values = keys, func() map[string]jsontext.Value { return saved }
	fields := []map[string]any{}
	for _, key := range keys {
		field := v.document.fields[key]
		settings := map[string]any{"required": field.neededBy(key, saved)}
		if field.options != nil {
			settings["options"] = field.options
		}
		fields = append(fields, map[string]any{
			"key": key, "value": saved[key], "type": cmp.Or(field.kind, "text"), "settings": settings,
		})
	}
	return success(map[string]any{"fields": fields}), nil
}

// neededBy reports whether an application must have a key to be valid. Some keys are always required. If a third party
// fulfills the orders, all keys that begin with fulfillment_ are required, except fulfillment_process_flag.
func (f applicationField) neededBy(key string, data map[string]jsontext.Value) bool {
	party := string(data["fulfillment_provider_flag"]) == `"thirdparty"` && strings.HasPrefix(key, "fulfillment_")
	return f.required || party && key != "fulfillment_process_flag"
}

// validateApplication performs GET /platform/application/{appId}/validate.
func (v *applications) validateApplication(c *call) (any, error) {
	app, err := v.application(c)
	if err != nil {
		return nil, err
	}
	if p := validate(v.document, app); len(p) > 0 {
		return envelope{Code: 2, Message: "Request validation failed", Data: p}, nil
	}
	return success(nil), nil
}

// validate returns the problems of an application: each required key without a value, and the two bank keys if only one
// of them has a value.
func validate(d *document, app *Application) problems {
	p, data := problems{}, app.Data()
	// has reports whether a key has a value. Quotes, braces, brackets and spaces alone are no value.
	has := func(key string) bool { return strings.Trim(string(data[key]), `"{}[] `) != "" }
	for key, field := range d.fields {
		message := "This field is required"
		if !field.required {
			message += " when a third party fulfils orders"
		}
		p.check(!field.neededBy(key, data) || has(key), key, message)
	}
	for _, key := range []string{"bank_routing", "bank_account_number"} {
		together := has("bank_routing") == has("bank_account_number")
		p.check(together, key, "Bank account and routing number are required together")
	}
	return p
}
