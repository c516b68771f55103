package simulation

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/payvault"
)

// basePath is the path of the client's base URL.
const basePath = "/base"

// World has the values that all scenarios share. No scenario changes it.
type World struct {
	documents   map[payvault.Operation][]byte      // the documented answers
	issuing     map[payvault.Operation]cutDocument // answers of the operations that create an ID, split at that ID
	pages       map[payvault.Operation]cutDocument // first record of each documented list, split at its ID
	certificate tls.Certificate
	untrusted   tls.Certificate
	roots       *x509.CertPool
	token       string // expected value of the Authorization header
	bomb        []byte // a gzip body that decompresses to more bytes than the client accepts
}

// cutDocument has the parts of a JSON document before and after its ID.
type cutDocument struct{ before, after []byte }

// NewWorld reads the documented answers from the folder testdata of the repository.
func NewWorld(testdata string) (*World, error) {
	w := &World{
		documents: map[payvault.Operation][]byte{},
		issuing:   map[payvault.Operation]cutDocument{}, pages: map[payvault.Operation]cutDocument{},
		token: "Basic " + encodedKey(), roots: x509.NewCertPool(),
	}
	for _, info := range payvault.Operations() {
		name := filepath.FromSlash(strings.ReplaceAll(string(info.Op), ".", "/") + ".response.json")
		doc, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			return nil, err
		}
		w.documents[info.Op] = doc
	}
	w.documents[payvault.OpCall] = []byte(`{"code":0,"message":"Success","data":{"message":"done"}}`)
	walked := map[payvault.Operation]string{
		payvault.OpCustomersList: "customer_id", payvault.OpSubscriptionsTransactions: "purchase_id",
	}
	for _, k := range kinds() {
		if k.issues != "" {
			pattern := regexp.MustCompile(`"` + k.issues + `":\s*"?([^",\s]+)`)
			doc := w.documents[k.Op]
			at := pattern.FindSubmatchIndex(doc)
			w.issuing[k.Op] = cutDocument{doc[:at[2]], doc[at[3]:]}
		}
		if k.Lists() {
			// no scenario checks the IDs of the other lists, so any field will do
			if err := w.cutPage(k.Op, cmp.Or(walked[k.Op], "position")); err != nil {
				return nil, err
			}
		}
	}
	w.bomb = zeros(4 << 20)
	return w, w.certify()
}

// cutPage takes the first record of an operation's documented page, and stores the record's JSON before and after the
// value of a field. The method page puts an ID between the two parts.
func (w *World) cutPage(op payvault.Operation, field string) error {
	var page struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(w.documents[op], &page); err != nil {
		return err
	}
	const mark = "THE ID"
	page.Data[0][field] = mark
	record, err := json.Marshal(page.Data[0])
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(record, []byte(mark))
	w.pages[op] = cutDocument{before, after}
	return nil
}

// page returns one page of a list that has the given number of pages. A page beyond the end of the list is empty.
func (w *World) page(op payvault.Operation, page, pages int) []byte {
	doc := w.pages[op]
	const start = `{"code":0,"message":"Success","totalPages":%d,"totalRecords":%d,"data":[`
	b := fmt.Appendf(nil, start, pages, recordsPerPage*pages)
	for i := range recordsPerPage {
		if page >= pages {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, doc.before...)
		b = append(b, recordID(page*recordsPerPage+i)...)
		b = append(b, doc.after...)
	}
	return append(b, "]}"...)
}

func recordID(position int) string { return fmt.Sprintf("R%d", position) }

// certify creates a trusted and an untrusted certificate. Both are valid in the year 2000, in which the clock of
// synctest starts.
func (w *World) certify() error {
	for i, certificate := range []*tls.Certificate{&w.certificate, &w.untrusted} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), DNSNames: []string{"service.test"},
			IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
			NotAfter:  time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
			KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			return err
		}
		*certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		if i == 0 {
			leaf, err := x509.ParseCertificate(der)
			if err != nil {
				return err
			}
			w.roots.AddCert(leaf)
		}
	}
	return nil
}

// zeros returns a gzip body that decompresses to the JSON of a success without its closing brace, and then n spaces.
func zeros(n int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(`{"code":0,"rcode":"000","message":"Success"`))
	_, _ = z.Write(bytes.Repeat([]byte(" "), n))
	_ = z.Close()
	return b.Bytes()
}
