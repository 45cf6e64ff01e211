package control

import (
	"crypto/tls"
	"fmt"
	"net"
	"syscall"
)

// peerOf tells who is at the other end of a unix socket; empty: it is none.
func peerOf(c net.Conn) string {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ""
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return "unix"
	}
	peer := "unix"
	raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			peer = fmt.Sprintf("unix, uid %d, pid %d", cred.Uid, cred.Pid)
		}
	})
	return peer
}
