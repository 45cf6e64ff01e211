package probe

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// rawConn is a server's end of a connection, for answers that no proper server
// would give.
type rawConn struct {
	net.Conn
	in *bufio.Reader
}

// readRequest reads the head of an HTTP request.
func (c *rawConn) readRequest() []byte {
	var head bytes.Buffer
	for {
		line, err := c.in.ReadSlice('\n')
		head.Write(line)
		if err != nil || len(bytes.TrimSpace(line)) == 0 {
			return head.Bytes()
		}
	}
}

// untilClosed waits until the peer closes.
func (c *rawConn) untilClosed() { io.Copy(io.Discard, c.in) }

// reset closes the connection with a RST.
func (c *rawConn) reset() {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// serveRaw serves every connection by f, and ends with the test.
func serveRaw(t testing.TB, f func(*rawConn)) (address string) {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", f)
}

func serveOn(t testing.TB, listen string, f func(*rawConn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		open []net.Conn
	)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				f(&rawConn{conn, bufio.NewReader(conn)})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// refused is an address where nobody listens, nor comes to by chance: systems give out
// higher ports.
const refused = "127.0.0.1:1"
