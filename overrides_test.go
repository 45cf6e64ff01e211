package gslb

import (
	"context"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// clerk changes overrides without a socket, which virtual time could not wait for.
type clerk struct {
	*registry
	desk *desk
}

func (w *world) clerk(t *testing.T, dir string) *clerk {
	t.Helper()
	r := w.registry()
	l, err := openLedger(r, dir)
	if err != nil {
		t.Fatal(err)
	}
	l.users = 1
	return &clerk{r, &desk{store: l, door: &door{users: 2}}} // nobody closes that door
}

func (c *clerk) start(t *testing.T, text string) (*generation, *GSLB) {
	t.Helper()
	c.desk.users++
	gen := &generation{desk: c.desk, loaded: []*GSLB{load(t, text, nil)}}
	if err := c.registry.start(gen, gen.loaded[0]); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // what had expired has ended
	return gen, gen.loaded[0]
}

// do makes a change: "LEVER VALUE KEY=VALUE…", where a key is region, host, endpoint,
// area or for; or "cancel ID".
func (c *clerk) do(text string) (control.Result, error) {
	return c.desk.store.Do(context.Background(), clerkHerself, asked(text))
}

var clerkHerself = control.Author{Name: "alice", From: "test"}

// asked is the request for a change.
func asked(text string) *control.Request {
	words := strings.Fields(text)
	r := control.Request{Change: control.Change{Lever: control.Lever(words[0]), Value: control.Value(words[1]), Terms: control.Terms{Why: "test", Never: true}}}
	if words[0] == "cancel" {
		r.Change = control.Change{Cancel: words[1], Terms: control.Terms{Why: "test"}}
	}
	for _, w := range words[2:] {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "region":
			r.Region = value
		case "host":
			r.Host = value
		case "endpoint":
			r.Endpoint = netip.MustParseAddr(value)
		case "area":
			r.Area = value
		case "for":
			r.For, r.Never = value, false
		case "force":
			r.Force = true
		default:
			panic(w)
		}
	}
	return &r
}

func (c *clerk) must(t *testing.T, text string) control.Result {
	t.Helper()
	r, err := c.do(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// Overrides beat what is written until they expire, and the most specific one wins.
func TestOverridesMove(t *testing.T) {
	for _, tc := range []struct {
		inRegion, inPool string
		do               string // changes, with ; between
		a                float64
	}{
		{"", "", "drain on region=a", 0},
		{"", "", "drain on region=a host=api.example.com", 0},
		{"", "", "drain on region=a host=API.example.com.", 0},
		{"drain", "", "drain off region=a", 1},
		{"", "drain", "drain off region=a host=api.example.com", 1},
		{"", "drain", "drain off region=a host=api.example.com; drain on region=a", 1},
		{"", "", "drain on region=a host=api.example.com; dial 40% region=a", 0},
		{"", "", "dial 40% region=a", 0.4},
		{"dial 90%", "dial 80%", "dial 40% region=a", 0.4},
		{"", "", "dial 40% region=a; dial 70% region=a host=api.example.com", 0.7},
		{"", "dial 30%", "dial 100% region=a host=api.example.com", 1},
		{"", "", "share 15% region=a", 0.15},
		{"share 60%", "", "share off region=a", 1},
		{"share 60% area marked from 2100-01-01T00:00:00Z", "", "share 40% region=a area=marked", 0.2},
		{"", "", "trickle 25% region=a; dial 80% region=a", 0.6},
		{"trickle 25%", "", "trickle 0% region=a", 1},
		{"", "", "force down endpoint=192.0.2.1", 0},
		{"", "", "force down endpoint=192.0.2.1 host=api.example.com region=a", 0},
		{"", "", "drain on endpoint=192.0.2.1 region=a", 0},
		{"", "", "drain on endpoint=192.0.2.1; drain off endpoint=192.0.2.1 host=api.example.com", 1},
		{"drain", "", "drain on endpoint=192.0.2.9; drain off region=a", 1},
		{"", "", "force down endpoint=192.0.2.1; drain off region=b", 0},
	} {
		t.Run(tc.inRegion+"/"+tc.inPool+": "+tc.do, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				c := newWorld().clerk(t, dir)
				text := strings.Replace(leverBlock(tc.inRegion, tc.inPool), "region b\n", "region b {\ndrain from 2100-01-01T00:00:00Z\n}\n", 1)
				text = strings.Replace(text, "host api", "host w.example.com {\npool c 192.0.2.9 192.0.2.10\npool b 192.0.2.2\n}\nguard max_move 100%\nhost api", 1)
				gen, g := c.start(t, text)
				defer c.stop(gen)
				base := share(t, g, "api A", "192.0.2.1")
				for _, one := range strings.Split(tc.do, "; ") {
					c.must(t, one+" for=1h")
				}
				takes(t, "at once", g, tc.a, 1-tc.a)
				time.Sleep(time.Hour - 2*beat)
				takes(t, "until the end", g, tc.a, 1-tc.a)
				time.Sleep(3 * beat)
				takes(t, "when they have expired", g, base, 1-base)
				if n := c.desk.store.Overrides().Len(); n != 0 {
					t.Errorf("%d overrides are left", n)
				}
			})
		})
	}
}

