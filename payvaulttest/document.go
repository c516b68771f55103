package payvaulttest

import (
	"maps"
	"slices"
	"sync"

	"example.com/payvault/api"
	"example.com/payvault/internal/listing"
	"example.com/payvault/internal/openapi"
)

// A document is api/openapi.yaml with what the emulator takes from it besides its operations.
type document struct {
	*openapi.Document

	response    *openapi.Schema // of the text in a dispute's form
	transaction *openapi.Schema // of a record
	fields      map[string]applicationField
	names       map[string]bool // of fields and parameters
	customers   listing.Columns
	payments    listing.Columns // of transactions
}

// The document of the process, which is read when the first server starts.
//
//nolint:gochecknoglobals // never changed
var theDocument = sync.OnceValues(func() (*document, error) {
	read, err := openapi.Load(api.OpenAPI())
	if err != nil {
		return nil, err //nolint:wrapcheck // it says where
	}
	d := &document{Document: read, fields: map[string]applicationField{}, names: read.Names()}
	d.response = d.Schema("components", "schemas", "DisputeResponse")
	d.transaction = d.Schema("components", "schemas", "Transaction")
	for key, kind := range d.At("components", "schemas", "ApplicationData", "x-types") {
		d.fields[key] = d.field(key, kind)
	}
	d.customers = d.columns("Customer")
	d.payments = d.columns("Transaction")
	d.payments["tran_date"] = listing.Date
	return d, nil
})

// columns are the fields of a record by which lists can be sorted and filtered.
func (d *document) columns(schema string) listing.Columns {
	list := listing.Columns{}
	for name := range d.At("components", "schemas", schema, "properties") {
		property := d.At("components", "schemas", schema, "properties", name)
		switch property["type"] {
		case "integer", "number":
			list[name] = listing.Number
		case "boolean":
			list[name] = listing.Text
		case "string":
			list[name] = map[any]listing.Kind{"date": listing.Date, "date-time": listing.Time}[property["format"]]
		}
	}
	return list
}

// field reads what the document says of a key of application data.
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
		text, _ := choice.(string)
		field.options = append(field.options, option{Label: text, Value: text})
	}
	return field
}

// addAll adds what is wrong with a part of the request.
func (p problems) addAll(others openapi.Problems) { maps.Copy(p, others) }
