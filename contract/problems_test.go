package contract

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// What is printed of a failed check.
const (
	maxProblems = 8
	maxText     = 300
)

// A problem is one fault that a validation found. The errors of kin-openapi repeat whole schemas and values instead.
type problem struct {
	at   string // where in the message
	rule string // the keyword of the schema, if it is one
	text string
}

func (p problem) String() string {
	text, _, _ := strings.Cut(p.text, "\n")
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return strings.TrimPrefix(p.at+": "+text, ": ")
}

// problemsOf takes the error of a validation apart.
func problemsOf(err error) []problem {
	switch err := err.(type) { //nolint:errorlint // the tree of errors is walked level by level
	case nil:
		return nil
	case openapi3.MultiError:
		return problemsOfAll(err)
	case *openapi3.SchemaError:
		return schemaProblems(err)
	case *openapi3filter.RequestError:
		return nested(requestPart(err), err.Reason, err.Err)
	case *openapi3filter.ResponseError:
		return nested("response", err.Reason, err.Err)
	case *openapi3filter.SecurityRequirementsError:
		return problemsOfAll(err.Errors)
	default:
		return []problem{{text: err.Error()}}
	}
}

func problemsOfAll(errs []error) []problem {
	var all []problem
	for _, err := range errs {
		all = append(all, problemsOf(err)...)
	}
	return all
}

func requestPart(err *openapi3filter.RequestError) string {
	if err.Parameter != nil {
		return err.Parameter.In + " parameter " + err.Parameter.Name
	}
	return "request"
}

// nested returns the problems of a cause with the part of the message in front.
func nested(part, reason string, cause error) []problem {
	switch {
	case cause == nil && reason == "":
		return nil
	case cause == nil:
		return []problem{{at: part, text: reason}}
	}
	all := problemsOf(cause)
	for i := range all {
		all[i].at = part + " " + all[i].at
	}
	return all
}

// schemaProblems leads through allOf and oneOf to the rules that are broken.
func schemaProblems(err *openapi3.SchemaError) []problem {
	branches, _ := errors.Unwrap(errors.Unwrap(err.Origin)).(openapi3.MultiError) //nolint:errorlint // exactly this level
	if err.SchemaField == "allOf" && len(branches) > 0 {
		return problemsOfAll(branches)
	}
	if best := bestBranch(branches); err.SchemaField == "oneOf" && best != nil {
		return best
	}
	text := err.Reason
	if title := err.Schema.Title; title != "" {
		text += " (" + title + ")"
	}
	return []problem{{"/" + strings.Join(err.JSONPointer(), "/"), err.SchemaField, text}}
}

// bestBranch returns the problems of the branch of a oneOf that was meant: the one for the code, rcode or key of the
// value.
func bestBranch(branches openapi3.MultiError) []problem {
	var best []problem
	for _, branch := range branches {
		found := problemsOf(branch)
		if !slices.ContainsFunc(found, problem.isOtherKind) && (best == nil || len(found) < len(best)) {
			best = found
		}
	}
	return best
}

func (p problem) isOtherKind() bool {
	return slices.Contains([]string{"code", "rcode", "key"}, path.Base(p.at)) && (p.rule == "enum" || p.rule == "not")
}

// report fails the test with a short list of problems.
func report(t *testing.T, what string, problems []problem) {
	t.Helper()
	if len(problems) == 0 {
		return
	}
	var text strings.Builder
	for i, p := range problems {
		if i == maxProblems {
			fmt.Fprintf(&text, "\n    … and %d more", len(problems)-i)
			break
		}
		text.WriteString("\n    " + p.String())
	}
	t.Errorf("%s does not follow the interface:%s", what, text.String())
}
