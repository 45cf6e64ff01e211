package target

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/net/dns/dnsmessage"
)

// serveDNS answers over UDP and TCP on one port of loopback by the messages that
// udp and tcp make of a query; a nil one never answers.
func serveDNS(t testing.TB, udp, tcp func(message) []message) (server string) {
	t.Helper()
	l, conn := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if tcp == nil {
				c.Close()
				continue
			}
			wg.Go(func() { serveTCP(t, c, tcp) })
		}
	})
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
	t.Cleanup(func() { l.Close(); conn.Close(); wg.Wait() })
	return conn.LocalAddr().String()
}

// listen finds a port of loopback that is free for TCP and UDP.
func listen(t testing.TB) (net.Listener, net.PacketConn) {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := net.ListenPacket("udp", l.Addr().String()); err == nil {
			return l, conn
		}
		l.Close()
	}
	t.Fatal("no port is free for both TCP and UDP")
	return nil, nil
}

func TestExchange(t *testing.T) {
	noLeaks(t)
	answer := func(records ...string) func(message) []message {
		return func(m message) []message { return []message{with(m, records...)} }
	}
	good := answer("lb.test. 60 A 192.0.2.1")
	refuses := func(m message) []message { return []message{code(m, 5)} }
	truncated := func(m message) []message {
		m = with(m, "lb.test. 60 A 192.0.2.66")
		m.Truncated = true
		return []message{m}
	}
	forged := func(after ...string) func(message) []message {
		return func(m message) []message {
			bad := with(m, "lb.test. 60 A 203.0.113.66")
			id, name, qtype, query, none, notify := bad, bad, bad, bad, bad, bad
			id.ID++
			q := m.Questions[0]
			q.Name = dnsmessage.MustNewName("forged.test.")
			name.Questions = []dnsmessage.Question{q}
			q = m.Questions[0]
			q.Type = dnsmessage.TypeTXT
			qtype.Questions = []dnsmessage.Question{q}
			query.Response = false
			none.Questions = nil
			notify.OpCode = 4
			all := []message{id, name, qtype, query, none, notify}
			if after != nil {
				all = append(all, with(m, after...))
			}
			return all
		}
	}
	upper := func(m message) []message {
		m = with(m, "LB.Test. 60 A 192.0.2.1")
		m.Questions[0].Name = dnsmessage.MustNewName("LB.TEST.")
		return []message{m}
	}
	formerr := func(m message) []message { m.Questions = nil; return []message{code(m, 1)} }
	for _, tc := range []struct {
		name     string
		udp, tcp func(message) []message
		next     func(message) []message // of a second resolver
		want     string
	}{
		{"answer", good, nil, nil, "192.0.2.1"},
		{"letters changed", upper, nil, nil, "192.0.2.1"},
		{"truncated", truncated, good, nil, "192.0.2.1"},
		{"truncated, TCP closed", truncated, nil, nil, "S: over TCP, as the answer is truncated: connection closed by the resolver"},
		{"truncated, too", truncated, truncated, nil, "S: the answer is truncated over TCP, too"},
		{"truncated, TCP to something else", truncated, forged(), nil, "S: the answer over TCP is to something else"},
		{"forged first", forged("lb.test. 60 A 192.0.2.1"), nil, nil, "192.0.2.1"},
		{"refused", refuses, nil, nil, "S: the resolver says REFUSED"},
		{"not understood", formerr, nil, nil, "S: the resolver says FORMERR"},
		{"next after a refusal", refuses, nil, good, "192.0.2.1"},
		{"next after garbage", answer("lb.test. 60 A 0.0.0.0"), nil, good, "192.0.2.1"},
		{"no next after nothing", answer("test. 60 SOA 60"), nil, good, "nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			first := serveDNS(t, tc.udp, tc.tcp)
			list := []string{first}
			if tc.next != nil {
				list = append(list, serveDNS(t, tc.next, nil))
			}
			compareAsk(t, list, strings.Replace(tc.want, "S:", first+":", 1))
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		const at = "127.0.0.1:1" // a port that nobody is given by chance
		compareAsk(t, []string{at}, at+": connection refused")
		compareAsk(t, []string{at, serveDNS(t, good, nil)}, "192.0.2.1")
	})
	for name, says := range map[string]func(message) []message{
		"no answer within 2s": func(message) []message { return nil },
		"no answer within 2s (6 answers to something else ignored)": forged(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.say(func(_ string, m message) []message { return says(m) })
				compare(t, n.resolver(nil), servers[:1], servers[0]+": "+name)
			})
		})
	}
}

