package gslb

import (
	"net/netip"
	"sync/atomic"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/cespare/xxhash/v2"
)

// demand counts resolutions: by host, candidate list and region, and by host and
// resolver. It belongs to a plan. Counting takes no lock.
type demand struct {
	hosts []hostDemand
}

// hostDemand counts the resolutions of one host.
type hostDemand struct {
	regions int             // columns of counts: one for each region, and one for none
	counts  []atomic.Uint32 // by list and region
	// resolvers are counted by a hash of their prefix: enough to tell how unevenly
	// demand is spread over them, see concentration.
	resolvers [resolverSlots]atomic.Uint32

	// What follows is the registry's to guard.
	lists  []float64 // mean resolutions of late, by list
	served []float64 // and by region
	cells  []float64 // and by list and region
}

// resolverSlots is how many resolvers are told apart, about.
const resolverSlots = 512

func newDemand(p *plan.Plan) *demand {
	d := &demand{hosts: make([]hostDemand, len(p.Hosts))}
	for i, h := range p.Hosts {
		lists, regions := len(h.Need.Topology.Lists), len(p.Block.Regions)+1
		d.hosts[i] = hostDemand{
			regions: regions, counts: make([]atomic.Uint32, lists*regions),
			lists: make([]float64, lists), served: make([]float64, regions), cells: make([]float64, lists*regions),
		}
	}
	return d
}

// count counts one resolution.
func (d *demand) count(host int, c *steer.Client, r steer.Region) {
	h := &d.hosts[host]
	column := h.regions - 1
	if r != steer.NoRegion {
		column = int(r)
	}
	h.counts[c.List*h.regions+column].Add(1)
	h.resolvers[slotOf(c.Transport)].Add(1)
}

// slotOf is where a resolver is counted: by its /24 or /56.
func slotOf(a netip.Addr) uint64 {
	b := a.As16()
	n := 7
	if a.Is4() || a.Is4In6() {
		n = 15
	}
	return xxhash.Sum64(b[:n]) % resolverSlots
}

// fade is what a mean keeps from one step of the law to the next: with a step of
// 15 s, half of it is from the last five minutes.
const fade = 0.966

// settle takes what was counted since into the means.
func (d *demand) settle() {
	for i := range d.hosts {
		h := &d.hosts[i]
		clear(h.lists)
		clear(h.served)
		for j := range h.counts {
			h.cells[j] = fade*h.cells[j] + float64(h.counts[j].Swap(0))
			h.lists[j/h.regions] += h.cells[j]
			h.served[j%h.regions] += h.cells[j]
		}
		for j := range h.resolvers { // what comes in between is lost, and that is little
			if n := h.resolvers[j].Load(); n > 1<<20 {
				h.resolvers[j].Store(n / 2)
			}
		}
	}
}

// byList is the demand by host and list.
func (d *demand) byList() [][]float64 {
	all := make([][]float64, len(d.hosts))
	for i := range d.hosts {
		all[i] = d.hosts[i].lists
	}
	return all
}

// concentration is the Herfindahl-Hirschman index of a host's resolutions over its
// resolvers, 0..1, and how many it is made of. Slots that resolvers share are
// allowed for: by chance, 1/slots of all pairs do; and so is that of n resolutions
// each is alone with itself.
func (h *hostDemand) concentration() (hhi, n float64) {
	squares := 0.0
	for j := range h.resolvers {
		c := float64(h.resolvers[j].Load())
		n += c
		squares += c * (c - 1)
	}
	if n < 2 {
		return 0, n
	}
	const chance = 1.0 / resolverSlots
	return max(0, (squares/(n*(n-1))-chance)/(1-chance)), n
}

// shares are the parts of a host's resolutions of late that each region was to get,
// and got; nil: there were none.
func (d *demand) shares(live *state, host int) (wanted, served []float64) {
	h := &d.hosts[host]
	total := sum(h.lists)
	if total <= 0 {
		return nil, nil
	}
	wanted, served = make([]float64, h.regions), make([]float64, h.regions)
	steered := live.plan.Hosts[host]
	for list, n := range h.lists {
		if n == 0 {
			continue
		}
		for r, part := range steered.Steer.Flow(live.snapshots[host], list, family(steered)) {
			wanted[min(r, h.regions-1)] += part * n / total
		}
	}
	for r, n := range h.served {
		served[r] = n / total
	}
	return wanted, served
}

// weighed is the same by demand: each list has that of weights, and what it got is
// spread as its resolutions were. Lists without resolutions are taken to get what
// they were to get.
func (d *demand) weighed(live *state, host int, weights []float64) (wanted, served []float64) {
	h := &d.hosts[host]
	total := sum(weights)
	if total <= 0 {
		return nil, nil
	}
	wanted, served = make([]float64, h.regions), make([]float64, h.regions)
	steered := live.plan.Hosts[host]
	for list, n := range weights {
		if n == 0 {
			continue
		}
		flow := steered.Steer.Flow(live.snapshots[host], list, family(steered))
		for r, part := range flow {
			wanted[min(r, h.regions-1)] += part * n / total
			if h.lists[list] == 0 {
				served[min(r, h.regions-1)] += part * n / total
			}
		}
		for r := 0; h.lists[list] > 0 && r < h.regions; r++ {
			served[r] += n / total * h.cells[list*h.regions+r] / h.lists[list]
		}
	}
	return wanted, served
}

// admission is what the law admits to a region of a host, over its lists by their
// resolutions.
func (d *demand) admission(live *state, host int, r steer.Region) float64 {
	h := &d.hosts[host]
	admitted, total := 0.0, 0.0
	for list, n := range h.lists {
		admitted += (n + 1e-9) * live.snapshots[host].Admission(list, r)
		total += n + 1e-9
	}
	return admitted / max(total, 1e-9)
}
