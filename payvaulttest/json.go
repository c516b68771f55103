package payvaulttest

import (
	"fmt"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
)

// bind reads JSON that the document permits, or nothing, into a value of the emulator's own. It panics if they do not fit.
func bind[T any](text []byte) (v T) {
	if len(text) == 0 {
		return v
	}
	if err := json.Unmarshal(text, &v); err != nil {
		panic(fmt.Errorf("payvaulttest: read what the document permits: %w", err))
	}
	return v
}

// encode writes an answer; only what users hand in can fail.
// What a request holds that is not UTF-8, such as the name of a parameter, is answered with the replacement character.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
