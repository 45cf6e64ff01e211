package probe

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// many is the number of endpoints that a machine is to take.
const many = 30_000

// TestSchedulerMemory holds how much an endpoint takes between two probes.
func TestSchedulerMemory(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result rune
	}{{"passing", 'p'}, {"failing", 'f'}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := func(_ context.Context, target Target) Result {
					r := resultOf(tt.result)
					if r.Status == Fail {
						r.Reason = fmt.Sprintf("dial tcp %s:80: connect: connection refused", target.Addr)
					}
					return r
				}
				s := NewScheduler(Options{New: func(*check.Check) (*Runner, error) {
					return &Runner{Probe: one, Close: func() {}}, nil
				}})
				defer s.Close()
				c := rules(nil)
				before := heapInUse()
				for i := range many {
					acquire(t, s, c, i)
				}
				after(40 * time.Second)
				each := (heapInUse() - before) / many
				t.Logf("%d bytes for each endpoint", each)
				if each > 2048 {
					t.Errorf("%d bytes for each endpoint, want at most 2048", each)
				}
				if stats := s.Stats(); stats.Begun < 3*many || stats.Late != 0 {
					t.Errorf("%+v", stats)
				}
				if n := runtime.NumGoroutine(); n > 100 {
					t.Errorf("%d goroutines", n)
				}
			})
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkScheduler runs 30,000 endpoints in real time with a prober that does
// nothing. One op is one probe; the metrics are the processor's time for it, and
// how late probes begin.
func BenchmarkScheduler(b *testing.B) {
	for _, interval := range []time.Duration{10 * time.Second, time.Second} {
		b.Run(fmt.Sprint("interval=", interval), func(b *testing.B) {
			var mu sync.Mutex
			var late []time.Duration
			probed := make(chan struct{}, 1<<20)
			s := NewScheduler(Options{
				New: func(*check.Check) (*Runner, error) {
					return &Runner{Probe: func(context.Context, Target) Result { return Result{Class: ClassOK} }, Close: func() {}}, nil
				},
				Observed: func(_ *Probe, _ Result, d time.Duration) {
					mu.Lock()
					late = append(late, d)
					mu.Unlock()
					probed <- struct{}{}
				},
			})
			defer s.Close()
			c := rules(func(c *check.Check) { c.Interval, c.Timeout = interval, interval/3 })
			for i := range many {
				acquire(b, s, c, i)
			}
			<-probed
			begin := processorTime(b)
			for b.Loop() {
				<-probed
			}
			used := processorTime(b) - begin
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(late)
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/probe")
			b.ReportMetric(float64(late[len(late)*99/100])/1e6, "late-p99-ms")
			b.ReportMetric(float64(late[len(late)-1])/1e6, "late-max-ms")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSchedulerAcquire takes an endpoint and gives it back.
func BenchmarkSchedulerAcquire(b *testing.B) {
	s := NewScheduler(Options{New: newFleet().prepare})
	defer s.Close()
	c := rules(nil)
	for i := range many {
		acquire(b, s, c, i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		acquire(b, s, c, many+i%many).Release("api.example.com")
	}
}

// BenchmarkMachine takes in a pass.
func BenchmarkMachine(b *testing.B) {
	m := NewMachine(rules(nil), Saved{}, noon)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(noon, Result{Class: ClassOK})
	}
}

// BenchmarkProbeState reads a state.
func BenchmarkProbeState(b *testing.B) {
	s := NewScheduler(Options{New: newFleet().prepare})
	defer s.Close()
	p := acquire(b, s, rules(nil), 0)
	b.ReportAllocs()
	for b.Loop() {
		if p.State().Assumed == VerdictDown {
			b.Fatal("down")
		}
	}
}

// BenchmarkStoreSave writes the verdicts on 30,000 endpoints.
func BenchmarkStoreSave(b *testing.B) {
	all := map[string]Saved{}
	for i := range many {
		all[KeyOf(rules(nil), Target{Addr: addrOf(i)}).String()] = Saved{Verdict: VerdictUp, Since: noon, At: noon}
	}
	st := NewStore(b.TempDir())
	for b.Loop() {
		if err := st.Save(all); err != nil {
			b.Fatal(err)
		}
	}
}
