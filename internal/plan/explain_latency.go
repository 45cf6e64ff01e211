package plan

import (
	"math"
	"net/netip"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// LatencyWhy is what the host's latency map says of a client.
type LatencyWhy struct {
	File       string            `json:"file"`
	Built      time.Time         `json:"built"`
	MaxAge     int               `json:"max_age"` // seconds
	RolledBack *latency.Rollback `json:"rolled_back,omitempty"`
	// Side is which of its entries were asked: client or resolver.
	Side  string       `json:"side"`
	Entry netip.Prefix `json:"entry,omitzero"` // that holds the client; zero: none does
	// Measured are the regions that the entry has, best first. They come from the
	// file; Changed says that it is no longer the one in use, so they are left out.
	Measured []MeasuredRegion `json:"measured,omitempty"`
	Changed  bool             `json:"changed,omitempty"`
	// Ignored is why the map, or its entry, says nothing here: too_old, prefix_rule (one
	// decides), refused (the client is), special_space, split (the weights written hold), or not_listed (the client's list has
	// none of the entry's regions).
	Ignored string `json:"ignored,omitempty"`
	// Without is the list that the client would have without the map, and By what
	// would have given it; for an entry that is not ignored.
	Without *CandidateList `json:"without,omitempty"`
	By      string         `json:"without_by,omitempty"`
	// Costs are what the candidates, in their order, cost the clients of the list by
	// [Need.Costs], which is what the law of capacity goes by; of a list that the map has
	// measurements of.
	Costs []RegionCost `json:"costs,omitempty"`
}

// RegionCost is what a region costs.
type RegionCost struct {
	Region       string  `json:"region"`
	Milliseconds float64 `json:"ms"` // to the tenth
}

// MeasuredRegion is what users measured of a region.
type MeasuredRegion struct {
	Region  string  `json:"region"`
	P75     float32 `json:"p75_ms,omitempty"`
	Samples uint32  `json:"samples,omitempty"`
	Failed  float32 `json:"failed,omitempty"` // part of all, 0..1
}

// latencyWhy explains what the host's map says of a client; nil: it has none. ecs tells
// which of its sides was asked.
func (h *Host) latencyWhy(d *Data, why *topology.Reasons, addr netip.Addr, ecs bool) *LatencyWhy {
	l := h.Config.Latency
	if l == nil {
		return nil
	}
	file := d.maps[d.path(l.Path)]
	w := &LatencyWhy{
		File: file.path, Built: file.head.Built, MaxAge: int(l.MaxAge.Seconds()), RolledBack: file.head.Rollback,
		Side: "resolver", Entry: why.EntryNet,
	}
	if ecs {
		w.Side = "client"
	}
	if h.Need.measured == nil {
		w.Ignored = "too_old"
	}
	m, hash, _, err := readMap(w.File)
	if err != nil || hash != file.hash {
		w.Changed = true
	} else {
		w.look(m, addr)
	}
	if !w.Entry.IsValid() || w.Ignored != "" {
		return w
	}
	w.Ignored = ignoredEntry(why)
	if without := why.Without; without != nil {
		list := h.Need.names(&without.List)
		w.Without, w.By = &list, wordOf(without)
	}
	return w
}

// costsWhy tells what the candidates of a list cost.
func (n *Need) costsWhy(list int) (costs []RegionCost) {
	l := &n.Topology.Lists[list]
	if n.costs.lists == nil || n.costs.lists[list].rtt == nil || l.Split != nil || len(l.Order) < 2 {
		return nil // there is nothing measured, or many orders, or no choice
	}
	var order []steer.Region
	for _, r := range l.Order {
		order = append(order, steer.Region(r))
	}
	for i, ms := range n.Costs(list, order) {
		costs = append(costs, RegionCost{n.region(l.Order[i]), math.Round(10*ms) / 10})
	}
	return costs
}

// ignoredEntry is why an entry that holds the client says nothing; empty: it does.
func ignoredEntry(why *topology.Reasons) string {
	switch {
	case why.By == topology.ByLatency:
		return ""
	case why.List.Refuse:
		return "refused"
	case len(why.List.Split) > 0 && !why.List.Tied:
		return "split"
	case why.Decided == topology.Prefix:
		return "prefix_rule"
	case why.SpecialSpace:
		return "special_space"
	}
	return "not_listed"
}

// look reads what was measured of an address.
func (w *LatencyWhy) look(m *latency.Map, addr netip.Addr) {
	entry, ok := m.LookupResolver(addr)
	if w.Side == "client" {
		entry, ok = m.Lookup(addr)
	}
	if !ok {
		return
	}
	w.Entry = entry.Prefix
	for i, r := range entry.Order {
		region := MeasuredRegion{Region: m.Regions[r]}
		if i < len(entry.Cells) {
			region.P75, region.Samples, region.Failed = entry.Cells[i].P75, entry.Cells[i].Samples, entry.Cells[i].Failed
		}
		w.Measured = append(w.Measured, region)
	}
}
