package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFailure checks that Failure finds each error of an untrusted certificate, even if it is wrapped, each alert of a
// server about the client's certificate, and no other error.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&tls.CertificateVerificationError{Err: errors.New("of an engine")},
		x509.CertificateInvalidError{Reason: x509.Expired},
		x509.HostnameError{Certificate: &x509.Certificate{}},
		x509.UnknownAuthorityError{},
		x509.SystemRootsError{},
		x509.UnhandledCriticalExtension{},
	} {
		assert.Equal(t, err, Failure(fmt.Errorf("own check: %w", err)))
	}
	assert.NoError(t, Failure(nil))
	var found []int
	for code := range 256 {
		if Failure(&net.OpError{Op: "remote error", Err: errors.New(tls.AlertError(code).Error())}) != nil {
			found = append(found, code)
		}
	}
	assert.Equal(t, []int{42, 43, 44, 45, 46, 48, 49, 116}, found, "alerts about a certificate, from RFC 8446")
	assert.NoError(t, Failure(errors.New("connection lost")))
}
