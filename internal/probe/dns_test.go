package probe

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// serveDNS answers over UDP by the messages that udp makes of a query, and over
// TCP on the same port by those of tcp. A nil one never answers.
func serveDNS(t testing.TB, udp, tcp func(dnsmessage.Message) []dnsmessage.Message) (address string) {
	t.Helper()
	stream := func(c *rawConn) {
		var size [2]byte
		if _, err := io.ReadFull(c.in, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c.in, query); err != nil || tcp == nil {
			return
		}
		for _, b := range replies(t, query, tcp) {
			c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
		}
	}
	address = serveRaw(t, stream)
	conn, err := net.ListenPacket("udp", address)
	for tries := 0; err != nil && tries < 100; tries++ { // the port is somebody's for UDP
		address = serveRaw(t, stream)
		conn, err = net.ListenPacket("udp", address)
	}
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if udp == nil {
				continue
			}
			for _, b := range replies(t, buf[:n], udp) {
				conn.WriteTo(b, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return address
}

func replies(t testing.TB, query []byte, f func(dnsmessage.Message) []dnsmessage.Message) (all [][]byte) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		t.Error(err)
		return nil
	}
	if !m.RecursionDesired || m.Response || len(m.Questions) != 1 || m.Questions[0].Type != dnsmessage.TypeA {
		t.Errorf("query %v", m.GoString())
	}
	m.Response = true
	for _, r := range f(m) {
		b, err := r.Pack()
		if err != nil {
			t.Error(err)
		}
		all = append(all, b)
	}
	return all
}

// with answers a query with addresses, behind a CNAME.
func with(m dnsmessage.Message, addrs ...string) dnsmessage.Message {
	name := m.Questions[0].Name
	target := dnsmessage.MustNewName("target.test.")
	add := func(name dnsmessage.Name, body dnsmessage.ResourceBody) {
		h := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: body})
	}
	add(name, &dnsmessage.CNAMEResource{CNAME: target})
	for _, a := range addrs {
		if addr := netip.MustParseAddr(a); addr.Is4() {
			add(target, &dnsmessage.AResource{A: addr.As4()})
		} else {
			add(target, &dnsmessage.AAAAResource{AAAA: addr.As16()})
		}
	}
	return m
}

