package answer

import (
	"reflect"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/jsonskip"
)

// This file implements the tolerant pass over a text.

// reader holds the state of one tolerant pass over a text.
type reader struct {
	lenient bool     // skips values that cannot be read, for ReadLenient
	saved   bool     // does not set pointers from values that mean "none", for ReadSaved and ReadGiven
	given   bool     // refuses unknown names, for ReadGiven
	unread  []string // JSON pointers of the skipped values, and of those that setTagged completed
	skipped int      // number of the skipped values
	// around has the variables that the decoder fills at present, one for each level of nesting. The zero Value stands for
	// a level that a type with its own UnmarshalJSONFrom reads.
	around []reflect.Value
}

// value reads one JSON value into the variable that pointer points to. The decoder calls this method before each JSON
// value. If the method returns [jsonskip.Err], the decoder itself reads the JSON value, and calls the method again for
// the JSON values within. The method itself reads the JSON value if the variable is a signed integer, has a method
// UnmarshalJSON, or is a pointer in a saved value. It also reads a JSON value whose kind does not fit the variable.
//
// If a valid JSON value cannot be read, its JSON pointer is added to unread. In three cases the method returns an error
// instead: the pass is not lenient, the JSON value is the whole text, or [MostUnread] values have been skipped. A
// lenient pass also adds the pointers of codes that had lost zeros, up to mostCompleted.
func (r *reader) value(dec *jsontext.Decoder, pointer any) error {
	target, kind := reflect.ValueOf(pointer).Elem(), dec.PeekKind()
	_, readsItself := pointer.(json.Unmarshaler)
	isSavedPointer := r.saved && target.Kind() == reflect.Pointer
	if !readsItself && !isSavedPointer && isOfKind(kind, target.Type()) {
		if kind == '{' || kind == '[' {
			r.enter(dec.StackDepth(), target)
		}
		return jsonskip.Err
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	isCompleted, err := r.fill(dec, raw, target)
	switch {
	case err != nil:
		return r.skip(dec, placeError(dec.StackPointer(), err, target.Type()))
	case isCompleted && r.lenient && len(r.unread)-r.skipped < mostCompleted:
		r.unread = append(r.unread, placeOf(dec.StackPointer()))
	}
	return nil
}

// enter notes the variable that the decoder fills at a level of nesting.
func (r *reader) enter(depth int, target reflect.Value) {
	for len(r.around) < depth {
		r.around = append(r.around, reflect.Value{})
	}
	r.around = append(r.around[:depth], target)
}

// skip adds the place of an unreadable value to unread, or returns the error that ends the pass.
func (r *reader) skip(dec *jsontext.Decoder, unreadable *PlaceError) error {
	if !r.lenient || dec.StackDepth() == 0 {
		return unreadable
	}
	if r.skipped == MostUnread {
		return ErrTooMany
	}
	r.skipped++
	r.unread = append(r.unread, unreadable.Place)
	return nil
}

// fill sets a variable from a JSON value that dec has just read. isCompleted reports whether the value is a code of
// three digits that had lost zeros.
func (r *reader) fill(dec *jsontext.Decoder, raw jsontext.Value, target reflect.Value) (isCompleted bool, err error) {
	own, readsItself := reflect.TypeAssert[json.Unmarshaler](target.Addr())
	parent, _ := dec.StackIndex(dec.StackDepth())
	switch {
	case r.saved && target.Kind() == reflect.Pointer:
		return false, r.setSaved(raw, target)
	case readsItself:
		return false, own.UnmarshalJSON(raw)
	case parent == '[' && target.Kind() == reflect.Struct:
		return false, errOtherKind // null and "" in a list would count as one more record
	}
	return r.setField(dec.StackDepth(), raw, target)
}

// setField is like [set], but follows the struct tag of the variable if the variable is a field of the struct that the
// decoder fills at present. depth is the number of lists and objects around the JSON value.
func (r *reader) setField(depth int, raw jsontext.Value, variable reflect.Value) (isCompleted bool, err error) {
	if depth == 0 || depth > len(r.around) || r.around[depth-1].Kind() != reflect.Struct {
		return false, set(raw, variable)
	}
	around := r.around[depth-1]
	tag := tagsOf(around.Type())[variable.UnsafeAddr()-around.UnsafeAddr()]
	return setTagged(tag, raw, variable)
}

// setSaved makes a new variable with a saved value, and lets the pointer point to it. If the value means "none", the
// pointer does not change. The exception is the value false, which sets a *bool.
func (r *reader) setSaved(raw jsontext.Value, pointer reflect.Value) error {
	isFalse := raw.Kind() == 'f' && pointer.Type().Elem().Kind() == reflect.Bool
	if IsNone(raw) && !isFalse {
		return nil
	}
	variable := reflect.New(pointer.Type().Elem())
	if _, err := read(raw, variable.Interface(), reader{saved: true, given: r.given}); err != nil {
		return err
	}
	pointer.Set(variable)
	return nil
}

// isOfKind reports whether the decoder itself reads a value of this kind into a variable of the given type. Otherwise
// [reader.value] reads it, because the kind is another one than that of the variable, or because the variable is a
// signed integer.
//
// For a pointer to a record the result is true for any kind: the decoder then calls reader.value again, with the record
// itself. That call also reads [], which PHP writes for an empty record.
func isOfKind(kind jsontext.Kind, of reflect.Type) bool {
	switch of.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer:
		to := of.Elem()
		return kind == 'n' || to.Kind() == reflect.Struct || isOfKind(kind, to)
	case reflect.Map, reflect.Struct:
		return kind == '{'
	case reflect.Slice:
		isBase64 := kind == '"' && of.Elem().Kind() == reflect.Uint8
		return kind == '[' || isBase64
	case reflect.Array:
		return kind == '['
	case reflect.String:
		return kind == '"'
	case reflect.Bool:
		return kind == 't' || kind == 'f'
	case reflect.Float32, reflect.Float64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return kind == '0'
	}
	return false
}
