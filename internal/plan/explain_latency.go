package plan

import (
	"net/netip"

	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// LatencyWhy is the entry of the latency map that holds a client.
type LatencyWhy struct {
	File  string       `json:"file"`
	Entry netip.Prefix `json:"entry"`
	// Measured are the regions that the entry has, best first. They come from the
	// file; Changed says that it is no longer the one in use, so they are left out.
	Measured []MeasuredRegion `json:"measured,omitempty"`
	Changed  bool             `json:"changed,omitempty"`
	// Ignored: the entry says nothing here, since a prefix rule decides, the client
	// is refused, its space is special, or its list has none of the entry's regions.
	Ignored bool `json:"ignored,omitempty"`
	// Without is the list that the client would have without the map, and By what
	// would have given it.
	Without *CandidateList `json:"without,omitempty"`
	By      string         `json:"without_by,omitempty"`
}

// MeasuredRegion is what users measured of a region.
type MeasuredRegion struct {
	Region  string  `json:"region"`
	P75     float32 `json:"p75_ms,omitempty"`
	Samples uint32  `json:"samples,omitempty"`
	Failed  float32 `json:"failed,omitempty"` // part of all, 0..1
}

// latencyWhy explains what the need's map says of a client; nil: nothing. ecs tells
// which of its sides was asked.
func (n *Need) latencyWhy(why *topology.Reasons, addr netip.Addr, ecs bool) *LatencyWhy {
	if !why.EntryNet.IsValid() || n.measured == nil {
		return nil
	}
	w := &LatencyWhy{File: n.measured.file.path, Entry: why.EntryNet, Ignored: why.By != topology.ByLatency}
	if without := why.Without; without != nil {
		list := n.names(&without.List)
		w.Without, w.By = &list, wordOf(without)
	}
	m, _, hash, err := readMap(w.File)
	if err != nil || hash != n.measured.file.hash {
		w.Changed = true
		return w
	}
	entry, ok := m.LookupResolver(addr)
	if ecs {
		entry, ok = m.Lookup(addr)
	}
	if ok {
		w.Measured = measuredRegions(m, &entry)
	}
	return w
}

func measuredRegions(m *latency.Map, e *latency.Entry) (list []MeasuredRegion) {
	for i, r := range e.Order {
		region := MeasuredRegion{Region: m.Regions[r]}
		if i < len(e.Cells) {
			region.P75, region.Samples, region.Failed = e.Cells[i].P75, e.Cells[i].Samples, e.Cells[i].Failed
		}
		list = append(list, region)
	}
	return list
}
