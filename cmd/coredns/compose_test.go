package main

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"testing"

	clog "github.com/coredns/coredns/plugin/pkg/log"

	"github.com/miekg/dns"
)

// Each plugin of CoreDNS that an operator is likely to put beside gslb, in one
// server block with it and a zone file below.
func TestComposition(t *testing.T) {
	for _, c := range []struct {
		plugin string
		cases  []exchangeCase
	}{
		{"any", []exchangeCase{
			{"ANY is answered above us", "www.example.com ANY", `HINFO "ANY obsoleted" "See RFC 8482" not authoritative`},
			{"and A by us", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		}},
		{"bufsize 512", []exchangeCase{
			{"answer", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
			{"no OPT", "www.example.com A", "192.0.2.4"},
		}},
		{"loadbalance", []exchangeCase{
			{"answer", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
			{"from the file", "static.example.com A +subnet=198.51.99.0/24", "192.0.2.80 /0"},
		}},
		{"minimal", []exchangeCase{
			{"answer", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
			{"NODATA keeps its SOA", "v4.example.com AAAA +subnet=198.51.99.0/24", "NODATA /0"},
			{"NXDOMAIN keeps its SOA", "missing.example.com A +subnet=198.51.99.0/24", "NXDOMAIN /0"},
			{"MX", "example.com MX +subnet=198.51.99.0/24", "MX 10 www.example.com. /0"},
		}},
		{"acl {\n block type A net 127.9.0.0/16\n drop net 127.10.0.0/16\n}", []exchangeCase{
			{"allowed", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
			{"d18 blocked by its address, not by the option", "www.example.com A +subnet=198.51.99.0/24 from=127.9.0.1", "REFUSED"},
			{"d18 an option opens nothing", "www.example.com A +subnet=127.9.0.0/24", "192.0.2.4 /8"},
			{"another type", "www.example.com AAAA +subnet=198.51.99.0/24 from=127.9.0.1", "2001:db8:b::1 /24"},
		}},
		{"rewrite name exact old.example.com www.example.com", []exchangeCase{
			{"d03 steered under the old name, with the option", "old.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
			{"d03 no data under it", "old.example.com MX +subnet=198.51.99.0/24", "NODATA /0"},
			{"the new name", "www.example.com A +subnet=203.0.113.0/24", "192.0.2.3 /24"},
		}},
		{"template IN A tpl.example.com {\n answer \"{{ .Name }} 60 IN A 192.0.2.90\"\n}", []exchangeCase{
			{"from the template", "tpl.example.com A +subnet=198.51.99.0/24", "192.0.2.90 /0"},
			{"ours", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		}},
		{"hosts {\n 192.0.2.91 hosted.example.com www.example.com\n fallthrough\n}", []exchangeCase{
			{"from hosts", "hosted.example.com A +subnet=198.51.99.0/24", "192.0.2.91 /0"},
			{"ours", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		}},
		{"header {\n response set ra\n}", []exchangeCase{
			{"ours", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		}},
		{"transfer {\n to *\n}", []exchangeCase{
			{"ours", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		}},
	} {
		t.Run(strings.Fields(c.plugin)[0], func(t *testing.T) { serve(t, withFile(t, c.plugin)).check(t, c.cases) })
	}
}

// The zone file below serves what isn't steered, at the apex too, and can't
// deny what is.
func TestCompositionFile(t *testing.T) {
	file := writeFile(t, t.TempDir(), "db.example.com", zoneText)
	s := serve(t, `example.com:53 {
    gslb {
        region a
        host example.com deep.ent.example.com *.wild.example.com {
            pool a 192.0.2.1
        }
        fallthrough
    }
    file `+file+`
}`)
	s.check(t, []exchangeCase{
		{"steered apex", "example.com A +edns", "192.0.2.1"},
		{"MX", "example.com MX", "MX 10 www.example.com."},
		{"TXT", "example.com TXT", `TXT "from file"`},
		{"NS", "example.com NS", "NS ns1.example.com. NS ns2.example.com."},
		{"SOA", "example.com SOA", "SOA ns1.example.com."},
		{"HTTPS", "example.com HTTPS", "NODATA"},
		{"NXDOMAIN of the file, steered name", "deep.ent.example.com HTTPS", "NODATA"},
		{"NXDOMAIN of the file, empty non-terminal", "ent.example.com A", "NODATA"},
		{"NXDOMAIN of the file, under a wildcard", "x.wild.example.com HTTPS", "NODATA"},
		{"NXDOMAIN of the file, above a wildcard", "wild.example.com A", "NODATA"},
		{"NXDOMAIN of the file, name of nobody", "missing.example.com A", "NXDOMAIN"},
	})
	for _, q := range []string{
		"example.com HTTPS", "example.com AAAA", "deep.ent.example.com HTTPS", "x.wild.example.com AAAA", "missing.example.com A",
	} {
		r := s.exchange(t, q)
		if soa, ok := r.Ns[0].(*dns.SOA); !ok || soa.Serial != 2026113001 || soa.Hdr.Ttl > 300 {
			t.Errorf("%s: authority %v, want the file's SOA", q, r.Ns)
		}
	}
}

// d08: NSID stands beside the client subnet, and doesn't make DNSSEC wanted.
func TestCompositionNSID(t *testing.T) {
	s := serve(t, withFile(t, "nsid instance-1"))
	r := s.exchange(t, "www.example.com A +nsid +subnet=198.51.99.0/24")
	if got := brief(r); got != "192.0.2.2 /24" {
		t.Errorf("got %s", got)
	}
	opt := r.IsEdns0()
	nsid := ""
	for _, o := range opt.Option {
		if o, ok := o.(*dns.EDNS0_NSID); ok {
			nsid = o.Nsid
		}
	}
	if want := hex.EncodeToString([]byte("instance-1")); nsid != want || opt.Do() {
		t.Errorf("NSID %s, want %s; DO %t", nsid, want, opt.Do())
	}
	if r := s.exchange(t, "www.example.com A +subnet=198.51.99.0/24"); len(r.IsEdns0().Option) != 1 {
		t.Errorf("d07 unasked options: %v", r.IsEdns0().Option)
	}
}

// Two views of a zone are two blocks that know nothing of each other.
func TestCompositionView(t *testing.T) {
	view := func(view, addr string) string {
		return "example.com:53 {\n" + view + "\n gslb {\n spread resolver\n region a\n host www.example.com { pool a " + addr + " }\n }\n}\n"
	}
	serve(t, view("view inside {\n expr incidr(client_ip(), '127.9.0.0/16')\n}", "192.0.2.1")+view("", "192.0.2.2")).check(t, []exchangeCase{
		{"inside", "www.example.com A from=127.9.0.1", "192.0.2.1"},
		{"outside", "www.example.com A from=127.8.0.1", "192.0.2.2"},
		{"d18 an option doesn't get inside", "www.example.com A +subnet=127.9.0.0/24 from=127.8.0.1", "192.0.2.2 /8"},
		{"an option doesn't get outside", "www.example.com A +subnet=198.51.100.0/24 from=127.9.0.1", "192.0.2.1 /6"},
	})
}

// A zone that another server transfers can stand below us, too.
func TestCompositionSecondary(t *testing.T) {
	primary := freePort(t)
	file := writeFile(t, t.TempDir(), "db.example.com", zoneText)
	s := serve(t, "example.com:53 {"+strings.Replace(steeredBlock, "FALLTHROUGH", "fallthrough", 1)+
		"\n secondary {\n transfer from 127.0.0.1:"+primary+"\n }\n}\n"+
		"example.com:"+primary+" {\n bind 127.0.0.1\n file "+file+"\n transfer {\n to *\n }\n}\n")
	eventually(t, "the zone is transferred", func() bool {
		return brief(s.exchange(t, "static.example.com A +subnet=198.51.99.0/24")) == "192.0.2.80 /0"
	})
	s.check(t, []exchangeCase{
		{"steered", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		{"steered, another type", "www.example.com HTTPS +subnet=198.51.99.0/24", "NODATA /0"},
		{"apex", "example.com MX +subnet=198.51.99.0/24", "MX 10 www.example.com. /0"},
	})
}

// Ready needs both blocks; the two are one name to the ready plugin.
func TestCompositionReady(t *testing.T) {
	ready := "127.0.0.1:" + freePort(t)
	second := strings.ReplaceAll(steeredBlock, "example.com", "example.org")
	serve(t, withFile(t, "ready "+ready)+"example.org:53 {\n ready "+ready+strings.Replace(second, "FALLTHROUGH", "", 1)+"\n}\n")
	resp, err := http.Get("http://" + ready + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s", resp.Status)
	}
}

// The log plugin can tell what was decided, and the errors plugin is told of
// errors below.
func TestCompositionLog(t *testing.T) {
	var out lockedBuffer
	clog.SetOutput(&out)
	defer clog.Discard()
	s := serve(t, withFile(t, "metadata", "errors",
		`log . "{name} {type} {rcode} host={/gslb/host} region={/gslb/region} source={/gslb/source} scope={/gslb/scope} outcome={/gslb/outcome}"`))
	for _, c := range []struct{ query, want string }{
		{"www.example.com A +subnet=198.51.99.0/24", "www.example.com. A NOERROR host=www.example.com. region=b source=ecs scope=24 outcome=answer"},
		{"deep.ent.example.com AAAA", "deep.ent.example.com. AAAA NOERROR host=www.example.com. region=d source=transport scope=0 outcome=answer"},
		{"v4.example.com AAAA", "v4.example.com. AAAA NOERROR host=v4.example.com. region= source=transport scope=0 outcome=no_family"},
		{"static.example.com A", "static.example.com. A NOERROR host=- region=- source=- scope=- outcome=-"},
	} {
		s.exchange(t, c.query)
		eventually(t, "the log says "+c.want+" in\n"+out.String(), func() bool { return strings.Contains(out.String(), c.want) })
	}
}

// lockedBuffer may be written and read at once.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
