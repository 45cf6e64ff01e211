package build

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// noon is the time of builds in tests; they are of the day before, unless they say otherwise.
var noon = time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)

// regions are those of tests.
var regions = []string{"eu", "us", "ap"}

const (
	eu = iota
	us
	ap
)

// beacons writes measurements.
type beacons struct {
	bytes.Buffer
	rng *rand.Rand
	at  time.Time
}

func newBeacons(seed uint64) *beacons {
	b := &beacons{rng: rand.New(rand.NewPCG(seed, 1)), at: noon.Add(-24 * time.Hour)}
	b.WriteString("time,client,resolver,region,rtt_ms,ok,source\n")
	return b
}

// one writes a measurement; ms of 0 is a failure.
func (b *beacons) one(client, region string, ms float64, source string) {
	fmt.Fprintf(b, "%d,%s,,%s,%.2f,%t,%s\n", b.at.Unix()+b.rng.Int64N(86400), client, region, ms, ms > 0, source)
}

// many writes n measurements, each from a source of its own, by the noise that the rules are
// made for: 40 ms and a lognormal with median 15 ms and sigma 0.9, and then extra.
func (b *beacons) many(n int, client, region string, extra float64) {
	for range n {
		b.one(client, region, 40+15*math.Exp(0.9*b.rng.NormFloat64())+extra, fmt.Sprint(b.rng.Uint64()))
	}
}

// fail writes n failures.
func (b *beacons) fail(n int, client, region string) {
	for range n {
		b.one(client, region, 0, fmt.Sprint(b.rng.Uint64()))
	}
}

// builderFor takes inputs in.
func builderFor(t testing.TB, o Options, inputs ...io.Reader) *Builder {
	t.Helper()
	if o.Regions == nil {
		o.Regions = regions
	}
	if o.Now.IsZero() {
		o.Now = noon
	}
	o.TempDir = t.TempDir()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for i, r := range inputs {
		if err := b.Add(fmt.Sprintf("input%d", i+1), r); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// mapOf builds, and holds the map to what all maps must be.
func mapOf(t testing.TB, o Options, inputs ...io.Reader) *Result {
	t.Helper()
	r, err := builderFor(t, o, inputs...).Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Map.Validate(r.Map.Built); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, e := range r.Map.Clients {
		low, high := 12, 24
		if e.Prefix.Addr().Is6() {
			low, high = 20, 56
		}
		if e.Prefix.Bits() < low || e.Prefix.Bits() > high {
			t.Errorf("%s is not /%d to /%d", e.Prefix, low, high)
		}
		for range 3 { // any address below it
			a := e.Prefix.Addr().AsSlice()
			for i := range a {
				a[i] |= byte(rng.Uint32()) & byte(0xff>>min(max(e.Prefix.Bits()-8*i, 0), 8))
			}
			addr, _ := netip.AddrFromSlice(a)
			if got, ok := r.Map.Lookup(addr); !ok || got.Prefix != e.Prefix {
				t.Errorf("%s is answered by %v, want the entry of %s", addr, got.Prefix, e.Prefix)
			}
		}
	}
	return r
}

// again is the same input once more.
func (b *beacons) again() io.Reader { return bytes.NewReader(b.Bytes()) }

// to is a geography by which all prefixes have one order.
func to(order ...uint8) Geography {
	return func(Kind, netip.Prefix) []uint8 { return order }
}

// textOf writes entries as lines of prefix and regions.
func textOf(entries []latency.Entry) string {
	var lines []string
	for _, e := range entries {
		line := e.Prefix.String()
		for _, r := range e.Order {
			line += " " + regions[r]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// expect compares the client entries of a map with lines.
func expect(t *testing.T, r *Result, lines ...string) {
	t.Helper()
	if got, want := textOf(r.Map.Clients), strings.Join(lines, "\n"); got != want {
		var b strings.Builder
		r.Report.WriteText(&b)
		t.Errorf("entries are\n%s\nwant\n%s\nreport:\n%s", got, want, &b)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
