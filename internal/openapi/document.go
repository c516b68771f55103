// Package openapi reads api/openapi.yaml and compares requests with it. Only the emulator links it.
//
// santhosh-tekuri/jsonschema checks the schemas: it is fast, needs one module more, and its errors say by type
// what is wrong and where, so that messages can be made that never repeat a value.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const documentURL = "openapi.yaml"

// The media types of bodies.
const (
	JSON = "application/json"
	Form = "multipart/form-data"
)

// A Document is an OpenAPI document of version 3.0.
type Document struct {
	Operations []*Operation

	root     map[string]any
	compiler *jsonschema.Compiler
	failed   error // of the compiler
}

// An Operation is one method of one path.
type Operation struct {
	ID     string // its operationId
	Method string
	Path   string
	Media  string  // of the body; empty without one
	Needed bool    // whether the body is required
	Body   *Schema // nil without one
	Result *Schema // of the answer with status 200

	inPath, inQuery []parameter
}

// A Schema is a part of the document to compare a value with.
type Schema struct{ compiled *jsonschema.Schema }

type parameter struct {
	name   string
	kind   string // its type in the schema
	schema *Schema
}

// Load reads a document and compiles the schemas of its operations.
func Load(text []byte) (*Document, error) {
	d := &Document{compiler: jsonschema.NewCompiler()}
	if err := yaml.Unmarshal(text, &d.root); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	d.compiler.DefaultDraft(jsonschema.Draft4) // of which OpenAPI 3.0 has its schemas
	d.compiler.AssertFormat()
	d.compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
	if err := d.compiler.AddResource(documentURL, d.root); err != nil {
		return nil, fmt.Errorf("take the document: %w", err)
	}
	for path := range d.At("paths") {
		for method := range d.At("paths", path) {
			d.Operations = append(d.Operations, d.operation(path, method))
		}
	}
	return d, d.failed
}

func isInt64(v any) error {
	if number, ok := v.(json.Number); ok {
		if _, err := number.Int64(); err != nil {
			return errors.New("out of range")
		}
	}
	return nil
}

// At is the object at a place of the document, with the reference followed that stands there; nil if there is none.
func (d *Document) At(place ...string) map[string]any {
	object := d.root
	for _, name := range place {
		object, _ = object[name].(map[string]any)
	}
	if ref, ok := object["$ref"].(string); ok {
		return d.At(target(ref)...)
	}
	return object
}

// Names are the names of all fields and parameters.
func (d *Document) Names() map[string]bool {
	names := map[string]bool{}
	addNames(names, d.root)
	return names
}

func addNames(names map[string]bool, value any) {
	object, _ := value.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	for name := range properties {
		names[name] = true
	}
	if name, ok := object["name"].(string); ok && object["in"] != nil {
		names[name] = true
	}
	for _, member := range object {
		addNames(names, member)
	}
	list, _ := value.([]any)
	for _, element := range list {
		addNames(names, element)
	}
}

func target(ref string) []string { return strings.Split(strings.TrimPrefix(ref, "#/"), "/") }

// Schema compiles the schema at a place of the document. It panics if there is none that can be compiled.
func (d *Document) Schema(place ...string) *Schema {
	schema := d.compile(place...)
	if d.failed != nil {
		panic(d.failed)
	}
	return schema
}

func (d *Document) compile(place ...string) *Schema {
	var b strings.Builder
	for _, name := range place {
		b.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name)))
	}
	pointer := b.String()
	compiled, err := d.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		d.failed = errors.Join(d.failed, fmt.Errorf("compile %s: %w", pointer, err))
	}
	return &Schema{compiled}
}

func (d *Document) operation(path, method string) *Operation {
	object := d.At("paths", path, method)
	o := &Operation{Method: strings.ToUpper(method), Path: path}
	o.ID, _ = object["operationId"].(string)
	list, _ := object["parameters"].([]any)
	for i := range list {
		p, in := d.parameter(list[i], "paths", path, method, "parameters", strconv.Itoa(i))
		if in == "path" {
			o.inPath = append(o.inPath, p)
		} else {
			o.inQuery = append(o.inQuery, p)
		}
	}
	for _, media := range []string{JSON, Form} {
		if place := []string{"paths", path, method, "requestBody", "content", media, "schema"}; d.At(place...) != nil {
			o.Media, o.Body = media, d.compile(place...)
			o.Needed, _ = d.At("paths", path, method, "requestBody")["required"].(bool)
		}
	}
	o.Result = d.compile("paths", path, method, "responses", "200", "content", JSON, "schema")
	return o
}

// parameter reads a parameter and says where it is sent.
func (d *Document) parameter(value any, place ...string) (parameter, string) {
	object, _ := value.(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		place, object = target(ref), d.At(target(ref)...)
	}
	schema, _ := object["schema"].(map[string]any)
	p := parameter{schema: d.compile(append(place, "schema")...)}
	p.name, _ = object["name"].(string)
	p.kind, _ = schema["type"].(string)
	in, _ := object["in"].(string)
	return p, in
}
