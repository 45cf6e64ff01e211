package control

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/probe"
)

const maxCertFile = 1 << 20

// Certs are the files of a server's TLS. They are read again when they change; if
// that fails, what was read before stays in use, and Logf says so. Its methods may
// be called by several goroutines.
type Certs struct {
	Cert, Key string // of the server
	ClientCA  string // clients must show a certificate of it; empty: none
	Logf      func(format string, args ...any)

	mu    sync.Mutex
	stamp [3]stamp
	now   *tls.Config
}

// stamp tells one state of a file from another.
type stamp struct {
	at   time.Time
	size int64
}

// Load reads the files. It must be called once, before Listen.
func (c *Certs) Load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp = c.stamps()
	read, err := c.read()
	if err == nil {
		c.now = read
	}
	return err
}

func (c *Certs) stamps() (all [3]stamp) {
	for i, name := range []string{c.Cert, c.Key, c.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

func (c *Certs) read() (*tls.Config, error) {
	cert, err := probe.ReadLimited(c.Cert, maxCertFile)
	if err != nil {
		return nil, fmt.Errorf("control certificate: %w", err)
	}
	key, err := probe.ReadLimited(c.Key, maxCertFile)
	if err != nil {
		return nil, fmt.Errorf("control key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("control certificate %s and key %s: %w", c.Cert, c.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if c.ClientCA == "" {
		return config, nil
	}
	pem, err := probe.ReadLimited(c.ClientCA, maxCertFile)
	if err != nil {
		return nil, fmt.Errorf("control client authority: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("control client authority %s: it holds no certificate in PEM", c.ClientCA)
	}
	return config, nil
}

// config reads the files again at a handshake after they have changed.
func (c *Certs) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if stamps := c.stamps(); stamps != c.stamp {
			c.stamp = stamps
			if read, err := c.read(); err == nil {
				c.now = read
			} else {
				c.Logf("control: %v; the certificates read before stay in use", err)
			}
		}
		if c.now == nil {
			return nil, errors.New("the certificates were never read")
		}
		return c.now, nil
	}}
}
