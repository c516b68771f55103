package payvaulttest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"example.com/payvault"
)

// ApplicationIncomplete is the status of an application that was created.
const ApplicationIncomplete = "INCOMPLETE"

// Application is what a test can see of a merchant application (interface §2.4).
//
// Its saved values are shown by [Application.Value] only: they hold tax IDs and the like.
type Application struct {
	ID              payvault.ApplicationID
	Partner         payvault.MerchantID // the merchant ID of the partner account that created it
	Status          string              // app_status, such as "INCOMPLETE"
	ChannelID       int64               // as it was sent
	SalesRep        int64               // as it was sent
	TerminationNode int64               // as it was sent; 0 for none
	Created         time.Time
	Keys            []string // of the saved data, in the order of interface §2.4

	values func(key string) (json.RawMessage, bool)
}

// Value returns the saved value of a key as JSON.
func (a Application) Value(key string) (json.RawMessage, bool) {
	if a.values == nil {
		return nil, false
	}
	return a.values(key)
}

// Format implements [fmt.Formatter] without the values.
func (a Application) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Application{ID:%d Status:%s Keys:%v}", int64(a.ID), a.Status, a.Keys)
}

// LogValue implements [slog.LogValuer] without the values.
func (a Application) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("app_id", int64(a.ID)), slog.String("app_status", a.Status))
}

// An application as the emulator keeps it.
type application struct {
	id      payvault.ApplicationID
	partner payvault.MerchantID
	request applicationRequest
	created time.Time
	values  *table[string, json.RawMessage]
}

type applicationRequest struct {
	ChannelID       *int64 `json:"channel_id"`
	SalesRep        *int64 `json:"sales_rep"`
	TerminationNode *int64 `json:"termination_node"`
}

type applicationResponse struct {
	App     appRecord     `json:"app"`
	Pricing pricingRecord `json:"pricing"`
}

type appRecord struct {
	ID              payvault.ApplicationID `json:"app_id"`
	MerchantID      payvault.MerchantID    `json:"merchant_id"`
	Status          string                 `json:"app_status"`
	DBAName         string                 `json:"dba_name"`
	DBTimestamp     string                 `json:"db_timestamp"`
	SubmitTimestamp string                 `json:"submit_timestamp"`
	CreditTimestamp string                 `json:"credit_timestamp"`
}

type pricingRecord struct {
	ID   int64          `json:"pricing_id"`
	Plan map[string]any `json:"plan"`
}

// createApplication performs POST /platform/application/add.
func (v *service) createApplication(c *call) (any, error) {
	var in applicationRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	p := problems{}
	p.check(deref(in.ChannelID) > 0, "channel_id", "is required")
	p.check(deref(in.SalesRep) > 0, "sales_rep", "is required")
	p.check(in.TerminationNode == nil || *in.TerminationNode > 0, "termination_node", "must be above zero")
	if err := p.err(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	app := &application{
		id: freshNumber(v.ids, "application", v.applications), partner: c.account.MerchantID,
		request: in, created: v.now().UTC(), values: newTable[string, json.RawMessage](),
	}
	v.applications.put(app.id, app)
	return success(app.response(v.ids.number("pricing"))), nil
}

func (a *application) response(pricingID int64) applicationResponse {
	stamp := a.created.Format(time.RFC3339)
	return applicationResponse{
		App: appRecord{
			ID: a.id, Status: ApplicationIncomplete,
			DBTimestamp: stamp, SubmitTimestamp: stamp, CreditTimestamp: stamp,
		},
		Pricing: pricingRecord{ID: pricingID, Plan: map[string]any{"name": "standard"}},
	}
}

type applicationData struct {
	Data []struct {
		Key   *string         `json:"key"`
		Value json.RawMessage `json:"value"`
	} `json:"data"`
}

type savedFields struct {
	Fields []savedField `json:"fields"`
}

type savedField struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Type     string          `json:"type"`
	Settings fieldSettings   `json:"settings"`
}

type fieldSettings struct {
	Required bool     `json:"required"`
	Options  []option `json:"options,omitempty"`
}

