// Package geodb reads location data from files: MaxMind DB files of countries,
// cities or AS numbers, and text files of prefixes. It checks a file wholly
// when it is opened and watches files for changes.
//
// Nothing is memory-mapped: databases are replaced in place under load, and a
// mapped file that shrinks takes the process with it.
package geodb

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/oschwald/maxminddb-golang/v2"
)

// maxFileSize is more than any location database has, and what the 32-bit
// pointers of the format can reach.
const maxFileSize = 4 << 30

// Kind says what a location database is used for.
type Kind string

// The kinds of location databases.
const (
	Country Kind = "country" // continents and countries
	City    Kind = "city"    // also subdivisions and coordinates
	ASN     Kind = "asn"     // AS numbers
)

// Info describes a database.
type Info struct {
	Path      string
	Type      string    // the database_type its maker wrote, such as "GeoLite2-City"
	BuildTime time.Time // when its maker built it, UTC
	Networks  int       // networks that Networks yields
	Size      int64     // bytes of the file
	Hash      uint64    // xxhash of the file
}

// DB is what a database knows, for one kind of use. It is immutable, holds no
// file open, and is safe for concurrent use.
type DB struct {
	info    Info
	records []Record
	v4      []network4 // ascending, disjoint
	v6      []network6 // ascending, disjoint
}

// Open reads the database at path and checks all of it: search tree, every
// distinct record, and that they hold what the kind wants. An error names the
// file and says what to do; a missing file can be told by fs.ErrNotExist.
func Open(path string, want Kind) (*DB, error) {
	if _, err := statRegular(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return OpenBytes(path, data, want)
}

// OpenBytes is Open for a file's content; name stands for its path in errors.
// The DB doesn't keep data.
func OpenBytes(name string, data []byte, want Kind) (*DB, error) {
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, broken(name, err)
	}
	meta := reader.Metadata
	tree, err := newTree(data, meta)
	if err != nil {
		return nil, broken(name, err)
	}
	dec := newDecoder(reader, want)
	db := &DB{}
	if err := db.fill(tree, dec); err != nil {
		if wrong := (layoutError{}); errors.As(err, &wrong) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return nil, broken(name, err)
	}
	db.records = dec.records
	db.info = Info{
		Path: name, Type: meta.DatabaseType, BuildTime: meta.BuildTime().UTC(),
		Networks: len(db.v4) + len(db.v6), Size: int64(len(data)), Hash: xxhash.Sum64(data),
	}
	if err := dec.checkKind(); err != nil {
		return nil, fmt.Errorf("%s: database of type %q %w", name, meta.DatabaseType, err)
	}
	return db, nil
}

// broken is the error for a file that is no whole MaxMind DB file.
func broken(name string, err error) error {
	return fmt.Errorf("%s: not a whole MaxMind DB file, fetch or copy it again: %w", name, err)
}

// fill walks the tree and keeps every network whose record tells something.
func (db *DB) fill(t *tree, dec *decoder) error {
	return t.walk(func(hi, lo uint64, bits uint8, offset uint32) error {
		record, err := dec.index(offset)
		switch {
		case err != nil:
			return err
		case record == tellsNothing:
		case bits >= 96 && hi == 0 && lo>>32 == 0:
			db.v4 = append(db.v4, network4{uint32(lo), record, bits - 96})
		default:
			db.v6 = append(db.v6, network6{hi, lo, record, bits})
		}
		return nil
	})
}

// Info describes the database.
func (db *DB) Info() Info { return db.info }

// Records are the database's distinct records, by place in the file: two may
// be equal. Networks gives indexes into it. The caller must not change it.
func (db *DB) Records() []Record { return db.records }

// Networks yields every network that the database tells something of, with the
// index of its record, in address order: first IPv4, then IPv6 without ::/96,
// where the format keeps IPv4, and without aliases of that (mapped, 6to4,
// Teredo). No network contains another; neighbours may have equal records.
func (db *DB) Networks() iter.Seq2[netip.Prefix, int] {
	return func(yield func(netip.Prefix, int) bool) {
		for _, n := range db.v4 {
			if !yield(n.prefix(), int(n.record)) {
				return
			}
		}
		for _, n := range db.v6 {
			if !yield(n.prefix(), int(n.record)) {
				return
			}
		}
	}
}
