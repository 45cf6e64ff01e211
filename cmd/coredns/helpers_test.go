package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	clog "github.com/coredns/coredns/plugin/pkg/log"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

// asServer makes the test binary be the server, for the tests that need one in
// a process of its own.
const asServer = "GSLB_TEST_AS_SERVER"

// deadline bounds every wait. It is generous, as the machine may be busy: what is waited
// for ends the wait.
const deadline = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	caddy.Quiet, dnsserver.Quiet = true, true
	log.SetOutput(io.Discard)
	clog.Discard()
	if err := insert("gslb", landmark); err != nil {
		panic(err)
	}
	// Corefiles name files as seen from the root of the repository.
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// server is a CoreDNS in this process.
type server struct {
	*caddy.Instance
	addr string // of UDP and TCP
}

// serve starts a server for the test; its Corefile is written for port 53.
func serve(t *testing.T, corefile string) *server {
	t.Helper()
	s, err := start("Corefile", corefile)
	if err != nil {
		t.Fatalf("The server doesn't start: %v", err)
	}
	t.Cleanup(s.stop)
	return s
}

// start starts a server on a free port of the loopback interface.
func start(path, corefile string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	i, err := caddy.Start(input(path, onAddr(corefile, addr)))
	if err != nil {
		return nil, err
	}
	return &server{i, addr}, nil
}

// reload replaces the server's Corefile.
func (s *server) reload(corefile string) error {
	i, err := s.Restart(input("Corefile", onAddr(corefile, s.addr)))
	s.Instance = i
	return err
}

func (s *server) stop() {
	s.ShutdownCallbacks()
	s.Stop()
}

func input(path, corefile string) caddy.Input {
	return caddy.CaddyfileInput{Filepath: path, Contents: []byte(corefile), ServerTypeName: "dns"}
}

// given are the ports that pickPort gave out. Two servers with one port
// would not be refused, but share what comes.
var given sync.Map

// pickPort finds a port of an IPv4 address that is free for UDP and TCP. It is below
// those that systems give to clients: one of these could have it before the server does.
func pickPort(ip string) (string, error) {
	for range 1000 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if _, twice := given.LoadOrStore(port, true); twice {
			continue // not even to try: its owner may be about to listen
		}
		addr := net.JoinHostPort(ip, port)
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			continue
		}
		p, err := net.ListenPacket("udp4", addr)
		l.Close()
		if err != nil {
			continue
		}
		p.Close()
		return port, nil
	}
	return "", errors.New("no port is free for both UDP and TCP")
}

// freeAddr finds a loopback address whose port is free for UDP and TCP.
func freeAddr() (string, error) {
	port, err := pickPort("127.0.0.1")
	return net.JoinHostPort("127.0.0.1", port), err
}

func freePort(t *testing.T) string {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return portOf(addr)
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

var (
	blockStart = regexp.MustCompile(`(?m)^\S.*:(?:10)?53\b.*\{$`)
	blockPort  = regexp.MustCompile(`:(?:10)?53\b`)
)

// onAddr moves the server blocks of port 53 or 1053 to an address.
func onAddr(corefile, addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return blockStart.ReplaceAllStringFunc(corefile, func(keys string) string {
		return blockPort.ReplaceAllString(keys, ":"+port) + " bind " + host
	})
}

// query is a question in dig's words; see parseQuery.
type query struct {
	name   string
	qtype  uint16
	qclass uint16
	from   string // address it comes from
	net    string // udp or tcp
	subnet string // "": no option
	edns   bool
	do     bool
	nsid   bool
}

// parseQuery reads "NAME TYPE [WORD…]", where a word is +subnet=PREFIX, +edns,
// +do, +nsid, +tcp, +ch or from=ADDRESS.
func parseQuery(t *testing.T, text string) query {
	t.Helper()
	words := strings.Fields(text)
	q := query{name: dns.Fqdn(words[0]), qtype: dns.StringToType[words[1]], qclass: dns.ClassINET, net: "udp", from: "127.0.0.1"}
	for _, w := range words[2:] {
		word, value, _ := strings.Cut(w, "=")
		switch word {
		case "+subnet":
			q.edns, q.subnet = true, value
		case "+edns":
			q.edns = true
		case "+do":
			q.edns, q.do = true, true
		case "+nsid":
			q.edns, q.nsid = true, true
		case "+tcp":
			q.net = "tcp"
		case "+ch":
			q.qclass = dns.ClassCHAOS
		case "from":
			q.from = value
		default:
			t.Fatalf("query %q: unknown word %q", text, w)
		}
	}
	return q
}

// msg is the query as a message.
func (q query) msg(t *testing.T) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(q.name, q.qtype)
	m.Question[0].Qclass = q.qclass
	m.RecursionDesired = false
	if !q.edns {
		return m
	}
	m.SetEdns0(1232, q.do)
	opt := m.IsEdns0()
	if q.subnet != "" {
		opt.Option = append(opt.Option, subnetOption(t, q.subnet))
	}
	if q.nsid {
		opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	}
	return m
}

