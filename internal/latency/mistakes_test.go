package latency

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const head1 = "gslb-latency 1\nregions eu us\n"

// TestTextMistakes: what is wrong, and where.
func TestTextMistakes(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for text, want := range map[string]string{
		"gslb-latency 2\n":                                                        `f:1: expected "gslb-latency 1", found "gslb-latency 2": read it with the release that wrote it`,
		"\n# x\ngslb-latency\n":                                                   `f:3: expected "gslb-latency 1"`,
		"gslb-latency 1\nbuild x\n":                                               `f:2: expected built, from, until, demand, regions, rollback, or a section, clients or resolvers, found "build"`,
		"gslb-latency 1\nbuilt yesterday\n":                                       `f:2: expected a time such as 2026-11-30T04:00:00Z, found "yesterday"`,
		"gslb-latency 1\nbuilt 2026-11-30T04:00:00.5Z\n":                          `f:2: expected a time`,
		"gslb-latency 1\nbuilt 1969-11-30T04:00:00Z\n":                            `f: time 1969-11-30 04:00:00 +0000 UTC: expected whole seconds, UTC, from 1970 on`,
		"gslb-latency 1\nregions eu\nregions us\n":                                "f:3: regions is said twice",
		"gslb-latency 1\nregions eu eu\n":                                         "f:2: region eu is named twice",
		"gslb-latency 1\nregions EU\n":                                            `f:2: "EU" can't name a region`,
		"gslb-latency 1\nrollback 2026-11-30T04:00:00Z x y\n":                     "f:2: expected a time, then by whom and why",
		"gslb-latency 1\nrollback x \"x\" \"y\"\n":                                "f:2: expected a time such as",
		"gslb-latency 1\nrollback 2026-11-30T04:00:00Z \"x\" \"y\" z\n":           `f:2: unexpected "z"`,
		"gslb-latency 1\nrollback 2026-11-30T04:00:00Z \"x\" \"\\n\"\n":           "expected each to be one line",
		"gslb-latency 1\nfrom 2026-11-30T04:00:00Z\nuntil 2026-11-29T04:00:00Z\n": "before it began",
		head1 + "clients\nclients\n":                                              "f:4: a second section clients",
		head1 + "demand 1\n":                                                      `f:3: expected two whole numbers, the measurements of clients and of resolvers, found "1"`,
		head1 + "demand 1 -2\n":                                                   `f:3: expected two whole numbers`,
		head1 + "clients\n10.0.0.0/8 eu\nbuilt 2026-11-30T04:00:00Z\n":            "f:5: built is a line of the header: put it before the sections, clients and resolvers",
		"gslb-latency 1\nclients\nregions eu\n":                                   "f:3: regions is a line of the header",
		`{"coverageZones": {"a": {"network": ["10.0.0.0/8"`:                       "f:1: the JSON ends too early: copy the whole file",
		`{"coverageZones": {`:                                                     "f:1: the JSON ends too early: copy the whole file",
		head1 + "clients x\n":                                                     `f:3: expected clients alone, found "clients x"`,
		head1 + "clients\n10.0.0.0/8\n":                                           "f:4: expected at least one region",
		head1 + "clients\n10.0.0.0/8 ap\n":                                        `f:4: region "ap" is not among the regions of the header: eu us`,
		head1 + "clients\n10.0.0.0/8 eu eu\n":                                     "f:4: region eu twice",
		head1 + "clients\n10.0.0.0/8 eu us:1/2\n":                                 "f:4: us:1/2: expected measurements of all regions, or of none",
		head1 + "clients\n10.0.0.0/8 eu:1/2 us\n":                                 "f:4: us: expected measurements of all regions, or of none",
		head1 + "clients\n10.0.0.0/8 eu:1\n":                                      "f:4: eu:1: expected REGION:P75/SAMPLES",
		head1 + "clients\n10.0.0.0/8 eu:1/-2\n":                                   "f:4: eu:1/-2: expected REGION:P75/SAMPLES",
		head1 + "clients\n10.0.0.0/8 eu:1/2/3\n":                                  "f:4: eu:1/2/3: expected REGION:P75/SAMPLES",
		head1 + "clients\n10.0.0.0/8 eu:1/2/101%\n":                               "f:4: failed part 1.01, expected 0 to 1",
		head1 + "clients\n10.0.0.0/8 eu:-1/2\n":                                   "f:4: p75 of -1 ms, expected 0 to 1e+06",
		head1 + "clients\n10.0.0.0/8 eu:1e7/2\n":                                  "f:4: p75 of 1e+07 ms",
		head1 + "clients\n10.0.0.0/8 eu:nan/2\n":                                  "f:4: eu:nan/2: expected",
		head1 + "clients\n10.0.0.0/8 eu:0x1p4/2\n":                                "f:4: eu:0x1p4/2: expected",
		head1 + "clients\n10.0.0.0/8 eu:1e99/2\n":                                 "f:4: eu:1e99/2: expected",
		head1 + "clients\n10.0.0.1/8 eu\n":                                        "f:4: 10.0.0.1/8: has bits set past its length: write 10.0.0.0/8",
		head1 + "clients\n10.0.0.0/8 eu\n\n10.2.0.0/16 us\n":                      "f:6: 10.2.0.0/16 overlaps 10.0.0.0/8 on line 4: keep one of them, or cut the larger one",
		head1 + "clients\n10.2.0.0/16 us\n10.0.0.0/8 eu\n":                        "f:5: 10.0.0.0/8 overlaps 10.2.0.0/16 on line 4",
		head1 + "clients\n10.2.0.0/16 us\n10.2.0.0/16 us\n":                       "f:5: 10.2.0.0/16 overlaps 10.2.0.0/16 on line 4",
		head1 + "clients\n::ffff:10.0.0.0/104 eu\n":                               "f:4: ",
		head1 + "clients\n::1 eu\n":                                               "f:4: ::1: expected IPv4 in its own form",
		head1 + "clients\nfe80::1%eth0 eu\n":                                      "f:4: expected an address or a prefix",
		head1 + "clients\n# " + long + "\n":                                       "f:4: line of more than 65536 bytes",
		"example.com {\n}\n":                                                      "f: not a steering map: expected a MaxMind DB file of type",
		"":                                                                        "f: not a steering map",
	} {
		if _, _, err := ReadBytes("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text[:min(len(text), 90)], err, want)
		}
	}
}

