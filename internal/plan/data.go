package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/geodb"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// Data is the content of the data files of a block, immutable once loaded.
type Data struct {
	// Stale is why files can't be used whose last good content is in use.
	Stale map[string]error
	// spoilt is why copies can't be used of files that are as they should be.
	spoilt map[string]error

	root    string
	regions []string // that lines of nets may name
	dbs     map[string]*database
	lists   map[string]*prefixList
	maps    map[string]*mapFile
}

// database is a location database, opened for one kind of use.
type database struct {
	kind     geodb.Kind
	path     string
	optional bool
	db       *geodb.DB // nil: an optional file that is missing
	topo     *topology.Database
}

// prefixList is a text file of prefixes.
type prefixList struct {
	path  string
	words geodb.Words
	lines []geodb.PrefixLine
	hash  uint64
}

// load reads every data file that the block names. Relative paths are under
// root, and ages are counted to now, if that is given. For a file that can't be used
// its last good content is, if there is any.
func load(b *config.Block, root string, last *LastGood, now time.Time) (*Data, error) {
	d := &Data{root: root, Stale: make(map[string]error), spoilt: make(map[string]error), dbs: make(map[string]*database), lists: make(map[string]*prefixList), maps: make(map[string]*mapFile)}
	for _, r := range b.Regions {
		d.regions = append(d.regions, r.Name)
	}
	for _, g := range b.GeoIP {
		db, err := d.openDatabase(d.path(g.Path), geodb.Kind(g.Kind), g.Optional, last)
		if err != nil {
			return nil, fmt.Errorf("%s: geoip %s: %w", g.Pos, g.Kind, err)
		}
		d.dbs[string(g.Kind)] = db
	}
	for _, n := range b.Nets {
		if err := d.readList(n.Pos, n.Path, geodb.WithWords, last); err != nil {
			return nil, err
		}
	}
	for i := range b.Hosts {
		if l := b.Hosts[i].Latency; l != nil {
			if err := d.readMapFile(l, last, now); err != nil {
				return nil, err
			}
		}
	}
	var err error
	eachMatch(b, func(m config.Match) {
		for _, a := range m.Alts {
			if a.Kind == config.AltFile && err == nil {
				err = d.readList(m.Pos, a.File, geodb.NoWords, last)
			}
		}
	})
	return d, err
}

// path puts a relative path under the root.
func (d *Data) path(p string) string { return Join(d.root, p) }

// Join puts a relative path under a root; an empty root is the working
// directory.
func Join(root, path string) string {
	if filepath.IsAbs(path) || root == "" {
		return path
	}
	return filepath.Join(root, path)
}

func (d *Data) openDatabase(path string, kind geodb.Kind, optional bool, last *LastGood) (*database, error) {
	db, err := geodb.Open(path, kind)
	if err != nil {
		if optional && errors.Is(err, fs.ErrNotExist) {
			return &database{kind: kind, path: path, optional: true}, nil
		}
		var copied error
		if db, copied = last.database(path, kind); db == nil {
			return nil, orCopy(missing(path, err), copied)
		}
		d.Stale[path] = err
	}
	return newDatabase(path, kind, optional, db), nil
}

func newDatabase(path string, kind geodb.Kind, optional bool, db *geodb.DB) *database {
	return &database{kind: kind, path: path, optional: optional, db: db, topo: convertDatabase(db)}
}

func convertDatabase(db *geodb.DB) *topology.Database {
	t := &topology.Database{Networks: db.Networks()}
	for _, r := range db.Records() {
		t.Facts = append(t.Facts, topology.Facts{
			Continent: r.Continent, Country: r.Country, Subdivisions: r.Subdivisions,
			Lat: r.Lat, Lon: r.Lon, Coordinates: r.HasCoordinates, ASN: r.ASN,
		})
	}
	return t
}

func (d *Data) readList(pos config.Pos, file string, words geodb.Words, last *LastGood) error {
	path := d.path(file)
	if l := d.lists[path]; l != nil {
		if l.words != words {
			return fmt.Errorf("%s: %s is used as nets and as a file of prefixes: lines of nets have regions, those of the other have none", pos, file)
		}
		return nil
	}
	lines, hash, err := geodb.ReadPrefixes(path, words)
	list := &prefixList{path, words, lines, hash}
	if err == nil && words == geodb.WithWords {
		err = d.checkNets(file, lines)
	}
	if err != nil {
		var copied error
		list, copied = last.list(path, words)
		if list != nil && words == geodb.WithWords {
			copied = d.checkNets(file, list.lines)
		}
		if list == nil || copied != nil {
			return fmt.Errorf("%s: %w", pos, orCopy(missing(path, err), copied))
		}
		d.Stale[path] = err
	}
	d.lists[path] = list
	return nil
}

// checkNets holds that the lines of a nets file name regions of the block.
func (d *Data) checkNets(file string, lines []geodb.PrefixLine) error {
	for _, line := range lines {
		for _, name := range line.Words {
			if !slices.Contains(d.regions, name) {
				return fmt.Errorf("%s: unknown region %q: expected one of %s", config.Pos{File: file, Line: line.Line}, name, strings.Join(d.regions, ", "))
			}
		}
	}
	return nil
}

