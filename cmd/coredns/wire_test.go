package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const (
	queryID   = 0x1234
	udpSize   = 1232
	noOPT     = "no OPT"
	emptyOPT  = ""
	coreError = "FORMERR" // by the DNS library, before any plugin: without OPT
)

// vector is a query's EDNS options as they stand on the wire, and what is to be
// read from the wire in return.
type vector struct {
	name    string
	qtype   uint16 // 0: A
	options string // hexadecimal
	want    string // address, or response code
	reply   string // options of the reply, or noOPT
}

// vectors are the rules of RFC 7871 for the octets of the option, numbered a.1
// to a.3 of the checklist they come from. What the library mends while it reads
// (v10, v11) is seen by no plugin: they should be FORMERR and are answered.
var vectors = []vector{
	{"v01 IPv4", 0, "0008 0007 0001 18 00 c63363", "192.0.2.2", "0008 0007 0001 18 18 c63363"},
	{"v02 IPv6", 0, "0008 000b 0002 38 00 20010db8000101", "192.0.2.2", "0008 000b 0002 38 30 20010db8000101"},
	{"v03 three octets of payload", 0, "0008 0003 0001 18", coreError, noOPT},
	{"v03 no payload", 0, "0008 0000", coreError, noOPT},
	{"v04 length past the record", 0, "0008 0009 0001 18 00 c63363", coreError, noOPT},
	{"v05 unknown family", 0, "0008 0007 0003 18 00 c63363", coreError, noOPT},
	{"v06 family 0 with a source", 0, "0008 0007 0000 18 00 c63363", coreError, noOPT},
	{"v07 family 0, source 0", 0, "0008 0004 0000 00 00", "192.0.2.4", "0008 0004 0000 00 00"},
	{"v08 source 33", 0, "0008 0009 0001 21 00 c633636000", coreError, noOPT},
	{"v08 source 129", 0, "0008 0015 0002 81 00" + strings.Repeat("20", 17), coreError, noOPT},
	{"v09 scope in a query", 0, "0008 0007 0001 18 18 c63363", "FORMERR", emptyOPT},
	{"v09 scope past the family", 0, "0008 0007 0001 18 21 c63363", coreError, noOPT},
	{"v10 too few octets (limit)", 0, "0008 0006 0001 18 00 c633", "192.0.2.4", "0008 0007 0001 18 12 c63300"},
	{"v11 one octet too many (limit)", 0, "0008 0008 0001 18 00 c6336300", "192.0.2.2", "0008 0007 0001 18 18 c63363"},
	{"v11 two octets too many (limit)", 0, "0008 0009 0001 18 00 c633630000", "192.0.2.2", "0008 0007 0001 18 18 c63363"},
	{"v12 bits past source 20", 0, "0008 0007 0001 14 00 c6336f", "FORMERR", emptyOPT},
	{"v12 bits past source 24", 0, "0008 0008 0001 18 00 c6336301", "FORMERR", emptyOPT},
	{"v13 source 25", 0, "0008 0008 0001 19 00 c6336380", "192.0.2.2", "0008 0008 0001 19 18 c6336380"},
	{"v14 source 32", 0, "0008 0008 0001 20 00 c6336305", "192.0.2.2", "0008 0008 0001 20 18 c6336305"},
	{"v15 two options", 0, "0008 0007 0001 18 00 c63363 0008 0007 0001 18 00 cb0071", "192.0.2.2", "0008 0007 0001 18 18 c63363"},
	{"v18 SOA", dns.TypeSOA, "0008 0007 0001 18 00 c63363", "NOERROR", "0008 0007 0001 18 00 c63363"},
	{"v18 HTTPS", dns.TypeHTTPS, "0008 0007 0001 18 00 c63363", "NOERROR", "0008 0007 0001 18 00 c63363"},
	{"v18 unknown type", 65280, "0008 0007 0001 18 00 c63363", "NOERROR", "0008 0007 0001 18 00 c63363"},
	{"v20 no option", 0, "", "192.0.2.4", emptyOPT},
	{"v20 unknown option", 0, "0064 0002 abcd", "192.0.2.4", emptyOPT},
	{"v23 IPv4 source 0", 0, "0008 0004 0001 00 00", "192.0.2.4", "0008 0004 0001 00 00"},
	{"v23 IPv6 source 0", 0, "0008 0004 0002 00 00", "192.0.2.4", "0008 0004 0002 00 00"},
	{"v24 10/8", 0, "0008 0007 0001 18 00 0a0102", "192.0.2.4", "0008 0007 0001 18 08 0a0102"},
	{"v24 172.16/12", 0, "0008 0007 0001 18 00 ac1005", "192.0.2.4", "0008 0007 0001 18 0c ac1005"},
	{"v24 192.168/16", 0, "0008 0007 0001 18 00 c0a801", "192.0.2.4", "0008 0007 0001 18 10 c0a801"},
	{"v24 fc00::/7", 0, "0008 000b 0002 38 00 fd001122334455", "192.0.2.4", "0008 000b 0002 38 07 fd001122334455"},
	{"v25 127/8", 0, "0008 0008 0001 20 00 7f000001", "192.0.2.4", "0008 0008 0001 20 08 7f000001"},
	{"v25 169.254/16", 0, "0008 0007 0001 18 00 a9fe01", "192.0.2.4", "0008 0007 0001 18 10 a9fe01"},
	{"v25 100.64/10", 0, "0008 0007 0001 18 00 644001", "192.0.2.4", "0008 0007 0001 18 0a 644001"},
	{"v25 0/8", 0, "0008 0007 0001 18 00 000001", "192.0.2.4", "0008 0007 0001 18 08 000001"},
	{"v25 224/3", 0, "0008 0007 0001 18 00 e00001", "192.0.2.4", "0008 0007 0001 18 03 e00001"},
	{"v25 ::1", 0, "0008 0014 0002 80 00 00000000000000000000000000000001", "192.0.2.4", "0008 0014 0002 80 80 00000000000000000000000000000001"},
	{"v25 fe80::/10", 0, "0008 000b 0002 38 00 fe800000000000", "192.0.2.4", "0008 000b 0002 38 0a fe800000000000"},
	{"v26 IPv6 client, A", dns.TypeA, "0008 000b 0002 38 00 20010db8000101", "192.0.2.2", "0008 000b 0002 38 30 20010db8000101"},
	{"v26 IPv4 client, AAAA", dns.TypeAAAA, "0008 0007 0001 18 00 c63363", "2001:db8:b::1", "0008 0007 0001 18 18 c63363"},
	{"v27 IPv4-mapped", 0, "0008 0013 0002 78 00 00000000000000000000ffffc63363", "192.0.2.2", "0008 0013 0002 78 78 00000000000000000000ffffc63363"},
	{"v29 scope shorter than source", 0, "0008 0007 0001 18 00 c00002", "192.0.2.4", "0008 0007 0001 18 09 c00002"},
	{"v30 scope longer, /20", 0, "0008 0007 0001 14 00 c63360", "192.0.2.1", "0008 0007 0001 14 17 c63360"},
	{"v30 scope longer, /16", 0, "0008 0006 0001 10 00 c633", "192.0.2.4", "0008 0006 0001 10 12 c633"},
	{"v32 198.51.96", 0, "0008 0007 0001 18 00 c63360", "192.0.2.1", "0008 0007 0001 18 17 c63360"},
	{"v32 198.51.97", 0, "0008 0007 0001 18 00 c63361", "192.0.2.1", "0008 0007 0001 18 17 c63361"},
	{"v32 198.51.98", 0, "0008 0007 0001 18 00 c63362", "192.0.2.1", "0008 0007 0001 18 18 c63362"},
	{"v32 198.51.100", 0, "0008 0007 0001 18 00 c63364", "192.0.2.1", "0008 0007 0001 18 16 c63364"},
	{"v32 198.51.104", 0, "0008 0007 0001 18 00 c63368", "192.0.2.1", "0008 0007 0001 18 15 c63368"},
	{"v32 198.51.111", 0, "0008 0007 0001 18 00 c6336f", "192.0.2.1", "0008 0007 0001 18 15 c6336f"},
	{"v32 198.51.112", 0, "0008 0007 0001 18 00 c63370", "192.0.2.4", "0008 0007 0001 18 14 c63370"},
	{"v32 203.0.113", 0, "0008 0007 0001 18 00 cb0071", "192.0.2.3", "0008 0007 0001 18 18 cb0071"},
	{"v32 2001:db8::", 0, "0008 000b 0002 38 00 20010db8000000", "192.0.2.1", "0008 000b 0002 38 30 20010db8000000"},
	{"v32 2001:db8:2::", 0, "0008 000b 0002 38 00 20010db8000200", "192.0.2.1", "0008 000b 0002 38 2f 20010db8000200"},
	{"v32 2001:db9::", 0, "0008 000b 0002 38 00 20010db9000000", "192.0.2.4", "0008 000b 0002 38 20 20010db9000000"},
}

