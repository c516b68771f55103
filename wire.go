package payvault

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json" // becomes encoding/json/v2 in Go 1.27
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"example.com/payvault/internal/answer"
)

// MarshalWire returns the JSON that is sent for v, with the texts of its secrets. v is a request, a result, or a value
// of your own that holds requests or results. Use MarshalWire for a request that has to wait, in a queue for example.
// json.Unmarshal reads the JSON back. json.Marshal would write [REDACTED] for the secrets.
//
// The JSON may contain card data in clear text: encrypt it, keep it out of logs, and delete it when it has been sent.
// The rules of the card industry forbid keeping security codes and track data once a payment is authorized.
//
// Apart from secrets, MarshalWire writes the same values as [encoding/json.Marshal], with three differences in form.
// The characters <, >, &, U+2028 and U+2029 are not escaped. Escapes in raw JSON are rewritten. A json.Number is
// written as a number even with the option string. Two values are not read back: a [Secret] in a field of type any
// comes back as a string, and the file of a [DisputeRespondRequest] is not in the JSON.
//
// For a value that cannot be sent, the error matches [ErrInvalidRequest]. These values cannot be sent: a value that
// encoding/json refuses, a text that is not UTF-8, a text that contains [REDACTED], and an object in which a name
// occurs twice.
//
// A MarshalJSON method of your own writes [REDACTED] for each secret in its type, and MarshalWire refuses this text. So
// give the type the method MarshalJSONTo of JSON v2 as well, and let it write secrets with MarshalEncode of JSON v2,
// which follows the options of MarshalWire. MarshalJSONTo must never call [Secret.Reveal]: from Go 1.27 on,
// encoding/json and log/slog call MarshalJSONTo too, and would write the text.
func MarshalWire(v any) ([]byte, error) {
	var p problems
	wire := marshal(v, &p)
	for path, texts := range p { // marshal adds one problem at most
		return nil, fmt.Errorf("payvault: MarshalWire: %w: %s %s", ErrInvalidRequest, path, texts[0])
	}
	return wire, nil
}

// marshal returns the JSON that is sent for v. If v cannot be written, marshal returns nil and adds the reason to p. A
// text with [REDACTED] is refused, because the service would store it, for example as a card number.
func marshal(v any, p *problems) []byte {
	wire, err := json.Marshal(v, wireForm)
	if err == nil && bytes.Contains(wire, []byte(redacted)) {
		err = &json.SemanticError{JSONPointer: placeOfMark(wire), Err: errRedacted}
	}
	if err == nil {
		return wire
	}
	names, reason := unwritable(err)
	if _, strict := json.Marshal(v, wireForm, strictErrors); strict != nil {
		place, cause := unwritable(strict)
		_, isSyntax := errors.AsType[*jsontext.SyntacticError](strict)
		// For the same failure, reason contains cause: "json: unsupported value: NaN" contains "unsupported value: NaN".
		// Otherwise cause is about a field that only strictErrors refuses, such as an embedded map.
		if isSyntax || strings.Contains(reason, cause) {
			names, reason = place, cause
		}
	}
	if keyed, ok := v.(byKeys); ok {
		names = keyed.byKey(names)
	}
	path := wirePath(names)
	if _, known := (*p)[path]; !known { // the problem of a check is clearer than the error of the encoder
		p.add(path, "cannot be written as JSON: "+reason)
	}
	return nil
}

// byKeys is a body with a list of pairs. byKey takes the names of a JSON pointer, and replaces the names that lead to
// the value of a pair by the key of the pair, because the key says more to the caller.
type byKeys interface {
	byKey(names []string) []string
}

// secretJSON is a secret whose text is JSON. In wireForm it is written as null if it has no text.
type secretJSON struct{ Secret }

// selfWriter is a type that is not written field by field. writeJSON has to write with the options of enc, because they
// say how secrets are written.
type selfWriter interface {
	writeJSON(enc *jsontext.Encoder) error
}

// withSecrets returns the option that writes each secret with the given function. isJSON says whether the text of the
// secret is JSON, as in a secretJSON.
func withSecrets(write func(enc *jsontext.Encoder, s Secret, isJSON bool) error) json.Options {
	return json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(func(enc *jsontext.Encoder, s Secret) error { return write(enc, s, false) }),
		json.MarshalToFunc(func(enc *jsontext.Encoder, s secretJSON) error { return write(enc, s.Secret, true) }),
		selfWriters,
	))
}

