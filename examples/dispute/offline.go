package main

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"os"
	"path/filepath"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

//go:embed receipt.pdf
var receipt []byte

// offline has an emulator with a dispute, and a temporary directory for the PDF.
type offline struct {
	client *payvault.Client
	server *payvaulttest.Server
	dir    string
}

// sendOffline answers a dispute of the emulator.
func (a *answer) sendOffline(ctx context.Context, out io.Writer) (err error) {
	o, err := newOffline(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	return a.send(ctx, o.client, out)
}

// newOffline starts an emulator with a dispute of the kind that fits a.response. It sets a.dispute to the ID of the
// dispute. If a.file is empty, it also sets a.file to the path of an example PDF.
func newOffline(a *answer) (*offline, error) {
	o := &offline{server: payvaulttest.NewServer()}
	o.client = o.server.Client()
	kind := payvaulttest.DisputeRetrieval
	if a.response.Type != "" {
		kind = payvaulttest.DisputeFirstTime
	}
	dispute := o.server.Disputes.Seed(payvaulttest.Dispute{ID: payvault.DisputeID(a.dispute), Kind: kind})
	a.dispute = int64(dispute.ID)
	if a.file != "" {
		return o, nil
	}
	var err error
	if o.dir, err = os.MkdirTemp("", "payvault-dispute-"); err == nil {
		a.file = filepath.Join(o.dir, "receipt.pdf")
		err = os.WriteFile(a.file, receipt, 0o600) //nolint:gosec // the directory was just made
	}
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

func (o *offline) close() error {
	o.server.Close()
	if o.dir == "" {
		return nil
	}
	return os.RemoveAll(o.dir)
}