// Reload reads one file again, by the path that Files gives, and returns data
// with its new content; the old data stay as they are. A file that has lost
// more than half of its networks, prefixes or entries is an error, and so is a latency
// map that is older than the one in use or from the future.
func (d *Data) Reload(path string, now time.Time) (*Data, error) {
	next := &Data{root: d.root, regions: d.regions, Stale: maps.Clone(d.Stale), dbs: make(map[string]*database), lists: make(map[string]*prefixList), maps: make(map[string]*mapFile)}
	delete(next.Stale, path)
	for _, k := range slices.Sorted(maps.Keys(d.dbs)) { // of a file that serves for several, the first error is the same one each time
		old := d.dbs[k]
		next.dbs[k] = old
		if old.path != path {
			continue
		}
		db, err := geodb.Open(path, old.kind)
		if err != nil {
			return nil, err
		}
		if old.db != nil {
			if err := geodb.CheckShrink(path, "networks", old.db.Content(), db.Content()); err != nil {
				return nil, err
			}
		}
		next.dbs[k] = newDatabase(path, old.kind, old.optional, db)
	}
	for k, old := range d.lists {
		next.lists[k] = old
		if old.path != path {
			continue
		}
		lines, hash, err := geodb.ReadPrefixes(path, old.words)
		if err == nil && old.words == geodb.WithWords {
			err = d.checkNets(path, lines)
		}
		if err == nil {
			err = geodb.CheckShrink(path, "prefixes", geodb.ContentOf(old.lines), geodb.ContentOf(lines))
		}
		if err != nil {
			return nil, err
		}
		next.lists[k] = &prefixList{path, old.words, lines, hash}
	}
	return next, next.reloadMap(d, path, now)
}

// Files are the data files with the hash of the content in use. Of a file that serves for
// several databases, that is the first one's by the names of their kinds.
func (d *Data) Files() []geodb.File {
	var files []geodb.File
	for _, k := range slices.Sorted(maps.Keys(d.dbs)) {
		db := d.dbs[k]
		f := geodb.File{Path: db.path}
		if db.db != nil {
			f.Hash, f.Loaded = db.db.Info().Hash, true
		}
		files = append(files, f)
	}
	for _, l := range d.lists {
		files = append(files, geodb.File{Path: l.path, Hash: l.hash, Loaded: true})
	}
	for _, m := range d.maps {
		f := geodb.File{Path: m.path, Hash: m.hash, Loaded: true}
		if m.dated {
			f.Dated = m.head.Built
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b geodb.File) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(files, func(a, b geodb.File) bool { return a.Path == b.Path })
}

// Databases describes the location databases in use, by kind.
func (d *Data) Databases() map[string]geodb.Info {
	infos := make(map[string]geodb.Info)
	for k, db := range d.dbs {
		if db.db != nil {
			infos[k] = db.db.Info()
		}
	}
	return infos
}

// geo is the database of countries or cities, asn that of AS numbers; nil
// without one.
func (d *Data) geo() *database {
	if db := d.dbs[string(geodb.City)]; db != nil {
		return db
	}
	return d.dbs[string(geodb.Country)]
}

func (d *Data) asn() *database { return d.dbs[string(geodb.ASN)] }

// topo is what the topology needs of a database.
func (db *database) topology() *topology.Database {
	if db == nil {
		return nil
	}
	return db.topo
}

// prefixes are those of a file of prefixes.
func (d *Data) prefixes(file string) []netip.Prefix {
	l := d.lists[d.path(file)]
	ps := make([]netip.Prefix, len(l.lines))
	for i, line := range l.lines {
		ps[i] = line.Prefix
	}
	return ps
}

// warnings tells of files that are not what they should be: those whose last
// good content is in use, those without a line, and those with prefixes that
// client subnets are not told apart by; one for each place that uses the file.
func (d *Data) warnings(b *config.Block) (ws []config.Warning) {
	for _, g := range b.GeoIP {
		if err := d.Stale[d.path(g.Path)]; err != nil {
			ws = append(ws, config.Warning{Pos: g.Pos, Text: fmt.Sprintf("the last good content of %s is in use: %v", g.Path, err)})
		}
	}
	warn := func(pos config.Pos, file string) {
		if err := d.Stale[d.path(file)]; err != nil {
			ws = append(ws, config.Warning{Pos: pos, Text: fmt.Sprintf("the last good content of %s is in use: %v", file, err)})
		}
		long, lines := 0, d.lists[d.path(file)].lines
		if len(lines) == 0 {
			ws = append(ws, config.Warning{Pos: pos, Text: file + " has no prefix, so nothing matches it"})
		}
		if b.ECS.Off {
			return
		}
		for _, line := range lines {
			limit := b.ECS.Max6
			if line.Prefix.Addr().Is4() {
				limit = b.ECS.Max4
			}
			if line.Prefix.Bits() > limit {
				long++
			}
		}
		w := config.Warning{Pos: pos, Text: fmt.Sprintf("%d of %d prefixes in %s are longer than ecs max: "+
			"for ECS the list of most addresses of the shorter prefix counts", long, len(lines), file)}
		if long > 0 && !slices.Contains(ws, w) { // policies repeat their rules
			ws = append(ws, w)
		}
	}
	for _, n := range b.Nets {
		warn(n.Pos, n.Path)
	}
	eachMatch(b, func(m config.Match) {
		for _, a := range m.Alts {
			if a.Kind == config.AltFile {
				warn(m.Pos, a.File)
			}
		}
	})
	for i := range b.Hosts {
		if l := b.Hosts[i].Latency; l != nil {
			path := d.path(l.Path)
			for _, w := range d.maps[path].warnings(l, &b.ECS, d.Stale[path], d.spoilt[path]) {
				if !slices.Contains(ws, w) { // of several hosts that have it from the block or a policy
					ws = append(ws, w)
				}
			}
		}
	}
	return ws
}

// eachMatch calls f for every match of the block: rules, areas.
func eachMatch(b *config.Block, f func(config.Match)) {
	rules := func(rs []config.Rule) {
		for _, r := range rs {
			f(r.Match)
		}
	}
	rules(b.Rules)
	for _, h := range b.Hosts {
		rules(h.Rules)
	}
	for _, a := range b.Areas {
		for _, m := range a.Lines {
			f(m)
		}
	}
}