// saveApplication performs POST /platform/application/{app_id}/data: it saves every value or none.
func (v *service) saveApplication(c *call) (any, error) {
	id, err := c.id("app_id")
	if err != nil {
		return nil, err
	}
	var in applicationData
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	app, err := v.application(c.account, id)
	if err != nil {
		return nil, err
	}
	if err := v.checkData(in); err != nil {
		return nil, err
	}
	for _, pair := range in.Data {
		app.values.put(*pair.Key, pair.Value)
	}
	return success(savedFields{v.savedFields(app)}), nil
}

// application finds an application of a partner. The caller holds the lock.
func (v *service) application(account Account, id int64) (*application, error) {
	app, ok := v.applications.get(payvault.ApplicationID(id))
	if !ok || app.partner != account.MerchantID {
		return nil, refuse(http.StatusNotFound, "there is no application with this app_id")
	}
	return app, nil
}

func (v *service) checkData(in applicationData) error {
	p := problems{}
	p.check(len(in.Data) > 0, "data", "is required")
	seen := map[string]bool{}
	for i, pair := range in.Data {
		if deref(pair.Key) == "" || pair.Value == nil {
			p.add(fmt.Sprintf("data[%d]", i), "must have a key and a value")
			continue
		}
		p.check(!seen[*pair.Key], *pair.Key, "is given twice")
		seen[*pair.Key] = true
		field := v.field(*pair.Key)
		field.check(p, pair.Value)
	}
	return p.err()
}

// field finds a key of interface §2.4. Other keys are taken as optional texts or objects.
func (v *service) field(key string) applicationField {
	for _, field := range v.fields {
		if field.key == key {
			return field
		}
	}
	return applicationField{key: key, kind: openField}
}

// savedFields lists what an application holds: the keys of interface §2.4 in its order, then others.
func (v *service) savedFields(app *application) []savedField {
	list := make([]savedField, 0, len(app.values.rows))
	for _, key := range v.savedKeys(app) {
		field := v.field(key)
		value, _ := app.values.get(key)
		list = append(list, savedField{
			Key: key, Value: value, Type: field.kind.wireName(),
			Settings: fieldSettings{Required: app.requires(field), Options: app.options(field)},
		})
	}
	return list
}

// options are those of a field, with what the other fields rule out disabled: a sole proprietorship
// has no shares that could be traded. It is the emulator's own choice.
func (a *application) options(field applicationField) []option {
	if field.key != "trading_status" || a.text("business_type") != "sole-prop" {
		return field.options
	}
	list := slices.Clone(field.options)
	for i := range list {
		list[i].Disabled = list[i].Value == "pt"
	}
	return list
}

func (v *service) savedKeys(app *application) []string {
	keys := make([]string, 0, len(app.values.keys))
	known := map[string]bool{}
	for _, field := range v.fields {
		known[field.key] = true
		if _, saved := app.values.get(field.key); saved {
			keys = append(keys, field.key)
		}
	}
	for _, key := range app.values.keys {
		if !known[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// validateApplication performs GET /platform/application/{app_id}/validate.
func (v *service) validateApplication(c *call) (any, error) {
	id, err := c.id("app_id")
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	app, err := v.application(c.account, id)
	if err != nil {
		return nil, err
	}
	if p := v.validate(app); len(p) > 0 {
		return envelope{Code: 2, Message: "Request validation failed", Data: p}, nil
	}
	return success(nil), nil
}

// Application returns an application as it stands.
func (s *Server) Application(id payvault.ApplicationID) (Application, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	app, ok := s.service.applications.get(id)
	if !ok {
		return Application{}, false
	}
	return s.service.viewApplication(app), true
}

// Applications returns every application, in order of creation.
func (s *Server) Applications() []Application {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return views(s.service.applications.rows, s.service.viewApplication)
}

func (v *service) viewApplication(app *application) Application {
	values := map[string]json.RawMessage{}
	for _, key := range app.values.keys {
		values[key], _ = app.values.get(key)
	}
	return Application{
		ID: app.id, Partner: app.partner, Status: ApplicationIncomplete, Created: app.created,
		ChannelID: deref(app.request.ChannelID), SalesRep: deref(app.request.SalesRep),
		TerminationNode: deref(app.request.TerminationNode), Keys: v.savedKeys(app),
		values: func(key string) (json.RawMessage, bool) {
			value, ok := values[key]
			return value, ok
		},
	}
}
