package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Vectors over encrypted transports get the same replies as over UDP.
func TestTransportsAgree(t *testing.T) {
	cert, key, pool := selfSigned(t)
	dot, doh := freePort(t), freePort(t)
	block := strings.Replace(steeredBlock, "FALLTHROUGH", "", 1)
	encrypted := "\n bind 127.0.0.1\n tls " + cert + " " + key + block + "\n}\n"
	s := serve(t, alone+
		"tls://example.com:"+dot+" {"+encrypted+
		"https://example.com:"+doh+" {"+encrypted)
	config := &tls.Config{RootCAs: pool, ServerName: "dns.example.com"}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: deadline}
	defer web.CloseIdleConnections()

	for _, v := range vectors {
		if v.want == coreError && v.reply == noOPT {
			continue // not a query that gets as far as us
		}
		t.Run(v.name, func(t *testing.T) {
			query := v.query(t)
			udp := exchangeRaw(t, "udp", s.addr, query)
			if got := exchangeDoT(t, "127.0.0.1:"+dot, config, query); !bytes.Equal(got, udp) {
				t.Errorf("over DoT\n% x\nover UDP\n% x", got, udp)
			}
			if got := exchangeDoH(t, web, "https://127.0.0.1:"+doh+"/dns-query", query); !bytes.Equal(got, udp) {
				t.Errorf("over DoH\n% x\nover UDP\n% x", got, udp)
			}
		})
	}
}

func exchangeDoT(t *testing.T, addr string, config *tls.Config, query []byte) []byte {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: deadline}, "tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(deadline))
	conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...))
	size := make([]byte, 2)
	if _, err := io.ReadFull(conn, size); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, binary.BigEndian.Uint16(size))
	if _, err := io.ReadFull(conn, reply); err != nil {
		t.Fatal(err)
	}
	return reply
}

func exchangeDoH(t *testing.T, web *http.Client, url string, query []byte) []byte {
	t.Helper()
	resp, err := web.Post(url, "application/dns-message", bytes.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %s: %v", resp.Status, err)
	}
	return reply
}

// selfSigned makes a certificate for dns.example.com, in files for the server
// and in a pool for its clients.
func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"dns.example.com"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	dir := t.TempDir()
	return writeFile(t, dir, "cert.pem", string(text)),
		writeFile(t, dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))), pool
}

// An answer too large for UDP is cut, keeps the client subnet with its scope, and
// is whole over TCP with the same scope.
func TestVector44Truncation(t *testing.T) {
	owner := strings.Repeat("x", 63) + ".example.com"
	var addrs strings.Builder
	for i := range 16 {
		fmt.Fprintf(&addrs, " 2001:db8::%x", i+1)
	}
	s := serve(t, `example.com:53 {
    gslb {
        spread resolver
        region a { clients prefix 198.51.100.0/24 }
        region b { clients rest }
        answers 16
        host `+owner+` {
            pool a`+addrs.String()+`
            pool b 2001:db8:b::1
        }
    }
}`)
	for _, c := range []struct {
		net    string
		size   uint16
		tc     bool
		answer int
	}{
		{"udp", 512, true, -1},
		{"udp", 1232, false, 16},
		{"tcp", 512, false, 16},
	} {
		t.Run(fmt.Sprintf("%s %d", c.net, c.size), func(t *testing.T) {
			q := parseQuery(t, owner+" AAAA +subnet=198.51.100.0/24")
			q.net = c.net
			m := q.msg(t)
			m.IsEdns0().SetUDPSize(c.size)
			r, err := q.exchange(m, s.addr)
			if err != nil {
				t.Fatal(err)
			}
			if r.Truncated != c.tc || c.answer >= 0 && len(r.Answer) != c.answer {
				t.Errorf("TC %t with %d records, want %t and %d", r.Truncated, len(r.Answer), c.tc, c.answer)
			}
			if e := subnets(r); len(e) != 1 || e[0].SourceScope != 24 {
				t.Errorf("client subnet %v, want one of scope 24", e)
			}
			if r.Compress = true; c.net == "udp" && r.Len() > int(c.size) {
				t.Errorf("%d octets, asked for at most %d", r.Len(), c.size)
			}
		})
	}
}

// EDNS rules that need a hand-made message (RFC 6891).
func TestEDNS(t *testing.T) {
	s := serve(t, alone)
	question := vector{}.query(t)[:12+len("\x03www\x07example\x03com\x00")+4]
	type header struct {
		rcode      uint16
		additional uint16
	}
	for _, c := range []struct {
		name       string
		additional string // records in hexadecimal
		count      byte
		want       header
		suffix     string
	}{
		{"no OPT, none back", "", 0, header{dns.RcodeSuccess, 0}, ""},
		{"version 1 is BADVERS", "000029 04d0 00 01 0000 0000", 1, header{dns.RcodeSuccess, 1}, "000029 0000 01 00 0000 0000"},
		{"flags Z are not sent back", "000029 04d0 00 00 4000 0000", 1, header{dns.RcodeSuccess, 1}, "000029 04d0 00 00 0000 0000"},
		{"flag DO is", "000029 04d0 00 00 ffff 0000", 1, header{dns.RcodeSuccess, 1}, "000029 04d0 00 00 8000 0000"},
		{"two OPT", "000029 04d0 00 00 0000 0000 000029 04d0 00 00 0000 0000", 2, header{dns.RcodeFormatError, 1}, "000029 04d0 00 00 0000 0000"},
		{"cookie is not sent back", "000029 04d0 00 00 0000 000c 000a 0008 0102030405060708", 1, header{dns.RcodeSuccess, 1}, "000029 04d0 00 00 0000 0000"},
		{"NSID is not sent back", "000029 04d0 00 00 0000 0004 0003 0000", 1, header{dns.RcodeSuccess, 1}, "000029 04d0 00 00 0000 0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			extra, err := hex.DecodeString(strings.ReplaceAll(c.additional, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			query := append(bytes.Clone(question), extra...)
			query[11] = c.count
			reply := exchangeRaw(t, "udp", s.addr, query)
			got := header{binary.BigEndian.Uint16(reply[2:]) & 0xf, binary.BigEndian.Uint16(reply[10:])}
			suffix, _ := hex.DecodeString(strings.ReplaceAll(c.suffix, " ", ""))
			if got != c.want || !bytes.HasSuffix(reply, suffix) {
				t.Errorf("got %+v, want %+v; reply\n% x\nwant at its end\n% x", got, c.want, reply, suffix)
			}
		})
	}
}
