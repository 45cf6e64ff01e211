package gslb

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/steer"
)

// leverBlock is three regions in order, of which a has levers, in the region or in the
// pool. The clients that share asks for, 20.0.0.0 to 23.255.0.0, are marked up to 21.
func leverBlock(inRegion, inPool string) string {
	return fmt.Sprintf(`gslb {
	region a {
		%s
	}
	region b
	region c
	area marked prefix 20.0.0.0/7
	clients rest {
		order a b c
	}
	check web {
		http :8080 /healthz
	}
	host api.example.com {
		check web
		pool a {
			endpoint 192.0.2.1
			%s
		}
		pool b 192.0.2.2
		pool c 192.0.2.3
	}
}`, inRegion, inPool)
}

// takes holds which parts of the clients the regions a and b take.
func takes(t *testing.T, what string, g *GSLB, a, b float64) {
	t.Helper()
	synctest.Wait()
	const clients = 1024
	count := make(map[string]float64)
	for i := range clients {
		subnet := fmt.Sprintf("%d.%d.1.0/24", 20+i/256, i%256)
		addr, _, _ := strings.Cut(told(t, g, "api A", subnet), " ")
		count[addr]++
	}
	for addr, want := range map[string]float64{"192.0.2.1": a, "192.0.2.2": b} {
		got := count[addr] / clients
		if exact := want == 0 || want == 1; exact && got != want || math.Abs(got-want) > 0.045 {
			t.Errorf("%s: %s takes %.3f, want %.3f", what, addr, got, want)
		}
	}
}

// moment is what a and b take at a time after the start of the clock.
type moment struct {
	at   time.Duration
	a, b float64
}

// Every lever, in a region and in a pool, moves clients when the clock says so.
func TestLevers(t *testing.T) {
	const h = time.Hour
	for _, tc := range []struct {
		levers string
		want   []moment
	}{
		{"drain", []moment{{0, 0, 1}, {48 * h, 0, 1}}},
		{"drain from 2000-01-01T01:00:00Z until 2000-01-01T02:00:00Z", []moment{{0, 1, 0}, {h - time.Second, 1, 0}, {h + beat, 0, 1}, {2*h - time.Second, 0, 1}, {2*h + beat, 1, 0}}},
		{"drain from 2000-01-01T02:00:00+01:00", []moment{{0, 1, 0}, {h + beat, 0, 1}, {48 * h, 0, 1}}},
		{"drain until 2000-01-01T01:00:00Z", []moment{{0, 0, 1}, {h + beat, 1, 0}}},
		{"drain daily 23:00-01:00 Z", []moment{{0, 0, 1}, {h + beat, 1, 0}, {23*h - beat, 1, 0}, {23*h + beat, 0, 1}, {24 * h, 0, 1}, {25*h + beat, 1, 0}}},
		{"drain daily 01:30-00:30 +01:00 Sat Mon", []moment{{0, 1, 0}, {h/2 + beat, 0, 1}, {23*h + h/2 + beat, 1, 0}, {25 * h, 1, 0}, {49 * h, 0, 1}}}, // the first was a Saturday
		{"dial 25%", []moment{{0, 0.25, 0.75}}},
		{"dial 0%", []moment{{0, 0, 1}}},
		{"dial 10%\ndial 50% from 2000-01-01T01:00:00Z\ndial 80% from 2000-01-01T02:00:00Z\ndial 30% daily 23:00-01:00 Z", []moment{
			{0, 0.3, 0.7}, {h + beat, 0.5, 0.5}, {2*h + beat, 0.8, 0.2}, {23*h + beat, 0.3, 0.7}, {25*h + beat, 0.8, 0.2}}},
		{"share 10%", []moment{{0, 0.1, 0.9}}},
		{"share 0%\nshare 20% from 2000-01-01T01:00:00Z\nshare off from 2000-01-01T02:00:00Z", []moment{{0, 0, 1}, {h + beat, 0.2, 0.8}, {2*h + beat, 1, 0}}},
		{"share 40% area marked", []moment{{0, 0.2, 0.8}}}, // of half of them
		{"share 40% area marked from 2000-01-01T01:00:00Z", []moment{{0, 1, 0}, {h + beat, 0.2, 0.8}}},
		{"trickle 20%", []moment{{0, 0.8, 0.2}}},
		{"dial 50%\nshare 20%", []moment{{0, 0.1, 0.9}}},
		{"dial 50%\ntrickle 20%", []moment{{0, 0.4, 0.6}}},
	} {
		for _, where := range []string{"region", "pool"} {
			t.Run(where+": "+tc.levers, func(t *testing.T) {
				text := leverBlock(tc.levers, "")
				if where == "pool" {
					text = leverBlock("", tc.levers)
				}
				synctest.Test(t, func(t *testing.T) {
					r := newWorld().registry()
					gen, g := r.mustStart(t, text)
					defer r.stop(gen)
					began := time.Now()
					for _, m := range tc.want {
						time.Sleep(m.at - time.Since(began))
						takes(t, m.at.String(), g, m.a, m.b)
					}
				})
			})
		}
	}
}

