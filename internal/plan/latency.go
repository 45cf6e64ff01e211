package plan

import (
	"fmt"
	"iter"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/geodb"
	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/topology"

	"github.com/cespare/xxhash/v2"
)

// mapFile is a latency map as it is kept: what topologies are compiled from. Its
// measurements stay in the file, for explanations.
type mapFile struct {
	path      string
	head      *latency.Map // without entries
	format    latency.Format
	hash      uint64
	clients   mapSide
	resolvers mapSide
}

// mapSide is the entries for clients, or for resolvers.
type mapSide struct {
	prefixes []netip.Prefix
	order    []uint32 // of each prefix, in orders
	orders   [][]uint8
}

func newMapSide(entries []latency.Entry) (s mapSide) {
	ids := make(map[string]uint32)
	for i := range entries {
		e := &entries[i]
		id, ok := ids[string(e.Order)]
		if !ok {
			id = uint32(len(s.orders))
			ids[string(e.Order)] = id
			s.orders = append(s.orders, e.Order)
		}
		s.prefixes, s.order = append(s.prefixes, e.Prefix), append(s.order, id)
	}
	return s
}

func (s *mapSide) networks() iter.Seq2[netip.Prefix, int] {
	return func(yield func(netip.Prefix, int) bool) {
		for i, p := range s.prefixes {
			if !yield(p, int(s.order[i])) {
				return
			}
		}
	}
}

// readMap reads a latency map and its hash.
func readMap(path string) (*latency.Map, latency.Format, uint64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", 0, err
	}
	m, format, err := latency.ReadBytes(path, data)
	if err == nil && m.Built.IsZero() { // a form that doesn't say
		if info, err := os.Stat(path); err == nil {
			m.Built = info.ModTime().UTC().Truncate(time.Second)
		}
	}
	return m, format, xxhash.Sum64(data), err
}

// openMap reads a latency map for the block's regions.
func (d *Data) openMap(path string, now time.Time) (*mapFile, error) {
	m, format, hash, err := readMap(path)
	if err == nil && !now.IsZero() {
		err = m.Validate(now)
	}
	if err != nil {
		return nil, err
	}
	return d.mapOf(path, m, format, hash)
}

func (d *Data) mapOf(path string, m *latency.Map, format latency.Format, hash uint64) (*mapFile, error) {
	if err := m.Check(d.regions); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	head := *m
	head.Clients, head.Resolvers = nil, nil
	return &mapFile{path, &head, format, hash, newMapSide(m.Clients), newMapSide(m.Resolvers)}, nil
}

// readMapFile reads the map that a host names. What can't be used, or is older
// than what was in service last, gives way to that.
func (d *Data) readMapFile(l *config.Latency, last *LastGood) error {
	path := d.path(l.Path)
	if d.maps[path] != nil {
		return nil
	}
	m, err := d.openMap(path, last.Now)
	good := last.latency(d, path)
	switch {
	case err != nil && good == nil:
		return fmt.Errorf("%s: latency: %w", l.Pos, missing(path, err))
	case err == nil && good != nil && good.hash != m.hash && !m.head.Newer(good.head):
		err = older(m, good)
	}
	if err != nil {
		d.Stale[path] = err
		m = good
	}
	d.maps[path] = m
	return nil
}

// reloadMap takes over the maps of old data, and reads one of them again. An older
// one than that in use is an error, unless it was put back on purpose; so is one
// that has lost more than half of its entries.
func (d *Data) reloadMap(old *Data, path string, now time.Time) error {
	for k, m := range old.maps {
		d.maps[k] = m
		if m.path != path {
			continue
		}
		next, err := d.openMap(path, now)
		if err != nil {
			return err
		}
		if next.hash != m.hash && !next.head.Newer(m.head) {
			return older(next, m)
		}
		if next.head.Rollback == nil {
			if err := geodb.CheckShrink(path, "entries", m.entries(), next.entries()); err != nil {
				return err
			}
		}
		d.maps[k] = next
	}
	return nil
}

