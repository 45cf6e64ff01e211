package probe

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// TestCheckDigest changes each field of a check in turn.
func TestCheckDigest(t *testing.T) {
	base := check.Check{}
	seen := map[uint64]string{checkDigest(&base): "nothing"}
	for i := range reflect.TypeFor[check.Check]().NumField() {
		c := base
		field := reflect.ValueOf(&c).Elem().Field(i)
		name := reflect.TypeFor[check.Check]().Field(i).Name
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Int, reflect.Int64:
			field.SetInt(1)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		default:
			t.Fatalf("%s is a %s", name, field.Kind())
		}
		other, same := seen[checkDigest(&c)]
		if same != (name == "Name") {
			t.Errorf("%s changed: same digest %v, as with %s changed", name, same, other)
		}
		seen[checkDigest(&c)] = name
	}
}

func TestCheckDigestOfBytes(t *testing.T) {
	if checkDigest(&check.Check{Send: "\xfe"}) == checkDigest(&check.Check{Send: "\xff"}) {
		t.Error("equal digests")
	}
}

func TestKey(t *testing.T) {
	c := check.Defaults("web", check.HTTPS)
	c.Port = 8443
	each := c
	each.Each = true
	target := func(addr string, port uint16, name string) Target {
		return Target{netip.MustParseAddr(addr), port, name}
	}
	for _, tt := range []struct {
		name  string
		c     *check.Check
		t     Target
		other *check.Check
		u     Target
		same  bool
	}{
		{"mapped", &c, target("192.0.2.1", 0, ""), &c, target("::ffff:192.0.2.1", 0, ""), true},
		{"port of the check", &c, target("192.0.2.1", 0, ""), &c, target("192.0.2.1", 8443, ""), true},
		{"port", &c, target("192.0.2.1", 0, ""), &c, target("192.0.2.1", 443, ""), false},
		{"host names don't count", &c, target("192.0.2.1", 0, "a."), &c, target("192.0.2.1", 0, "b."), true},
		{"but with each", &each, target("192.0.2.1", 0, "a."), &each, target("192.0.2.1", 0, "b."), false},
		{"check", &c, target("192.0.2.1", 0, ""), &each, target("192.0.2.1", 0, ""), false},
	} {
		a, b := KeyOf(tt.c, tt.t), KeyOf(tt.other, tt.u)
		if (a == b) != tt.same || (a.String() == b.String()) != tt.same {
			t.Errorf("%s: %s and %s", tt.name, a, b)
		}
	}
	const want = "00000000000000ff@[2001:db8::1]:443/a.example.com."
	if got := (Key{0xff, netip.MustParseAddr("2001:db8::1"), 443, "a.example.com."}).String(); got != want {
		t.Errorf("%s", got)
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		hash uint64
		want time.Duration
	}{{0, 0}, {1 << 63, 5 * time.Second}, {1<<64 - 1, 10*time.Second - 1}} {
		if got := spreadWithin(tt.hash, 10*time.Second); got != tt.want {
			t.Errorf("%x: %s, want %s", tt.hash, got, tt.want)
		}
	}
	lowest, highest, sum := time.Hour, -time.Hour, time.Duration(0)
	const n = 10000
	for i := range int64(n) {
		j := spreadJitter(uint64(i%7), i, 10*time.Second)
		lowest, highest, sum = min(lowest, j), max(highest, j), sum+j
	}
	t.Logf("jitter from %s to %s, mean %s", lowest, highest, sum/n)
	if lowest < -500*time.Millisecond || lowest > -490*time.Millisecond || highest >= 500*time.Millisecond || highest < 490*time.Millisecond {
		t.Errorf("jitter from %s to %s", lowest, highest)
	}
	if mean := sum / n; mean < -20*time.Millisecond || mean > 20*time.Millisecond {
		t.Errorf("mean jitter %s", mean)
	}
}