// The pool's own word replaces its region's, but drains add up.
func TestLeversOfPoolAndRegion(t *testing.T) {
	for _, tc := range []struct {
		region, pool string
		a            float64
	}{
		{"dial 20%", "dial 60%", 0.6}, {"dial 20%", "trickle 50%", 0.1}, {"share 10%", "share off", 1}, {"share 10%", "share 30%", 0.3},
		{"trickle 40%", "trickle 0%", 1}, {"drain", "drain from 2030-01-01T00:00:00Z", 0}, {"drain from 2030-01-01T00:00:00Z", "drain", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newWorld().registry()
			gen, g := r.mustStart(t, leverBlock(tc.region, tc.pool))
			defer r.stop(gen)
			takes(t, tc.region+" and "+tc.pool, g, tc.a, 1-tc.a)
		})
	}
}

// A region dialled to nothing serves whom nobody else can, and a soak does, too; a
// drained one doesn't.
func TestLeversInNeed(t *testing.T) {
	for levers, a := range map[string]string{"dial 0%": "192.0.2.1 ttl 30", "share 0%": "192.0.2.1 ttl 30", "drain": "192.0.2.2 192.0.2.3 ttl 5"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			r := w.registry()
			gen, g := r.mustStart(t, leverBlock(levers, ""))
			defer r.stop(gen)
			w.set("192.0.2.2 fail, 192.0.2.3 fail")
			time.Sleep(fallen)
			synctest.Wait()
			if got := told(t, g, "api A", ""); got != a && !(levers == "drain" && strings.Contains(a, got[:len("192.0.2.2")])) {
				t.Errorf("%s: %s, want %s", levers, got, a)
			}
		})
	}
}

// A change that is due is not lost because a verdict changes at the same time, of
// another host.
func TestLeverDueWhileHealthChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		text := strings.Replace(leverBlock("drain from 2000-01-01T01:00:00Z", ""), "host api", "host other.example.com {\ncheck web\npool b 192.0.2.9\npool c 192.0.2.10\n}\nhost api", 1)
		gen, g := r.mustStart(t, text)
		defer r.stop(gen)
		time.Sleep(time.Hour - time.Second/2)
		time.Sleep(time.Second / 2)
		r.mu.Lock() // as a notice that comes before the beat does
		for p, hosts := range g.health.hosts {
			if p.Target().Addr.String() == "192.0.2.9" && len(hosts) == 1 {
				g.renew(map[int]bool{hosts[0]: true}, time.Now())
				g.schedule(time.Now())
			}
		}
		r.mu.Unlock()
		time.Sleep(2 * beat)
		takes(t, "after the hour", g, 0, 1)
	})
}

