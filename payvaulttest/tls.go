package payvaulttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"
)

// An identity is the certificate of a server, or nothing for plain HTTP.
type identity struct {
	certificate *tls.Certificate
	pool        *x509.CertPool
}

// newIdentity makes a certificate for loopback that no one else trusts.
func newIdentity(secure bool) (identity, error) {
	if !secure {
		return identity{}, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("generate a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "payvault emulator"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return identity{}, fmt.Errorf("sign: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return identity{}, fmt.Errorf("parse: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return identity{&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool}, nil
}

func (i identity) scheme() string {
	if i.certificate == nil {
		return "http"
	}
	return "https"
}

func (i identity) config() *tls.Config {
	if i.certificate == nil {
		return nil
	}
	return &tls.Config{Certificates: []tls.Certificate{*i.certificate}, MinVersion: tls.VersionTLS12}
}

func (i identity) client() *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100, IdleConnTimeout: 30 * time.Second}
	if i.pool != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: i.pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport}
}
