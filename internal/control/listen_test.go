package control_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// start serves the API on a listener until the test ends, and then waits for the last
// connection: net/http lingers on one whose request it refused.
func (s *served) start(t *testing.T, l net.Listener) {
	t.Helper()
	server := s.HTTP()
	server.ReadHeaderTimeout, server.ReadTimeout = time.Minute, time.Minute // a busy machine may take long
	var open sync.WaitGroup
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		}
	}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		open.Wait()
	})
}

// get asks for the status with a client of its own.
func get(t *testing.T, url string, transport *http.Transport) (int, string, error) {
	t.Helper()
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+full)
	reply, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(body), err
}

func dialUnix(path string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
}

func TestUnixSocket(t *testing.T) {
	s := newServed(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := control.Listen("unix", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.start(t, l)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	code, body, err := get(t, "http://any.name/v1/status", dialUnix(path)) // no browser gets here
	if err != nil || code != 200 {
		t.Errorf("%d %s, %v", code, body, err)
	}
	// The peer is who is written down, and a token is needed all the same.
	r, _ := http.NewRequest("POST", "http://x/v1/changes", strings.NewReader(`{"lever":"drain","region":"us","why":"fire","for":"1h"}`))
	r.Header.Set("Content-Type", "application/json")
	transport := dialUnix(path)
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil || reply.StatusCode != 401 {
		t.Fatalf("without a token: %v, %v", reply, err)
	}
	reply.Body.Close()
	r.Header.Set("Authorization", "Bearer "+full)
	r.Body, _ = r.GetBody()
	if reply, err = (&http.Client{Transport: transport}).Do(r); err != nil || reply.StatusCode != 200 {
		t.Fatalf("with one: %v, %v", reply, err)
	}
	reply.Body.Close()
	entries, err := s.Audit(1)
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].From, "unix") {
		t.Errorf("the log is %+v, %v", entries, err)
	}
	if runtime.GOOS == "linux" && !strings.Contains(entries[0].From, "uid") {
		t.Errorf("the peer is %q", entries[0].From)
	}
	if _, err := control.Listen("unix", path, nil); err == nil || !strings.Contains(err.Error(), "another server answers") {
		t.Errorf("a second server: %v", err)
	}
	if code, _, err := get(t, "http://x/v1/status", dialUnix(path)); err != nil || code != 200 {
		t.Errorf("after that the first answers %d, %v", code, err)
	}
}

func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false) // as a crash leaves it
	old.Close()
	l, err := control.Listen("unix", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("closed, and there is still something: %v", err)
	}
	file := filepath.Join(dir, "precious")
	os.WriteFile(file, []byte("data"), 0o600)
	link := filepath.Join(dir, "link")
	os.Symlink(file, link)
	for _, path := range []string{file, link, dir, filepath.Join(dir, "none", "s")} {
		if l, err := control.Listen("unix", path, nil); err == nil {
			l.Close()
			t.Errorf("%s is taken for a socket", path)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "data" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

func TestLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8053", "localhost:8053", "127.0.0.1", "127.0.0.1:x"} {
		if l, err := control.Listen("tcp", address, nil); err == nil || !strings.Contains(err.Error(), "loopback") {
			if l != nil {
				l.Close()
			}
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := control.Listen("udp", "127.0.0.1:0", nil); err == nil {
		t.Error("udp is listened on")
	}
	l, err := control.Listen("tcp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newServed(t)
	s.start(t, l)
	if code, body, err := get(t, "http://"+l.Addr().String()+"/v1/status", &http.Transport{}); err != nil || code != 200 {
		t.Errorf("%d %s, %v", code, body, err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "+strings.Repeat("x", 24<<10)+"\r\n\r\n")
	reply, err := io.ReadAll(c)
	if !strings.HasPrefix(string(reply), "HTTP/1.1 431 ") {
		t.Errorf("a header of 24 KiB: %.100q, %v", reply, err)
	}
}

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// issue writes the certificate and key of a name into files.
func (a *authority) issue(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<60))
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	der2, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: der2}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	s, dir := newServed(t), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	servers, clients := newAuthority(t), newAuthority(t)
	servers.issue(t, "first", in("cert"), in("key"))
	clients.issue(t, "ops laptop", in("client"), in("client.key"))
	servers.issue(t, "stranger", in("stranger"), in("stranger.key"))
	os.WriteFile(in("ca"), clients.pem, 0o600)
	certs := &control.Certs{Cert: in("cert"), Key: in("key"), ClientCA: in("ca"), Logf: s.Logf}
	if err := certs.Load(); err != nil {
		t.Fatal(err)
	}
	l, err := control.Listen("tcp", "127.0.0.1:0", certs)
	if err != nil {
		t.Fatal(err)
	}
	s.start(t, l)
	roots := x509.NewCertPool()
	roots.AddCert(servers.cert)
	ask := func(client string) (int, string, error) {
		config := &tls.Config{RootCAs: roots}
		if client != "" {
			pair, err := tls.LoadX509KeyPair(in(client), in(client+".key"))
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		served := ""
		config.VerifyConnection = func(c tls.ConnectionState) error { served = c.PeerCertificates[0].Subject.CommonName; return nil }
		code, _, err := get(t, "https://"+l.Addr().String()+"/v1/status", &http.Transport{TLSClientConfig: config})
		return code, served, err
	}
	if code, served, err := ask("client"); err != nil || code != 200 || served != "first" {
		t.Errorf("with a certificate: %d from %s, %v", code, served, err)
	}
	if _, _, err := ask(""); err == nil {
		t.Error("served without a certificate")
	}
	if _, _, err := ask("stranger"); err == nil {
		t.Error("served with a certificate of another authority")
	}
	// A new certificate is used when it is whole; until then the old one stays.
	later := time.Now().Add(time.Minute)
	os.WriteFile(in("cert"), []byte("half"), 0o600)
	os.Chtimes(in("cert"), later, later)
	if code, served, err := ask("client"); err != nil || code != 200 || served != "first" || !strings.Contains(s.log(), "stay in use") {
		t.Errorf("with half a file: %d from %s, %v; the log is %s", code, served, err, s.log())
	}
	servers.issue(t, "second", in("cert"), in("key"))
	if code, served, err := ask("client"); err != nil || code != 200 || served != "second" {
		t.Errorf("with a new one: %d from %s, %v", code, served, err)
	}
	os.WriteFile(in("ca"), append(servers.pem, '\n'), 0o600)
	if _, _, err := ask("client"); err == nil {
		t.Error("served with a certificate whose authority was taken away")
	}
	for _, broken := range []*control.Certs{{Cert: in("none"), Key: in("key")}, {Cert: in("cert"), Key: in("none")}, {Cert: in("cert"), Key: in("client.key")},
		{Cert: in("cert"), Key: in("key"), ClientCA: in("none")}, {Cert: in("cert"), Key: in("key"), ClientCA: in("key")}} {
		if err := broken.Load(); err == nil {
			t.Errorf("%+v is fine", broken)
		}
	}
}
