package guard

import (
	"net/netip"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// believe notes for a host that was there before how it changes whose client subnets
// count: was is what its block had of them. Where all clients have one candidate list
// that bears on nobody.
func (c *comparison) believe(was *config.ECS, h *plan.Host, p *plan.Plan) {
	if how := believed(was, &p.Block.ECS); how != "" && len(h.Need.Topology.Lists) > 1 {
		c.subnets = how
	}
}

// believed tells how it changes whose client subnets count; empty: they stay those of
// everybody, of nobody, or of resolvers of which some are the same.
func believed(was, is *config.ECS) string {
	a, b := whose(was), whose(is)
	if a == b && (a != some || slices.ContainsFunc(was.From, func(p netip.Prefix) bool { return slices.ContainsFunc(is.From, p.Overlaps) })) {
		return ""
	}
	if a == some && b == some {
		b = "none of these but of others"
	}
	return "client subnets have counted from " + a + " and would count from " + b
}

const some = "some resolvers"

// whose are the client subnets that count, in words.
func whose(e *config.ECS) string {
	switch {
	case e.Off:
		return "nobody"
	case len(e.From) > 0:
		return some
	}
	return "everybody"
}
