package payvaulttest

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// DisputeKind is the kind of a [Dispute].
type DisputeKind string

// The kinds of disputes. A merchant can respond to first-time and retrieval disputes over the API, but not to other
// disputes.
const (
	DisputeFirstTime DisputeKind = "first_time"
	DisputeRetrieval DisputeKind = "retrieval"
	DisputeOther     DisputeKind = "other"
)

// Dispute is a dispute with the merchant's response. In JSON, its fields are named as on the wire, except kind. A
// seeded dispute without a Kind becomes a first-time dispute.
type Dispute struct {
	ID         payvault.DisputeID  `json:"rec_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	Kind       DisputeKind         `json:"kind"`
	// Response is nil until the merchant responds to the dispute.
	Response *DisputeResponse `json:"-"`
}

// DisputeResponse is the merchant's response to a dispute, with the values of the request. It has the size and the
// checksum of the file, but not the content of the file.
type DisputeResponse struct {
	Message         string          `json:"message"`
	Type            string          `json:"cbr_response_type"` // ND, CP, CE, OT or ID
	AmtTran         payvault.Amount `json:"amt_tran"`
	BatchDate       string          `json:"batch_date"`       // YYYY-MM-DD
	ReferenceNumber string          `json:"reference_number"` // unchanged from the request
	EvidenceType    string          `json:"cbr_ce_type"`
	AllocationType  string          `json:"cbr_id_type"`
	Reason          string          `json:"reason_desc"`
	FileName        string          `json:"-"` // empty without a file
	FileSize        int64           `json:"-"` // in bytes; 0 without a file
	FileSHA256      [32]byte        `json:"-"`
}

type disputes struct {
	*state
	*Store[payvault.DisputeID, Dispute]
}

func newDisputes(s *state) *Store[payvault.DisputeID, Dispute] {
	v := &disputes{state: s}
	v.Store = newStore(s, "dispute", v)
	s.actions[payvault.OpDisputesRespond] = v.respondToDispute
	return v.Store
}

func (*disputes) key(d *Dispute) (payvault.DisputeID, *payvault.MerchantID) {
	return d.ID, &d.MerchantID
}

func (v *disputes) prepare(d *Dispute) {
	freshNumber(v.Store, &d.ID)
	d.Kind = cmp.Or(d.Kind, DisputeFirstTime)
}

func (*disputes) permits(d *Dispute) error {
	return oneOf("kind", d.Kind, DisputeFirstTime, DisputeRetrieval, DisputeOther)
}

func (*disputes) detach(d *Dispute) {
	if d.Response != nil {
		d.Response = new(*d.Response)
	}
}

// respondToDispute performs POST /platform/dispute/{rec_id}/respond.
func (v *disputes) respondToDispute(c *call) (any, error) {
	response, err := v.readResponse(c.parts)
	if err != nil {
		return nil, err
	}
	dispute, err := v.find(c, payvault.DisputeID(c.id("rec_id")))
	switch {
	case err != nil:
		return nil, err
	case dispute.Kind == DisputeOther:
		return nil, refuse(http.StatusConflict, "only first-time and retrieval disputes can be answered over the API")
	case dispute.Response != nil:
		return nil, refuse(http.StatusConflict, "the dispute is answered already")
	}
	p := problems{}
	if isRetrieval := dispute.Kind == DisputeRetrieval; isRetrieval {
		p.check(response.FileSize > 0, "file", "is required for a retrieval dispute")
		p.check(response.Message != "", "disputeResponse.message", "is required for a retrieval dispute")
	} else { // the emulator's choice: the service does not document which fields each response type requires
		p.check(response.Type != "", "disputeResponse.cbr_response_type", "is required for a first-time dispute")
	}
	if len(p) == 0 {
		dispute.Response = &response
	}
	return success(nil), p.err()
}

// readResponse reads the parts of the form: the file, and the JSON of the response. Each part may be missing.
func (v *disputes) readResponse(parts []Part) (response DisputeResponse, _ error) {
	p := problems{}
	for _, part := range parts {
		if part.Name == "file" {
			p.check(bytes.HasPrefix(part.Content(), []byte("%PDF-")), "file", "must be a PDF")
			response.FileName, response.FileSize, response.FileSHA256 = part.FileName, part.Size, part.SHA256
			continue
		}
		value, wrong := openapi.Parse(part.Name, part.Content())
		if wrong == nil {
			wrong = v.document.records["DisputeRespondRequest"].Check(part.Name, value)
		}
		if maps.Copy(p, wrong); len(wrong) == 0 {
			err := json.Unmarshal(part.Content(), &response)
			p.check(err == nil, "disputeResponse.amt_tran", "must have at most 19 digits")
		}
	}
	return response, p.err()
}