// back waits until region a takes clients again.
func back(t *testing.T, w *world, g *GSLB) {
	t.Helper()
	w.set("192.0.2.1 pass")
	for range 4 * risen / time.Second {
		time.Sleep(time.Second / 4)
		synctest.Wait()
		if st := g.live.Load().snapshots[0].Region(0, steer.V4); st.Usable {
			return
		}
	}
	t.Fatal("it does not come back")
}

func away(t *testing.T, w *world, g *GSLB) {
	t.Helper()
	w.set("192.0.2.1 fail")
	time.Sleep(fallen)
	takes(t, "in the outage", g, 0, 1)
}

// climbs holds the ten steps of a return that takes ramp, from one of them on, of
// which the first second is over.
func climbs(t *testing.T, g *GSLB, ramp time.Duration, from int) {
	t.Helper()
	for n := from; n <= rampParts; n++ {
		takes(t, fmt.Sprintf("in step %d", n), g, float64(n)/rampParts, 1-float64(n)/rampParts)
		time.Sleep(ramp / (rampParts - 1))
	}
	takes(t, "when it is over", g, 1, 0)
}

func TestRamp(t *testing.T) {
	for _, tc := range []struct {
		levers string
		ramp   time.Duration
	}{{"ramp 90s", 90 * time.Second}, {"", 5 * time.Minute}, {"dial 100%\nramp 30m", 30 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			r := w.registry()
			gen, g := r.mustStart(t, leverBlock(tc.levers, ""))
			time.Sleep(time.Minute)
			takes(t, "after a start", g, 1, 0)
			for range 2 { // and again
				away(t, w, g)
				back(t, w, g)
				time.Sleep(2 * beat)
				climbs(t, g, tc.ramp, 1)
			}
			r.stop(gen)
		})
	}
}

func TestRampOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, leverBlock("ramp 90s", "ramp 0s"))
		defer r.stop(gen)
		away(t, w, g)
		back(t, w, g)
		takes(t, "at once", g, 1, 0)
	})
}

// A second outage in the middle of a return begins it anew, and a reload does not end it.
func TestRampInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		first, g := r.mustStart(t, leverBlock("ramp 900s", ""))
		away(t, w, g)
		back(t, w, g)
		time.Sleep(2*beat + 300*time.Second)
		takes(t, "in step 4", g, 0.4, 0.6)
		away(t, w, g)
		back(t, w, g)
		time.Sleep(2*beat + 200*time.Second)
		takes(t, "in step 3", g, 0.3, 0.7)
		second, g2 := r.mustStart(t, leverBlock("ramp 900s", "")+"\n")
		takes(t, "after a reload", g2, 0.3, 0.7)
		r.stop(first)
		time.Sleep(100 * time.Second)
		climbs(t, g2, 900*time.Second, 4)
		third, g3 := r.mustStart(t, leverBlock("ramp 5h", ""))
		takes(t, "with a longer one, but it is over", g3, 1, 0)
		r.stop(second)
		r.stop(third)
	})
}

// A family that comes back alone moves its own clients and no others.
func TestRampOfOneFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		text := strings.NewReplacer("endpoint 192.0.2.1\n", "endpoint 192.0.2.1\nendpoint 2001:db8::1\n", "192.0.2.2", "192.0.2.2 2001:db8::2", "192.0.2.3", "192.0.2.3 2001:db8::3").Replace(leverBlock("", ""))
		gen, g := r.mustStart(t, text)
		defer r.stop(gen)
		w.set("2001:db8::1 fail")
		time.Sleep(fallen)
		takes(t, "IPv4 while IPv6 is out", g, 1, 0)
		w.set("2001:db8::1 pass")
		for range 80 {
			time.Sleep(time.Second)
			takes(t, "IPv4 while IPv6 comes back", g, 1, 0)
		}
		if got := told(t, g, "api AAAA", ""); got != "2001:db8::1 ttl 30" {
			t.Errorf("IPv6: %s", got)
		}
	})
}
