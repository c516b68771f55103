package payvaulttest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/payvaulttest/internal/openapi"
)

// A refusal is the error answer to a request that was not performed.
type refusal struct {
	status  int // HTTP status, which is also the code in the body
	message string
	fields  map[string][]string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (r *refusal) Error() string {
	if len(r.fields) == 0 {
		return r.message
	}
	var texts []string
	for _, field := range slices.Sorted(maps.Keys(r.fields)) {
		texts = append(texts, field+" "+strings.Join(r.fields[field], ", "))
	}
	return r.message + ": " + strings.Join(texts, "; ")
}

// problems has messages about the fields of a request. The key is the path of the field, such as data[0].card_number.
type problems map[string][]string

// check adds a message about a field unless ok.
func (p problems) check(ok bool, field, message string) {
	if !ok {
		p[field] = append(p[field], message)
	}
}

// err returns a refusal with all problems, or nil if there are no problems.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &refusal{status: http.StatusBadRequest, message: "Invalid request", fields: p}
}

// fits returns nil if ok, and an error with the message if not.
func fits(ok bool, message string) error {
	if ok {
		return nil
	}
	return errors.New(message)
}

// envelope is the JSON answer of every endpoint below /platform.
type envelope struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	TotalPages   *int   `json:"totalPages,omitzero"`
	TotalRecords *int   `json:"totalRecords,omitzero"`
	Data         any    `json:"data,omitzero"`
}

func success(data any) envelope { return envelope{Message: "Success", Data: data} }

// confirm returns a successful answer whose data is a message.
func confirm(format string, args ...any) envelope {
	return success(map[string]string{"message": fmt.Sprintf(format, args...)})
}

// body returns the JSON of a refusal. Tokenize requests get an answer with rcode and rmsg, all other requests an
// envelope.
func (r *refusal) body(tokenize bool) []byte {
	platform := envelope{Code: r.status, Message: r.message}
	if len(r.fields) > 0 {
		platform.Data = r.fields
	}
	var answer any = platform
	if tokenize {
		answer = tokenizeResponse{RCode: fmt.Sprintf("%03d", r.status), RMsg: r.Error()}
	}
	return encode(answer)
}

// bind decodes a JSON body that has passed the check against api/openapi.yaml. For an empty body it returns the zero
// value.
func bind[T any](text []byte) (v T) {
	if len(text) == 0 {
		return v
	}
	if err := json.Unmarshal(text, &v); err != nil {
		panic(fmt.Errorf("payvaulttest: read what the document permits: %w", err))
	}
	return v
}

// encode writes an answer or a notification as JSON, with replacement characters for invalid UTF-8. It panics if v
// cannot be encoded, which only the data of [Server.TriggerEvent] can cause.
func encode(v any) []byte {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(fmt.Errorf("payvaulttest: encode: %w", err))
	}
	return text
}

type tokenizeResponse struct {
	RCode      string `json:"rcode"`
	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id,omitzero"`
	CardID     string `json:"card_id,omitzero"`
	CardNumber string `json:"card_number,omitzero"`
	EchoFields string `json:"echo_fields,omitzero"`
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {openapi.JSON}} }

// oneOf returns an error unless the value of a field is one of the given values.
func oneOf[T ~string](field string, value T, values ...T) error {
	return fits(slices.Contains(values, value), fmt.Sprintf("%s must be one of %q", field, values))
}
