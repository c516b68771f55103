// Package trust knows the errors of certificates that are not trusted.
package trust

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Failure returns what of err says why a certificate is not trusted: that of crypto/tls, or one that the caller's own
// check has from [x509.Certificate.Verify]. It returns nil if there is none.
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
