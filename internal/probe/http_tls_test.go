package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// authority issues certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate as PEM
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, file: filepath.Join(t.TempDir(), "ca.pem")}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.file, "CERTIFICATE", der)
	return a
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue makes a certificate for names and addresses, for a time around now.
func (a *authority) issue(t testing.TB, from, until time.Duration, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// server issues a certificate that is valid now.
func (a *authority) server(t testing.TB, names ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, -time.Hour, time.Hour, names...)}}
}

func leaf(t testing.TB, c *tls.Config) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// client writes a client's certificate and key to files.
func (a *authority) client(t testing.TB) (cert, key string) {
	t.Helper()
	pair := a.issue(t, -time.Hour, time.Hour, "client.test")
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	write(t, cert, "CERTIFICATE", pair.Certificate[0])
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, "EC PRIVATE KEY", der)
	return cert, key
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// serveHTTPS serves HTTP/1 and HTTP/2 on loopback.
func serveHTTPS(t testing.TB, config *tls.Config, h http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS, s.EnableHTTP2 = config, true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

const noCert = "tls: the peer asked for a client certificate, got none, and broke off"

func TestHTTPSCertificates(t *testing.T) {
	noLeaks(t)
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.client(t)
	expired := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, -3*time.Hour, -2*time.Hour, "a.test")}}
	early := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, 2*time.Hour, 3*time.Hour, "a.test")}}
	mutual := ca.server(t, "a.test")
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool()
	mutual12 := mutual.Clone()
	mutual12.MaxVersion = tls.VersionTLS12
	old := ca.server(t, "a.test")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	wrong := func(reason string) outcomeOf { return outcomeOf{Fail, ClassTLS, reason} }
	for _, tc := range []struct {
		name   string
		server *tls.Config
		set    func(*check.Check)
		want   outcomeOf
	}{
		{"valid", ca.server(t, "a.test"), nil, passed},
		{"valid by wildcard", ca.server(t, "*.test"), nil, passed},
		{"valid for the address", ca.server(t, "127.0.0.1"), func(c *check.Check) { c.Authority = "" }, passed},
		{"wrong name", ca.server(t, "b.test"), nil, wrong("certificate is for b.test, expected a.test")},
		{"wrong names", ca.server(t, "b.test", "c.test", "d.test", "e.test"), nil,
			wrong("certificate is for b.test, c.test, d.test, …, expected a.test")},
		{"no name", ca.server(t), nil, wrong("certificate is for no name, expected a.test")},
		{"not for the address", ca.server(t, "192.0.2.1"), func(c *check.Check) { c.Authority = "" },
			wrong("certificate is for 192.0.2.1, expected 127.0.0.1")},
		{"wrong name, insecure", ca.server(t, "b.test"), func(c *check.Check) { c.Insecure = true }, passed},
		{"expired", expired, nil, wrong("certificate expired at " + leaf(t, expired).NotAfter.Format(time.RFC3339))},
		{"not yet valid", early, nil, wrong("certificate is not valid before " + leaf(t, early).NotBefore.Format(time.RFC3339))},
		{"unknown authority", other.server(t, "a.test"), nil, wrong("certificate is signed by an unknown authority")},
		{"system's authorities", ca.server(t, "a.test"), func(c *check.Check) { c.CA = "" }, wrong("certificate is signed by an unknown authority")},
		{"client certificate", mutual, func(c *check.Check) { c.Cert, c.Key = cert, key }, passed},
		{"client certificate missing, TLS 1.3", mutual, nil, wrong(noCert)},
		{"client certificate missing, TLS 1.2", mutual12, nil, wrong(noCert)},
		{"old TLS", old, nil, wrong("tls: the peer says: protocol version not supported")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address := serveHTTPS(t, tc.server, func(http.ResponseWriter, *http.Request) {})
			r := prepare(t, define(check.HTTPS, func(c *check.Check) {
				c.CA, c.Authority = ca.file, "a.test"
				if tc.set != nil {
					tc.set(c)
				}
			}))
			tc.want.compare(t, r.Probe(t.Context(), to(address)))
		})
	}
}

