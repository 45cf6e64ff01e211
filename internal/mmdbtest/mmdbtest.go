// Package mmdbtest makes small MaxMind DB files for tests and fixtures. The
// same input gives the same bytes.
package mmdbtest

import (
	"bytes"
	"fmt"
	"net"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// BuildTime is the build time of every database made here.
var BuildTime = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// Record is the data of a network; an empty one is an empty map in the file.
type Record = mmdbtype.Map

// Network gives a prefix its record. With a nil record the prefix has no data.
type Network struct {
	Prefix string
	Record Record
}

// Database is the content of a file.
type Database struct {
	Type        string // such as "GeoLite2-City"
	Description string
	IPVersion   int       // 4 or 6; 0 is 6, which holds IPv4, too
	RecordSize  int       // bits: 24, 28 or 32; 0 is 24
	Networks    []Network // a later one replaces what it covers of earlier ones
}

// Build makes the file. An IPv6 database has the usual aliases of its IPv4 part.
func (d Database) Build() ([]byte, error) {
	size := d.RecordSize
	if size == 0 {
		size = 24
	}
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		BuildEpoch:              BuildTime.Unix(),
		DatabaseType:            d.Type,
		Description:             map[string]string{"en": d.Description},
		IPVersion:               d.IPVersion,
		RecordSize:              size,
		IncludeReservedNetworks: true, // loopback and documentation space
		Languages:               []string{"en"},
	})
	if err != nil {
		return nil, err
	}
	for _, n := range d.Networks {
		_, network, err := net.ParseCIDR(n.Prefix)
		if err != nil {
			return nil, err
		}
		var value mmdbtype.DataType // a nil Record in it would be a map, not nothing
		if n.Record != nil {
			value = n.Record
		}
		if err := tree.Insert(network, value); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Prefix, err)
		}
	}
	var file bytes.Buffer
	if _, err := tree.WriteTo(&file); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// Country is a record of a country database. An empty code is left out.
func Country(continent, country string) Record {
	r := Record{}
	if continent != "" {
		r["continent"] = Record{"code": mmdbtype.String(continent)}
	}
	if country != "" {
		r["country"] = Record{"iso_code": mmdbtype.String(country)}
	}
	return r
}

// ASN is a record of an ASN database.
func ASN(number uint32, organization string) Record {
	return Record{
		"autonomous_system_number":       mmdbtype.Uint32(number),
		"autonomous_system_organization": mmdbtype.String(organization),
	}
}

// Point is a place on earth in degrees.
type Point struct{ Lat, Lon float64 }

// Place is what a city database knows of a network. Empty fields are left out.
type Place struct {
	Continent    string
	Country      string
	Subdivisions []string // second parts of ISO 3166-2 codes, outermost first
	City         string
	Postal       string
	At           *Point
	Radius       uint16 // accuracy in kilometres
}

// Record is the place as a record of a city database.
func (p Place) Record() Record {
	r := Country(p.Continent, p.Country)
	if p.City != "" {
		r["city"] = Record{"names": Record{"en": mmdbtype.String(p.City)}}
	}
	if p.Postal != "" {
		r["postal"] = Record{"code": mmdbtype.String(p.Postal)}
	}
	var subdivisions mmdbtype.Slice
	for _, code := range p.Subdivisions {
		subdivisions = append(subdivisions, Record{"iso_code": mmdbtype.String(code)})
	}
	if subdivisions != nil {
		r["subdivisions"] = subdivisions
	}
	if p.At != nil {
		r["location"] = Record{
			"accuracy_radius": mmdbtype.Uint16(p.Radius),
			"latitude":        mmdbtype.Float64(p.At.Lat),
			"longitude":       mmdbtype.Float64(p.At.Lon),
		}
	}
	return r
}
