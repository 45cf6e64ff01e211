package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// echoConn is a socket for one echo request.
type echoConn interface {
	ReadFrom([]byte) (int, net.Addr, error)
	SetDeadline(time.Time) error
	Close() error
	// Send sends one message to the address the socket was opened for.
	Send([]byte) error
}

// echoOpener opens a socket to an address. A raw one takes any process's
// answers from there; of others the kernel sets the id and tells apart whose
// the answers are.
type echoOpener func(ctx context.Context, to netip.Addr, raw bool) (echoConn, error)

// icmpProber sends one echo request and waits for the reply.
type icmpProber struct {
	stateless
	open   echoOpener
	v4, v6 echoMode
}

// echoMode is how a family is probed on this machine.
type echoMode struct {
	raw bool
	err error // neither way works
}

func newICMP(c *check.Check, open echoOpener) (prober, error) {
	// No condition applies: this is for the error that says so.
	if _, err := newJudge(c, "", nil, nil); err != nil {
		return nil, err
	}
	p := &icmpProber{open: open}
	p.v4 = p.try(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	p.v6 = p.try(netip.IPv6Loopback())
	if p.v4.err != nil && p.v6.err != nil {
		return nil, p.v4.err
	}
	return p, nil
}

// try finds out which kind of socket the kernel allows.
func (p *icmpProber) try(loopback netip.Addr) echoMode {
	var tried []error
	for _, raw := range []bool{false, true} {
		conn, err := p.open(context.Background(), loopback, raw)
		if err == nil {
			conn.Close()
			return echoMode{raw: raw}
		}
		tried = append(tried, err)
	}
	return echoMode{err: fmt.Errorf("icmp is not allowed here (datagram socket: %s; raw socket: %s): "+
		"let the sysctl net.ipv4.ping_group_range include the group of this process, %d, or give it CAP_NET_RAW",
		cause(tried[0]), cause(tried[1]), os.Getgid())}
}

func (p *icmpProber) probe(ctx context.Context, a *attempt, t Target) error {
	mode := p.v6
	if t.Addr.Is4() {
		mode = p.v4
	}
	if mode.err != nil {
		return internal("%v", mode.err)
	}
	a.phase = phaseConnect
	conn, err := p.open(ctx, t.Addr, mode.raw)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	a.phase = phaseAnswer
	e := newEcho(t.Addr)
	if err := conn.Send(e.request); err != nil {
		return err
	}
	buf := make([]byte, 1500)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		if e.answeredBy(buf[:n], mode.raw) {
			a.answered()
			return nil
		}
	}
}

// echo is one request and what tells its reply from all others: id, sequence
// number and 16 random bytes.
type echo struct {
	id, seq  int
	token    [16]byte
	protocol int // of the reply, as the parser wants it
	reply    icmp.Type
	request  []byte
}

func newEcho(to netip.Addr) *echo {
	e := &echo{protocol: 1, reply: ipv4.ICMPTypeEchoReply}
	kind := icmp.Type(ipv4.ICMPTypeEcho)
	if to.Is6() {
		e.protocol, e.reply, kind = 58, ipv6.ICMPTypeEchoReply, ipv6.ICMPTypeEchoRequest
	}
	rand.Read(e.token[:])
	e.id = int(binary.BigEndian.Uint16(e.token[0:]))
	e.seq = int(binary.BigEndian.Uint16(e.token[2:]))
	m := icmp.Message{Type: kind, Body: &icmp.Echo{ID: e.id, Seq: e.seq, Data: e.token[:]}}
	// The kernel sets the checksum of ICMPv6. Marshalling an echo can't fail.
	e.request, _ = m.Marshal(nil)
	return e
}

func (e *echo) answeredBy(b []byte, raw bool) bool {
	m, err := icmp.ParseMessage(e.protocol, b)
	if err != nil || m.Type != e.reply {
		return false
	}
	body, ok := m.Body.(*icmp.Echo)
	return ok && (body.ID == e.id || !raw) && body.Seq == e.seq && bytes.Equal(body.Data, e.token[:])
}

// openEcho is the echoOpener of this machine.
func openEcho(ctx context.Context, to netip.Addr, raw bool) (echoConn, error) {
	if raw {
		return openRaw(ctx, to)
	}
	network := "udp6"
	if to.Is4() {
		network = "udp4"
	}
	conn, err := icmp.ListenPacket(network, "")
	if err != nil {
		return nil, err
	}
	return datagramEcho{conn, &net.UDPAddr{IP: to.AsSlice(), Zone: to.Zone()}}, nil
}

// openRaw connects the socket, so that it is not handed the answers of all
// other endpoints.
func openRaw(ctx context.Context, to netip.Addr) (echoConn, error) {
	network := "ip6:ipv6-icmp"
	if to.Is4() {
		network = "ip4:icmp"
	}
	conn, err := new(net.Dialer).DialIP(ctx, network, netip.Addr{}, to)
	if err != nil {
		return nil, err
	}
	return rawEcho{conn}, nil
}

type datagramEcho struct {
	*icmp.PacketConn
	to net.Addr
}

func (c datagramEcho) Send(b []byte) error { return sent(c.WriteTo(b, c.to)) }

type rawEcho struct{ *net.IPConn }

func (c rawEcho) Send(b []byte) error { return sent(c.Write(b)) }

func sent(_ int, err error) error { return err }
