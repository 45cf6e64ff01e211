package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// service is something that can be probed: broken and mended at will.
type service struct{ breaks, mends func() }

// listening is a server that is broken by its end, and mended by another one.
// begin serves a listener and gives what ends it.
func listening(t *testing.T, addr string, begin func(net.Listener) (end func())) service {
	t.Helper()
	var end func()
	s := service{
		breaks: func() {
			if end != nil {
				end()
				end = nil
			}
		},
		mends: func() {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			end = begin(l)
		},
	}
	s.mends()
	t.Cleanup(s.breaks)
	return s
}

// web is an HTTP server.
type web struct {
	service
	addr   string
	asked  atomic.Int64 // requests
	status atomic.Int64 // what it answers
	body   atomic.Value
}

func newWeb(t *testing.T, addr string, secure *tls.Config) *web {
	t.Helper()
	w := &web{addr: addr}
	w.status.Store(http.StatusOK)
	w.body.Store("")
	w.service = listening(t, addr, func(l net.Listener) func() {
		s := &http.Server{Handler: w}
		if secure != nil {
			l = tls.NewListener(l, secure)
		}
		go s.Serve(l)
		return func() { s.Close() }
	})
	return w
}

func (w *web) ServeHTTP(rw http.ResponseWriter, _ *http.Request) {
	status := int(w.status.Load())
	w.asked.Add(1) // after the look: all that fail for a status set are counted from then on
	rw.WriteHeader(status)
	fmt.Fprint(rw, w.body.Load())
}

// says is the web as a service that is broken by what it answers.
func (w *web) says(good, bad string) service {
	w.body.Store(good)
	return service{breaks: func() { w.body.Store(bad) }, mends: func() { w.body.Store(good) }}
}

// plainTCP accepts connections and sends a line on each.
func plainTCP(t *testing.T, addr string) service {
	return listening(t, addr, func(l net.Listener) func() {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(conn, "220 ready\r\n")
				conn.Close()
			}
		}()
		return func() { l.Close() }
	})
}

// healthGRPC has the standard health service, and is broken by what that says.
func healthGRPC(t *testing.T, addr, name string) service {
	h := health.NewServer()
	listening(t, addr, func(l net.Listener) func() {
		s := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(s, h)
		go s.Serve(l)
		return s.Stop
	})
	set := func(status grpc_health_v1.HealthCheckResponse_ServingStatus) func() {
		return func() { h.SetServingStatus(name, status) }
	}
	s := service{set(grpc_health_v1.HealthCheckResponse_NOT_SERVING), set(grpc_health_v1.HealthCheckResponse_SERVING)}
	s.mends()
	return s
}

// presence is a file that is there or not.
func presence(t *testing.T, path string) service {
	s := service{func() { os.Remove(path) }, func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}}
	s.mends()
	return s
}

// certify makes an authority of its own for a name: what servers present, and
// the file that the authority is trusted by.
func certify(t *testing.T, name string) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, t.TempDir(), "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

// loopback is address N of 127.0.3.0/24, which tests give to endpoints.
func loopback(n int) string { return "127.0.3." + strconv.Itoa(n) }

// commonPort finds a port that is free on every address.
func commonPort(t *testing.T) string {
	t.Helper()
	port, err := pickPort("0.0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return port
}