func (m *mapFile) entries() int { return len(m.clients.prefixes) + len(m.resolvers.prefixes) }

func older(m, than *mapFile) error {
	return fmt.Errorf("%s: this map was built %s, the one in use %s: put an older one back with `gslbctl map rollback`",
		m.path, m.head.Built.Format(time.RFC3339), than.head.Built.Format(time.RFC3339))
}

// latency gives the last good content of a latency map, nil without one.
func (l *LastGood) latency(d *Data, path string) *mapFile {
	for _, in := range l.InService {
		if m := in.maps[path]; m != nil {
			return m.suits(d)
		}
	}
	if data := l.copyOf(path); data != nil {
		if m, format, err := latency.ReadBytes(path, data); err == nil {
			if kept, err := d.mapOf(path, m, format, xxhash.Sum64(data)); err == nil {
				return kept
			}
		}
	}
	return nil
}

// suits is the map if the block has its regions, else nil.
func (m *mapFile) suits(d *Data) *mapFile {
	for _, side := range []*mapSide{&m.clients, &m.resolvers} {
		for _, order := range side.orders {
			for _, r := range order {
				if !slices.Contains(d.regions, m.head.Regions[r]) {
					return nil
				}
			}
		}
	}
	return m
}

// latencyMap is a map as topologies of one plan take it.
type latencyMap struct {
	file               *mapFile
	clients, resolvers *topology.Measured
}

func (m *latencyMap) key() string {
	if m == nil {
		return ""
	}
	return m.file.path
}

// latency gives the map of a host: nil if it has none, or one that is too old.
func (c *compiler) latency(cfg *config.Host) *latencyMap {
	if cfg.Latency == nil {
		return nil
	}
	file := c.data.maps[c.data.path(cfg.Latency.Path)]
	if expires := file.head.Built.Add(cfg.Latency.MaxAge); !c.now.IsZero() {
		if !c.now.Before(expires) {
			c.tooOld(cfg.Latency, file)
			return nil
		}
		if c.plan.Expires.IsZero() || expires.Before(c.plan.Expires) {
			c.plan.Expires = expires
		}
	}
	if m := c.measured[file.path]; m != nil {
		return m
	}
	ids := make([]topology.Region, len(file.head.Regions))
	for i, name := range file.head.Regions {
		ids[i] = c.regions[name]
	}
	m := &latencyMap{file, file.clients.measured(ids, c.block.Depth), file.resolvers.measured(ids, c.block.Depth)}
	c.measured[file.path] = m
	return m
}

// tooOld warns once for each place that names a map.
func (c *compiler) tooOld(l *config.Latency, file *mapFile) {
	w := config.Warning{Pos: l.Pos, Text: fmt.Sprintf("the map %s was built %s, more than max_age %s ago: it is left out until there is a newer one",
		l.Path, file.head.Built.Format(time.RFC3339), l.MaxAge)}
	for _, other := range c.plan.Warnings {
		if other == w {
			return
		}
	}
	c.plan.Warnings = append(c.plan.Warnings, w)
	c.plan.TooOld[file.path] = true
}

func (s *mapSide) measured(ids []topology.Region, depth int) *topology.Measured {
	if len(s.prefixes) == 0 {
		return nil
	}
	m := &topology.Measured{Networks: s.networks(), Depth: depth}
	for _, order := range s.orders {
		regions := make([]topology.Region, len(order))
		for i, r := range order {
			regions[i] = ids[r]
		}
		m.Orders = append(m.Orders, regions)
	}
	return m
}

// MapInfo describes a latency map in use.
type MapInfo struct {
	Path    string
	Built   time.Time
	Entries int
	TooOld  bool // for a host that names it: it is left out there
}

// Maps describes the latency maps.
func (p *Plan) Maps() (list []MapInfo) {
	for path, m := range p.Data.maps {
		list = append(list, MapInfo{path, m.head.Built, m.entries(), p.TooOld[path]})
	}
	return list
}
