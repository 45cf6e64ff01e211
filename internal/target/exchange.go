package target

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// serverTimeout is how long one resolver may take for one question, TCP
	// included, before the next is asked.
	serverTimeout = 2 * time.Second
	udpBuffer     = 4096 // a resolver may send more than it is asked to keep to
	maxReason     = 256  // bytes of an error
)

// ask asks the resolvers of a target in their order for its addresses of one
// type, until one knows them, or that there are none.
func (r *Resolver) ask(ctx context.Context, t *Target, qtype dnsmessage.Type) finding {
	var problems []string
	for _, server := range t.servers {
		f, err := r.askServer(ctx, server, t.name, qtype)
		if err == nil {
			return f
		}
		problems = append(problems, server.String()+": "+err.Error())
		if ctx.Err() != nil {
			break
		}
	}
	text := strings.Join(problems, "; ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason-len("…")], "") + "…"
	}
	return finding{err: errors.New(text)}
}

func (r *Resolver) askServer(ctx context.Context, server netip.AddrPort, name string, qtype dnsmessage.Type) (finding, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	var id [2]byte
	if _, err := io.ReadFull(r.opts.Rand, id[:]); err != nil {
		return finding{}, fmt.Errorf("no random number for the query: %w", err)
	}
	query, err := newQuery(binary.BigEndian.Uint16(id[:]), name, qtype)
	if err != nil {
		return finding{}, err
	}
	f, err := r.overUDP(ctx, server, query)
	if errors.Is(err, errTruncated) {
		f, err = r.overTCP(ctx, server, query)
	}
	return f, err
}

// overUDP waits for the answer to the query and ignores all others: those may be
// forged. Every query has a socket, and so a port, of its own.
func (r *Resolver) overUDP(ctx context.Context, server netip.AddrPort, query []byte) (finding, error) {
	conn, err := r.opts.Dial(ctx, "udp", server.String())
	if err != nil {
		return finding{}, explain(ctx, err, 0)
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	if _, err := conn.Write(query); err != nil {
		return finding{}, explain(ctx, err, 0)
	}
	buf := make([]byte, udpBuffer)
	for ignored := 0; ; ignored++ {
		n, err := conn.Read(buf)
		if err != nil {
			return finding{}, explain(ctx, err, ignored)
		}
		if f, err := readAnswer(buf[:n], query); !errors.Is(err, errOther) {
			return f, err
		}
	}
}

func (r *Resolver) overTCP(ctx context.Context, server netip.AddrPort, query []byte) (finding, error) {
	conn, err := r.opts.Dial(ctx, "tcp", server.String())
	if err != nil {
		return finding{}, fmt.Errorf("over TCP, as the answer is truncated: %w", explain(ctx, err, 0))
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	answer, err := transfer(conn, query)
	if err != nil {
		return finding{}, fmt.Errorf("over TCP, as the answer is truncated: %w", explain(ctx, err, 0))
	}
	f, err := readAnswer(answer, query)
	switch {
	case errors.Is(err, errOther):
		err = errors.New("the answer over TCP is to something else")
	case errors.Is(err, errTruncated):
		err = errors.New("the answer is truncated over TCP, too")
	}
	return f, err
}

// transfer sends a query and reads an answer, each with its length before it
// (RFC 1035, section 4.2.2).
func transfer(conn net.Conn, query []byte) ([]byte, error) {
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(query)))
	if _, err := conn.Write(append(framed, query...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(conn, answer)
	return answer, err
}

// bound makes reads and writes of a connection end with ctx. Its result must be
// called when the connection is closed.
func bound(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
}

// explain finds the words for an error of the network.
func explain(ctx context.Context, err error, ignored int) error {
	var number syscall.Errno
	text := err.Error()
	switch {
	case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		text = fmt.Sprintf("no answer within %s", serverTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		text = "connection closed by the resolver"
	case errors.As(err, &number):
		text = number.Error()
	}
	if ignored > 0 {
		text += fmt.Sprintf(" (%d answers to something else ignored)", ignored)
	}
	return errors.New(text)
}
