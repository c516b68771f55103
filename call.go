package payvault

import (
	"fmt"
	"slices"
	"strings"

	"example.com/payvault/internal/urlpath"
)

// input is what a call fills into its operation.
type input struct {
	values []value // of the parameters of the path, in their order
	req    request // nil for none
}

// value is that of one parameter of the path, or what is wrong with it.
type value struct{ text, problem string }

// request is an argument that fills in what the client knows, and checks itself. It leaves the caller's own as it is
// and returns what is sent: the query if it is an [url.Values], else the body.
type request interface {
	prepare(c *caller, p *problems) any
}

// with gives the values of the parameters of the path.
func with[T ~int64 | ~string](values ...T) input {
	in := input{values: make([]value, len(values))}
	for i, v := range values {
		var none T
		in.values[i].text = fmt.Sprint(v)
		switch {
		case v < none:
			in.values[i].problem = "is negative"
		case in.values[i].text == "0" && v == none:
			in.values[i].problem = "is required"
		}
	}
	return in
}

// send adds a request.
func (in input) send(req request) input {
	in.req = req
	return in
}

// send is the input of an operation without parameters of the path.
func send(req request) input { return input{req: req} }

// check gives the texts for the parameters of a path.
func (in input) check(path string, p *problems) []string {
	texts := make([]string, len(in.values))
	for i, name := range urlpath.Params(path) {
		v := in.values[i]
		if v.problem == "" {
			if err := urlpath.Check(v.text); err != nil {
				v.problem = err.Error()
			}
		}
		if v.problem != "" {
			p.add(name, v.problem)
		}
		texts[i] = v.text
	}
	return texts
}

// isDocumented reports whether a part of a path is one of the document, such as the customer of /vault/customer.
func isDocumented(part string) bool {
	return slices.ContainsFunc(operations, func(op OperationInfo) bool {
		return slices.Contains(strings.Split(op.Path, "/"), part)
	})
}
