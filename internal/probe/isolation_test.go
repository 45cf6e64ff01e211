package probe

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func TestIsolation(t *testing.T) {
	for _, tt := range []struct {
		name string
		was  bool
		v    Vantage
		want bool
	}{
		{"all well", false, Vantage{100, 0, 100, BeaconsUnknown}, false},
		{"half turned", false, Vantage{100, 50, 50, BeaconsSilent}, false},
		{"more than half turned, beacons silent", false, Vantage{100, 51, 49, BeaconsSilent}, true},
		{"more than half turned, a beacon answers", false, Vantage{100, 51, 49, BeaconsAnswer}, false},
		{"more than half turned, beacons not asked", false, Vantage{100, 100, 0, BeaconsUnknown}, false},
		{"beacons silent alone", false, Vantage{100, 3, 97, BeaconsSilent}, false},
		{"nothing at all", false, Vantage{0, 0, 0, BeaconsSilent}, false},
		{"goes on", true, Vantage{100, 0, 0, BeaconsSilent}, true},
		{"goes on while beacons are asked", true, Vantage{100, 0, 50, BeaconsUnknown}, true},
		{"ends with a beacon", true, Vantage{100, 60, 0, BeaconsAnswer}, false},
		{"ends with more than half", true, Vantage{100, 60, 51, BeaconsSilent}, false},
		{"ends with the last endpoint", true, Vantage{0, 0, 0, BeaconsSilent}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := Isolation{tt.was}
			if changed := i.Observe(tt.v); i.Isolated() != tt.want || changed != (tt.was != tt.want) {
				t.Errorf("isolated %v, changed %v", i.Isolated(), changed)
			}
		})
	}
}

// island is a fleet of 100 with a beacon, all of which pass; endpoint 0 is
// down.
type island struct {
	*fleet
	s       *Scheduler
	c       *check.Check
	probes  []*Probe
	beacon  atomic.Bool  // answers
	lag     atomic.Int64 // before it does
	beacons atomic.Int32 // probes of it
}

func newIsland(t *testing.T) *island {
	i := startIsland(t, true)
	after(60 * time.Second)
	if n := i.beacons.Load(); n != 0 {
		t.Errorf("beacons probed %d times without need", n)
	}
	if n := i.count(VerdictUp); n != 99 {
		t.Fatalf("%d up", n)
	}
	return i
}

// startIsland starts with all passing and the beacon answering, or neither.
func startIsland(t *testing.T, reachable bool) *island {
	i := &island{fleet: newFleet(), c: rules(nil)}
	i.beacon.Store(reachable)
	opts := i.options()
	opts.Beacons = []Target{{Addr: netip.MustParseAddr("192.0.2.53"), Port: 53}, {Addr: netip.MustParseAddr("192.0.2.54"), Port: 53}}
	opts.Beacon = func(ctx context.Context, b Target) Result {
		i.beacons.Add(1)
		if i.beacon.Load() && b.Addr == opts.Beacons[1].Addr {
			time.Sleep(time.Duration(i.lag.Load()))
			return Result{}
		}
		<-ctx.Done()
		return Result{Status: Fail, Class: ClassTimeout}
	}
	i.s = NewScheduler(opts)
	if !reachable {
		i.setAll(100, resultOf('f'))
	}
	i.set(addrOf(0), resultOf('f'))
	for n := range 100 {
		i.probes = append(i.probes, acquire(t, i.s, i.c, n))
	}
	return i
}

func (i *island) count(v Verdict) (n int) {
	for _, p := range i.probes {
		if p.State().Verdict == v {
			n++
		}
	}
	return n
}

func TestSchedulerIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIsland(t)
		defer i.s.Close()
		i.beacon.Store(false)
		i.setAll(100, resultOf('f'))
		after(60 * time.Second)
		if n := i.count(VerdictUp); n != 99 || !i.s.Stats().Isolated {
			t.Errorf("isolated %v, %d up", i.s.Stats().Isolated, n)
		}
		if last := i.lastNotice(); !last.Isolated {
			t.Error("not told")
		}
		told := len(i.notices())
		after(time.Hour)
		if n := i.count(VerdictUp); n != 99 || len(i.notices()) != told {
			t.Errorf("after an hour: %d up, told %d times more", n, len(i.notices())-told)
		}
		i.setAll(100, resultOf('p'))
		i.set(addrOf(0), resultOf('f'))
		after(2 * i.c.Interval)
		if n := i.count(VerdictUp); n != 99 || i.s.Stats().Isolated {
			t.Errorf("when endpoints pass: isolated %v, %d up", i.s.Stats().Isolated, n)
		}
		if last := i.lastNotice(); last.Isolated {
			t.Error("the end was not told")
		}
	})
}

