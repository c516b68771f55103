package payvaulttest

import (
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"example.com/payvault/api"
	"example.com/payvault/payvaulttest/internal/inspect"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// A document is api/openapi.yaml, with the schemas and names that the emulator takes from it.
type document struct {
	*openapi.Document

	records   map[string]*openapi.Schema // schemas by name; DisputeRespondRequest is the JSON part of a form
	fields    map[string]applicationField
	names     map[string]bool // names of fields and parameters
	customers columns         // fields by which the list of customers can be sorted and filtered
	payments  columns
}

// theDocument returns the document, which all servers of the process share. The first call reads it.
//
//nolint:gochecknoglobals // never changed
var theDocument = sync.OnceValue(func() *document {
	read := openapi.MustLoad(api.OpenAPI())
	d := &document{
		Document: read, records: map[string]*openapi.Schema{}, fields: map[string]applicationField{},
		names: inspect.Names(read.At()),
	}
	// in seeds these records are maps, which may have any names, so the schemas must refuse unknown names
	for _, name := range []string{"ShippingAddress", "BillingCard"} {
		d.At("components", "schemas", name)["additionalProperties"] = false
	}
	for _, name := range []string{"BillingCard", "Customer", "DisputeRespondRequest", "Transaction"} {
		d.records[name] = d.Schema("components", "schemas", name)
	}
	for key, kind := range d.At("components", "schemas", "ApplicationData", "x-types") {
		d.fields[key] = d.field(key, kind)
	}
	d.customers = d.columns("Customer")
	d.payments = d.columns("Transaction")
	d.payments["tran_date"] = true
	return d
})

// columns returns the fields of a record by which a list of such records can be sorted and filtered.
func (d *document) columns(schema string) columns {
	list := columns{}
	for name := range d.At("components", "schemas", schema, "properties") {
		property := d.At("components", "schemas", schema, "properties", name)
		if property["type"] != "array" && property["type"] != "object" {
			list[name] = property["format"] == "date" || property["format"] == "date-time"
		}
	}
	return list
}

// field returns the rules of the document for a key of application data.
func (d *document) field(key string, kind any) applicationField {
	place := []string{"components", "schemas", "ApplicationData"}
	required, _ := d.At(place...)["required"].([]any)
	place = append(place, "properties", key)
	field := applicationField{required: slices.Contains(required, any(key)), schema: d.Schema(place...)}
	field.kind, _ = kind.(string)
	property := d.At(place...)
	choices, _ := property["x-options"].([]any)
	if field.kind == "select" || field.kind == "radio" {
		choices, _ = property["enum"].([]any)
	}
	for _, choice := range choices {
		field.options = append(field.options, map[string]any{"label": choice, "value": choice})
	}
	return field
}

// An applicationField has the rules of api/openapi.yaml for a key of application data. The value of a key without rules
// is optional, and may be a text or an object.
type applicationField struct {
	kind     string
	required bool
	options  []map[string]any
	schema   *openapi.Schema
}

// shows returns an error unless the document permits the record in an answer.
func (d *document) shows(name string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	value, _ := openapi.Parse("", text)
	return problems(d.records[name].Check("", value)).err()
}
