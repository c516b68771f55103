package payvault

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"strings"

	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/transport"
)

// reply is a variable into which the successful answer to an operation is decoded.
type reply interface {
	// beforeRead may allocate memory for the answer.
	beforeRead(body []byte)
	// afterRead finishes the decoding. For Client.Call it decodes body into the caller's own type. It returns unread, with
	// the paths of further values that cannot be read or are missing.
	afterRead(body []byte, unread []string) ([]string, error)
	result() answer.Codes
	// complete returns the path of an expected value that is missing, or "". If needed is true, the caller needs this
	// value, such as the ID of a new record, and the answer is malformed. If the operation returns one record and the
	// answer has no data, complete makes an empty record.
	complete() (missing string, needed bool)
	// accept reports whether a refusal is a normal answer, as for Validate. If so, it keeps the messages of the refusal,
	// with the texts in private redacted.
	accept(refusal *Error, private []string) bool
}

// envelope has the codes of an answer. For an operation without documented data, it is the whole reply.
type envelope struct{ answer.Codes }

func (*envelope) beforeRead([]byte) {}

func (*envelope) afterRead(_ []byte, unread []string) ([]string, error) { return unread, nil }

func (e *envelope) result() answer.Codes { return e.Codes }

func (*envelope) complete() (missing string, needed bool) { return "", false }

func (*envelope) accept(*Error, []string) bool { return false }

// readInto decodes an answer. If lenient is true, it skips values that it cannot read.
func readInto(into any, body []byte, lenient bool) (unread []string, err error) {
	if lenient {
		return answer.ReadLenient(body, into)
	}
	return nil, answer.Read(body, into)
}

// record is the data of an answer.
type record[T any] interface {
	*T
	// missing returns the name of a required value that the record lacks, or "".
	missing() string
}

// platformReply is the successful answer to an operation that returns a record.
type platformReply[T any, P record[T]] struct {
	envelope

	Data *T `json:"data"`

	isOptional bool // the caller does not need the data
}

func (r *platformReply[T, P]) complete() (missing string, needed bool) {
	if r.Data == nil {
		r.Data = new(T)
		return "/data", !r.isOptional
	}
	if field := P(r.Data).missing(); field != "" {
		return "/data/" + field, !r.isOptional
	}
	return "", false
}

// readReply decodes an answer with a 2xx status. It returns an error that matches ErrMalformedResponse if the answer is
// not a success or cannot be used. The error names the path of a value that cannot be read or is missing. Unless the
// operation only reads, readReply skips values that it cannot read, because the caller must learn of the success.
// unread has the paths of the skipped values, even if there is an error, and of missing values that the caller does not
// need.
func readReply(op OperationInfo, r transport.Result, into reply) (unread []string, err error) {
	into.beforeRead(r.Body)
	unread, err = readInto(into, r.Body, op.Replay != ReplayRead)
	if errors.Is(err, answer.ErrNotJSON) {
		err = notJSON(r)
	}
	if err == nil {
		unread, err = into.afterRead(r.Body, unread)
	}
	if err == nil {
		err = into.result().Check(op.Op.decider())
	}
	if err != nil {
		return unread, fmt.Errorf("%w: %w", ErrMalformedResponse, err)
	}
	place, needed := into.complete()
	switch {
	case place == "":
		return unread, nil
	case needed && len(unread) > 0:
		return unread, fmt.Errorf("%w: %s is missing, and cannot be read: %s", ErrMalformedResponse, place,
			strings.Join(unread, ", "))
	case needed:
		return unread, fmt.Errorf("%w: %s is missing", ErrMalformedResponse, place)
	}
	return nameMissing(unread, place), nil
}

// encodingName matches the name of a compression, such as br. An error repeats only such a name, because the
// header may have any text.
var encodingName = regexp.MustCompile(`^[A-Za-z-]{1,16}$`)

// notJSON returns the error of an answer that is not JSON. The text of the error says that the answer is empty, or
// names the Content-Encoding that net/http has not decoded, or names a Content-Type that is not JSON. Otherwise notJSON
// returns ErrNotJSON: the answer may have been cut off.
func notJSON(r transport.Result) error {
	kind, encoding := contentType(r), r.Header.Get("Content-Encoding")
	switch {
	case len(bytes.TrimSpace(r.Body)) == 0:
		return pageError("the answer is empty")
	case encodingName.MatchString(encoding) && encoding != "identity":
		return pageError("the answer has the Content-Encoding " + encoding + ", which the SDK does not decode")
	case kind == "" || strings.HasSuffix(kind, "json"):
		return answer.ErrNotJSON
	}
	return pageError("the answer is " + kind + ", not JSON")
}

// pageError is the error of a complete answer that is not JSON, such as the page of a proxy.
type pageError string

func (e pageError) Error() string { return string(e) }

// contentType returns the type and the subtype of an answer, such as text/html. It returns "" if the answer has no
// Content-Type, or one that cannot be parsed or is too long.
func contentType(r transport.Result) string {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if len(kind) > 64 {
		return ""
	}
	return kind
}

// nameMissing adds the path of a missing value to unread, unless unread already has that path or the path of an
// enclosing value.
func nameMissing(unread []string, place string) []string {
	for _, known := range unread {
		if strings.HasPrefix(place+"/", known+"/") {
			return unread
		}
	}
	return append(unread, place)
}

// isUnreadable reports whether a malformed answer has a value that cannot be read, or too many values. A second call
// would get such an answer again. Any other malformed answer may come from a proxy or be cut off.
func isUnreadable(malformed error) bool {
	_, isPlace := errors.AsType[*answer.PlaceError](malformed)
	return isPlace || errors.Is(malformed, answer.ErrTooMany)
}

// Confirmation is the message of the service about an operation that it has performed.
type Confirmation struct {
	Message string `json:"message,omitzero"`
}

func (*Confirmation) missing() string { return "" }
