package steer

import "net/netip"

// The prefix of a transport address that stands for its resolver.
const (
	transportBits4 = 24
	transportBits6 = 56
)

// scope is the length of the prefix a decision for c holds for, and why. It
// depends on configuration and on where c is, on nothing that changes with state.
func (h *Host) scope(c *Client) (int, scopeWhy) {
	switch {
	case c.Fixed:
		return c.Block + c.ScopeBase, scopeFixed
	case c.Source == Transport:
		return 0, scopeNoOption
	}
	if g := h.grain[familyOf(c.Addr)]; h.spread == Sticky && g > c.Block {
		return g + c.ScopeBase, scopeGrain
	}
	return c.Block + c.ScopeBase, scopeBlock
}

// scopeWhy says what set a scope.
type scopeWhy uint8

const (
	scopeBlock scopeWhy = iota
	scopeGrain
	scopeFixed
	scopeNoOption
	scopeNoData
)

// String is the word in a trace.
func (w scopeWhy) String() string {
	return [...]string{"block", "grain", "option_ignored", "no_option", "no_data"}[w]
}

// keyPrefixes are the one or two prefixes that make up the key of c; the second
// is invalid when there is one only.
func (h *Host) keyPrefixes(c *Client) (first, second netip.Prefix) {
	if c.Source == Transport {
		return transportPrefix(c.Transport), second
	}
	if h.spread == Resolver {
		return cut(c.Addr, c.Block), transportPrefix(c.Transport)
	}
	return cut(c.Addr, max(c.Block, h.grain[familyOf(c.Addr)])), second
}

// cut is the prefix of a of the given length.
func cut(a netip.Addr, length int) netip.Prefix {
	p, _ := a.Prefix(length) // a bad length makes the zero prefix: one key for all
	return p
}

// transportPrefix is the prefix of a transport address that stands for its resolver.
func transportPrefix(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	if a.Is4() {
		return cut(a, transportBits4)
	}
	return cut(a, transportBits6)
}

// key is the hash that every choice for one client follows from. It is computed
// when first asked for: many decisions have no choice to make.
type key struct {
	hash  uint64
	known bool
}

// sum is the hash of c's key.
func (k *key) sum(h *Host, c *Client) uint64 {
	if !k.known {
		k.hash, k.known = hashPrefixes(h.keyPrefixes(c)), true
	}
	return k.hash
}
