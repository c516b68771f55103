package payvault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"example.com/payvault/internal/formdata"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// DisputesService answers disputes.
type DisputesService struct{ caller *caller }

// DisputeResponseType is the kind of an answer to a first-time dispute.
type DisputeResponseType string

// The kinds of answer.
const (
	DisputeNoLongerDisputed DisputeResponseType = "ND" // the cardholder no longer disputes
	// DisputeCreditProcessed says that a credit was processed. Send BatchDate and ReferenceNumber with it.
	DisputeCreditProcessed    DisputeResponseType = "CP"
	DisputeCompellingEvidence DisputeResponseType = "CE" // compelling evidence; EvidenceType is its kind
	DisputeOther              DisputeResponseType = "OT"
	// DisputeAllocation is for the card network whose disputes have allocation and collaboration paths. Send
	// AllocationType and Reason with it.
	DisputeAllocation DisputeResponseType = "ID"
)

// MaxDisputeMessage is the largest number of characters in the message of a dispute response.
const MaxDisputeMessage = 5000

// DisputeRespondRequest is an answer to a dispute. With a Type it answers a first-time dispute. Without a Type it
// answers a retrieval dispute and requires Message and Evidence. The service does not document completely which fields
// are required and which are optional for each type of dispute.
type DisputeRespondRequest struct {
	Message string              `json:"message,omitzero"`           // at most MaxDisputeMessage characters
	Type    DisputeResponseType `json:"cbr_response_type,omitzero"` // empty for a retrieval dispute
	// Amount of the transaction; the service does not document its unit.
	AmtTran         Amount `json:"amt_tran,omitzero"`
	BatchDate       Date   `json:"batch_date,omitzero"`       // YYYY-MM-DD; sent with Type CP
	ReferenceNumber string `json:"reference_number,omitzero"` // sent with Type CP
	EvidenceType    string `json:"cbr_ce_type,omitzero"`      // the service does not document the values
	AllocationType  string `json:"cbr_id_type,omitzero"`      // the service does not document the values
	Reason          string `json:"reason_desc,omitzero"`      // sent with Type ID
	// Evidence is a PDF of supporting documents. It is sent as a separate file next to the JSON, so the JSON of a
	// DisputeRespondRequest does not contain it. If you read a request from JSON, set Evidence again.
	Evidence *File `json:"-"`
}

// prepare checks the date, the file and the length of the message. For a retrieval dispute it requires the message and
// the file.
func (r *DisputeRespondRequest) prepare(_ *caller, p *problems) {
	if utf8.RuneCountInString(r.Message) > MaxDisputeMessage {
		p.add("message", "has more than 5,000 characters")
	}
	checkDate("batch_date", r.BatchDate, p)
	const required = "is required without cbr_response_type"
	if r.Type == "" && r.Message == "" {
		p.add("message", required)
	}
	if r.Type == "" && r.Evidence == nil {
		p.add("file", required)
	}
	if r.Evidence != nil {
		r.Evidence.check(p)
	}
}

// inForm returns the content of the request: a form with the JSON text and the file.
func (r *DisputeRespondRequest) inForm(c *caller, p *problems) content {
	content := jsonBody(r)(c, p)
	content.form = r.form
	return content
}

// form returns a form with the JSON text of the request and its file.
func (r *DisputeRespondRequest) form(text []byte) *formdata.Body {
	var file *formdata.File
	if e := r.Evidence; e != nil {
		file = &formdata.File{
			Field: "file", Name: e.Name, ContentType: "application/pdf",
			Content: e.Content, Size: e.Size, Progress: e.Progress,
		}
	}
	return formdata.New([][2]string{{"disputeResponse", string(text)}}, file)
}

// File is a document to upload. A call reads Content with ReadAt, may read it several times, and never closes it.
// A call waits for a ReadAt or a Progress that is under way, even if the context of the call has ended.
//
// The call fails with [ErrOutcomeUnknown] if the upload fails: the content turns out to be shorter than Size, ReadAt
// returns an error or panics, or Progress panics. The upload then stops before the end of the form, so that the service
// never gets a form that looks complete.
//
// If the context of the call ends during the upload, the call fails with ErrOutcomeUnknown too. The service has a part
// of the form by then, and does not document that it acts only on a complete form.
type File struct {
	// Name is the file name. Its directories are not sent. Quotes, semicolons, equal signs, percent signs and characters
	// that cannot be printed are sent as "_", because some servers and firewalls refuse file names with such characters.
	Name    string
	Content io.ReaderAt `json:"-"` // content of the whole document
	Size    int64       // in bytes
	// Progress is called during the upload with the number of bytes of Content that the upload has read so far. The last
	// of these bytes may not have arrived. The SDK also reads the first 1,024 bytes and the last one before the upload, to
	// check the file; these reads do not count. If the request is repeated, such as after a 429, the number starts anew.
	// Progress may run in another goroutine than the call, but never after the call has returned. Calls that share a File
	// may run Progress at the same time. Progress may be nil.
	Progress func(sent int64) `json:"-" xml:"-" yaml:"-"`
}

