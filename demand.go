package gslb

import (
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/cespare/xxhash/v2"
)

// demand counts resolutions: by host, candidate list and region, and by host and
// resolver. It belongs to a plan. Counting takes no lock.
type demand struct {
	hosts   []hostDemand
	settled time.Time // when counts were last taken into the means; the registry's lock guards it
}

// hostDemand counts the resolutions of one host.
type hostDemand struct {
	regions int             // columns of counts: one for each region, and one for none
	counts  []atomic.Uint32 // by list and region; if there would be too many, by list, and after them by region
	coarse  bool            // there would be too many
	// resolvers are counted by a hash of their prefix: enough to tell how unevenly
	// demand is spread over them, see concentration.
	resolvers [resolverSlots]atomic.Uint32

	// What follows is the registry's to guard.
	lists   []float64 // mean resolutions of late, by list
	served  []float64 // and by region
	cells   []float64 // and by list and region; nil if coarse
	slots   [resolverSlots]float64
	singles float64 // the sum of the squares of what each resolution still counts in slots
}

const (
	// resolverSlots is how many resolvers are told apart, about.
	resolverSlots = 512
	// maxCells is how many counters by list and region there are at most, for all hosts of
	// a block: 12 bytes each. With more lists and regions than that, what a list's clients
	// got is not told apart by region.
	maxCells = 4 << 20
	// A resolution counts half after demandHalf, and for the concentration of resolvers,
	// which changes slowly and takes many to see, after resolverHalf.
	demandHalf   = 5 * time.Minute
	resolverHalf = time.Hour
	// mostHeld is for how many seconds an answer is taken to be used at most, see held.
	mostHeld = 300
)

func newDemand(p *plan.Plan) *demand {
	d := &demand{hosts: make([]hostDemand, len(p.Hosts))}
	regions, cells := len(p.Block.Regions)+1, 0
	for _, h := range p.Hosts {
		cells += len(h.Need.Topology.Lists) * regions
	}
	for i, h := range p.Hosts {
		d.hosts[i].size(len(h.Need.Topology.Lists), regions, cells > maxCells)
	}
	return d
}

func (h *hostDemand) size(lists, regions int, coarse bool) {
	h.regions, h.coarse = regions, coarse
	h.lists, h.served = make([]float64, lists), make([]float64, regions)
	if coarse {
		h.counts = make([]atomic.Uint32, lists+regions)
		return
	}
	h.counts, h.cells = make([]atomic.Uint32, lists*regions), make([]float64, lists*regions)
}

