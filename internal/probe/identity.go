package probe

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Key is the identity of a probe: what is done, and where it goes. Checks that
// differ in nothing but their name do the same.
type Key struct {
	Check uint64     // digest of the check's definition
	Addr  netip.Addr // never an IPv4 address mapped to IPv6
	Port  uint16     // 0: the kind's own
	Name  string     // only of checks with `authority each`
}

// KeyOf gives the identity of a check's probe of a target.
func KeyOf(c *check.Check, t Target) Key { return keyWith(checkDigest(c), c, t) }

func keyWith(digest uint64, c *check.Check, t Target) Key {
	k := Key{Check: digest, Addr: t.Addr.Unmap(), Port: t.Port}
	if k.Port == 0 {
		k.Port = uint16(c.Port)
	}
	if c.Each {
		k.Name = t.Name
	}
	return k
}

// String gives the key as one word, equal for equal keys only, and the same in
// every process.
func (k Key) String() string {
	s := fmt.Sprintf("%016x@%s", k.Check, netip.AddrPortFrom(k.Addr, k.Port))
	if k.Name != "" {
		s += "/" + k.Name
	}
	return s
}

// checkDigest hashes all of a check but its name.
func checkDigest(c *check.Check) uint64 {
	nameless := *c
	nameless.Name = ""
	data, err := json.Marshal(&nameless)
	if err != nil {
		panic("probe: a check is plain data, yet: " + err.Error())
	}
	// JSON has no bytes that are not UTF-8, but what is sent may.
	return xxhash.Sum64(append(data, c.Send...))
}
