package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFailure checks that Failure finds each error of an untrusted certificate, even if it is wrapped, and no other
// error.
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
	assert.NoError(t, Failure(errors.New("connection lost")))
}
