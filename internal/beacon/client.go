package beacon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// client is whose a report is. It holds no address.
type client struct {
	prefix netip.Prefix // a /24 or a /56
	source string       // see sources; empty if they are not wanted
}

var (
	errNoForwarded  = errors.New("a trusted proxy sent no X-Forwarded-For: have it add the client's address")
	errBadForwarded = errors.New("no address where X-Forwarded-For should have the client's")
	errNoAddress    = errors.New("the connection has no address")
)

// clientOf finds out whose a request is. The address ends here.
func (c *Collector) clientOf(r *http.Request) (client, error) {
	addr, err := addressOf(r.RemoteAddr, r.Header.Values("X-Forwarded-For"), c.Trusted)
	if err != nil {
		return client{}, err
	}
	own := client{prefix: cut(addr)}
	if c.sources != nil {
		own.source, err = c.sources.of(addr, c.Now())
	}
	return own, err
}

// cut is the /24 or /56 of an address.
func cut(addr netip.Addr) netip.Prefix {
	bits := 56
	if addr.Is4() {
		bits = 24
	}
	p, _ := addr.Prefix(bits)
	return p
}

// addressOf is the transport's address, or, if that is a trusted proxy's, the last
// one forwarded that is not. Before it anybody could have written anything. If all are
// trusted, it is the first.
func addressOf(transport string, forwarded []string, trusted []netip.Prefix) (netip.Addr, error) {
	at, err := netip.ParseAddrPort(transport)
	if err != nil {
		return netip.Addr{}, errNoAddress
	}
	addr := plain(at.Addr())
	isTrusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	if !isTrusted(addr) {
		return addr, nil
	}
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	if len(forwarded) == 0 {
		return netip.Addr{}, errNoForwarded
	}
	for _, hop := range slices.Backward(hops) {
		var ok bool
		if addr, ok = parseHop(strings.TrimSpace(hop)); !ok {
			return netip.Addr{}, errBadForwarded
		}
		if !isTrusted(addr) {
			break
		}
	}
	return addr, nil
}

// parseHop reads an address; some proxies add a port.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return plain(a), true
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		return plain(a.Addr()), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return plain(a), err == nil
}

// plain writes IPv4 as IPv4, and without a zone.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// sources name the users of a prefix, so that none of them decides for the
// others: 20 bits of a keyed hash of an IPv4 address, or of the /64 of an IPv6 address, in
// which its users can have any. The key is drawn anew each day (UTC), and is nowhere else.
type sources struct {
	random io.Reader

	mu  sync.Mutex
	day int64
	key []byte
}

func (s *sources) of(addr netip.Addr, now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if day := now.Unix() / 86400; s.key == nil || day != s.day {
		key := make([]byte, sha256.Size)
		if _, err := io.ReadFull(s.random, key); err != nil {
			return "", err
		}
		s.key, s.day = key, day
	}
	b := addr.AsSlice()
	h := hmac.New(sha256.New, s.key)
	h.Write(b[:min(len(b), 8)])
	return hex.EncodeToString(h.Sum(nil))[:5], nil
}
