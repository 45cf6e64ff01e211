package target

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	maxUDP   = 1232 // bytes that an answer over UDP is asked to keep to (RFC 9715, section 3.2)
	maxChain = 16   // CNAMEs that are followed
	maxName  = 253  // characters of a name, without the final dot
)

// maxSeconds is the longest TTL there is (RFC 2181, section 8).
const maxSeconds = 1<<31 - 1

// seconds is a TTL as it is meant: what is longer than can be means 0.
func seconds(ttl uint32) uint32 {
	if ttl > maxSeconds {
		return 0
	}
	return ttl
}

// errOther is for messages that don't answer the question.
var errOther = errors.New("not the answer")

// errTruncated is for answers that are to be asked for over TCP.
var errTruncated = errors.New("truncated")

// parseName reads a host name: letters, digits, hyphens and underscores, any
// case, the final dot optional.
func parseName(text string) (string, error) {
	name := lower(strings.TrimSuffix(text, "."))
	if name == "" || len(name) > maxName {
		return "", fmt.Errorf("target %.80q: expected a host name of 1 to %d characters, such as lb-1.example.net", text, maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notOfHosts) {
			return "", fmt.Errorf("target %.80q: %.70q is no label of a host name, expected 1 to 63 letters, digits and hyphens", text, label)
		}
	}
	return name + ".", nil
}

func notOfHosts(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r)
}

// newQuery makes a question to a recursive resolver. It carries EDNS (RFC 6891)
// for its size, and no client subnet.
func newQuery(id uint16, name string, qtype dnsmessage.Type) ([]byte, error) {
	q, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	var opt dnsmessage.ResourceHeader
	if err := opt.SetEDNS0(maxUDP, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	m := dnsmessage.Message{
		Header:      dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions:   []dnsmessage.Question{{Name: q, Type: qtype, Class: dnsmessage.ClassINET}},
		Additionals: []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}},
	}
	return m.Pack()
}

// record is one that counts: of an answer, of class IN.
type record struct {
	owner string // lower case
	ttl   uint32
	cname string     // lower case; or
	addr  netip.Addr // of the family that was asked for
}

// readAnswer takes an answer apart. The error is errOther for what doesn't
// answer the query, which may be forged; errTruncated; or why the server is of no
// help: its code, a message that can't be read, a referral.
func readAnswer(message, query []byte) (finding, error) {
	var parser dnsmessage.Parser
	h, err := parser.Start(message)
	if err != nil || len(query) < 2 || !h.Response || h.OpCode != 0 || h.ID != binary.BigEndian.Uint16(query) {
		return finding{}, errOther
	}
	asked, err := question(query)
	if err != nil {
		return finding{}, errOther
	}
	questions, err := parser.AllQuestions()
	failed := h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError
	switch {
	case err != nil:
		return finding{}, errOther
	case len(questions) == 1 && sameQuestion(questions[0], asked):
	case len(questions) == 0 && failed: // it may not have understood the query
	default:
		return finding{}, errOther
	}
	switch {
	case failed:
		return finding{}, fmt.Errorf("the resolver says %s", codeName(h.RCode))
	case h.Truncated:
		return finding{}, errTruncated
	}
	records, err := readRecords(&parser, asked.Type)
	if err != nil {
		return finding{}, fmt.Errorf("the answer can't be read: %w", err)
	}
	return follow(&parser, h.RCode == dnsmessage.RCodeNameError, records, lower(asked.Name.String()))
}

func question(query []byte) (dnsmessage.Question, error) {
	var parser dnsmessage.Parser
	if _, err := parser.Start(query); err != nil {
		return dnsmessage.Question{}, err
	}
	return parser.Question()
}

func sameQuestion(a, b dnsmessage.Question) bool {
	return a.Type == b.Type && a.Class == b.Class && lower(a.Name.String()) == lower(b.Name.String())
}

// lower is a name with its ASCII letters in lower case: DNS knows no others.
func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// readRecords reads the CNAMEs and addresses of the answer section.
func readRecords(parser *dnsmessage.Parser, qtype dnsmessage.Type) (all []record, err error) {
	for {
		h, err := parser.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		r := record{owner: lower(h.Name.String()), ttl: seconds(h.TTL)}
		switch {
		case h.Class != dnsmessage.ClassINET || h.Type != qtype && h.Type != dnsmessage.TypeCNAME:
			err = parser.SkipAnswer()
		case h.Type == dnsmessage.TypeCNAME:
			var body dnsmessage.CNAMEResource
			body, err = parser.CNAMEResource()
			r.cname = lower(body.CNAME.String())
		case h.Type == dnsmessage.TypeA:
			var body dnsmessage.AResource
			body, err = parser.AResource()
			r.addr = netip.AddrFrom4(body.A)
		default:
			var body dnsmessage.AAAAResource
			body, err = parser.AAAAResource()
			r.addr = netip.AddrFrom16(body.AAAA)
		}
		if err != nil {
			return nil, err
		}
		if r.cname != "" || r.addr.IsValid() {
			all = append(all, r)
		}
	}
}

