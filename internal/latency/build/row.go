package build

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// field is a column of CSV or a name of NDJSON.
type field uint8

const (
	fTime field = iota
	fClient
	fResolver
	fRegion
	fRTT
	fOK
	fSource
	fN
	fFailed
	fP75
	fSketch
	numFields
	noField = numFields
)

// fieldNames are what fields are called in inputs.
var fieldNames = map[string]field{
	"time": fTime, "day": fTime,
	"client": fClient, "prefix": fClient,
	"resolver": fResolver,
	"region":   fRegion,
	"rtt_ms":   fRTT,
	"ok":       fOK,
	"source":   fSource,
	"n":        fN,
	"failed":   fFailed,
	"p75":      fP75, "p75_ms": fP75,
	"sketch": fSketch,
}

// row is the fields of a line; what it hasn't is empty.
type row [numFields][]byte

// Reasons for which a row doesn't count. Those in outside are no faults of the
// line.
var (
	errBefore   = errors.New("before the window")
	errAfter    = errors.New("after the window")
	errMillis   = errors.New("time: in milliseconds, as JavaScript has it: divide it by 1000")
	errSpecial  = errors.New("client: special-purpose address space, where no map is used")
	errFuture   = errors.New("time: in the future")
	errTime     = errors.New("time: expected RFC 3339, a date, or seconds since 1970")
	errClient   = errors.New("client: expected an address, or a prefix of the length of -longest4 or -longest6 or longer")
	errResolver = errors.New("resolver: expected an address, or a prefix of the length of -longest4 or -longest6 or longer")
	errRegion   = errors.New("region: unknown")
	errRTT      = errors.New("rtt_ms: expected a number over 0, at most 60000")
	errOK       = errors.New("ok: expected true, false, 1 or 0")
	errCount    = errors.New("n, failed: expected whole numbers, at most 10^9, not both 0")
	errP75      = errors.New("p75: expected a number over 0, at most 60000")
	errSketch   = errors.New("sketch: expected bin:count for each bin, separated by blanks, in order, n in all")
	errNoData   = errors.New("expected rtt_ms, or n with p75 or sketch")
)

// notFaults are reasons that say nothing against the input.
var notFaults = map[error]bool{errBefore: true, errAfter: true, errSpecial: true}

const maxCount = 1 << 40

// take reads a row and keeps what it says.
func (w *worker) take(r *row) error {
	unix, err := w.time(r[fTime], len(r[fN]) > 0)
	if err != nil {
		return err
	}
	region, ok := w.b.byName[string(r[fRegion])]
	if !ok {
		return errRegion
	}
	client, whole, ok := w.prefix(r[fClient], Clients)
	if !ok && (len(r[fClient]) > 0 || len(r[fN]) == 0) {
		return errClient
	}
	if ok && client.special() {
		return errSpecial
	}
	resolver, _, okResolver := w.prefix(r[fResolver], Resolvers)
	if !okResolver && len(r[fResolver]) > 0 || !ok && !okResolver {
		return errResolver
	}
	d := w.b.calendar.day(unix)
	if len(r[fN]) > 0 {
		// A row with both is of one resolver's part of the client's samples.
		c, err := w.aggregate(r, region, d)
		if err != nil {
			return err
		}
		if ok {
			c.key = client
			w.addCell(c)
		}
		if okResolver {
			c.key = resolver
			w.addCell(c)
		}
		return nil
	}
	units, failed, err := roundTrip(r)
	if err != nil {
		return err
	}
	source := uint32(unix / 60)
	switch {
	case len(r[fSource]) > 0:
		source = uint32(xxhash.Sum64(r[fSource]))
	case whole:
		source = uint32(xxhash.Sum64(r[fClient]))
	}
	w.addRecord(newRecord(client, region, d, source, failed, units))
	if okResolver {
		w.addRecord(newRecord(resolver, region, d, hashKey(client), failed, units))
	}
	return nil
}

// special tells whether a key lies in special-purpose space: there the server uses no map
// for client subnets. The list is that of topology.Special.
func (k key) special() bool {
	for _, s := range specialKeys {
		if k>>familyBit&1 == s.at>>familyBit&1 && (k^s.at)<<(64-familyBit)>>(64-s.bits) == 0 {
			return true
		}
	}
	return false
}

type keyPrefix struct {
	at   key
	bits int
}

var specialKeys = func() (list []keyPrefix) {
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3",
		"::/56", "fc00::/7", "fe80::/10", "ff00::/8",
	} {
		p := netip.MustParsePrefix(s)
		list = append(list, keyPrefix{newKey(Clients, p.Addr(), p.Bits()), p.Bits()})
	}
	return list
}()

// hashKey makes a source of a client prefix.
func hashKey(k key) uint32 { return uint32(uint64(k) * 0x9e3779b97f4a7c15 >> 40) }

func roundTrip(r *row) (units uint32, failed bool, err error) {
	switch string(r[fOK]) {
	case "", "true", "1", "TRUE", "True":
	case "false", "0", "FALSE", "False":
		return 0, true, nil
	default:
		return 0, false, errOK
	}
	if len(r[fRTT]) == 0 {
		return 0, false, errNoData
	}
	units, ok := unitsOf(r[fRTT])
	if !ok {
		return 0, false, errRTT
	}
	return units, false, nil
}