func TestDNS(t *testing.T) {
	noLeaks(t)
	type messages = []dnsmessage.Message
	answer := func(addrs ...string) func(dnsmessage.Message) messages {
		return func(m dnsmessage.Message) messages { return messages{with(m, addrs...)} }
	}
	rcode := func(code dnsmessage.RCode, keepQuestion bool) func(dnsmessage.Message) messages {
		return func(m dnsmessage.Message) messages {
			m.RCode = code
			if !keepQuestion {
				m.Questions = nil
			}
			return messages{m}
		}
	}
	truncated := func(m dnsmessage.Message) messages { m.Truncated = true; return messages{m} }
	// forged comes before the real answer, if there is one.
	forged := func(addrs ...string) func(dnsmessage.Message) messages {
		return func(m dnsmessage.Message) messages {
			id, name, query := with(m, "203.0.113.66"), with(m, "203.0.113.66"), m
			id.ID++
			q := m.Questions[0]
			q.Name = dnsmessage.MustNewName("forged.test.")
			name.Questions = []dnsmessage.Question{q}
			query.Response = false
			all := messages{id, name, query}
			if addrs != nil {
				all = append(all, with(m, addrs...))
			}
			return all
		}
	}
	upper := func(m dnsmessage.Message) messages {
		m = with(m, "192.0.2.1")
		m.Questions[0].Name = dnsmessage.MustNewName(strings.ToUpper(m.Questions[0].Name.String()))
		return messages{m}
	}
	is := func(name string) check.Condition { return check.Condition{Kind: check.RCode, Field: name} }
	has := func(addrs ...string) check.Condition {
		c := check.Condition{Kind: check.Address}
		for _, a := range addrs {
			c.Addresses = append(c.Addresses, netip.MustParseAddr(a))
		}
		return c
	}
	late := fmt.Sprintf("answer: timeout after %v", soon)
	for _, tc := range []struct {
		name     string
		udp, tcp func(dnsmessage.Message) messages
		set      func(*check.Check)
		want     outcomeOf
	}{
		{"answer", answer("192.0.2.1"), nil, nil, passed},
		{"letters changed", upper, nil, nil, passed},
		{"no address", answer(), nil, nil, passed},
		{"servfail", rcode(2, true), nil, nil, outcomeOf{Fail, ClassStatus, "rcode SERVFAIL, expected NOERROR"}},
		{"formerr without question", rcode(1, false), nil, nil, outcomeOf{Fail, ClassStatus, "rcode FORMERR, expected NOERROR"}},
		{"odd code", rcode(14, true), nil, nil, outcomeOf{Fail, ClassStatus, "rcode 14, expected NOERROR"}},
		{"nxdomain expected", rcode(3, true), nil, expect(is("nxdomain")), passed},
		{"addresses", answer("192.0.2.1", "2001:db8::1", "192.0.2.2"), nil, expect(has("192.0.2.2", "2001:db8::1")), passed},
		{"address missing", answer("192.0.2.1"), nil, expect(has("192.0.2.1", "192.0.2.2")), outcomeOf{Fail, ClassContent, "answer is without 192.0.2.2"}},
		{"addresses keep the code", rcode(5, true), nil, expect(has("192.0.2.1")), outcomeOf{Fail, ClassStatus, "rcode REFUSED, expected NOERROR"}},
		{"full", rcode(5, true), nil, full(is("REFUSED")), outcomeOf{Full, ClassFull, "full: rcode REFUSED"}},
		{"truncated", truncated, answer("192.0.2.1"), expect(has("192.0.2.1")), passed},
		{"truncated, TCP closed", truncated, nil, nil, outcomeOf{Fail, ClassConnect, "answer: connection closed by the peer"}},
		{"truncated, TCP to something else", truncated, forged(), nil, outcomeOf{Fail, ClassProtocol, "answer over TCP is to something else"}},
		{"forged first", forged("192.0.2.1"), nil, expect(has("192.0.2.1")), passed},
		{"forged only", forged(), nil, expect(has("203.0.113.66")), outcomeOf{Fail, ClassTimeout, late + " (3 answers to something else ignored)"}},
		{"silent", nil, nil, nil, outcomeOf{Fail, ClassTimeout, late}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := define(check.DNS, func(c *check.Check) {
				c.QName, c.QType = "www.Example.test", "a"
				if tc.set != nil {
					tc.set(c)
				}
				if tc.want.class == ClassTimeout {
					c.Timeout = soon
				}
			})
			tc.want.compareProbe(t, c, to(serveDNS(t, tc.udp, tc.tcp)))
		})
	}
	r := prepare(t, define(check.DNS, func(c *check.Check) { c.QName, c.QType = "a.test.", "TYPE65" }))
	outcomeOf{Fail, ClassConnect, "answer: connection refused"}.compare(t, r.Probe(t.Context(), to(refused)))
}

func TestQType(t *testing.T) {
	for name, want := range map[string]dnsmessage.Type{
		"A": 1, "aaaa": 28, "HTTPS": 65, "TYPE257": 257, "type1": 1, "TYPE": 0, "TYPE0": 0, "TYPE65536": 0, "65": 0, "": 0,
	} {
		if got, ok := qtypeOf(name); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: got %d %v, want %d", name, got, ok, want)
		}
	}
}

func FuzzDNSAnswer(f *testing.F) {
	made, err := newDNS(define(check.DNS, func(c *check.Check) { c.QName, c.QType = "a.test", "A" }))
	if err != nil {
		f.Fatal(err)
	}
	p := made.(*dnsProber)
	var m dnsmessage.Message
	if err := m.Unpack(p.query); err != nil {
		f.Fatal(err)
	}
	m.Response = true
	for _, seed := range []dnsmessage.Message{m, with(m, "192.0.2.1", "2001:db8::1")} {
		b, err := seed.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		o, truncated, err := p.read(answer, p.query)
		if (o == nil) == (err == nil) || truncated && err != nil {
			t.Errorf("%v %v %v", o, truncated, err)
		}
	})
}