// compareAsk asks for the IPv4 addresses of lb.test, over sockets. The time that an answer
// may take does not pass meanwhile, however busy the machine: that of a bubble stands still
// while one of its goroutines waits for a socket.
func compareAsk(t *testing.T, list []string, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { compare(t, New(Options{Rand: rand.Reader, Dial: dialPatiently}), list, want) })
}

// dialPatiently is for bubbles: what dials over sockets takes their time for that of the machine.
func dialPatiently(_ context.Context, network, address string) (net.Conn, error) {
	return net.Dial(network, address)
}

func compare(t *testing.T, r *Resolver, list []string, want string) {
	t.Helper()
	defer r.Close()
	addrs, err := parseServers(list)
	if err != nil {
		t.Fatal(err)
	}
	f := r.ask(t.Context(), &Target{name: "lb.test.", servers: addrs}, dnsmessage.TypeA)
	got := words(f.addrs)
	switch {
	case f.err != nil:
		got = f.err.Error()
	case f.none:
		got = "nothing"
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestExchangeTakesBigAnswers has an answer of many addresses over UDP, bigger
// than asked for.
func TestExchangeTakesBigAnswers(t *testing.T) {
	noLeaks(t)
	compareAsk(t, []string{serveDNS(t, func(m message) []message {
		for i := range 100 {
			m = with(m, fmt.Sprintf("lb.test. 60 A 192.0.2.%d", 200-i))
		}
		return []message{m}
	}, nil)}, fmt.Sprintf("the answer holds %d addresses, only the lowest %d are used", 100, MaxAddrs))
}

func TestIDsAreRandom(t *testing.T) {
	noLeaks(t)
	ids := make(chan uint16, 2)
	server := serveDNS(t, func(m message) []message {
		ids <- m.ID
		return []message{with(m, "lb.test. 60 A 192.0.2.1")}
	}, nil)
	synctest.Test(t, func(t *testing.T) { // see compareAsk
		r := New(Options{Rand: bytes.NewReader([]byte{1, 2, 0xff, 0xfe}), Dial: dialPatiently})
		defer r.Close()
		at := netip.MustParseAddrPort(server)
		for range 2 {
			if _, err := r.askServer(t.Context(), at, "lb.test.", dnsmessage.TypeA); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.askServer(t.Context(), at, "lb.test.", dnsmessage.TypeA); err == nil || !strings.Contains(err.Error(), "no random number") {
			t.Error(err)
		}
	})
	if one, two := <-ids, <-ids; one != 0x0102 || two != 0xfffe {
		t.Errorf("ids %#x %#x", one, two)
	}
	defer func() {
		if recover() == nil {
			t.Error("a resolver without random numbers")
		}
	}()
	New(Options{})
}

// TestOverSockets resolves hundreds of names over loopback, and ends without a
// trace.
func TestOverSockets(t *testing.T) {
	noLeaks(t)
	server := serveDNS(t, func(m message) []message {
		name := m.Questions[0].Name.String()
		var i int
		fmt.Sscanf(name, "lb-%d.test.", &i)
		if asked(m) == "AAAA" {
			return []message{with(m, fmt.Sprintf("%s 300 AAAA 2001:db8::%x", name, i+1))}
		}
		return []message{with(m, fmt.Sprintf("%s 300 A 10.0.%d.%d", name, i/256, i%256))}
	}, nil)
	synctest.Test(t, func(t *testing.T) { // see compareAsk
		const n = 400
		asked := map[*Target]bool{}
		r := New(Options{Rand: rand.Reader, Dial: dialPatiently, Changed: func(changes []Change) {
			for _, c := range changes {
				asked[c.Target] = true
			}
		}})
		defer r.Close()
		var all []*Target
		for i := range n {
			target, err := r.Acquire([]string{server}, fmt.Sprintf("LB-%d.test", i), "user")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, target)
		}
		after(coalesce)
		for i, target := range all {
			if got, want := uses(target, 0), fmt.Sprintf("10.0.%d.%d 2001:db8::%x", i/256, i%256, i+1); got != want || !asked[target] {
				t.Errorf("%s: %s, want %s, told %v, %v", target.Name(), got, want, asked[target], target.State().Err)
			}
		}
		if s := r.Stats(); s.Targets != n || s.Rounds != n || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
	})
}
