package payvault

import (
	"errors"

	"github.com/go-json-experiment/json" // becomes encoding/json/v2 in Go 1.27
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
)

var errNotPairs = errors.New("not a JSON array of single-pair objects")

// Pairs is a list of names and values. It is sent as a JSON string that holds a JSON array of single-pair objects. The
// order is kept, and a name may occur more than once.
type Pairs []Pair

// Pair is one name with its value. The service does not document which values it allows. Numbers are read as
// [encoding/json.Number].
type Pair struct {
	Name  string // name of the pair
	Value any    // any value that JSON can represent
}

// ParsePairs reads a JSON array of single-pair objects, such as [{"order":"17"},{"lane":"4"}]. Use it for
// [TokenizeResponse.EchoFields]. A text of another form is an error, and so is an object with two pairs, even if both
// pairs have the same name.
func ParsePairs(text string) (Pairs, error) {
	var objects []map[string]any
	if answer.ReadExactly([]byte(text), &objects) != nil || objects == nil {
		return nil, errNotPairs
	}
	pairs := make(Pairs, 0, len(objects))
	for _, object := range objects {
		if len(object) != 1 {
			return nil, errNotPairs
		}
		for name, value := range object {
			pairs = append(pairs, Pair{name, value})
		}
	}
	return pairs, nil
}

// MarshalJSON writes a JSON string that holds the array. In place of each [Secret] it writes [REDACTED].
func (p Pairs) MarshalJSON() ([]byte, error) { return marshalShown(p) }

// writeJSON writes a JSON string that holds the array.
func (p Pairs) writeJSON(enc *jsontext.Encoder) error {
	objects := make([]map[string]any, len(p))
	for i, pair := range p {
		objects[i] = map[string]any{pair.Name: pair.Value}
	}
	text, err := json.Marshal(objects, enc.Options())
	if err != nil {
		return &json.SemanticError{Err: err} // the path of the error is the path of the whole text
	}
	return enc.WriteToken(jsontext.String(string(text)))
}

// UnmarshalJSON reads a JSON string that holds the array; null and an empty string are read as no pairs. An array with
// [REDACTED] in it is an error.
func (p *Pairs) UnmarshalJSON(b []byte) error { return answer.Unfit[Pairs](p.read(b)) }

// UnmarshalJSONFrom is like UnmarshalJSON, but its error names the place of the value.
func (p *Pairs) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return answer.UnmarshalFrom(dec, p) }

func (p *Pairs) read(raw jsontext.Value) (err error) {
	text := answer.Text(raw)
	switch {
	case text == "":
		*p = nil
		return nil
	case hasMark(text):
		return errRedacted
	case raw.Kind() != '"':
		return errNotPairs
	}
	*p, err = ParsePairs(text)
	return err
}