// There are two forms of JSON. shownForm has [REDACTED] in place of each secret. wireForm has the texts of the secrets
// and is sent. Both follow the rules of encoding/json, which callers know from their own types. Under the
// rules of JSON v2, for example, a number 0 with the option omitempty would be sent.
//
//nolint:gochecknoglobals // never changed
var (
	shownForm = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false),
		json.WithMarshalers(selfWriters))
	wireForm = json.JoinOptions(shownForm, jsontext.AllowInvalidUTF8(false), jsontext.AllowDuplicateNames(false),
		jsontext.PreserveRawStrings(false), // the escapes of a raw string could hide [REDACTED]
		withSecrets(writeSecret))           // replaces the marshalers of shownForm
	// strictErrors adds JSON pointers to the errors of the encoder. It also makes the encoder refuse struct fields that
	// encoding/json writes, such as an embedded map. So marshal uses it only after an error, to find the place and the
	// reason.
	strictErrors = jsonv1.ReportErrorsWithLegacySemantics(false)

	// selfWriters calls the method of each selfWriter. It also writes json.Number, which JSON v2 supports from Go 1.27 on.
	// Both forms contain selfWriters, because a second WithMarshalers replaces the first one.
	selfWriters = json.JoinMarshalers(
		json.MarshalToFunc(func(enc *jsontext.Encoder, v selfWriter) error { return v.writeJSON(enc) }),
		json.MarshalToFunc(func(enc *jsontext.Encoder, n stdjson.Number) error {
			return enc.WriteValue(jsontext.Value(cmp.Or(n, "0")))
		}),
	)
)

// marshalShown writes v with [REDACTED] for each secret. It is the MarshalJSON of each selfWriter.
func marshalShown(v selfWriter) ([]byte, error) { return json.Marshal(v, shownForm) }

// writeSecret writes the text of a secret. A text with [REDACTED] in it is an error.
func writeSecret(enc *jsontext.Encoder, s Secret, isJSON bool) error {
	switch text := s.Reveal(); {
	case hasMark(text):
		return errRedacted // check this first: WriteValue would report only that the text is not JSON
	case !isJSON:
		return enc.WriteToken(jsontext.String(text))
	case text == "":
		return enc.WriteToken(jsontext.Null)
	default:
		return enc.WriteValue(jsontext.Value(text))
	}
}

// secretsOf returns the texts of all secrets in a request that can be encoded. It encodes the request and drops the
// result. Each secret is written as a number of its own, because secrets may be names in a map, and two equal names
// would end the encoding. If a secret holds a JSON string, secretsOf returns both the JSON and the text of the string,
// because the service may repeat either.
func secretsOf(body any) (texts []string) {
	_, _ = json.Marshal(body, wireForm, withSecrets(func(enc *jsontext.Encoder, s Secret, isJSON bool) error {
		texts = append(texts, s.Reveal())
		if isJSON {
			texts = append(texts, answer.Text(jsontext.Value(s.Reveal())))
		}
		return enc.WriteToken(jsontext.String(strconv.Itoa(len(texts))))
	}))
	return texts
}

// placeOfMark returns the JSON pointer to the first text in wire that contains [REDACTED]. There must be such a text.
func placeOfMark(wire []byte) jsontext.Pointer {
	dec := jsontext.NewDecoder(bytes.NewReader(wire))
	for {
		token, err := dec.ReadToken()
		if err != nil || token.Kind() == '"' && hasMark(token.String()) {
			return dec.StackPointer()
		}
	}
}

// unwritable takes an error of the encoder. It returns the place of the value that cannot be written, and the reason.
// The JSON packages wrap their errors in each other. The place is the outermost JSON pointer, and the reason is the
// innermost error.
//
// The place is cut before the first name that looks neither like a field nor like an index: the caller may have chosen
// that name, and it may be a secret. The reason may be the error of the caller's own MarshalJSON. Any other reason
// quotes at most an invalid character or escape of raw JSON.
func unwritable(err error) (place []string, reason string) {
	var outermost jsontext.Pointer
	for {
		pointer, wrapped := wrappedBy(err)
		if wrapped == nil {
			return answer.PlainNames(outermost), err.Error()
		}
		outermost, err = cmp.Or(outermost, pointer), wrapped
	}
}

// wrappedBy returns the JSON pointer and the cause of an error of a JSON package. For an error of another package, the
// cause is nil.
func wrappedBy(err error) (place jsontext.Pointer, wrapped error) {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		if e.Err == nil {
			return e.JSONPointer, fmt.Errorf("unsupported type: %v", e.GoType)
		}
		return e.JSONPointer, e.Err
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return e.JSONPointer, e.Err
	}
	if e, ok := errors.AsType[*jsonv1.MarshalerError](err); ok {
		return "", e.Err
	}
	return "", nil
}

// index matches the index of an element of a list, in names that are joined by dots. It also matches digits at the
// beginning of a name, but no documented field has such a name.
var index = regexp.MustCompile(`\.(\d+)`)

// wirePath turns the names of a JSON pointer into a path such as billing_cards[1].exp_date.
func wirePath(names []string) string {
	path := index.ReplaceAllString("."+strings.Join(names, "."), "[$1]")
	return cmp.Or(strings.TrimPrefix(path, "."), "body")
}
