package control

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Listen opens what the API listens on: network "unix" and a path, or "tcp" and
// ADDRESS:PORT, which must be a loopback address unless clients must show a
// certificate. certs may be nil: no TLS.
//
// A socket's file is for its owner alone. One that nobody answers on was left by a
// crash, and is replaced; any other file is left alone, and an error.
func Listen(network, address string, certs *Certs) (net.Listener, error) {
	var (
		l   net.Listener
		err error
	)
	switch network {
	case "unix":
		l, err = listenUnix(address)
	case "tcp":
		l, err = listenTCP(address, certs)
	default:
		return nil, fmt.Errorf("control %s: expected unix or tcp", network)
	}
	if err != nil || certs == nil {
		return l, err
	}
	return tls.NewListener(l, certs.config()), nil
}

func listenTCP(address string, certs *Certs) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("control %s: expected a loopback ADDRESS:PORT", address)
	}
	if !at.Addr().Unmap().IsLoopback() && (certs == nil || certs.ClientCA == "") {
		return nil, fmt.Errorf("control %s: the address is not a loopback one; expected 127.0.0.1 or [::1], or TLS with client certificates", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("control %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

// removeStale removes a socket that nobody answers on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is a file that is no socket; expected none, or one that an earlier server left")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return errors.New("another server answers there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("somebody may be there: %w", err)
	}
	return os.Remove(path)
}