const weighed = `gslb {
	region a b
	clients rest {
		order a b
	}
	guard max_move 100%
	host w.example.com {
		pool a {
			endpoint 192.0.2.11 weight 3
			endpoint 192.0.2.12 weight 1
			endpoint 192.0.2.13 weight 4 drain
			endpoint 192.0.2.14 weight 4 down
			answers 1
		}
		pool b 192.0.2.20
	}
}`

// Levers of endpoints, one after the other.
func TestOverridesOfEndpoints(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newWorld().clerk(t, dir)
		gen, g := c.start(t, weighed)
		defer c.stop(gen)
		for _, step := range []struct {
			do   string
			want [4]float64 // of 192.0.2.11 to 14
		}{
			{"", [4]float64{0.75, 0.25, 0, 0}},
			{"weight 3 endpoint=192.0.2.12", [4]float64{0.5, 0.5, 0, 0}},
			{"weight 9 endpoint=192.0.2.12 host=w.example.com", [4]float64{0.25, 0.75, 0, 0}},
			{"weight 0 endpoint=192.0.2.12 host=w.example.com region=a", [4]float64{1, 0, 0, 0}},
			{"drain off endpoint=192.0.2.13", [4]float64{3. / 7, 0, 4. / 7, 0}},
			{"force up endpoint=192.0.2.14", [4]float64{3. / 11, 0, 4. / 11, 4. / 11}},
			{"drain on endpoint=192.0.2.14 region=a", [4]float64{3. / 7, 0, 4. / 7, 0}},
			{"force down endpoint=192.0.2.11", [4]float64{0, 0, 1, 0}},
		} {
			if step.do != "" {
				c.must(t, step.do)
			}
			var got [4]float64
			for i := range got {
				got[i] = share(t, g, "w A", netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)}).String())
			}
			whole := sum(got[:]) // the rest spills, as too little of the pool is alive
			for i, want := range step.want {
				if part := got[i] / whole; want == 0 && part > 0 || math.Abs(part-want) > 0.06 {
					t.Errorf("%s: 192.0.2.%d gets %.3f of the pool's, want %.3f", step.do, 11+i, part, want)
				}
			}
		}
		c.must(t, "cancel 4") // so that 13 is drained again, and 12 has no weight
		if got := told(t, g, "w A", ""); got != "192.0.2.20 ttl 30" {
			t.Errorf("without an endpoint left in a: %s", got)
		}
	})
}

// An undrain is no return from an outage.
func TestUndrainIsNoRamp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.clerk(t, dir)
		gen, g := c.start(t, "gslb {\nguard max_move 100%\n"+strings.TrimPrefix(leverBlock("ramp 90s", ""), "gslb {\n"))
		defer c.stop(gen)
		for _, lever := range []string{"drain on region=a", "force down endpoint=192.0.2.1", "dial 0% region=a"} {
			id := c.must(t, lever).Applied[0].Override.ID
			time.Sleep(time.Minute)
			takes(t, lever, g, 0, 1)
			c.must(t, "cancel "+id)
			takes(t, "after "+lever, g, 1, 0)
			time.Sleep(time.Minute)
			takes(t, "a minute after "+lever, g, 1, 0)
		}
		w.set("192.0.2.2 fail") // another region's verdict changes while one is forced
		c.must(t, "force down endpoint=192.0.2.1")
		time.Sleep(fallen)
		c.must(t, "cancel 4")
		takes(t, "after force", g, 1, 0)
	})
}