func TestSchedulerIsolationEndsByBeacon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIsland(t)
		defer i.s.Close()
		i.beacon.Store(false)
		i.setAll(100, resultOf('f'))
		after(60 * time.Second)
		if !i.s.Stats().Isolated {
			t.Fatal("not isolated")
		}
		i.beacon.Store(true) // we see the world, and all endpoints are dead
		after(15 * time.Second)
		if i.s.Stats().Isolated || i.count(VerdictDown) != 1 {
			t.Errorf("isolated %v, %d down", i.s.Stats().Isolated, i.count(VerdictDown))
		}
		after(4 * i.c.Interval)
		if n := i.count(VerdictDown); n != 100 {
			t.Errorf("%d down", n)
		}
	})
}

func TestSchedulerOutageIsNoIsolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIsland(t)
		defer i.s.Close()
		i.setAll(100, resultOf('f'))
		after(60 * time.Second)
		if n := i.count(VerdictDown); n != 100 || i.s.Stats().Isolated {
			t.Errorf("isolated %v, %d down", i.s.Stats().Isolated, n)
		}
		t.Logf("beacons probed %d times", i.beacons.Load())
		if n := i.beacons.Load(); n < 4 || n > 14 {
			t.Errorf("beacons probed %d times", n)
		}
	})
}

// hasten has verdicts turn by one failure, before the beacons are asked.
func (i *island) hasten(t *testing.T) {
	c := rules(func(c *check.Check) { c.Fall, c.Path = 1, "/other" })
	for n, p := range i.probes {
		i.probes[n] = acquire(t, i.s, c, n)
		p.Release("api.example.com")
	}
	after(60 * time.Second)
}

// TestSchedulerBeaconsOfOld has an isolation, and later an outage while the
// beacons answer, but late: that they were silent once must not count.
func TestSchedulerBeaconsOfOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIsland(t)
		defer i.s.Close()
		i.hasten(t)
		i.beacon.Store(false)
		i.setAll(100, resultOf('f'))
		after(20 * time.Second)
		if !i.s.Stats().Isolated {
			t.Fatal("not isolated")
		}
		i.setAll(100, resultOf('p'))
		after(10 * time.Minute)
		if n := i.count(VerdictUp); n != 100 || i.s.Stats().Isolated {
			t.Fatalf("isolated %v, %d up", i.s.Stats().Isolated, n)
		}
		i.beacon.Store(true)
		i.lag.Store(int64(1500 * time.Millisecond))
		told := len(i.notices())
		i.setAll(100, resultOf('f'))
		after(20 * time.Second)
		for _, n := range i.notices()[told:] {
			if n.Isolated {
				t.Fatal("isolated by what beacons said before")
			}
		}
		if n := i.count(VerdictDown); n != 100 {
			t.Errorf("%d down", n)
		}
	})
}

func TestSchedulerIsolatedAtFall1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIsland(t)
		defer i.s.Close()
		i.hasten(t)
		i.beacon.Store(false)
		i.setAll(100, resultOf('f'))
		after(20 * time.Second)
		if n := i.count(VerdictUp); n != 99 || !i.s.Stats().Isolated {
			t.Errorf("isolated %v, %d up", i.s.Stats().Isolated, n)
		}
	})
}

// TestSchedulerStartsIsolated has a process start that reaches nothing.
func TestSchedulerStartsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := startIsland(t, false)
		defer i.s.Close()
		after(30 * time.Second)
		begun := i.s.Stats().Begun
		if !i.s.Stats().Isolated || i.count(VerdictDown) > 10 {
			t.Errorf("isolated %v, %d down", i.s.Stats().Isolated, i.count(VerdictDown))
		}
		after(10 * i.c.Interval)
		t.Logf("%d down, %d probes in 10 intervals", i.count(VerdictDown), i.s.Stats().Begun-begun)
		if n := i.s.Stats().Begun - begun; n > 11*100 {
			t.Errorf("%d probes in 10 intervals", n)
		}
	})
}

func TestConnectBeacon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if r := connectBeacon(t.Context(), to(l.Addr().String())); r.Status != Pass {
		t.Errorf("%+v", r)
	}
	if r := connectBeacon(t.Context(), to(refused)); r.Status != Fail || r.Reason == "" {
		t.Errorf("%+v", r)
	}
}