// subnetOption is the client subnet option for "ADDRESS/SOURCE".
func subnetOption(t *testing.T, prefix string) *dns.EDNS0_SUBNET {
	t.Helper()
	ip, n, err := net.ParseCIDR(prefix)
	if err != nil {
		t.Fatal(err)
	}
	source, width := n.Mask.Size()
	e := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(source), Address: ip}
	if width == 128 {
		e.Family = 2
	}
	return e
}

// exchange asks the server and checks what holds for every reply.
func (s *server) exchange(t *testing.T, text string) *dns.Msg {
	t.Helper()
	return ask(t, s.addr, text)
}

func ask(t *testing.T, addr, text string) *dns.Msg {
	t.Helper()
	q := parseQuery(t, text)
	m := q.msg(t)
	r, err := q.exchange(m, addr)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if complaint := wellFormed(m, r); complaint != "" {
		t.Errorf("%s: %s in\n%s", text, complaint, r)
	}
	return r
}

// exchange sends a message as the query says.
func (q query) exchange(m *dns.Msg, addr string) (*dns.Msg, error) {
	dialer := &net.Dialer{Timeout: deadline}
	if local := net.ParseIP(q.from); q.net == "udp" {
		dialer.LocalAddr = &net.UDPAddr{IP: local}
	} else {
		dialer.LocalAddr = &net.TCPAddr{IP: local}
	}
	c := dns.Client{Net: q.net, Timeout: deadline, Dialer: dialer, UDPSize: dns.MaxMsgSize}
	r, _, err := c.Exchange(m, addr)
	return r, err
}

// wellFormed says what is wrong with a reply, whatever was asked: the question,
// OPT and client subnet of the query come back, and nothing of it unasked.
func wellFormed(m, r *dns.Msg) string {
	if len(r.Question) != 1 || r.Question[0] != m.Question[0] {
		return "another question"
	}
	opts := 0
	for _, rr := range r.Extra {
		if rr.Header().Rrtype == dns.TypeOPT {
			opts++
		}
	}
	opt := m.IsEdns0()
	switch {
	case opt == nil && opts > 0:
		return "an OPT record unasked"
	case opt != nil && opts != 1:
		return fmt.Sprintf("%d OPT records", opts)
	case opt == nil:
		return ""
	}
	sent, got := subnets(m), subnets(r)
	switch {
	case len(got) > len(sent):
		return "a client subnet unasked"
	case len(got) == 1 && (got[0].Family != sent[0].Family || got[0].SourceNetmask != sent[0].SourceNetmask || !got[0].Address.Equal(sent[0].Address)):
		return fmt.Sprintf("client subnet %s for %s", got[0], sent[0])
	}
	return ""
}

// subnets are the client subnet options of a message.
func subnets(m *dns.Msg) (all []*dns.EDNS0_SUBNET) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_SUBNET); ok {
				all = append(all, e)
			}
		}
	}
	return all
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

// nothingLeft waits until the goroutines that a test started have ended.
func nothingLeft(t *testing.T, before goleak.Option) {
	t.Helper()
	var left error
	defer func() {
		if left != nil {
			t.Log(left)
		}
	}()
	eventually(t, "nothing is left", func() bool { left = goleak.Find(before); return left == nil })
}

// metric adds up the series of a metric in this process that have the labels,
// given as name, value, …
func metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			has := make(map[string]string)
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			match := true
			for i := 0; i < len(labels); i += 2 {
				match = match && has[labels[i]] == labels[i+1]
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// writeFile writes a file and gives its path.
func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