// unitsOf reads milliseconds.
func unitsOf(b []byte) (units uint32, ok bool) {
	whole, fraction, scale, i := uint64(0), uint64(0), uint64(1), 0
	for ; i < len(b) && i < 8 && b[i]-'0' <= 9; i++ {
		whole = 10*whole + uint64(b[i]-'0')
	}
	if i > 0 && i < len(b) && b[i] == '.' {
		for i++; i < len(b) && scale < 1e9 && b[i]-'0' <= 9; i++ {
			fraction, scale = 10*fraction+uint64(b[i]-'0'), 10*scale
		}
	}
	ms := float64(whole) + float64(fraction)/float64(scale)
	if i < len(b) || i == 0 { // some other form of number
		var err error
		if ms, err = strconv.ParseFloat(string(b), 64); err != nil {
			return 0, false
		}
	}
	if !(ms > 0 && ms <= maxRTT) {
		return 0, false
	}
	return max(1, uint32(math.Round(ms*unitsPerMs))), true
}

// prefix reads an address, which is then whole, or a prefix.
func (w *worker) prefix(b []byte, k Kind) (p key, whole, ok bool) {
	if len(b) == 0 {
		return 0, false, false
	}
	bits := -1
	if slash := bytes.IndexByte(b, '/'); slash >= 0 {
		n, ok := atoi(b[slash+1:])
		if !ok || n > 128 {
			return 0, false, false
		}
		b, bits = b[:slash], int(n)
	}
	addr, ok := addr4(b)
	if ok {
		if bits > 32 || bits >= 0 && bits < w.b.o.Longest4 {
			return 0, false, false
		}
		return newKey4(k, addr, w.b.o.Longest4), bits < 0 || bits == 32, true
	}
	a, err := netip.ParseAddr(string(b))
	if err != nil || a.Zone() != "" {
		return 0, false, false
	}
	longest, width := w.b.o.Longest6, 128
	if a.Is4In6() {
		a, longest, width = a.Unmap(), w.b.o.Longest4, 32
		if bits >= 0 {
			bits -= 96
			if bits < 0 {
				return 0, false, false
			}
		}
	}
	if bits > width || bits >= 0 && bits < longest {
		return 0, false, false
	}
	return newKey(k, a, longest), bits < 0 || bits == width, true
}

func addr4(b []byte) (addr uint32, ok bool) {
	dots, n, digits := 0, uint32(0), 0
	for _, c := range b {
		switch {
		case c-'0' <= 9:
			n = 10*n + uint32(c-'0')
			if digits++; digits > 3 || n > 255 {
				return 0, false
			}
		case c == '.' && digits > 0 && dots < 3:
			addr, n, digits = addr<<8|n, 0, 0
			dots++
		default:
			return 0, false
		}
	}
	return addr<<8 | n, dots == 3 && digits > 0
}

func atoi(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		if c-'0' > 9 || n > 1<<50 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, len(b) > 0
}

// time reads when a row is of and tells whether it is in the window. Of many
// measurements at once it is the day; without one, the last.
func (w *worker) time(b []byte, many bool) (unix int64, err error) {
	from, until := w.from, w.until
	if len(b) == 0 && many {
		return until - 1, nil
	}
	unix, ok := parseTime(b)
	switch {
	case !ok:
		if n, isNumber := atoi(b); isNumber && n/1000 <= uint64(w.now)+86400 && n >= 1e11 {
			return 0, errMillis
		}
		return 0, errTime
	case unix > w.now:
		return 0, errFuture
	case many: // the day is in if any part of it is
		if unix = floorDay(unix) * 86400; unix+86400 <= from {
			return 0, errBefore
		}
		unix = max(unix, from)
	case unix < from:
		return 0, errBefore
	}
	if unix >= until {
		return 0, errAfter
	}
	return unix, nil
}

// parseTime reads seconds since 1970, a date or RFC 3339, of which UTC and whole
// seconds are the quick way.
func parseTime(b []byte) (unix int64, ok bool) {
	if whole, fraction, _ := bytes.Cut(b, []byte{'.'}); len(whole) < 12 {
		if n, ok := atoi(whole); ok {
			return int64(n), len(bytes.Trim(fraction, "0123456789")) == 0
		}
	}
	if len(b) == 10 {
		t, err := time.Parse(time.DateOnly, string(b))
		return t.Unix(), err == nil
	}
	if len(b) == 20 && b[19] == 'Z' && b[10] == 'T' && b[4] == '-' && b[7] == '-' && b[13] == ':' && b[16] == ':' {
		y, ok1 := atoi(b[:4])
		mo, ok2 := atoi(b[5:7])
		d, ok3 := atoi(b[8:10])
		h, ok4 := atoi(b[11:13])
		mi, ok5 := atoi(b[14:16])
		s, ok6 := atoi(b[17:19])
		if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && y >= 1 && mo >= 1 && mo <= 12 && d >= 1 && d <= 28 && h < 24 && mi < 60 && s < 60 {
			return civil(int64(y), int64(mo), int64(d))*86400 + int64(h)*3600 + int64(mi)*60 + int64(s), true
		}
	}
	t, err := time.Parse(time.RFC3339, string(b))
	return t.Unix(), err == nil
}

// civil counts days from 1970-01-01 in the Gregorian calendar, with years that
// begin in March so that the leap day is their last.
func civil(y, m, d int64) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	return 365*y + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 719469
}