// TestEndsAreToldOf holds that the log says how an override has ended.
func TestEndsAreToldOf(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		c := newWorld().clerk(t, dir)
		gen, _ := c.start(t, "gslb {\nguard max_move 100%\n"+strings.TrimPrefix(leverBlock("", ""), "gslb {\n"))
		defer c.stop(gen)
		c.must(t, "dial 40% region=a")
		c.must(t, "dial 50% region=a")
		c.must(t, "cancel 2")
		c.must(t, "trickle 50% region=a for=1h")
		time.Sleep(2 * time.Hour)
		for _, want := range []string{
			"Override 1 (dial of region a is 40%) is over: override 2 is in its place, by alice: test",
			"Override 2 (dial of region a is 50%) is over: cancelled by alice: test",
			"Override 3 (trickle of region a is 50%) is over: it has expired",
		} {
			if strings.Count(logged.String(), want+"\n") != 1 {
				t.Errorf("%q is not in\n%s", want, logged)
			}
		}
	})
}

// Overrides outlive a reload of the Corefile and of data, and a process.
func TestOverridesLast(t *testing.T) {
	dir := t.TempDir()
	text := "gslb {\nguard max_move 100%\n" + strings.TrimPrefix(leverBlock("", ""), "gslb {\n")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.clerk(t, dir)
		first, g := c.start(t, text)
		c.must(t, "dial 40% region=a for=2h")
		c.must(t, "trickle 50% region=a for=1h")
		takes(t, "at first", g, 0.2, 0.8)
		second, g2 := c.start(t, text+"\n")
		takes(t, "after a reload", g2, 0.2, 0.8)
		takes(t, "in the old generation", g, 0.2, 0.8)
		c.stop(first)
		p, err := plan.Compile(g2.block, g2.live.Load().plan.Data, g2.options)
		if err != nil {
			t.Fatal(err)
		}
		if err := g2.replace(p, time.Now(), 0); err != nil {
			t.Fatal(err)
		}
		takes(t, "after a reload of data", g2, 0.2, 0.8)
		w.set("192.0.2.3 fail")
		time.Sleep(fallen)
		takes(t, "after a change of verdicts", g2, 0.2, 0.8)
		c.stop(second)

		time.Sleep(time.Hour) // the process is away, and one expires
		c = w.clerk(t, dir)
		third, g3 := c.start(t, text)
		time.Sleep(3 * firstRound) // verdicts are too old: nobody knows yet what the end would do
		takes(t, "in another process", g3, 0.4, 0.6)
		if entries, err := c.desk.store.Audit(1); err != nil || entries[0].Action != "expire" || entries[0].ID != "2" {
			t.Errorf("the audit log ends with %+v, %v", entries, err)
		}
		time.Sleep(time.Hour)
		takes(t, "when the other has expired", g3, 1, 0)
		c.stop(third)
	})
}

// A file of overrides that is damaged or gone is set aside and told of, and the server
// starts.
func TestOverridesLost(t *testing.T) {
	text := "gslb {\nguard max_move 100%\n" + strings.TrimPrefix(leverBlock("", ""), "gslb {\n")
	for name, spoil := range map[string]func(*testing.T, string){
		"damaged": func(t *testing.T, path string) { replace(t, path, []byte("{}")) },
		"gone":    func(t *testing.T, path string) { os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				c := newWorld().clerk(t, dir)
				gen, g := c.start(t, text)
				c.must(t, "drain on region=a")
				takes(t, "drained", g, 0, 1)
				c.stop(gen)
				spoil(t, filepath.Join(dir, "overrides.json"))
				logged := logTo(t)
				c = newWorld().clerk(t, dir)
				gen, g = c.start(t, text)
				defer c.stop(gen)
				takes(t, "afterwards", g, 1, 0)
				status, err := c.desk.store.Status(t.Context())
				if err != nil || len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "overrides") || !strings.Contains(logged.String(), status.Warnings[0]) {
					t.Errorf("status warns %q, %v; logged\n%s", status.Warnings, err, logged)
				}
				if bad, _ := filepath.Glob(filepath.Join(dir, "overrides.json.bad-*")); (name == "damaged") != (len(bad) == 1) {
					t.Errorf("set aside: %v", bad)
				}
				if c.must(t, "drain on region=a"); c.desk.store.Overrides().All()[0].ID != "2" {
					t.Error("an ID is given twice")
				}
				takes(t, "drained again", g, 0, 1)
			})
		})
	}
}
