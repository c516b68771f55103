package inspect

import (
	"fmt"
	"regexp"
	"slices"

	"example.com/payvault/payvaulttest/internal/cardnumber"
)

const (
	shapeDepth = 8
	shapeNodes = 200
	shapeList  = 3 // elements of a list that are shown

	mark    = "•••" // stands for what is not shown
	unknown = "?"   // counts names that are not known
	more    = "…"   // says that something is left out
)

// Shape makes of the parts of a request what may be shown: the names that are known, and a mark for each value. Parts
// that are nil or empty are left out.
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
	left  int // values that are still shown
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

// Names are the names of all fields and parameters of an OpenAPI document.
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

// uuid is a text that has long runs of digits by chance.
var uuid = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b`)

// Hide masks what might be a card number in a text: all but the first four and the last six of twelve digits or more in
// a row, and of a number that is written in groups of three digits or more, the first of them four or more, whatever
// stands between them. UUIDs are left alone.
func Hide(text string) string {
	if at := uuid.FindStringIndex(text); at != nil {
		return Hide(text[:at[0]]) + text[at[0]:at[1]] + Hide(text[at[1]:])
	}
	all, masked := []rune(text), []rune(text)
	groups := digitGroups(all)
	for i, places := range groups {
		if len(places) < 4 {
			continue
		}
		if len(places) >= 12 {
			maskPlaces(masked, places)
		}
		for _, next := range groups[i+1:] {
			if places = slices.Concat(places, next); len(next) < 3 || len(places) > 19 {
				break
			}
			var number []rune
			for _, at := range places {
				number = append(number, '0'+digit(all[at]))
			}
			if cardnumber.Checked(string(number)) {
				maskPlaces(masked, places)
			}
		}
	}
	return string(masked)
}

// digit is the value of a digit, of the full width of a Chinese character too, or -1.
func digit(r rune) rune {
	for _, zero := range "0\uFF10" {
		if r >= zero && r <= zero+9 {
			return r - zero
		}
	}
	return -1
}

// digitGroups are the places of digits that stand in a row.
func digitGroups(text []rune) [][]int {
	var groups [][]int
	for i, r := range text {
		switch {
		case digit(r) < 0:
		case i == 0 || digit(text[i-1]) < 0:
			groups = append(groups, []int{i})
		default:
			groups[len(groups)-1] = append(groups[len(groups)-1], i)
		}
	}
	return groups
}

func maskPlaces(text []rune, places []int) {
	for _, at := range places[4 : len(places)-6] {
		text[at] = 'x'
	}
}

// hide masks what might be a card number in each cell.
func (t Table) hide() {
	for _, row := range t.Rows {
		for i, cell := range row {
			text := fmt.Sprint(cell)
			if hidden := Hide(text); hidden != text {
				row[i] = hidden
			}
		}
	}
}
