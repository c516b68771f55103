// Package openapi reads api/openapi.yaml and checks requests against it. Only the emulator uses this package.
//
// The module santhosh-tekuri/jsonschema checks values against schemas. It is fast and requires only one other module.
// Its errors give the kind and the path of each problem, so the emulator can write messages that never contain a value.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
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
}

// An Operation is one method of one path.
type Operation struct {
	ID     string // operationId in the document
	Method string
	Path   string
	Media  string  // media type of the body; empty if there is no body
	Needed bool    // whether the body is required
	Body   *Schema // schema of the body; nil if there is no body

	inPath []string          // names of the parameters in the path
	kinds  map[string]string // type of each parameter, by name
	object *Schema           // schema of an object that has all parameters as fields
}

// A Schema is a compiled schema of the document.
type Schema struct{ compiled *jsonschema.Schema }

// parameters is a key that MustLoad adds to the document. Its value has one schema for each operation: the schema of an
// object whose fields are the parameters of the operation.
const parameters = "x-parameters"

// MustLoad reads a document and compiles the schemas of its operations. It panics if the document is invalid.
func MustLoad(text []byte) *Document {
	d := &Document{compiler: jsonschema.NewCompiler()}
	if err := yaml.Unmarshal(text, &d.root); err != nil {
		panic(fmt.Errorf("read the document: %w", err))
	}
	objects := map[string]any{}
	for path := range d.At("paths") {
		for method := range d.At("paths", path) {
			o := &Operation{Method: strings.ToUpper(method), Path: path, kinds: map[string]string{}}
			o.ID, _ = d.At("paths", path, method)["operationId"].(string)
			objects[o.ID] = d.parameters(o, d.At("paths", path, method)["parameters"])
			d.Operations = append(d.Operations, o)
		}
	}
	d.root[parameters] = objects
	// OpenAPI 3.0 is based on Draft 5, which has the rules of Draft 4. Under Draft 4 the compiler also checks formats.
	d.compiler.DefaultDraft(jsonschema.Draft4)
	d.compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
	if err := d.compiler.AddResource(documentURL, d.root); err != nil {
		panic(fmt.Errorf("take the document: %w", err))
	}
	for _, o := range d.Operations {
		o.object = d.Schema(parameters, o.ID)
		body := []string{"paths", o.Path, strings.ToLower(o.Method), "requestBody"}
		o.Needed, _ = d.At(body...)["required"].(bool)
		for o.Media = range d.At(append(body, "content")...) { // there is only one media type
			o.Body = d.Schema(append(body, "content", o.Media, "schema")...)
		}
	}
	return d
}

// parameters reads the parameters of an operation, and returns the schema of an object whose fields are the parameters.
func (d *Document) parameters(o *Operation, list any) map[string]any {
	properties := map[string]any{}
	all, _ := list.([]any)
	for _, one := range all {
		parameter := d.follow(one)
		name, _ := parameter["name"].(string)
		schema, _ := parameter["schema"].(map[string]any)
		properties[name] = schema
		o.kinds[name], _ = schema["type"].(string)
		if parameter["in"] == "path" {
			o.inPath = append(o.inPath, name)
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func isInt64(v any) error {
	if number, ok := v.(json.Number); ok {
		if _, err := number.Int64(); err != nil {
			return errors.New("out of range")
		}
	}
	return nil
}

// At returns the object at a path of the document. If the object is a reference, At returns the object to which it
// refers. If there is no object, At returns nil.
func (d *Document) At(place ...string) map[string]any {
	var value any = d.root
	for _, name := range place {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return d.follow(value)
}

func (d *Document) follow(value any) map[string]any {
	object, _ := value.(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		return d.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return object
}

// Schema compiles the schema at a path of the document. It panics if the schema is missing or invalid.
func (d *Document) Schema(place ...string) *Schema {
	var b strings.Builder
	for _, name := range place {
		b.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name)))
	}
	return &Schema{d.compiler.MustCompile(documentURL + "#" + b.String())}
}
