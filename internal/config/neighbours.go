package config

// CheckNeighbours refuses other plugins of the server block that this block
// can't work with; has tells whether one is there, by its directive.
func (b *Block) CheckNeighbours(has func(plugin string) bool) error {
	for _, zone := range b.Zones {
		if zone == "." && b.Inherited && has("cache") {
			return b.errorf("gslb without zones answers for everything (.), so cache would be left nothing to cache: " +
				"write the zones after gslb, such as `gslb example.com {`")
		}
	}
	return nil
}

// Authority gives the place and the word of what the block says of the zone's
// authority, soa or ns.
func (b *Block) Authority() (pos Pos, word string, written bool) {
	switch {
	case b.SOA != nil:
		return b.SOA.Pos, "soa", true
	case len(b.NS) > 0:
		return b.Pos, "ns", true
	}
	return Pos{}, "", false
}