// follow walks the chain of CNAMEs from a name to its addresses. Records of
// other names don't count, whoever put them there.
func follow(parser *dnsmessage.Parser, missing bool, records []record, name string) (finding, error) {
	ttl := uint32(maxSeconds)
	for range maxChain + 1 {
		next := ""
		var addrs []netip.Addr
		for _, r := range records {
			if r.owner != name {
				continue
			}
			ttl = min(ttl, r.ttl)
			switch {
			case r.addr.IsValid():
				addrs = append(addrs, r.addr)
			case next != "" && next != r.cname:
				return finding{}, errors.New("a name in the answer has two different CNAMEs")
			default:
				next = r.cname
			}
		}
		switch {
		case addrs != nil && next != "":
			return finding{}, errors.New("a name in the answer has a CNAME and addresses")
		case addrs != nil && missing:
			return finding{}, errors.New("the resolver says NXDOMAIN, yet there are addresses")
		case addrs != nil:
			return usable(addrs, clampTTL(ttl, maxTTL))
		case next == "":
			return nothing(parser, missing, ttl)
		}
		name = next
	}
	return finding{}, fmt.Errorf("the answer is a chain of more than %d CNAMEs, or a loop", maxChain)
}

// usable sorts addresses, and leaves out those that can't be an endpoint's.
func usable(addrs []netip.Addr, ttl time.Duration) (finding, error) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	f := finding{ttl: ttl}
	for _, a := range addrs {
		switch problem := unusable(a); {
		case problem != nil && f.err == nil:
			f.err = problem
		case problem == nil && len(f.addrs) < MaxAddrs:
			f.addrs = append(f.addrs, a)
		case problem == nil:
			f.err = fmt.Errorf("the answer holds %d addresses, only the lowest %d are used", len(addrs), MaxAddrs)
		}
	}
	if len(f.addrs) == 0 {
		return finding{}, f.err
	}
	return f, nil
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// unusable tells why nothing can be sent to an address. Loopback and private
// ones are the operator's business.
func unusable(a netip.Addr) error {
	switch {
	case a.IsUnspecified():
		return fmt.Errorf("address %s is unspecified, it is not used", a)
	case a.IsMulticast() || a == broadcast:
		return fmt.Errorf("address %s is multicast or broadcast, it is not used", a)
	case a.Is4In6():
		return fmt.Errorf("address %s is an IPv4 address mapped to IPv6, it is not used: it belongs into an A record", a)
	}
	return nil
}

// nothing tells whether an answer without addresses is one (RFC 2308, section 2):
// with an SOA, or without a word on who knows more. ttl is that of the chain.
func nothing(parser *dnsmessage.Parser, missing bool, ttl uint32) (finding, error) {
	said, referral := false, false
	for {
		h, err := parser.AuthorityHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return finding{}, fmt.Errorf("the answer can't be read: %w", err)
		}
		if h.Type != dnsmessage.TypeSOA {
			referral = referral || h.Type == dnsmessage.TypeNS
			err = parser.SkipAuthority()
		} else {
			var soa dnsmessage.SOAResource
			soa, err = parser.SOAResource()
			ttl, said = min(ttl, seconds(h.TTL), seconds(soa.MinTTL)), true
		}
		if err != nil {
			return finding{}, fmt.Errorf("the answer can't be read: %w", err)
		}
	}
	if referral && !said && !missing {
		return finding{}, errors.New("the resolver refers to others: it doesn't resolve names for us")
	}
	return finding{none: true, ttl: clampTTL(ttl, maxNegative)}, nil
}

// codeName names a response code (RFC 6895, section 2.3).
func codeName(code dnsmessage.RCode) string {
	names := map[dnsmessage.RCode]string{1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED", 9: "NOTAUTH"}
	if name, ok := names[code]; ok {
		return name
	}
	return fmt.Sprintf("response code %d", code)
}