// TestLenientText: order, comments, blanks and line ends are as people write them.
func TestLenientText(t *testing.T) {
	m := parse(t, "\ufeff# by hand\r\n\r\ngslb-latency 1 # version\r\nregions  eu us # two\r\n"+
		"rollback 2026-11-30T05:00:00+01:00 \"a # b\"  \"c\" # d\r\nresolvers\r\n192.0.2.1 us # one\r\nclients\r\n\t2001:db8::/32 eu\n10.0.0.0/8   us:1e1/2/5e-1%  eu:.5/0\n")
	want := "gslb-latency 1\nrollback 2026-11-30T04:00:00Z \"a # b\" \"c\"\nregions eu us\n\n" +
		"clients\n10.0.0.0/8 us:10/2/0.5% eu:0.5/0\n2001:db8::/32 eu\n\nresolvers\n192.0.2.1/32 us\n"
	if got := string(write(t, m, Text)); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestValidate(t *testing.T) {
	nan := float32(math.NaN())
	for want, edit := range map[string]func(m *Map){
		"in the future (it is 2026-11-30T04:00:00Z)": func(m *Map) { m.Built = now.Add(61 * time.Minute) },
		"rolled back 2026-11-30T06:00:00Z":           func(m *Map) { m.Rollback = &Rollback{At: hour(2), Why: "x", By: "y"} },
		"rolled back at no time":                     func(m *Map) { m.Rollback = &Rollback{Why: "x", By: "y"} },
		"expected whole seconds":                     func(m *Map) { m.From = m.From.Add(1) },
		"UTC":                                        func(m *Map) { m.Built = m.Built.In(time.FixedZone("x", 3600)) },
		"client 192.0.2.0/24: stands after":          func(m *Map) { m.Clients[0], m.Clients[1] = m.Clients[1], m.Clients[0] },
		"client 192.0.2.0/24: overlaps":              func(m *Map) { m.Clients[1] = m.Clients[0] },
		"resolver invalid Prefix: not a prefix":      func(m *Map) { m.Resolvers[0].Prefix = netip.Prefix{} },
		"expected at least one region":               func(m *Map) { m.Clients[0].Order = nil },
		"measurements of 1 regions":                  func(m *Map) { m.Clients[0].Cells = m.Clients[0].Cells[:1] },
		"region number 3 of 3":                       func(m *Map) { m.Clients[2].Order = []uint8{3} },
		"order twice":                                func(m *Map) { m.Clients[2].Order = []uint8{1, 1} },
		"p75 of NaN":                                 func(m *Map) { m.Clients[0].Cells[0].P75 = nan },
		"p75 of -0":                                  func(m *Map) { m.Clients[0].Cells[0].P75 = float32(math.Copysign(0, -1)) },
		"p75 of +Inf":                                func(m *Map) { m.Clients[0].Cells[0].P75 = float32(math.Inf(1)) },
		"failed part NaN":                            func(m *Map) { m.Clients[0].Cells[0].Failed = nan },
		"255 regions":                                func(m *Map) { m.Regions = make([]string, 255) },
	} {
		m := parse(t, small)
		edit(m)
		if err := m.Validate(now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err := Publish(filepath.Join(t.TempDir(), "map.txt"), m, now, PublishOptions{By: "x"}); err == nil {
			t.Errorf("published: %s", want)
		}
	}
	m := parse(t, small)
	m.Built = now.Add(time.Hour)
	if err := m.Validate(now); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	m := parse(t, strings.Replace(small, "regions eu us ap", "regions eu us zz ap", 1))
	if err := m.Check([]string{"eu", "us", "ap"}); err != nil { // zz is in no entry
		t.Error(err)
	}
	err := m.Check([]string{"us", "sa"})
	if err == nil || !strings.Contains(err.Error(), "not known: ap, eu; expected some of: us, sa;") {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "expected a regular file") {
		t.Error(err)
	}
	large := filepath.Join(dir, "large")
	if f, err := os.Create(large); err != nil || f.Truncate(MaxFileSize+1) != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(large); err == nil || !strings.Contains(err.Error(), "more than the most that is read") {
		t.Error(err)
	}
	nets := filepath.Join(dir, "nets")
	if err := errors.Join(os.WriteFile(nets, []byte(netsFile), 0o644), os.Chtimes(nets, now, now)); err != nil {
		t.Fatal(err)
	}
	if m, format, err := Read(nets); err != nil || format != Nets || !m.Built.Equal(now) {
		t.Error(m, format, err)
	}
}

func TestWriteMistakes(t *testing.T) {
	m := parse(t, small)
	if err := Write(&bytes.Buffer{}, m, Nets); err == nil || !strings.Contains(err.Error(), `can't write maps as "gdnsd-nets"`) {
		t.Error(err)
	}
	full := errors.New("disk full")
	for _, format := range []Format{MMDB, Text} {
		if err := Write(failing{full}, m, format); !errors.Is(err, full) {
			t.Error(format, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