// OpenFile opens a file for reading. Close the File after the call. The errors of OpenFile are those of package os.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path) //nolint:gosec // the caller chooses the file
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &File{Name: filepath.Base(path), Content: f, Size: info.Size()}, nil
}

// FileFromBytes returns a file of the given content, which must not change during a call.
func FileFromBytes(name string, content []byte) *File {
	return &File{Name: name, Content: bytes.NewReader(content), Size: int64(len(content))}
}

// FileFromReader returns a file with everything that r returns until [io.EOF]. It stores the content in a temporary
// file in [os.TempDir], because a call has to know the size of an upload, and may read the content twice. Close the
// File after the call; this removes the temporary file. The temporary file stays if the process ends without Close,
// such as after a crash. FileFromReader sets no limit to the size and does not close r. To limit the size, use a reader
// that fails at the limit, such as [net/http.MaxBytesReader]. The errors of FileFromReader are those of r and of
// package os.
func FileFromReader(name string, r io.Reader) (*File, error) {
	f, err := os.CreateTemp("", "payvault-*.pdf")
	if err != nil {
		return nil, err
	}
	content, complete := temporaryFile{f}, false
	defer func() {
		if !complete { // also if r panics
			_ = content.Close()
		}
	}()
	size, err := io.Copy(f, r)
	if err != nil {
		return nil, err
	}
	complete = true
	return &File{Name: name, Content: content, Size: size}, nil
}

// temporaryFile is a file that Close removes.
type temporaryFile struct{ *os.File }

// Close closes the file and removes it. It closes the file first, because Windows does not remove an open file.
func (f temporaryFile) Close() error {
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}

// Close closes the content if it has a Close method. The content of a File from [OpenFile] or [FileFromReader] has one.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	if closer, ok := f.Content.(io.Closer); ok && !isNil(closer) {
		return closer.Close()
	}
	return nil
}

// Format writes name and size under every verb.
func (f File) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "{Name:%q Size:%d}", f.Name, f.Size)
}

// Programs that read PDFs accept a file that has pdfHeader anywhere in its first pdfHeaderWithin bytes.
const (
	pdfHeader       = "%PDF-"
	pdfHeaderWithin = 1024
)

// check adds a problem if the file has no name, is empty, cannot be read, is shorter than Size or is not a PDF.
func (f *File) check(p *problems) {
	if formdata.CleanName(f.Name) == "" {
		p.add("file", "has no name")
	}
	if isNil(f.Content) || f.Size <= 0 {
		p.add("file", "is empty")
		return
	}
	start := make([]byte, min(f.Size, pdfHeaderWithin))
	if _, err := io.ReadFull(io.NewSectionReader(f.Content, 0, f.Size), start); err != nil {
		reason := "cannot be read"
		if failed, ok := errors.AsType[*fs.PathError](err); ok { // the problem must not repeat the path
			reason += ": " + failed.Err.Error()
		}
		p.add("file", reason)
		return
	}
	if n, _ := f.Content.ReadAt(make([]byte, 1), f.Size-1); n != 1 {
		p.add("file", "is shorter than its size says")
	}
	if !bytes.Contains(start, []byte(pdfHeader)) {
		p.add("file", "is not a PDF")
	}
}

// Respond answers a first-time or retrieval dispute. The service takes no other answers over the API, and does not
// document how a merchant accepts a dispute. The file is streamed, so memory does not depend on its size. Before
// anything is sent, Respond refuses the request in these cases:
//
//   - The request is nil.
//   - Type is empty, and Message or Evidence is missing.
//   - The message has more than [MaxDisputeMessage] characters.
//   - The date is not in the calendar.
//   - The file has no name, is empty, cannot be read, is shorter than its Size or is not a PDF.
//   - A text contains [REDACTED] or is not valid UTF-8.
//
// Not replayable. POST /platform/dispute/{rec_id}/respond.
func (s *DisputesService) Respond(
	ctx context.Context, id DisputeID, req *DisputeRespondRequest, opts ...CallOption,
) error {
	return doNoData(ctx, s.caller, call{op: OpDisputesRespond.info(), path: inPath(id), content: req.inForm}, opts)
}
