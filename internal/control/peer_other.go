//go:build !linux

package control

import (
	"crypto/tls"
	"net"
)

// peerOf tells who is at the other end of a unix socket; empty: it is none.
func peerOf(c net.Conn) string {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if _, ok := c.(*net.UnixConn); ok {
		return "unix"
	}
	return ""
}
