// Package trust finds the errors of certificates that are not trusted.
package trust

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Failure returns the error in err that says why a certificate is not trusted, or nil. It finds a
// [tls.CertificateVerificationError], and errors of [x509.Certificate.Verify] that the caller's own check has returned.
func Failure(err error) error {
	return cmp.Or(
		find[*tls.CertificateVerificationError](err),
		find[x509.CertificateInvalidError](err), find[x509.HostnameError](err), find[x509.UnknownAuthorityError](err),
		find[x509.SystemRootsError](err), find[x509.UnhandledCriticalExtension](err),
	)
}

func find[E error](err error) error {
	if e, ok := errors.AsType[E](err); ok {
		return e
	}
	return nil
}