func TestVectorsUDP(t *testing.T) {
	s := serve(t, alone)
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) { v.check(t, exchangeRaw(t, "udp", s.addr, v.query(t))) })
	}
}

func TestVectorsTCP(t *testing.T) {
	s := serve(t, alone)
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) { v.check(t, exchangeRaw(t, "tcp", s.addr, v.query(t))) })
	}
}

// With the option switched off, none is sent back and the transport decides.
func TestVectorECSOff(t *testing.T) {
	s := serve(t, strings.Replace(alone, "spread resolver", "spread resolver\n ecs off", 1))
	vector{options: "0008 0007 0001 18 00 c63363", want: "192.0.2.4", reply: emptyOPT}.
		check(t, exchangeRaw(t, "udp", s.addr, vector{options: "0008 0007 0001 18 00 c63363"}.query(t)))
}

// query is the vector's question for www.example.com, octet by octet.
func (v vector) query(t *testing.T) []byte {
	t.Helper()
	qtype := v.qtype
	if qtype == 0 {
		qtype = dns.TypeA
	}
	b := binary.BigEndian.AppendUint16(nil, queryID)
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1) // one question, one additional record
	b = append(b, "\x03www\x07example\x03com\x00"...)
	b = binary.BigEndian.AppendUint16(b, qtype)
	b = binary.BigEndian.AppendUint16(b, dns.ClassINET)
	return append(b, optRecord(t, v.options)...)
}

