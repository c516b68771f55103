// Package trust finds the errors of certificates that are not trusted.
package trust

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
)

// Failure returns the error in err that says why a certificate is not trusted, or nil. It finds a
// [tls.CertificateVerificationError], errors of [x509.Certificate.Verify] that the caller's own check has returned, and
// alerts of the server about the client's certificate.
func Failure(err error) error {
	if IsAlert(err) {
		return find[*net.OpError](err)
	}
	return cmp.Or(
		find[*tls.CertificateVerificationError](err),
		find[x509.CertificateInvalidError](err), find[x509.HostnameError](err), find[x509.UnknownAuthorityError](err),
		find[x509.SystemRootsError](err), find[x509.UnhandledCriticalExtension](err),
	)
}

// IsAlert reports whether err is or wraps an alert of the server about the client's certificate. With TLS 1.3 the alert
// comes after the handshake, in place of the first answer. The type of the alert in crypto/tls is not exported, so
// IsAlert compares texts.
func IsAlert(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "remote error" && slices.Contains([]string{
		"tls: bad certificate",
		"tls: unsupported certificate",
		"tls: revoked certificate",
		"tls: expired certificate",
		"tls: unknown certificate",
		"tls: unknown certificate authority",
		"tls: access denied",
		"tls: certificate required",
	}, alert.Err.Error())
}

func find[E error](err error) error {
	if e, ok := errors.AsType[E](err); ok {
		return e
	}
	return nil
}
