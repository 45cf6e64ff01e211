package build

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestAggregates holds that a map of rows of sketches is that of the measurements
// they were made from, but for their accuracy, and one of p75s much the same.
func TestAggregates(t *testing.T) {
	raw := newBeacons(1)
	var sketches, p75s strings.Builder
	sketches.WriteString("day,prefix,resolver,region,n,failed,sketch\n")
	p75s.WriteString("prefix,region,n,failed,p75\n")
	for p := range 30 {
		client := fmt.Sprintf("20.%d.0.0/24", p)
		for r, name := range regions {
			start := raw.Len()
			raw.many(1000, client, name, float64((p+r)%3*15))
			var ta tally
			for _, line := range strings.Split(strings.TrimSpace(string(raw.Bytes()[start:])), "\n") {
				var ms float64
				fmt.Sscan(strings.Split(line, ",")[4], &ms)
				ta.add(uint32(math.Round(ms*unitsPerMs)), 1, 1)
			}
			var sketch []string
			for bin := ta.low; bin < ta.high; bin++ {
				if ta.bins[bin] > 0 {
					sketch = append(sketch, fmt.Sprintf("%d:%d", bin+firstBin, ta.bins[bin]))
				}
			}
			raw.fail(10, client, name)
			ta.weight *= weightOne
			s := &ta
			fmt.Fprintf(&sketches, "2026-11-02,%s,,%s,1000,10,%s\n", client, name, strings.Join(sketch, " "))
			for b := range s.bins {
				s.bins[b] *= weightOne
			}
			fmt.Fprintf(&p75s, "%s,%s,1000,10,%.2f\n", client, name, s.stat().p75)
		}
	}
	want := mapOf(t, lots(eu, us, ap), raw)
	same := mapOf(t, lots(eu, us, ap), strings.NewReader(sketches.String()))
	if len(want.Map.Clients) != 20 || textOf(same.Map.Clients) != textOf(want.Map.Clients) {
		t.Errorf("sketches make\n%s\nwant\n%s", textOf(same.Map.Clients), textOf(want.Map.Clients))
	}
	for i, e := range same.Map.Clients {
		for j, c := range e.Cells {
			if c != want.Map.Clients[i].Cells[j] {
				t.Errorf("%s: cell %+v, want %+v", e.Prefix, c, want.Map.Clients[i].Cells[j])
			}
		}
	}
	if near := mapOf(t, lots(eu, us, ap), strings.NewReader(p75s.String())); textOf(near.Map.Clients) != textOf(want.Map.Clients) {
		t.Errorf("p75s make\n%s\nwant\n%s", textOf(near.Map.Clients), textOf(want.Map.Clients))
	}
}

// TestDecay holds that a day counts half after the half-life, and that without one all
// days count the same.
func TestDecay(t *testing.T) {
	input := func() (all []*beacons) {
		for day, extra := range []float64{30, 30, 0} { // of us, on 31 October and 1 and 2 November
			b := newBeacons(uint64(day))
			b.at = noon.Add(time.Duration(day-3) * 24 * time.Hour)
			b.many(400, "192.0.2.0/24", "us", extra)
			b.many(400, "192.0.2.0/24", "eu", 30)
			all = append(all, b)
		}
		return all
	}
	demand := func(half time.Duration) uint64 {
		o := Options{Geography: to(eu, us), HalfLife: half}
		b := input()
		return mapOf(t, o, b[0], b[1], b[2]).Report.Clients.Demand
	}
	if got := demand(24 * time.Hour); got != 800+400+200 {
		t.Errorf("with a half-life of a day the demand is %d, want 1400", got)
	}
	if got := demand(-1); got != 2400 {
		t.Errorf("without a half-life the demand is %d, want 2400", got)
	}
}

// TestCheck holds that a map that is right is good, one that is wrong isn't, and that nothing to
// compare isn't good either.
func TestCheck(t *testing.T) {
	day := func(seed uint64, usMs float64) *beacons {
		b := newBeacons(seed)
		for p := range 10 {
			b.many(300, fmt.Sprintf("20.%d.0.0/24", p), "eu", 30)
			b.many(300, fmt.Sprintf("20.%d.0.0/24", p), "us", usMs)
		}
		return b
	}
	m := mapOf(t, lots(eu, us, ap), day(1, 0)).Map
	for _, c := range []struct {
		us   float64
		good bool
	}{{0, true}, {90, false}} {
		check, err := builderFor(t, lots(eu, us, ap), day(2, c.us)).Check(m)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("us slower by %v: %+v", c.us, check)
		want := 30 - c.us
		if check.Good() != c.good || check.Compared != 6000 || math.Abs(check.Predicted-30) > 3 || math.Abs(check.Observed-want) > 3 || math.Abs(check.Cost-want) > 3 {
			t.Errorf("us slower by %v: %+v", c.us, check)
		}
		if entries := check.Classes[0].Entries + check.Classes[len(check.Classes)-1].Entries; len(check.Classes) > 2 || len(check.Classes) == 2 && entries != 10 || (len(check.Worst) > 0) == c.good {
			t.Errorf("us slower by %v: classes %+v, worst %+v", c.us, check.Classes, check.Worst)
		}
		var text strings.Builder
		if err := check.WriteText(&text); err != nil || strings.Contains(text.String(), "do not publish") == c.good {
			t.Errorf("text is %s", text.String())
		}
	}
	failing := day(3, 0)
	for p := range 10 {
		failing.fail(300, fmt.Sprintf("20.%d.0.0/24", p), "us")
	}
	elsewhere := newBeacons(4)
	elsewhere.many(500, "30.0.0.0/24", "eu", 0)
	for name, held := range map[string]*beacons{"failing": failing, "elsewhere": elsewhere} {
		check, err := builderFor(t, lots(eu, us, ap), held).Check(m)
		if err != nil || check.Good() {
			t.Errorf("%s: %+v, %v", name, check, err)
		}
	}
	if _, err := builderFor(t, Options{}, day(5, 0)).Check(m); err == nil {
		t.Error("a map was checked against nothing")
	}
}

// TestOptions holds that options out of their ranges are errors that say so.
func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"0 regions":          {Now: noon},
		"region \"eu\"":      {Now: noon, Regions: []string{"eu", "eu"}},
		"64 regions":         {Now: noon, Regions: make([]string, 64)},
		"time of the build":  {Regions: regions},
		"window in hours":    {Now: noon, Regions: regions, Window: time.Minute},
		"longest IPv6":       {Now: noon, Regions: regions, Longest6: 64},
		"shortest IPv4":      {Now: noon, Regions: regions, Shortest4: 25},
		"budget is NaN":      {Now: noon, Regions: regions, Budget: math.NaN()},
		"memory in bytes":    {Now: noon, Regions: regions, Memory: 1},
		"share of bad lines": {Now: noon, Regions: regions, MaxBad: 2},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