// optRecord is an OPT record with options given in hexadecimal.
func optRecord(t *testing.T, options string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.ReplaceAll(options, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{0, 0, byte(dns.TypeOPT)}
	b = binary.BigEndian.AppendUint16(b, udpSize)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

func (v vector) check(t *testing.T, reply []byte) {
	t.Helper()
	if len(reply) < 12 || binary.BigEndian.Uint16(reply) != queryID {
		t.Fatalf("reply % x", reply)
	}
	additional := binary.BigEndian.Uint16(reply[10:])
	if v.reply == noOPT {
		if additional != 0 {
			t.Errorf("additional records in % x", reply)
		}
	} else if want := optRecord(t, v.reply); additional != 1 || !bytes.HasSuffix(reply, want) {
		t.Errorf("reply\n% x\nwith %d additional records, want one at its end:\n% x", reply, additional, want)
	}
	m := new(dns.Msg)
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	got := dns.RcodeToString[m.Rcode]
	if len(m.Answer) == 1 && net.ParseIP(v.want) != nil {
		got = data(m.Answer[0])
	}
	if got != v.want {
		t.Errorf("got %s, want %s", got, v.want)
	}
}

// exchangeRaw sends octets and gives those that come back.
func exchangeRaw(t *testing.T, network, addr string, query []byte) []byte {
	t.Helper()
	conn, err := net.DialTimeout(network, addr, deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(deadline))
	if network == "tcp" {
		query = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	}
	if _, err := conn.Write(query); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 65535)
	if network == "tcp" {
		if _, err := io.ReadFull(conn, reply[:2]); err != nil {
			t.Fatal(err)
		}
		reply = reply[:binary.BigEndian.Uint16(reply)]
		_, err = io.ReadFull(conn, reply)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	n, err := conn.Read(reply)
	if err != nil {
		t.Fatal(err)
	}
	return reply[:n]
}
