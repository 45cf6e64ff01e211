package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// maxSessions bounds the TLS sessions that one check keeps.
const maxSessions = 1 << 16

// dialer opens connections to places, with TLS or without. The address of the
// place is what is dialled, always: no names are resolved, no proxy is asked.
type dialer struct {
	// TCP's own keep-alive is off: the next probe comes before it would.
	net      net.Dialer
	tls      *tls.Config // nil: none
	sessions tls.ClientSessionCache
}

// newDialer makes the dialer of a check; protocols are those offered by ALPN.
func newDialer(c *check.Check, secure bool, protocols ...string) (*dialer, error) {
	d := &dialer{net: net.Dialer{KeepAlive: -1}}
	if !secure {
		if c.CA != "" || c.Cert != "" || c.Key != "" || c.Insecure {
			return nil, errors.New("ca, cert and insecure are for checks with TLS")
		}
		return d, nil
	}
	d.sessions = tls.NewLRUClientSessionCache(maxSessions)
	d.tls = &tls.Config{NextProtos: protocols, InsecureSkipVerify: c.Insecure, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		d.tls.RootCAs = x509.NewCertPool()
		if !d.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate, expected PEM", c.CA)
		}
	}
	if c.Cert != "" || c.Key != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("cert %s %s: %w", c.Cert, c.Key, err)
		}
		d.tls.Certificates = []tls.Certificate{pair}
	}
	return d, nil
}

// dial returns a *tls.Conn after its handshake if the check has TLS.
func (d *dialer) dial(ctx context.Context, a *attempt, p place) (net.Conn, error) {
	a.phase = phaseConnect
	conn, err := d.net.DialTCP(ctx, "tcp", netip.AddrPort{}, p.addr)
	if err != nil {
		return nil, err
	}
	a.connected()
	if d.tls == nil {
		return conn, nil
	}
	a.phase = phaseHandshake
	secure := tls.Client(conn, d.config(a, p))
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	a.secured()
	return secure, nil
}

func (d *dialer) config(a *attempt, p place) *tls.Config {
	c := d.tls.Clone()
	c.ServerName = p.serverName()
	c.ClientSessionCache = placeSessions{d.sessions, p}
	if len(c.Certificates) == 0 {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			a.unproven = true
			return &tls.Certificate{}, nil
		}
	}
	return c
}

// placeSessions is the part of a session cache that is a place's own. The TLS
// library looks sessions up by server name, and the endpoints of a check have
// that in common.
type placeSessions struct {
	all   tls.ClientSessionCache
	place place
}

func (s placeSessions) key() string { return s.place.addr.String() + " " + s.place.name }

// Get implements tls.ClientSessionCache.
func (s placeSessions) Get(string) (*tls.ClientSessionState, bool) { return s.all.Get(s.key()) }

// Put implements tls.ClientSessionCache.
func (s placeSessions) Put(_ string, state *tls.ClientSessionState) { s.all.Put(s.key(), state) }

// bound makes reads and writes of a connection end with ctx. Its result must be
// called when the connection is closed.
func bound(ctx context.Context, conn interface{ SetDeadline(time.Time) error }) (stop func() bool) {
	return context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
}
