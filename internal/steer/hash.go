package steer

import (
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// HashVersion names the way choices follow from keys. It changes whenever a key
// may choose another region or endpoint under the same configuration, and belongs
// in the digest that all instances must share.
const HashVersion = 1

// The purposes of a hash. A salt made of purpose and name keeps choices for
// different purposes independent of each other. The host's name is not part of
// it: hosts with the same rules send a client to the same region.
const (
	purposeRegion    = "region"    // choice in a split; name: the region
	purposeEndpoint  = "endpoint"  // choice of one endpoint; name: its 16 address bytes
	purposeAnswers   = "answers"   // choice of a set of endpoints; name: the region
	purposeAdmission = "admission" // whether a region takes the client; name: the region
	purposeShare     = "share"     // whether a soak's share has the client; name: the region
	purposeTrickle   = "trickle"   // whether a region hands the client on; name: the region
	purposeShed      = "shed"      // whether a region sheds the client; name: the region
)

// salt is what is mixed into a key for one purpose and name.
func salt(purpose, name string) uint64 { return xxhash.Sum64String(purpose + name) }

// endpointSalt is the salt of an endpoint, the same in every pool.
func endpointSalt(a netip.Addr) uint64 {
	b := a.As16()
	return salt(purposeEndpoint, string(b[:]))
}

// hashPrefixes hashes prefixes: 16 address bytes and a length byte each. An
// invalid second prefix is left out.
func hashPrefixes(first, second netip.Prefix) uint64 {
	var b [34]byte
	putPrefix(b[:17], first)
	if !second.IsValid() {
		return xxhash.Sum64(b[:17])
	}
	putPrefix(b[17:], second)
	return xxhash.Sum64(b[:])
}

func putPrefix(b []byte, p netip.Prefix) {
	a := p.Addr().As16()
	copy(b, a[:])
	b[16] = byte(p.Bits())
}

// salted makes an independent hash of a key's hash and a salt, by the final mix
// of xxhash.
func salted(key, salt uint64) uint64 {
	h := key ^ salt
	h ^= h >> 33
	h *= 0xc2b2ae3d27d4eb4f
	h ^= h >> 29
	h *= 0x165667b19e3779f9
	return h ^ h>>32
}

// score is a bid in weighted rendezvous: an exponentially distributed number to
// be divided by a weight. The lowest quotient wins with a probability in
// proportion to its weight, and a bid depends on nothing but key, name and weight.
type score struct {
	exp, weight uint64
}

// bid is the score of a salt with a positive weight for a key.
func bid(key, salt uint64, weight uint32) score {
	return score{negLog2(salted(key, salt)), uint64(weight)}
}

// before says whether a wins over b. Weights are at most
// twice MaxWeight, so both products stay below 2^64.
func (a score) before(b score) bool { return a.exp*b.weight < b.exp*a.weight }
