package inspect

import (
	"fmt"
	"regexp"

	"example.com/payvault/payvaulttest/internal/cardnumber"
)

const (
	shapeDepth = 8
	shapeNodes = 200
	shapeList  = 3 // maximum number of elements of a list in a shape

	mark    = "•••" // replaces a text
	unknown = "?"   // key for the number of unknown names
	more    = "…"   // replaces elements and values that are left out
)

// Shape returns the structure of the parts of a request: the known names, with a mark or the name of a type in place of
// each value. It leaves out parts that are nil or an empty map.
func Shape(parts map[string]any, known map[string]bool) map[string]any {
	s := shape{known: known, left: shapeNodes}
	masked := map[string]any{}
	for name, part := range parts {
		if fields, ok := part.(map[string]any); part != nil && (!ok || len(fields) > 0) {
			masked[name] = s.mask(part, shapeDepth)
		}
	}
	return masked
}

type shape struct {
	known map[string]bool
	left  int // number of values that may still be added to the shape
}

func (s *shape) mask(value any, depth int) any {
	if s.left--; depth == 0 {
		return more
	}
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return mark
	case bool:
		return "flag"
	case map[string]any:
		return s.maskObject(v, depth-1)
	case []any:
		return s.maskList(v, depth-1)
	default:
		return "number"
	}
}

func (s *shape) maskObject(object map[string]any, depth int) any {
	masked, strangers := map[string]any{}, 0
	for name, value := range object {
		switch {
		case !s.known[name]:
			strangers++
		case s.left <= 0:
			masked[more] = "more"
		default:
			masked[name] = s.mask(value, depth)
		}
	}
	if strangers > 0 {
		masked[unknown] = fmt.Sprintf("%d unknown", strangers)
	}
	return masked
}

func (s *shape) maskList(list []any, depth int) any {
	masked := []any{}
	for _, value := range list[:min(len(list), shapeList)] {
		masked = append(masked, s.mask(value, depth))
	}
	if len(list) > shapeList {
		masked = append(masked, fmt.Sprintf("%s %d in all", more, len(list)))
	}
	return masked
}

// Names returns the names of all fields and parameters in an OpenAPI document.
func Names(document any) map[string]bool {
	names := map[string]bool{}
	addNames(names, document)
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

// longNumber matches a run of digits that might be a card number.
var longNumber = regexp.MustCompile(`\d{12,}`)

// hide masks the digits that longNumber matches, in every value of the table.
func (t Table) hide() {
	for _, row := range t.Rows {
		for i, cell := range row {
			if text := fmt.Sprint(cell); longNumber.MatchString(text) {
				row[i] = longNumber.ReplaceAllStringFunc(text, cardnumber.Mask)
			}
		}
	}
}
