package geodb

import (
	"errors"
	"fmt"
	"slices"
)

// wanted is what the records of a database must hold, by kind.
var wanted = map[Kind]string{
	Country: "countries (country.iso_code)",
	City:    "coordinates of cities (location beside a city, subdivision or postal code)",
	ASN:     "AS numbers (autonomous_system_number)",
}

// holds tells whether any record has what the kind is for.
func (k Kind) holds(records []Record) bool {
	return slices.ContainsFunc(records, func(r Record) bool {
		switch k {
		case City:
			return r.HasCoordinates
		case ASN:
			return r.ASN != 0
		default:
			return r.Country != "" || r.Continent != ""
		}
	})
}

// checkKind is an error, to be read after "FILE: database of type T", when the
// database can't be used as wanted. Its content is judged rather than its
// type, since makers name their databases as they like.
func (d *decoder) checkKind() error {
	if d.want.holds(d.records) {
		return nil
	}
	if len(d.indexes) == 0 {
		return errors.New("holds no networks: fetch or build it again")
	}
	for _, kind := range []Kind{City, Country, ASN} {
		if kind == d.want || !d.couldBe(kind) {
			continue
		}
		limit := ""
		if d.want == City && kind == Country {
			limit = ", so it can't give distances"
		}
		return fmt.Errorf("holds no %s%s: name another database, or write \"geoip %s\" to use it for %s",
			wanted[d.want], limit, kind, wanted[kind])
	}
	return fmt.Errorf("holds no %s: name a database that does", wanted[d.want])
}

// couldBe tells whether the records hold what another kind is for.
func (d *decoder) couldBe(kind Kind) bool {
	other := newDecoder(d.reader, kind)
	for offset := range d.indexes {
		if _, err := other.index(offset); err != nil {
			return false
		}
	}
	return kind.holds(other.records)
}