// count counts one resolution.
func (d *demand) count(host int, c *steer.Client, r steer.Region) {
	h := &d.hosts[host]
	column := h.regions - 1
	if r != steer.NoRegion {
		column = int(r)
	}
	if h.coarse {
		h.counts[c.List].Add(1)
		h.counts[len(h.lists)+column].Add(1)
	} else {
		h.counts[c.List*h.regions+column].Add(1)
	}
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

// halving is what is left of a mean after a time in which half of it goes each half.
func halving(dt, half time.Duration) float64 {
	return math.Exp2(-max(0, dt.Seconds()) / half.Seconds())
}

// take empties a counter. Most are empty, and a look is cheaper.
func take(counter *atomic.Uint32) float64 {
	if counter.Load() == 0 {
		return 0
	}
	return float64(counter.Swap(0))
}

// settle takes what was counted since the last time into the means.
func (d *demand) settle(now time.Time) {
	keep, keepSlots := 1.0, 1.0
	if !d.settled.IsZero() {
		keep, keepSlots = halving(now.Sub(d.settled), demandHalf), halving(now.Sub(d.settled), resolverHalf)
	}
	d.settled = now
	for i := range d.hosts {
		h := &d.hosts[i]
		if h.coarse {
			h.settleCoarse(keep)
		} else {
			h.settleCells(keep)
		}
		h.singles *= keepSlots * keepSlots
		for j := range h.resolvers {
			n := take(&h.resolvers[j])
			h.slots[j] = faded(keepSlots*h.slots[j]) + n
			h.singles += n
		}
	}
}

// faded is a mean, or 0 once it is next to nothing: who has gone must not be computed
// with for ever.
func faded(mean float64) float64 {
	if mean < 1e-6 {
		return 0
	}
	return mean
}

func (h *hostDemand) settleCells(keep float64) {
	clear(h.lists)
	clear(h.served)
	for j := range h.counts {
		h.cells[j] = faded(keep*h.cells[j]) + take(&h.counts[j])
		h.lists[j/h.regions] += h.cells[j]
		h.served[j%h.regions] += h.cells[j]
	}
}

func (h *hostDemand) settleCoarse(keep float64) {
	for j := range h.lists {
		h.lists[j] = faded(keep*h.lists[j]) + take(&h.counts[j])
	}
	for r := range h.served {
		h.served[r] = faded(keep*h.served[r]) + take(&h.counts[len(h.lists)+r])
	}
}

// byList is a copy of the demand by host and list.
func (d *demand) byList() [][]float64 {
	all := make([][]float64, len(d.hosts))
	for i := range d.hosts {
		all[i] = slices.Clone(d.hosts[i].lists)
	}
	return all
}

// held is how many answers resolvers hold of late, in proportion, by host and list: by Little's
// law as many as are given in a TTL. Whose answers end sooner is asked more often for the same
// demand. Answers that are kept for longer than mostHeld are mostly kept unused.
func (d *demand) held(p *plan.Plan) [][]float64 {
	all := d.byList()
	for i := range all {
		for list := range all[i] {
			all[i][list] *= min(float64(p.Hosts[i].Config.TTL), mostHeld)
		}
	}
	return all
}

// concentration is the Herfindahl-Hirschman index of a host's resolutions over its
// resolvers, 0..1, and how many of late it is made of. Slots that resolvers share are
// allowed for: by chance, 1/slots of all pairs do; and so is that each resolution is
// alone with itself.
func (h *hostDemand) concentration() (hhi, n float64) {
	squares := -h.singles
	for _, c := range h.slots {
		n += c
		squares += c * c
	}
	pairs := n*n - h.singles
	if n < 2 || pairs <= 0 {
		return 0, n
	}
	const chance = 1.0 / resolverSlots
	return min(1, max(0, (squares/pairs-chance)/(1-chance))), n
}

// shares are the parts of a host's resolutions of late that each region was to get,
// and got; nil: there were none.
func (d *demand) shares(live *state, host int) (wanted, served []float64) {
	h := &d.hosts[host]
	total := sum(h.lists)
	if total <= 0 {
		return nil, nil
	}
	wanted, served = h.wanted(live, host, h.lists, total), make([]float64, h.regions)
	for r, n := range h.served {
		served[r] = n / total
	}
	return wanted, served
}

// wanted are the parts that each region is to get, if lists have these weights.
func (h *hostDemand) wanted(live *state, host int, weights []float64, total float64) []float64 {
	wanted := make([]float64, h.regions)
	steered := live.plan.Hosts[host]
	for list, n := range weights {
		if n == 0 {
			continue
		}
		for r, part := range steered.Steer.Flow(live.snapshots[host], list, family(steered)) {
			wanted[min(r, h.regions-1)] += part * n / total
		}
	}
	return wanted
}

// weighed is the same by demand: each list has that of weights, and what it got is
// spread as its resolutions were. Lists without resolutions are taken to get what
// they were to get. served is nil where that is not counted by list.
func (d *demand) weighed(live *state, host int, weights []float64) (wanted, served []float64) {
	h := &d.hosts[host]
	total := sum(weights)
	if total <= 0 {
		return nil, nil
	}
	wanted = h.wanted(live, host, weights, total)
	if h.coarse {
		return wanted, nil
	}
	unseen := make([]float64, len(weights))
	for list, n := range weights {
		if h.lists[list] == 0 {
			unseen[list] = n
		}
	}
	served = h.wanted(live, host, unseen, total)
	for list, n := range weights {
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
