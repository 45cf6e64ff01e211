package plan

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/geodb"
	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/topology"

	"github.com/cespare/xxhash/v2"
)

// mapFile is a latency map as it is kept: what topologies and costs are compiled from. Its
// measurements as they are stay in the file, for explanations.
type mapFile struct {
	path      string
	head      *latency.Map // without entries
	dated     bool         // it doesn't say when it was built, so the file's date counts
	hash      uint64
	clients   mapSide
	resolvers mapSide
}

// mapSide is the entries for clients, or for resolvers, in little room.
type mapSide struct {
	v4     []entry4
	v6     []entry6
	orders [][]uint8 // the distinct ones
	// cells are, for each entry in turn, its demand and the p75 of each region of its order in
	// milliseconds, 0 where none is known; nil: the map has no measurements.
	cells []short
}

type entry4 struct {
	addr [4]byte
	about
}

type entry6 struct {
	addr [16]byte
	about
}

// about is the length of an entry's prefix, in the upper 8 bits, and its order as an
// index into orders: a map has fewer entries than that has values.
type about uint32

const orderBits = 24

func (a about) bits() int  { return int(a >> orderBits) }
func (a about) order() int { return int(a & (1<<orderBits - 1)) }

func newMapSide(entries []latency.Entry) (s mapSide) {
	n4 := sort.Search(len(entries), func(i int) bool { return entries[i].Prefix.Addr().Is6() })
	s.v4, s.v6 = make([]entry4, 0, n4), make([]entry6, 0, len(entries)-n4)
	if n := cellsOf(entries); n > 0 {
		s.cells = make([]short, 0, n)
	}
	ids := make(map[string]about)
	for i := range entries {
		e := &entries[i]
		id, ok := ids[string(e.Order)]
		if !ok {
			id = about(len(s.orders))
			ids[string(e.Order)] = id
			s.orders = append(s.orders, slices.Clone(e.Order))
		}
		id |= about(e.Prefix.Bits()) << orderBits
		if i < n4 {
			s.v4 = append(s.v4, entry4{e.Prefix.Addr().As4(), id})
		} else {
			s.v6 = append(s.v6, entry6{e.Prefix.Addr().As16(), id})
		}
		if s.cells != nil {
			s.cells = appendCells(s.cells, e)
		}
	}
	return s
}

func (s *mapSide) entries() int { return len(s.v4) + len(s.v6) }

// networks gives each entry and the index of its order, in address order, IPv4 first.
func (s *mapSide) networks() iter.Seq2[netip.Prefix, int] {
	return func(yield func(netip.Prefix, int) bool) {
		for i := range s.entries() {
			if p, a := s.entry(i); !yield(p, a.order()) {
				return
			}
		}
	}
}

// entry gives entry i in that order.
func (s *mapSide) entry(i int) (netip.Prefix, about) {
	if i < len(s.v4) {
		e := &s.v4[i]
		return netip.PrefixFrom(netip.AddrFrom4(e.addr), e.bits()), e.about
	}
	e := &s.v6[i-len(s.v4)]
	return netip.PrefixFrom(netip.AddrFrom16(e.addr), e.bits()), e.about
}

// longerThan counts the entries of both families that are longer than these lengths.
func (s *mapSide) longerThan(max4, max6 int) (n int) {
	for _, e := range s.v4 {
		if e.bits() > max4 {
			n++
		}
	}
	for _, e := range s.v6 {
		if e.bits() > max6 {
			n++
		}
	}
	return n
}

// readMap reads a latency map and its hash, and tells whether it had to be dated by
// the file.
func readMap(path string) (m *latency.Map, hash uint64, dated bool, err error) {
	data, changed, err := latency.ReadFile(path)
	if err != nil {
		return nil, 0, false, err
	}
	return parseMap(path, data, changed)
}

func parseMap(path string, data []byte, changed time.Time) (m *latency.Map, hash uint64, dated bool, err error) {
	m, _, err = latency.ReadBytes(path, data)
	if err == nil && m.Built.IsZero() {
		m.Built, dated = changed, true
	}
	return m, xxhash.Sum64(data), dated, err
}

// openMap reads a latency map for the block's regions; a zero now is no time to hold
// it against.
func (d *Data) openMap(path string, now time.Time) (*mapFile, error) {
	m, hash, dated, err := readMap(path)
	if err == nil && !now.IsZero() {
		if err = m.Validate(now); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return d.mapOf(path, m, hash, dated)
}

func (d *Data) mapOf(path string, m *latency.Map, hash uint64, dated bool) (*mapFile, error) {
	if err := m.Check(d.regions); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	head := *m
	head.Clients, head.Resolvers = nil, nil
	return &mapFile{path, &head, dated, hash, newMapSide(m.Clients), newMapSide(m.Resolvers)}, nil
}

// readMapFile reads the map that a host names. What can't be used, or is older
// than what was in service last, gives way to that.
func (d *Data) readMapFile(l *config.Latency, last *LastGood, now time.Time) error {
	path := d.path(l.Path)
	if d.maps[path] != nil {
		return nil
	}
	m, err := d.openMap(path, now)
	good, copied := last.latency(d, path)
	switch {
	case err != nil && good == nil:
		return fmt.Errorf("%s: latency: %w", l.Pos, orCopy(missing(path, err), copied))
	case copied != nil:
		d.spoilt[path] = copied
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
			if err := geodb.CheckShrink(path, "entries", m.content(), next.content()); err != nil {
				return err
			}
		}
		d.maps[k] = next
	}
	return nil
}

