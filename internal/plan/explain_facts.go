package plan

import (
	"net/netip"
	"time"

	"github.com/seed-945f90c5/gslb/internal/topology"
)

// KnownFacts are what the databases know of an address.
type KnownFacts struct {
	Address netip.Addr     `json:"address"`
	Place   *DatabaseFacts `json:"place,omitempty"` // nil: no database of countries or cities
	ASN     *DatabaseFacts `json:"asn,omitempty"`   // nil: no database of AS numbers
	// Special says that the address lies in special-purpose space, or in IPv6
	// space that embeds IPv4: nothing is filled in from there or to there.
	Special bool `json:"special_space,omitempty"`
}

// DatabaseFacts are what one database knows of an address.
type DatabaseFacts struct {
	Kind         string       `json:"kind"`              // country, city, asn
	File         string       `json:"file"`              // its path
	Missing      bool         `json:"missing,omitempty"` // the file is optional and not there
	Built        time.Time    `json:"built,omitzero"`    // by its maker
	Network      netip.Prefix `json:"network,omitzero"`  // zero: it knows nothing of the address
	Continent    string       `json:"continent,omitempty"`
	Country      string       `json:"country,omitempty"`
	Subdivisions []string     `json:"subdivisions,omitempty"`
	Coordinates  *Point       `json:"coordinates,omitempty"` // nil: not known well enough
	Number       uint32       `json:"number,omitempty"`      // of the autonomous system
}

// Point is a place on earth in degrees.
type Point struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

func (p *Plan) facts(addr netip.Addr, why *topology.Reasons) KnownFacts {
	return KnownFacts{
		Address: addr, Special: why.SpecialSpace,
		Place: p.Data.geo().facts(why.Geo, why.GeoNet),
		ASN:   p.Data.asn().facts(why.ASN, why.ASNNet),
	}
}

// facts puts what a database knows into words; nil without a database.
func (db *database) facts(f *topology.Facts, network netip.Prefix) *DatabaseFacts {
	if db == nil {
		return nil
	}
	d := &DatabaseFacts{Kind: string(db.kind), File: db.path, Missing: db.db == nil}
	if db.db != nil {
		d.Built = db.db.Info().BuildTime
	}
	if f == nil {
		return d
	}
	d.Network = network
	d.Continent, d.Country, d.Subdivisions, d.Number = f.Continent, f.Country, f.Subdivisions, f.ASN
	if f.Coordinates {
		d.Coordinates = &Point{f.Lat, f.Lon}
	}
	return d
}