func TestHTTPSHandshakes(t *testing.T) {
	noLeaks(t)
	for _, tc := range []struct {
		name    string
		serve   func(*rawConn)
		timeout time.Duration
		want    outcomeOf
	}{
		{"silent", (*rawConn).untilClosed, soon, outcomeOf{Fail, ClassTimeout, fmt.Sprintf("tls handshake: timeout after %v", soon)}},
		{"closes", func(c *rawConn) {
			c.Conn.(*net.TCPConn).CloseWrite()
			c.untilClosed()
		}, patience, outcomeOf{Fail, ClassTLS, "tls handshake: connection closed by the peer"}},
		{"plain HTTP", func(c *rawConn) {
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.untilClosed()
		}, patience, outcomeOf{Fail, ClassTLS, "tls handshake: the peer doesn't speak TLS"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := define(check.HTTPS, func(c *check.Check) { c.Authority, c.Timeout = "a.test", tc.timeout })
			tc.want.compareProbe(t, c, to(serveRaw(t, tc.serve)))
		})
	}
}

// TestHTTPSRequest holds what servers see, by HTTP/2 where they offer it.
func TestHTTPSRequest(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	for _, protocol := range []string{"h2", "http/1.1"} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprint(protocol, keep), func(t *testing.T) {
				config := ca.server(t, "*.test")
				config.NextProtos = []string{protocol}
				var got *http.Request
				address := serveHTTPS(t, config, func(_ http.ResponseWriter, r *http.Request) { got = r })
				r := prepare(t, define(check.HTTPS, func(c *check.Check) {
					c.CA, c.Each, c.KeepAlive = ca.file, true, keep
				}))
				target := to(address)
				for _, name := range []string{"a.test", "b.test", "a.test"} {
					target.Name = name
					result := r.Probe(t.Context(), target)
					passed.compare(t, result)
					if got.Host != name || got.TLS.ServerName != name || got.TLS.NegotiatedProtocol != protocol {
						t.Errorf("%s: host %s, SNI %s, %s", name, got.Host, got.TLS.ServerName, got.Proto)
					}
					if result.Secured < result.Connected || result.FirstByte < result.Secured {
						t.Errorf("times %+v", result)
					}
				}
			})
		}
	}
}

// TestHTTP2OfBadServers: what HTTP/1 servers do wrong by text, those of HTTP/2
// do by frames.
func TestHTTP2OfBadServers(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	address := serveHTTPS(t, ca.server(t, "a.test"), func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/slow-body":
			fmt.Fprint(w, "abc")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/headers", "/many-headers":
			for i := range map[string]int{"/headers": 900, "/many-headers": 9000}[r.URL.Path] {
				w.Header().Set(fmt.Sprint("X-", i), "0123456789012345678901234567890123456789")
			}
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/short":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "abc")
		case "/endless":
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 4096))
			}
		}
	})
	late := fmt.Sprintf("timeout after %v", soon)
	for _, tc := range []struct {
		path    string
		timeout time.Duration
		want    outcomeOf
	}{
		{"/silent", soon, outcomeOf{Fail, ClassTimeout, "first byte: " + late}},
		{"/slow-body", soon, outcomeOf{Fail, ClassTimeout, "body: " + late}},
		{"/headers", patience, outcomeOf{Fail, ClassProtocol, "headers are longer than 65536 bytes"}},
		{"/many-headers", patience, outcomeOf{Fail, ClassProtocol, "answer is not valid HTTP"}},
		{"/abort", patience, outcomeOf{Fail, ClassProtocol, "answer is not valid HTTP"}},
		{"/short", patience, outcomeOf{Fail, ClassProtocol, "body: connection closed by the peer"}},
		{"/endless", patience, passed},
		{"/fine", patience, passed},
	} {
		t.Run(tc.path, func(t *testing.T) {
			t.Parallel()
			for _, keep := range []bool{false, true} {
				c := define(check.HTTPS, func(c *check.Check) {
					c.CA, c.Authority, c.Path, c.Timeout, c.KeepAlive = ca.file, "a.test", tc.path, tc.timeout, keep
				})
				tc.want.compareProbe(t, c, to(address))
			}
		})
	}
}
