package geodb

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/oschwald/geoip2-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2"
)

// Record is what a database knows of a network, as far as the kind it was
// opened as is concerned.
type Record struct {
	Continent      string   // two letters, upper case; "" unknown
	Country        string   // ISO 3166-1 alpha-2, upper case; "" unknown
	Subdivisions   []string // ISO 3166-2, as "US-CA", outermost first; shared, not to be changed
	Lat, Lon       float64  // degrees; 0 without HasCoordinates
	HasCoordinates bool     // the place is better known than "somewhere in this country"
	ASN            uint32   // 0 unknown
}

// tellsNothing is the index of records without anything of use.
const tellsNothing = math.MaxUint32

// layoutError is a record whose fields have other types than MaxMind's.
type layoutError struct{ err error }

func (e layoutError) Error() string {
	return "records are laid out differently from MaxMind's country, city and ASN databases, " +
		"use a database in their layout: " + e.err.Error()
}

// decoder turns the records of one database into Records, each once.
type decoder struct {
	reader  *maxminddb.Reader
	want    Kind
	decode  func(maxminddb.Result) (Record, error)
	records []Record
	indexes map[uint32]uint32 // by offset in the data section
	last    struct{ offset, index uint32 }
	shared  map[string][]string // one slice per distinct list of subdivisions
}

func newDecoder(reader *maxminddb.Reader, want Kind) *decoder {
	d := &decoder{reader: reader, want: want, indexes: map[uint32]uint32{}, shared: map[string][]string{}}
	d.last.offset = math.MaxUint32
	switch want {
	case City:
		d.decode = d.city
	case ASN:
		d.decode = decodeASN
	default:
		d.decode = decodeCountry
	}
	return d
}

// index is the index in records of the record at an offset of the data section.
func (d *decoder) index(offset uint32) (uint32, error) {
	if offset == d.last.offset { // neighbours often share one
		return d.last.index, nil
	}
	index, seen := d.indexes[offset]
	if !seen {
		record, err := d.decode(d.reader.LookupOffset(uintptr(offset)))
		if wrong := (maxminddb.UnmarshalTypeError{}); errors.As(err, &wrong) {
			return 0, layoutError{err}
		} else if err != nil {
			return 0, err
		}
		index = tellsNothing
		if record.tells() {
			index = uint32(len(d.records))
			d.records = append(d.records, record)
		}
		d.indexes[offset] = index
	}
	d.last.offset, d.last.index = offset, index
	return index, nil
}

func (r *Record) tells() bool {
	return r.Continent != "" || r.Country != "" || r.HasCoordinates || r.ASN != 0
}

func decodeCountry(result maxminddb.Result) (Record, error) {
	var c geoip2.Country
	if err := result.Decode(&c); err != nil {
		return Record{}, err
	}
	return Record{Continent: letters(c.Continent.Code), Country: letters(c.Country.ISOCode)}, nil
}

func decodeASN(result maxminddb.Result) (Record, error) {
	var a geoip2.ASN
	if err := result.Decode(&a); err != nil {
		return Record{}, err
	}
	if uint64(a.AutonomousSystemNumber) > math.MaxUint32 {
		return Record{}, fmt.Errorf("AS number %d has more than 32 bits", a.AutonomousSystemNumber)
	}
	return Record{ASN: uint32(a.AutonomousSystemNumber)}, nil
}

func (d *decoder) city(result maxminddb.Result) (Record, error) {
	var c geoip2.City
	if err := result.Decode(&c); err != nil {
		return Record{}, err
	}
	r := Record{Continent: letters(c.Continent.Code), Country: letters(c.Country.ISOCode)}
	r.Subdivisions = d.subdivisions(r.Country, c.Subdivisions)
	// Makers give networks that they only know the country of that country's
	// default point, which is often far from every client.
	countryOnly := !c.City.HasData() && !c.Postal.HasData() && len(c.Subdivisions) == 0
	if l := c.Location; !countryOnly && l.HasCoordinates() && onEarth(*l.Latitude, *l.Longitude) {
		r.Lat, r.Lon, r.HasCoordinates = *l.Latitude, *l.Longitude, true
	}
	return r, nil
}

// onEarth is false for NaN, too.
func onEarth(lat, lon float64) bool {
	return math.Abs(lat) <= 90 && math.Abs(lon) <= 180
}

// subdivisions are the full codes of a record's subdivisions.
func (d *decoder) subdivisions(country string, list []geoip2.CitySubdivision) []string {
	var codes []string
	for _, s := range list {
		// Some makers write the full code where MaxMind writes its second part.
		part := strings.TrimPrefix(strings.ToUpper(s.ISOCode), country+"-")
		if country != "" && part != "" {
			codes = append(codes, country+"-"+part)
		}
	}
	if codes == nil {
		return nil
	}
	key := strings.Join(codes, " ")
	if _, ok := d.shared[key]; !ok {
		d.shared[key] = codes
	}
	return d.shared[key]
}

// letters is a two-letter code in upper case, or "" for anything else, as some
// makers write "-" or "--" for unknown.
func letters(code string) string {
	code = strings.ToUpper(code)
	if len(code) != 2 || code[0] < 'A' || code[0] > 'Z' || code[1] < 'A' || code[1] > 'Z' {
		return ""
	}
	return code
}
