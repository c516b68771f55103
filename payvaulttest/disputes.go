package payvaulttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"unicode/utf8"

	"example.com/payvault"
)

// MaxDisputeMessage is the length of a dispute response's message, in characters.
const MaxDisputeMessage = 5000

// DisputeKind tells what kind of dispute a [Dispute] is.
type DisputeKind string

// The kinds of disputes. Only the first two can be answered over the API.
const (
	DisputeFirstTime DisputeKind = "first_time"
	DisputeRetrieval DisputeKind = "retrieval"
	DisputeOther     DisputeKind = "other"
)

// Dispute is a dispute and the answer it received (interface §2.6). The interface has no operation that creates one:
// see [Server.SeedDispute].
type Dispute struct {
	ID         payvault.DisputeID  `json:"rec_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	Kind       DisputeKind         `json:"kind"`
	// Response is nil until the dispute is answered.
	Response *DisputeResponse `json:"-"`
}

// DisputeResponse is the answer that a dispute received (interface §2.6), its file by size and sum.
type DisputeResponse struct {
	Message         string
	Type            string // ND, CP, CE, OT or ID
	Amount          json.Number
	BatchDate       string // YYYY-MM-DD
	ReferenceNumber string // as it was sent
	EvidenceType    string
	AllocationType  string
	Reason          string
	FileName        string // empty without a file
	FileSize        int64  // in bytes; 0 without a file
	FileSHA256      [32]byte
}

// SeedDispute adds a dispute and returns it as it was stored. What is left out is filled in: an ID,
// the merchant of [Server.Merchant], the kind first-time. It replaces a dispute with the same ID.
// It panics if [WithSeed] would refuse the dispute.
func (s *Server) SeedDispute(dispute Dispute) Dispute {
	mustFit("dispute", dispute.checkSeed(s.service.accounts.has))
	dispute.MerchantID = cmp.Or(dispute.MerchantID, s.seedMerchant())
	dispute.Kind = cmp.Or(dispute.Kind, DisputeFirstTime)
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	if dispute.ID == 0 {
		dispute.ID = freshNumber(s.service.ids, "dispute", s.service.disputes)
	}
	s.service.disputes.put(dispute.ID, &dispute)
	return dispute.clone()
}

// Dispute returns a dispute as it stands.
func (s *Server) Dispute(id payvault.DisputeID) (Dispute, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	dispute, ok := s.service.disputes.get(id)
	if !ok {
		return Dispute{}, false
	}
	return dispute.clone(), true
}

// Disputes returns every dispute, in the order in which they were seeded.
func (s *Server) Disputes() []Dispute {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return views(s.service.disputes.rows, (*Dispute).clone)
}

func (d *Dispute) clone() Dispute {
	view := *d
	if d.Response != nil {
		response := *d.Response
		view.Response = &response
	}
	return view
}

type disputeRequest struct {
	Message         *string      `json:"message"`
	Type            *string      `json:"cbr_response_type"`
	Amount          *json.Number `json:"amt_tran"`
	BatchDate       *string      `json:"batch_date"`
	ReferenceNumber string       `json:"reference_number"`
	EvidenceType    string       `json:"cbr_ce_type"`
	AllocationType  string       `json:"cbr_id_type"`
	Reason          string       `json:"reason_desc"`
}

// respondToDispute performs POST /platform/dispute/{rec_id}/respond.
func (v *service) respondToDispute(c *call) (any, error) {
	id, err := c.id("rec_id")
	if err != nil {
		return nil, err
	}
	file, text, err := disputeParts(c.parts)
	if err != nil {
		return nil, err
	}
	var in disputeRequest
	if text != nil {
		if err := decodeAt("disputeResponse", text.Content(), &in); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	dispute, ok := v.disputes.get(payvault.DisputeID(id))
	if !ok || dispute.MerchantID != c.account.MerchantID {
		return nil, refuse(http.StatusNotFound, "there is no dispute with this rec_id")
	}
	if err := dispute.check(in, file, text); err != nil {
		return nil, err
	}
	dispute.Response = in.response(file)
	return success(nil), nil
}

// disputeParts finds the two parts of the form, each given at most once, and no other.
func disputeParts(parts []Part) (*Part, *Part, error) {
	var file, text *Part
	p := problems{}
	for i := range parts {
		switch part := &parts[i]; {
		case part.Name == "file" && file == nil:
			file = part
		case part.Name == "disputeResponse" && text == nil:
			text = part
		case part.Name == "file" || part.Name == "disputeResponse":
			p.add(part.Name, "is given twice")
		default:
			p.add(part.Name, "is not a part of this form")
		}
	}
	p.check(file == nil || file.FileName != "", "file", "must have a file name")
	p.check(file == nil || bytes.HasPrefix(file.Content(), []byte("%PDF-")), "file", "must be a PDF")
	p.check(file == nil || isPDFType(file.ContentType), "file", "must be application/pdf")
	p.check(text == nil || text.FileName == "", "disputeResponse", "must be a text, not a file")
	p.check(text == nil || text.Size == int64(len(text.Content())), "disputeResponse", "is too long")
	return file, text, p.err()
}

// isPDFType tells whether a part may hold a PDF by what its type says, if anything.
func isPDFType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (media == "application/pdf" || media == "application/octet-stream")
}

func (d *Dispute) check(in disputeRequest, file, text *Part) error {
	switch {
	case d.Kind != DisputeFirstTime && d.Kind != DisputeRetrieval:
		return refuse(http.StatusConflict, "only first-time and retrieval disputes can be answered over the API")
	case d.Response != nil:
		return refuse(http.StatusConflict, "the dispute is answered already")
	}
	p := problems{}
	p.check(text != nil, "disputeResponse", "is required")
	in.check(p)
	if d.Kind == DisputeRetrieval {
		p.check(file != nil, "file", "is required for a retrieval dispute")
		p.check(!isBlank(deref(in.Message)), "disputeResponse.message", "is required for a retrieval dispute")
	} else {
		p.check(in.Type != nil, "disputeResponse.cbr_response_type", "is required for a first-time dispute")
	}
	return p.err()
}

func (in *disputeRequest) check(p problems) {
	types := []string{"ND", "CP", "CE", "OT", "ID"}
	p.check(utf8.RuneCountInString(deref(in.Message)) <= MaxDisputeMessage, "disputeResponse.message", "takes at most 5000 characters")
	p.check(in.Type == nil || slices.Contains(types, *in.Type), "disputeResponse.cbr_response_type", "must be ND, CP, CE, OT or ID")
	p.check(in.BatchDate == nil || isDate(*in.BatchDate), "disputeResponse.batch_date", "must be YYYY-MM-DD")
}

func (in *disputeRequest) response(file *Part) *DisputeResponse {
	response := &DisputeResponse{
		Message: deref(in.Message), Type: deref(in.Type), Amount: deref(in.Amount), BatchDate: deref(in.BatchDate),
		ReferenceNumber: in.ReferenceNumber, EvidenceType: in.EvidenceType,
		AllocationType: in.AllocationType, Reason: in.Reason,
	}
	if file != nil {
		response.FileName, response.FileSize, response.FileSHA256 = file.FileName, file.Size, file.SHA256
	}
	return response
}

// deref is what p points to, or zero.
func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
