package payvaulttest

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"

	"example.com/payvault"
	"example.com/payvault/internal/openapi"
)

// DisputeKind says what kind of dispute a [Dispute] is.
type DisputeKind string

// The kinds of disputes. Only the first two can be answered over the API.
const (
	DisputeFirstTime DisputeKind = "first_time"
	DisputeRetrieval DisputeKind = "retrieval"
	DisputeOther     DisputeKind = "other"
)

// Dispute is a dispute and the answer it received, with its fields named as on the wire. A seeded one is a first-time
// dispute unless it says otherwise.
type Dispute struct {
	ID         payvault.DisputeID  `json:"rec_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	Kind       DisputeKind         `json:"kind"`
	// Response is nil until the dispute is answered.
	Response *DisputeResponse `json:"-"`
}

// DisputeResponse is the answer that a dispute received, as it is on the wire, its file by size and sum.
type DisputeResponse struct {
	Message         string   `json:"message"`
	Type            string   `json:"cbr_response_type"` // ND, CP, CE, OT or ID
	Amount          Number   `json:"amt_tran"`
	BatchDate       string   `json:"batch_date"`       // YYYY-MM-DD
	ReferenceNumber string   `json:"reference_number"` // as it was sent
	EvidenceType    string   `json:"cbr_ce_type"`
	AllocationType  string   `json:"cbr_id_type"`
	Reason          string   `json:"reason_desc"`
	FileName        string   `json:"-"` // empty without a file
	FileSize        int64    `json:"-"` // in bytes; 0 without a file
	FileSHA256      [32]byte `json:"-"`
}

func (d *Dispute) clone() Dispute {
	view := *d
	if view.Response != nil {
		view.Response = new(*view.Response)
	}
	return view
}

func (v *service) prepareDispute(d *Dispute) error {
	d.ID = freshNumber(v.ids, "dispute", v.Disputes, d.ID)
	d.Kind = cmp.Or(d.Kind, DisputeFirstTime)
	return cmp.Or(
		v.seedMerchant(&d.MerchantID),
		fits(d.Kind == DisputeFirstTime || d.Kind == DisputeRetrieval || d.Kind == DisputeOther,
			"kind must be first_time, retrieval or other"),
	)
}

// respondToDispute performs POST /platform/dispute/{rec_id}/respond.
func (v *service) respondToDispute(c *call) (any, error) {
	file, text := findPart(c.parts, "file"), findPart(c.parts, "disputeResponse")
	response, err := v.readResponse(file, text)
	if err != nil {
		return nil, err
	}
	id, _ := strconv.ParseInt(c.path("rec_id"), 10, 64) // as text in the document
	dispute := v.Disputes.rows[payvault.DisputeID(id)]
	if dispute == nil || dispute.MerchantID != c.account.MerchantID {
		return nil, notFound("dispute", "rec_id")
	}
	switch {
	case dispute.Kind == DisputeOther:
		return nil, refuse(http.StatusConflict, "only first-time and retrieval disputes can be answered over the API")
	case dispute.Response != nil:
		return nil, refuse(http.StatusConflict, "the dispute is answered already")
	}
	p := problems{}
	free := dispute.Kind == DisputeFirstTime
	p.check(free || file != nil, "file", "is required for a retrieval dispute")
	p.check(free || !isBlank(response.Message), "disputeResponse.message", "is required for a retrieval dispute")
	if len(p) == 0 {
		dispute.Response = &response
	}
	return success(nil), p.err()
}

// readResponse reads the two parts of the form, each of which may be missing.
func (v *service) readResponse(file, text *Part) (DisputeResponse, error) {
	var response DisputeResponse
	p := problems{}
	if file != nil {
		p.check(bytes.HasPrefix(file.Content(), []byte("%PDF-")), "file", "must be a PDF")
		response.FileName, response.FileSize, response.FileSHA256 = file.FileName, file.Size, file.SHA256
	}
	if text != nil {
		value, wrong := openapi.Parse("disputeResponse", text.Content())
		if p.addAll(wrong); wrong == nil {
			p.addAll(v.document.response.Check("disputeResponse", value))
		}
	}
	if text == nil || len(p) > 0 {
		return response, p.err()
	}
	read, err := bind[DisputeResponse](text.Content())
	read.FileName, read.FileSize, read.FileSHA256 = response.FileName, response.FileSize, response.FileSHA256
	return read, err
}

func findPart(parts []Part, name string) *Part {
	for i := range parts {
		if parts[i].Name == name {
			return &parts[i]
		}
	}
	return nil
}
