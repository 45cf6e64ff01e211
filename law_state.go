package gslb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/topology"

	"github.com/cespare/xxhash/v2"
)

const (
	lawFile    = "law.json"
	lawFormat  = 1
	maxLawFile = 64 << 20
	// maxSeen is how many lists' resolutions are kept, the most asked for.
	maxSeen = 20_000
)

// lawMemory keeps the law's state in the state directory, so that a restart moves
// nobody.
type lawMemory struct {
	dir   string // empty: nowhere
	saved time.Time
	seen  seen // as it was read; nil: since then, the law has counted by itself
}

// seen is the resolutions of late by host, list and region, under names that outlive a
// plan.
type seen map[string]map[string]map[string]float64

// lawEnvelope is the file: the record and a checksum of it, white space apart.
type lawEnvelope struct {
	Format   int             `json:"format"`
	Checksum string          `json:"checksum"` // xxHash64
	Law      json.RawMessage `json:"law"`
}

// lawRecord is what is kept.
type lawRecord struct {
	State *capacity.State `json:"state"`
	Seen  seen            `json:"seen"`
}

// open names the state directory, and reads what is kept there unless the law knows
// more.
func (l *law) open(dir string, now time.Time) {
	if dir == l.memory.dir {
		return
	}
	l.memory.dir, l.memory.saved = dir, now
	if dir == "" || l.state != nil {
		return
	}
	r, err := loadLaw(filepath.Join(dir, lawFile))
	if err != nil {
		log.Errorf("The saved state of the law of capacity can't be read: %v", err)
	}
	if r == nil {
		return
	}
	l.state, l.memory.seen = r.State, r.Seen
}

// toSave gives what saves the state, if that is due, to be called when the registry's lock
// isn't held.
func (m *lawMemory) toSave(l *law, now time.Time) func() {
	if m.dir == "" || l.out == nil || now.Sub(m.saved) < saveAtAll {
		return nil
	}
	m.saved = now
	dir, r := m.dir, lawRecord{l.state, l.seen()}
	return func() {
		writeState(dir, "The state of the law of capacity", func() error { return r.save(filepath.Join(dir, lawFile)) })
	}
}

// save saves the state for the last time.
func (m *lawMemory) save(l *law) {
	m.saved = time.Time{}
	if save := m.toSave(l, time.Now()); save != nil {
		save()
	}
}

func (r *lawRecord) save(path string) error {
	law, err := json.Marshal(r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(lawEnvelope{lawFormat, fmt.Sprintf("%016x", xxhash.Sum64(law)), law})
	if err != nil {
		return err
	}
	if len(data) > maxLawFile {
		return fmt.Errorf("%d bytes are too many", len(data))
	}
	return probe.WriteAtomic(path, append(data, '\n'))
}

// loadLaw reads what save wrote; nil: nothing. A file that is damaged, or of another
// format, is set aside.
func loadLaw(path string) (*lawRecord, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLawFile+1))
	f.Close()
	if err != nil {
		return nil, err
	}
	r, err := decodeLaw(data)
	if err == nil {
		return r, nil
	}
	err = fmt.Errorf("%s: %w; starting without it", path, err)
	if moved := os.Rename(path, path+".bad"); moved != nil {
		return nil, errors.Join(err, moved)
	}
	return nil, fmt.Errorf("%w, set aside as %s.bad", err, path)
}

func decodeLaw(data []byte) (*lawRecord, error) {
	var e lawEnvelope
	if len(data) > maxLawFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxLawFile)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Format != lawFormat {
		return nil, fmt.Errorf("its format is %d, expected %d: another version of the server wrote it", e.Format, lawFormat)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Law); err != nil {
		return nil, err
	}
	if fmt.Sprintf("%016x", xxhash.Sum64(compact.Bytes())) != e.Checksum {
		return nil, errors.New("its checksum is wrong: it is damaged")
	}
	r := &lawRecord{}
	if err := json.Unmarshal(e.Law, r); err != nil {
		return nil, err
	}
	if r.State == nil {
		return nil, errors.New("it has no state")
	}
	return r, nil
}

// seen gives the resolutions of late, as of the last step.
func (l *law) seen() seen {
	if len(l.views) == 0 {
		return l.memory.seen
	}
	type one struct {
		host, list string
		mean       float64
	}
	all := make(seen)
	var kept []one
	for _, v := range l.views {
		for i, h := range v.plan.Hosts {
			host := seenName(v.g, h)
			lists := v.demand.hosts[i].seen(v.plan, h)
			for list, regions := range lists {
				kept = append(kept, one{host, list, sum(slices.Sorted(maps.Values(regions)))})
			}
			if len(lists) > 0 {
				all[host] = lists
			}
		}
	}
	if len(kept) <= maxSeen {
		return all
	}
	slices.SortFunc(kept, func(a, b one) int {
		return cmp.Or(cmp.Compare(b.mean, a.mean), cmp.Compare(a.host, b.host), cmp.Compare(a.list, b.list))
	})
	for _, o := range kept[maxSeen:] {
		delete(all[o.host], o.list)
	}
	return all
}

func seenName(g *GSLB, h *plan.Host) string { return g.memoryName() + " " + h.Config.Names[0] }

// seen is the resolutions of late of a host by list and region.
func (h *hostDemand) seen(p *plan.Plan, host *plan.Host) map[string]map[string]float64 {
	all := make(map[string]map[string]float64)
	for list, total := range h.lists {
		if total == 0 {
			continue
		}
		name := listName(p, &host.Need.Topology.Lists[list])
		if all[name] == nil {
			all[name] = make(map[string]float64)
		}
		if h.coarse {
			all[name][""] += total
			continue
		}
		for r, n := range h.cells[list*h.regions : (list+1)*h.regions] {
			if n > 0 {
				all[name][regionOf(p, r)] += n
			}
		}
	}
	return all
}

// regionOf names a column of the counts.
func regionOf(p *plan.Plan, column int) string {
	if column < len(p.Block.Regions) {
		return p.Block.Regions[column].Name
	}
	return ""
}

// listName names a list so that it is known again under another plan.
func listName(p *plan.Plan, l *topology.List) string {
	var b []byte
	for _, w := range l.Split {
		b = fmt.Appendf(b, "%s %d ", p.Block.Regions[w.Region].Name, w.Weight)
	}
	b = append(b, '|')
	for _, r := range l.Order {
		b = fmt.Appendf(b, " %s", p.Block.Regions[r].Name)
	}
	return string(fmt.Appendf(b, " %v %v %x", l.Refuse, l.Fenced, l.Marks))
}

// recall begins with the resolutions that an older plan's hosts had, where lists are
// the same.
func (d *demand) recall(p *plan.Plan, g *GSLB, old seen) {
	if old == nil {
		return
	}
	for i, host := range p.Hosts {
		lists := old[seenName(g, host)]
		if len(lists) == 0 || sum(d.hosts[i].lists) > 0 {
			continue
		}
		d.hosts[i].recall(p, host, lists)
	}
}

func (h *hostDemand) recall(p *plan.Plan, host *plan.Host, lists map[string]map[string]float64) {
	names := make([]string, len(h.lists))
	times := make(map[string]float64)
	for list := range h.lists {
		names[list] = listName(p, &host.Need.Topology.Lists[list])
		times[names[list]]++
	}
	for list, name := range names {
		for column := range h.regions {
			n := lists[name][regionOf(p, column)]
			if !(n > 0 && n <= capacity.MaxLoad) {
				continue
			}
			n /= times[name]
			h.lists[list] += n
			h.served[column] += n
			if !h.coarse {
				h.cells[list*h.regions+column] += n
			}
		}
	}
}
