package gslb

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/target"

	"github.com/miekg/dns"
)

// names stands for the resolvers of targets, over pipes, so that time may be virtual.
type names struct {
	mu    sync.Mutex
	says  map[string]string // by name: "[ADDRESS…] [ttl N]", a response code, or silence
	dumb  map[string]bool   // resolvers that never answer, by address
	asked map[string]int    // by "TYPE NAME"
}

// roundTrip is how long a resolver or an endpoint takes to answer.
const roundTrip = time.Millisecond

// travel takes a round trip, as all over a network does: what is asked for in a step
// must never be known within it, however the machine schedules.
func travel(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(roundTrip):
	}
}

func newNames() *names {
	return &names{says: make(map[string]string), dumb: make(map[string]bool), asked: make(map[string]int)}
}

// resolving has a registry ask these resolvers.
func (n *names) resolving(r *registry) *registry {
	r.resolving = target.Options{Dial: n.dial}
	return r
}

// set says what a name has from now on.
func (n *names) set(name, says string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.says[name] = says
}

func (n *names) setDumb(server string, dumb bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dumb[server] = dumb
}

func (n *names) count(question string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[question]
}

func (n *names) dial(_ context.Context, network, address string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		framed := network == "tcp"
		buf := make([]byte, 512)
		if framed {
			io.ReadFull(theirs, buf[:2])
		}
		size, err := theirs.Read(buf)
		q := new(dns.Msg)
		if err != nil || q.Unpack(buf[:size]) != nil {
			return
		}
		travel(context.Background())
		if reply := n.reply(address, q); reply != nil {
			out, _ := reply.Pack()
			if framed {
				out = append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)
			}
			theirs.Write(out)
		}
		theirs.Read(buf) // until the other end is closed
	}()
	return ours, nil
}

// reply is what a resolver answers; nil: silence.
func (n *names) reply(server string, q *dns.Msg) *dns.Msg {
	question := q.Question[0]
	n.mu.Lock()
	n.asked[dns.TypeToString[question.Qtype]+" "+question.Name]++
	says, dumb := n.says[question.Name], n.dumb[server]
	n.mu.Unlock()
	words := strings.Fields(says)
	if dumb || says == "silence" {
		return nil
	}
	m := new(dns.Msg).SetReply(q)
	if len(words) == 1 {
		if code, ok := dns.StringToRcode[words[0]]; ok {
			m.Rcode = code
			return m
		}
	}
	ttl := 30
	if i := slices.Index(words, "ttl"); i >= 0 {
		ttl, _ = strconv.Atoi(words[i+1])
		words = words[:i]
	}
	for _, word := range words {
		hdr := dns.RR_Header{Name: question.Name, Class: dns.ClassINET, Ttl: uint32(ttl)}
		a := netip.MustParseAddr(word)
		switch {
		case a.Is4() && question.Qtype == dns.TypeA:
			hdr.Rrtype = dns.TypeA
			m.Answer = append(m.Answer, &dns.A{Hdr: hdr, A: a.AsSlice()})
		case a.Is6() && question.Qtype == dns.TypeAAAA:
			hdr.Rrtype = dns.TypeAAAA
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: hdr, AAAA: a.AsSlice()})
		}
	}
	return m
}

// balanced is a host whose first region is a load balancer's name, and the rest of a
// block.
func balanced(more string) string {
	return probed(`resolvers 127.0.0.53
	host api.example.com {
		check web
		pool a {
			target lb.example.net
		}
		pool b 192.0.2.9
	}
` + more)
}

// only is a host that has nothing but a name.
const only = `host only.example.com {
	check web
	pool a {
		target only.example.net
	}
}
`

// settle waits until what has just been asked is in service.
func settle() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// later waits for a while, and for what comes of it.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wants holds what clients are told, by "NAME TYPE".
func wants(t *testing.T, what string, g *GSLB, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := told(t, g, pairs[i], ""); got != pairs[i+1] {
			t.Errorf("%s: %s: got %s, want %s", what, pairs[i], got, pairs[i+1])
		}
	}
}

// wantLog holds that something was logged, and forgets it.
func wantLog(t *testing.T, l *lines, parts ...string) {
	t.Helper()
	text := l.String()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("logged %q, want %q in it", text, part)
		}
	}
	if len(parts) == 0 && text != "" {
		t.Errorf("logged %q, want nothing", text)
	}
	l.Reset()
}
