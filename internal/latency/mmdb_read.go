package latency

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// errTooMany is for files that would make more entries than a map may have.
var errTooMany = fmt.Errorf("more than %d entries", MaxEntries)

// readMMDB reads a map in the form of WriteMMDB.
func readMMDB(name string, data []byte) (*Map, error) {
	m, err := parseMMDB(data)
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: not a whole steering map, build or copy it again: %w", name, err)
	}
	return m, nil
}

func parseMMDB(data []byte) (*Map, error) {
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, err
	}
	meta := reader.Metadata
	if meta.DatabaseType != databaseType {
		return nil, fmt.Errorf("database of type %q, expected %q: is this a location database?", meta.DatabaseType, databaseType)
	}
	m, err := parseHead(meta)
	if err != nil {
		return nil, err
	}
	tree, err := newTree(data, meta)
	if err != nil {
		return nil, err
	}
	d := recordDecoder{reader: reader, regions: map[string]uint8{}, orders: map[string][]uint8{}}
	for i, r := range m.Regions {
		d.regions[r] = uint8(i)
	}
	var restored [2]restorer
	err = tree.walk(func(p netip.Prefix, offset uint32) error {
		if err := d.decode(offset); err != nil {
			return fmt.Errorf("record of %s: %w", p, err)
		}
		for i := range restored {
			if d.holds[i] {
				if err := restored[i].add(p, d.bits[i], d.entries[i], MaxEntries-len(restored[1-i].entries)); err != nil {
					return fmt.Errorf("%s of %s: %w", sideNames[i], p, err)
				}
			}
		}
		return nil
	})
	for i := range restored {
		err = errors.Join(err, restored[i].close())
	}
	m.Clients, m.Resolvers = slices.Clip(restored[0].entries), slices.Clip(restored[1].entries)
	return m, err
}

// parseHead reads what the metadata says of the map.
func parseHead(meta maxminddb.Metadata) (*Map, error) {
	var h head
	if err := json.Unmarshal([]byte(meta.Description["en"]), &h); err != nil {
		return nil, fmt.Errorf("description: %w", err)
	}
	switch {
	case h.Format != FormatVersion:
		return nil, fmt.Errorf("format %d, expected %d: read it with the release that wrote it", h.Format, FormatVersion)
	case len(h.Regions) > MaxRegions:
		return nil, fmt.Errorf("%d regions, expected at most %d", len(h.Regions), MaxRegions)
	case uint64(meta.BuildEpoch) > uint64(maxTime.Unix()):
		return nil, fmt.Errorf("build epoch %d is no time", meta.BuildEpoch)
	}
	m := &Map{Regions: h.Regions, Rollback: h.Rollback}
	if meta.BuildEpoch != 0 {
		m.Built = time.Unix(int64(meta.BuildEpoch), 0).UTC()
	}
	if h.From != nil {
		m.From = h.From.UTC()
	}
	if h.Until != nil {
		m.Until = h.Until.UTC()
	}
	if h.Demand != nil {
		m.Demand = *h.Demand
	}
	if m.Rollback != nil {
		m.Rollback.At = m.Rollback.At.UTC()
	}
	return m, m.validateHead()
}

// maxTime is after every time of a map.
var maxTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// record is the data of a network in the file.
type record struct {
	Client   *recordEntry `maxminddb:"client"`
	Resolver *recordEntry `maxminddb:"resolver"`
}

// recordEntry is an entry in the file. The other side may cut its network into
// pieces, so it has the length of its prefix.
type recordEntry struct {
	Bits    uint8     `maxminddb:"bits"`
	Regions []string  `maxminddb:"regions"`
	P75     []float32 `maxminddb:"p75_ms"`
	Samples []uint32  `maxminddb:"samples"`
	Failed  []float32 `maxminddb:"failed"`
}

// recordDecoder decodes records; what it holds is the last one.
type recordDecoder struct {
	reader  *maxminddb.Reader
	regions map[string]uint8
	orders  map[string][]uint8 // one slice for each distinct order
	known   bool
	offset  uint32
	holds   [2]bool
	bits    [2]int
	entries [2]Entry // without prefix
	cells   int      // that were decoded
}

