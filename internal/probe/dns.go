package probe

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// maxUDP is the longest answer read over UDP. Queries carry no EDNS, so more
// than 512 bytes are the server's own idea.
const maxUDP = 4096

// dnsProber asks one question over UDP, and over TCP if the answer is truncated.
type dnsProber struct {
	stateless
	judge
	dialer   *dialer
	places   places
	question dnsmessage.Question
	query    []byte // with id 0
}

func newDNS(c *check.Check) (prober, error) {
	p := &dnsProber{}
	noError, err := rcodeIs("NOERROR")
	if err != nil {
		return nil, err
	}
	if p.judge, err = newJudge(c, check.RCode, []condition{noError}, nil); err != nil {
		return nil, err
	}
	if p.dialer, err = newDialer(c, false); err != nil {
		return nil, err
	}
	if p.places, err = newPlaces(c, 53); err != nil {
		return nil, err
	}
	name, err := dnsmessage.NewName(strings.TrimSuffix(c.QName, ".") + ".")
	if err != nil {
		return nil, fmt.Errorf("dns name %q: %w", c.QName, err)
	}
	qtype, ok := qtypeOf(c.QType)
	if !ok {
		return nil, fmt.Errorf("dns type %q is unknown, expected one such as A, SOA or TYPE65", c.QType)
	}
	p.question = dnsmessage.Question{Name: name, Type: qtype, Class: dnsmessage.ClassINET}
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{RecursionDesired: true},
		Questions: []dnsmessage.Question{p.question},
	}
	if p.query, err = message.Pack(); err != nil {
		return nil, fmt.Errorf("dns name %q: %w", c.QName, err)
	}
	return p, nil
}

func (p *dnsProber) probe(ctx context.Context, a *attempt, t Target) error {
	at, err := p.places.of(t)
	if err != nil {
		return err
	}
	query := append([]byte(nil), p.query...)
	rand.Read(query[:2])
	o, truncated, err := p.overUDP(ctx, a, at, query)
	if err == nil && truncated {
		o, err = p.overTCP(ctx, a, at, query)
	}
	if err != nil {
		return err
	}
	return p.judge.of(o)
}

// overUDP waits for the answer to the query and ignores all others: those may
// be forged.
func (p *dnsProber) overUDP(ctx context.Context, a *attempt, at place, query []byte) (*outcome, bool, error) {
	a.phase = phaseConnect
	conn, err := p.dialer.net.DialUDP(ctx, "udp", netip.AddrPort{}, at.addr)
	if err != nil {
		return nil, false, err
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	a.phase = phaseAnswer
	if _, err := conn.Write(query); err != nil {
		return nil, false, err
	}
	buf := make([]byte, maxUDP)
	for ignored := 0; ; ignored++ {
		n, err := conn.Read(buf)
		if err != nil && ignored > 0 {
			f := a.explain(ctx, err)
			return nil, false, fail(f.class, "%s (%d answers to something else ignored)", f.reason, ignored)
		}
		if err != nil {
			return nil, false, err
		}
		o, truncated, err := p.read(buf[:n], query)
		if errors.Is(err, errOther) {
			continue
		}
		a.answered()
		return o, truncated, err
	}
}

func (p *dnsProber) overTCP(ctx context.Context, a *attempt, at place, query []byte) (*outcome, error) {
	conn, err := p.dialer.dial(ctx, a, at)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	a.phase = phaseAnswer
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(query)))
	if _, err := conn.Write(append(framed, query...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	o, _, err := p.read(answer, query)
	if errors.Is(err, errOther) {
		return nil, fail(ClassProtocol, "answer over TCP is to something else")
	}
	return o, err
}

// errOther is for messages that don't answer the query.
var errOther = errors.New("not the answer")

// read takes an answer apart. Servers that can't make sense of a query may
// leave the question out.
func (p *dnsProber) read(answer, query []byte) (o *outcome, truncated bool, err error) {
	var parser dnsmessage.Parser
	h, err := parser.Start(answer)
	if err != nil || !h.Response || h.ID != binary.BigEndian.Uint16(query) {
		return nil, false, errOther
	}
	questions, err := parser.AllQuestions()
	if err != nil {
		return nil, false, fail(ClassProtocol, "answer can't be read: %v", err)
	}
	switch {
	case len(questions) == 1 && p.asked(questions[0]):
	case len(questions) == 0 && h.RCode != dnsmessage.RCodeSuccess:
	default:
		return nil, false, errOther
	}
	o = &outcome{rcode: h.RCode}
	if h.Truncated {
		return o, true, nil
	}
	if o.answers, err = addresses(&parser); err != nil {
		return nil, false, fail(ClassProtocol, "answer can't be read: %v", err)
	}
	return o, false, nil
}

func (p *dnsProber) asked(q dnsmessage.Question) bool {
	return q.Type == p.question.Type && q.Class == p.question.Class &&
		strings.EqualFold(q.Name.String(), p.question.Name.String())
}

// addresses reads all addresses of an answer section, whoever owns them: the
// names of a chain of CNAMEs do.
func addresses(parser *dnsmessage.Parser) ([]netip.Addr, error) {
	var all []netip.Addr
	for {
		h, err := parser.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		switch h.Type {
		case dnsmessage.TypeA:
			r, err := parser.AResource()
			if err != nil {
				return nil, err
			}
			all = append(all, netip.AddrFrom4(r.A))
		case dnsmessage.TypeAAAA:
			r, err := parser.AAAAResource()
			if err != nil {
				return nil, err
			}
			all = append(all, netip.AddrFrom16(r.AAAA))
		default:
			if err := parser.SkipAnswer(); err != nil {
				return nil, err
			}
		}
	}
}

// rcodes are the response codes by name (RFC 6895, section 2.3).
var rcodes = map[string]dnsmessage.RCode{
	"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "REFUSED": 5,
	"YXDOMAIN": 6, "YXRRSET": 7, "NXRRSET": 8, "NOTAUTH": 9, "NOTZONE": 10,
}

func rcodeName(code dnsmessage.RCode) string {
	for name, c := range rcodes {
		if c == code {
			return name
		}
	}
	return strconv.Itoa(int(code))
}

// qtypes are the types a check can ask for by name.
var qtypes = map[string]dnsmessage.Type{
	"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "NAPTR": 35,
	"DS": 43, "DNSKEY": 48, "TLSA": 52, "SVCB": 64, "HTTPS": 65, "ANY": 255, "CAA": 257,
}

// qtypeOf reads a type's name, or TYPE and a number (RFC 3597, section 5).
func qtypeOf(name string) (dnsmessage.Type, bool) {
	name = strings.ToUpper(name)
	if t, ok := qtypes[name]; ok {
		return t, true
	}
	digits, ok := strings.CutPrefix(name, "TYPE")
	n, err := strconv.ParseUint(digits, 10, 16)
	return dnsmessage.Type(n), ok && err == nil && n > 0
}
