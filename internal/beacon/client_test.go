package beacon

import (
	"errors"
	"net/netip"
	"testing"
	"time"
)

func TestAddressOf(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}
	for _, x := range []struct {
		transport string
		forwarded []string
		want      string // empty: an error
		err       error
	}{
		{"192.0.2.7:1000", nil, "192.0.2.7", nil},
		{"[2001:db8::7%eth0]:1000", nil, "2001:db8::7", nil},
		{"[::ffff:192.0.2.7]:1000", nil, "192.0.2.7", nil},
		// What a stranger says doesn't count.
		{"192.0.2.7:1000", []string{"203.0.113.9"}, "192.0.2.7", nil},
		{"10.0.0.1:1000", []string{"203.0.113.9"}, "203.0.113.9", nil},
		{"[::ffff:10.0.0.1]:1000", []string{"203.0.113.9"}, "203.0.113.9", nil},
		{"[2001:db8:ffff::1]:1000", []string{" 2001:db8::9 "}, "2001:db8::9", nil},
		// Nor does what stands before the last one that nobody vouches for.
		{"10.0.0.1:1000", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9", nil},
		{"10.0.0.1:1000", []string{"garbage, 203.0.113.9, 10.0.0.2"}, "203.0.113.9", nil},
		{"10.0.0.1:1000", []string{"198.51.100.1", "203.0.113.9,10.0.0.2"}, "203.0.113.9", nil},
		{"10.0.0.1:1000", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3", nil},
		{"10.0.0.1:1000", []string{"203.0.113.9:4711"}, "203.0.113.9", nil},
		{"10.0.0.1:1000", []string{"[2001:db8::9]:4711"}, "2001:db8::9", nil},
		{"10.0.0.1:1000", []string{"[2001:db8::9]"}, "2001:db8::9", nil},
		{"10.0.0.1:1000", []string{"::ffff:203.0.113.9"}, "203.0.113.9", nil},
		{"10.0.0.1:1000", nil, "", errNoForwarded},
		{"10.0.0.1:1000", []string{""}, "", errBadForwarded},
		{"10.0.0.1:1000", []string{"203.0.113.9, unknown"}, "", errBadForwarded},
		{"10.0.0.1:1000", []string{"203.0.113.9,"}, "", errBadForwarded},
		{"10.0.0.1:1000", []string{"[203.0.113.9"}, "203.0.113.9", nil},
		{"@", nil, "", errNoAddress},
	} {
		got, err := addressOf(x.transport, x.forwarded, trusted)
		if !errors.Is(err, x.err) || err == nil && got != netip.MustParseAddr(x.want) {
			t.Errorf("%s %q: %v, %v, expected %v, %v", x.transport, x.forwarded, got, err, x.want, x.err)
		}
	}
}

// FuzzForwarded holds that no header can make a client of a trusted address while there
// is another, and that what is kept has no more than the prefix.
func FuzzForwarded(f *testing.F) {
	f.Add("203.0.113.9, 10.0.0.2")
	f.Add("[fe80::1%x]:1, ::ffff:1.2.3.4")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, header string) {
		a, err := addressOf("10.0.0.1:1", []string{header, "203.0.113.9"}, trusted)
		if err != nil || a.String() != "203.0.113.9" {
			t.Fatal(a, err)
		}
		if a, err = addressOf("10.0.0.1:1", []string{header}, trusted); err != nil {
			return
		}
		p := cut(a)
		if !p.IsValid() || p != p.Masked() || !p.Contains(a) || p.Bits() != map[bool]int{true: 24, false: 56}[a.Is4()] {
			t.Fatal(a, p)
		}
	})
}

func TestSources(t *testing.T) {
	s := &sources{random: random(1)}
	day := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	of := func(addr string, at time.Time) string {
		t.Helper()
		source, err := s.of(netip.MustParseAddr(addr), at)
		if err != nil || len(source) != 5 {
			t.Fatal(source, err)
		}
		return source
	}
	// 20 bits may be equal by chance; of many addresses few are.
	differ := func(what string, other func(addr string) string) {
		t.Helper()
		same := 0
		for i := range 256 {
			a := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String()
			if of(a, day) == other(a) {
				same++
			}
		}
		if same > 3 {
			t.Errorf("%d of 256 sources are those %s", same, what)
		}
	}
	if of("192.0.2.7", day) != of("192.0.2.7", day.Add(24*time.Hour-1)) {
		t.Error("a source changes within a day")
	}
	if of("2001:db8::1", day) != of("2001:db8::ffff:ffff:ffff:ffff", day) {
		t.Error("a user with a /64 has more than one source")
	}
	differ("of a neighbour", func(a string) string { return of(netip.MustParseAddr(a).Next().String(), day) })
	another := &sources{random: random(2)}
	differ("of another collector", func(a string) string {
		source, _ := another.of(netip.MustParseAddr(a), day)
		return source
	})
	today := make(map[string]string)
	for i := range 256 {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String()
		today[a] = of(a, day)
	}
	same := 0
	for a, source := range today {
		if of(a, day.Add(24*time.Hour)) == source {
			same++
		}
	}
	if same > 3 {
		t.Errorf("%d of 256 sources are those of the day before", same)
	}
	if _, err := (&sources{random: errorReader{}}).of(netip.MustParseAddr("192.0.2.7"), day); err == nil {
		t.Error("a key of nothing")
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("no randomness") }

func TestLimiter(t *testing.T) {
	l, err := newLimiter(3, random(1))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	count := func(p string, at time.Time) (n int) {
		for range 10 {
			if l.allow(netip.MustParsePrefix(p), at) {
				n++
			}
		}
		return n
	}
	if n := count("192.0.2.0/24", now); n != 3 {
		t.Errorf("%d reports pass, expected 3", n)
	}
	if n := count("192.0.2.0/24", now.Add(59*time.Second)); n != 0 {
		t.Errorf("%d more in the same minute", n)
	}
	// One that is limited doesn't limit others: of 100, hardly any shares its counter.
	free := 0
	for i := range 100 {
		free += count(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24).String(), now)
	}
	if free < 290 {
		t.Errorf("%d reports of 100 other prefixes pass, expected 300", free)
	}
	if n := count("192.0.2.0/24", now.Add(time.Minute)); n != 3 {
		t.Errorf("%d in the next minute, expected 3", n)
	}
}