// maxCells is more measurements than a file has room for. Records that share parts
// could decode to far more.
const maxCells = MaxFileSize / 8

func (d *recordDecoder) decode(offset uint32) error {
	if d.known && offset == d.offset {
		return nil
	}
	d.known = false
	var r record
	if err := d.reader.LookupOffset(uintptr(offset)).Decode(&r); err != nil {
		return err
	}
	for i, side := range []*recordEntry{r.Client, r.Resolver} {
		if d.holds[i] = side != nil; !d.holds[i] {
			continue
		}
		e, err := d.entry(side)
		if err != nil {
			return err
		}
		d.bits[i], d.entries[i] = int(side.Bits), e
	}
	if !d.holds[0] && !d.holds[1] {
		return errors.New("expected client or resolver")
	}
	d.known, d.offset = true, offset
	return nil
}

func (d *recordDecoder) entry(r *recordEntry) (e Entry, err error) {
	n := len(r.Regions)
	if n > MaxRegions {
		return e, fmt.Errorf("%d regions, expected at most %d", n, MaxRegions)
	}
	order := make([]uint8, n)
	for i, name := range r.Regions {
		index, ok := d.regions[name]
		if !ok {
			return e, fmt.Errorf("region %q is not in the file's list of regions", name)
		}
		order[i] = index
	}
	if _, ok := d.orders[string(order)]; !ok {
		d.orders[string(order)] = order
	}
	e.Order = d.orders[string(order)]
	if r.P75 == nil && r.Samples == nil && r.Failed == nil {
		return e, nil
	}
	if len(r.P75) != n || len(r.Samples) != n || r.Failed != nil && len(r.Failed) != n {
		return e, errors.New("expected as many measurements as regions")
	}
	if d.cells += n; d.cells > maxCells {
		return e, fmt.Errorf("more than %d measurements", maxCells)
	}
	e.Cells = make([]Cell, n)
	for i := range e.Cells {
		e.Cells[i] = Cell{P75: r.P75[i], Samples: r.Samples[i]}
		if r.Failed != nil {
			e.Cells[i].Failed = r.Failed[i]
		}
	}
	return e, nil
}

// restorer puts the entries of one side together again from the networks of a
// file, which come in address order.
type restorer struct {
	entries []Entry
	open    bool       // the last entry is not at its end
	next    netip.Addr // where it goes on
}

// add takes a network whose record is that of an entry of so many bits.
func (r *restorer) add(p netip.Prefix, bits int, e Entry, limit int) error {
	if bits > p.Bits() {
		return fmt.Errorf("record of a /%d", bits)
	}
	e.Prefix = netip.PrefixFrom(p.Addr(), bits).Masked()
	if !r.open {
		if len(r.entries) >= limit {
			return errTooMany
		}
		r.entries, r.open, r.next = append(r.entries, e), true, firstAddr(e.Prefix)
	}
	whole := &r.entries[len(r.entries)-1]
	if p.Addr() != r.next || whole.Prefix != e.Prefix || !slices.Equal(whole.Order, e.Order) || !slices.Equal(whole.Cells, e.Cells) {
		return fmt.Errorf("%s is not whole", whole.Prefix)
	}
	end := last(p)
	r.open, r.next = end != last(e.Prefix), end.Next()
	return nil
}

// close is an error if the last entry is not at its end.
func (r *restorer) close() error {
	if r.open {
		return fmt.Errorf("%s is not whole", r.entries[len(r.entries)-1].Prefix)
	}
	return nil
}

// firstAddr is where the networks of an entry begin in a file. IPv4 is in ::/96.
func firstAddr(p netip.Prefix) netip.Addr {
	if a := p.Addr(); a.Is4() || a != netip.IPv6Unspecified() || p.Bits() >= 96 {
		return a
	}
	return netip.AddrFrom16([16]byte{11: 1})
}
