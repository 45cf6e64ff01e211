package target

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

type message = dnsmessage.Message

func noLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { nothingLeft(t, before) })
}

// nothingLeft waits until the goroutines that a test started have ended. A busy machine may
// take longer than goleak waits.
func nothingLeft(t testing.TB, before goleak.Option) {
	t.Helper()
	for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
	}
	goleak.VerifyNone(t, before)
}

// add appends a record, such as "www.test. 60 A 192.0.2.1", to the answers, or to
// the authorities if it is a SOA or NS.
func add(m message, record string) message {
	var owner, qtype, data string
	var ttl uint32
	fmt.Sscan(record, &owner, &ttl, &qtype, &data)
	r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(owner), Class: dnsmessage.ClassINET, TTL: ttl}}
	switch qtype {
	case "A":
		r.Body = &dnsmessage.AResource{A: netip.MustParseAddr(data).As4()}
	case "AAAA":
		r.Body = &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(data).As16()}
	case "CNAME":
		r.Body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(data)}
	case "TXT":
		r.Body = &dnsmessage.TXTResource{TXT: []string{data}}
	case "SOA", "NS":
		host := dnsmessage.MustNewName("ns.test.")
		r.Body = &dnsmessage.NSResource{NS: host}
		if qtype == "SOA" {
			var minimum uint32
			fmt.Sscan(data, &minimum)
			r.Body = &dnsmessage.SOAResource{NS: host, MBox: host, MinTTL: minimum}
		}
		m.Authorities = append(m.Authorities[:len(m.Authorities):len(m.Authorities)], r)
		return m
	default:
		panic("record " + record)
	}
	m.Answers = append(m.Answers[:len(m.Answers):len(m.Answers)], r)
	return m
}

// with answers a query by records.
func with(m message, records ...string) message {
	for _, r := range records {
		m = add(m, r)
	}
	return m
}

func code(m message, c dnsmessage.RCode) message { m.RCode = c; return m }

// asked is the type of a query, in words.
func asked(m message) string { return strings.TrimPrefix(m.Questions[0].Type.String(), "Type") }

// replies are the messages that f makes of a query, which must be as ours are.
func replies(t testing.TB, query []byte, f func(message) []message) (all [][]byte) {
	var m message
	if err := m.Unpack(query); err != nil {
		t.Error(err)
		return nil
	}
	if len(m.Additionals) != 1 || !m.RecursionDesired || m.Response || len(m.Questions) != 1 {
		t.Errorf("query %v", m.GoString())
		return nil
	}
	if opt, ok := m.Additionals[0].Body.(*dnsmessage.OPTResource); !ok || len(opt.Options) > 0 || m.Additionals[0].Header.Class != maxUDP {
		t.Errorf("EDNS %v", m.Additionals[0].GoString())
	}
	m.Response, m.Additionals = true, nil
	for _, r := range f(m) {
		b, err := r.Pack()
		if err != nil {
			t.Error(err)
		}
		all = append(all, b)
	}
	return all
}

// serveTCP answers one query over a connection.
func serveTCP(t testing.TB, conn net.Conn, f func(message) []message) {
	defer conn.Close()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	for _, b := range replies(t, query, f) {
		conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	}
}

// network stands in for the network: no sockets, and time may be virtual.
type network struct {
	t      testing.TB
	mu     sync.Mutex
	answer func(server string, m message) []message // none: silence
	asks   map[string][]time.Time                   // by type and name
	open   int
	most   int
	wg     sync.WaitGroup
}

func newNetwork(t testing.TB) *network { return &network{t: t, asks: map[string][]time.Time{}} }

// tell has the network answer every query by records of the type asked for (or by
// a CNAME, SOA or NS), from now on.
func (n *network) tell(records ...string) {
	n.say(func(_ string, m message) []message {
		for _, r := range records {
			if words := strings.Fields(r); words[2] == asked(m) || len(words[2]) > 4 || words[2] == "SOA" {
				m = add(m, r)
			}
		}
		return []message{m}
	})
}

func (n *network) say(f func(server string, m message) []message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = f
}

func (n *network) times(word string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asks[word]
}

func (n *network) dial(_ context.Context, kind, address string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	n.mu.Lock()
	n.open++
	n.most = max(n.most, n.open)
	n.mu.Unlock()
	n.wg.Go(func() {
		defer func() { n.mu.Lock(); n.open--; n.mu.Unlock() }()
		f := func(m message) []message {
			n.mu.Lock()
			word := asked(m) + " " + m.Questions[0].Name.String()
			n.asks[word] = append(n.asks[word], time.Now())
			answer := n.answer
			n.mu.Unlock()
			return answer(address, m)
		}
		if kind == "tcp" {
			serveTCP(n.t, theirs, f)
			return
		}
		defer theirs.Close()
		buf := make([]byte, 512)
		size, err := theirs.Read(buf)
		if err != nil {
			return
		}
		for _, b := range replies(n.t, buf[:size], f) {
			theirs.Write(b)
		}
		theirs.Read(buf) // until the other end is closed
	})
	return ours, nil
}

func (n *network) resolver(set func(*Options)) *Resolver {
	o := Options{Rand: rand.Reader, Dial: n.dial}
	if set != nil {
		set(&o)
	}
	return New(o)
}

var servers = []string{"192.0.2.53:53", "[2001:db8::53]:53"}

func acquire(t testing.TB, r *Resolver, name string) *Target {
	t.Helper()
	target, err := r.Acquire(servers, name, "user")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// words puts addresses in words.
func words(addrs []netip.Addr) string { return strings.Trim(fmt.Sprint(addrs), "[]") }

// uses is what a target's addresses are now.
func uses(t *Target, keep time.Duration) string { return words(t.State().Addresses(time.Now(), keep)) }
