package payvaulttest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A refusal is the answer of an operation that was not performed.
type refusal struct {
	status  int
	message string
	fields  map[string][]string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (r *refusal) Error() string {
	var b strings.Builder
	b.WriteString(r.message)
	separator := ": "
	for _, field := range slices.Sorted(maps.Keys(r.fields)) {
		fmt.Fprintf(&b, "%s%s %s", separator, field, strings.Join(r.fields[field], ", "))
		separator = "; "
	}
	return b.String()
}

// Problems collects what is wrong with a request, by wire path of the field.
type problems map[string][]string

func (p problems) add(field, format string, args ...any) {
	p[field] = append(p[field], fmt.Sprintf(format, args...))
}

// check adds a problem unless the condition holds.
func (p problems) check(ok bool, field, message string) {
	if !ok {
		p.add(field, "%s", message)
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &refusal{status: http.StatusBadRequest, message: "Invalid request", fields: p}
}

// Envelope is the answer of every platform endpoint.
type envelope struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	TotalPages   *int   `json:"totalPages,omitempty"`
	TotalRecords *int   `json:"totalRecords,omitempty"`
	Data         any    `json:"data,omitempty"`
}

// Confirmation is the data of an operation that answers with a text.
type confirmation struct {
	Message string `json:"message"`
}

func success(data any) envelope { return envelope{Message: "Success", Data: data} }

// toWire gives the HTTP status and the JSON value of a refusal: rcode and rmsg for tokenize, the
// envelope with the HTTP status as its code for everything else.
func (r *refusal) toWire(tokenize bool) (int, any) {
	if tokenize {
		return r.status, tokenizeResponse{RCode: fmt.Sprintf("%03d", r.status), RMsg: r.Error()}
	}
	answer := envelope{Code: r.status, Message: r.message}
	if len(r.fields) > 0 {
		answer.Data = r.fields
	}
	return r.status, answer
}