func (m *mapFile) entries() int { return m.clients.entries() + m.resolvers.entries() }

// content tells clients' and resolvers' entries apart.
func (m *mapFile) content() geodb.Content {
	return geodb.Content{Len: m.entries(), Prefixes: func(yield func(netip.Prefix, string) bool) {
		for p := range m.clients.networks() {
			if !yield(p, "clients") {
				return
			}
		}
		for p := range m.resolvers.networks() {
			if !yield(p, "resolvers") {
				return
			}
		}
	}}
}

func older(m, than *mapFile) error {
	use := "built " + stamp(than.head.Built)
	if r := than.head.Rollback; r != nil {
		use = fmt.Sprintf("put back %s by %s", stamp(r.At), r.By)
	}
	return fmt.Errorf("%s: this map was built %s, and the one in use was %s: an older map is only taken when it was put back with `gslbctl map rollback`",
		m.path, stamp(m.head.Built), use)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// latency gives the last good content of a latency map, nil without one, or one that
// suits the block; the error is as for database. Of several in service, as in two
// generations, it is the newest.
func (l *LastGood) latency(d *Data, path string) (best *mapFile, err error) {
	for _, in := range l.InService {
		if m := in.maps[path]; m != nil && m.suits(d) && (best == nil || m.head.Newer(best.head)) {
			best = m
		}
	}
	if best != nil {
		return best, nil
	}
	data, kept, err := l.copyOf(path)
	if data == nil {
		return nil, err
	}
	m, hash, dated, err := parseMap(path, data, kept.UTC().Truncate(time.Second)) // the copy has the date of the file, see Keep
	if err != nil {
		return nil, l.ofCopy(path, err)
	}
	best, _ = d.mapOf(path, m, hash, dated)
	return best, nil
}

// suits tells whether the block has the map's regions.
func (m *mapFile) suits(d *Data) bool {
	for _, side := range []*mapSide{&m.clients, &m.resolvers} {
		for _, order := range side.orders {
			for _, r := range order {
				if !slices.Contains(d.regions, m.head.Regions[r]) {
					return false
				}
			}
		}
	}
	return true
}

// warnings tells of what a statement's map is not as it should be.
func (m *mapFile) warnings(l *config.Latency, ecs *config.ECS, stale, spoilt error) (ws []config.Warning) {
	warn := func(format string, args ...any) {
		ws = append(ws, config.Warning{Pos: l.Pos, Text: fmt.Sprintf(format, args...)})
	}
	if stale != nil {
		warn("the last good content of %s is in use: %v", l.Path, stale)
	}
	if spoilt != nil {
		warn("%s is in use, but what was in service last can't be read and compared with it: %v", l.Path, spoilt)
	}
	if m.entries() == 0 {
		warn("%s has no entry, so it says nothing", l.Path)
	}
	if n := m.clients.longerThan(ecs.Max4, ecs.Max6); n > 0 && !ecs.Off {
		warn("%d of %d client entries in %s are longer than ecs max: for ECS the list of most addresses of the shorter prefix counts", n, m.clients.entries(), l.Path)
	}
	return ws
}

// latencyMap is a map as topologies of one plan take it.
type latencyMap struct {
	file               *mapFile
	ids                []topology.Region // of the map's regions
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
	m := &latencyMap{file, ids, file.clients.measured(ids, c.block.Depth), file.resolvers.measured(ids, c.block.Depth)}
	c.measured[file.path] = m
	return m
}

// tooOld leaves a map out, and warns once for each place that names it.
func (c *compiler) tooOld(l *config.Latency, file *mapFile) {
	c.plan.TooOld[file.path] = true
	w := config.Warning{Pos: l.Pos, Text: fmt.Sprintf("the map %s was built %s, more than max_age %s ago: it is left out until there is a newer one",
		l.Path, stamp(file.head.Built), l.MaxAge)}
	if !slices.Contains(c.plan.Warnings, w) {
		c.plan.Warnings = append(c.plan.Warnings, w)
	}
}

func (s *mapSide) measured(ids []topology.Region, depth int) *topology.Measured {
	if s.entries() == 0 {
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
	Path       string
	Built      time.Time         // when it was built, or the file last changed if it doesn't say
	RolledBack *latency.Rollback // nil: it was not put back
	Clients    int               // entries for client subnets
	Resolvers  int               // and for the addresses that queries come from
	TooOld     bool              // for a host that names it: it is left out there
}

// Maps describes the latency maps, by path.
func (p *Plan) Maps() (list []MapInfo) {
	for _, path := range slices.Sorted(maps.Keys(p.Data.maps)) {
		m := p.Data.maps[path]
		list = append(list, MapInfo{path, m.head.Built, m.head.Rollback, m.clients.entries(), m.resolvers.entries(), p.TooOld[path]})
	}
	return list
}
