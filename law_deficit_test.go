package gslb

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeficitOfNobody has regions go one by one until none is left: what has no room is the
// deficit, and what nobody takes at all is all of it, for as long as that lasts.
func TestDeficitOfNobody(t *testing.T) {
	for _, tc := range []struct {
		more       string
		gone, back [3]string // a change, or what checks say
	}{
		{"", [3]string{"drain on region=us host=api.example.com", "drain on region=eu host=api.example.com", "drain on region=ap host=api.example.com force"}, [3]string{"cancel 1", "cancel 2", "cancel 3"}},
		{"", [3]string{"drain on region=us", "drain on region=eu force", "drain on region=ap force"}, [3]string{"cancel 1", "cancel 2", "cancel 3"}},
		{"", [3]string{"192.0.2.2 fail", "192.0.2.1 fail", "192.0.2.3 fail"}, [3]string{"192.0.2.2 pass", "192.0.2.1 pass", "192.0.2.3 pass"}},
		{"last_resort closed", [3]string{"192.0.2.2 fail", "192.0.2.1 fail", "192.0.2.3 fail"}, [3]string{"192.0.2.2 pass", "192.0.2.1 pass", "192.0.2.3 pass"}},
		{"shed to shed.example.net", [3]string{"192.0.2.2 fail", "192.0.2.1 fail", "192.0.2.3 fail"}, [3]string{"192.0.2.2 pass", "192.0.2.1 pass", "192.0.2.3 pass"}},
	} {
		t.Run(tc.more+" "+tc.gone[0], func(t *testing.T) {
			p := newShared(t)
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w := newWorld()
				c := w.clerk(t, t.TempDir())
				gen, g := c.start(t, strings.Replace(p.block(), "\t\tcheck web\n", "\t\tcheck web\n\t\t"+tc.more+"\n", 1))
				defer c.stop(gen)
				do := func(change string, want, within float64) {
					t.Helper()
					if strings.HasPrefix(change, "192") {
						w.set(change)
					} else {
						result, err := c.desk.store.WhatIf(t.Context(), clerkHerself, asked(change))
						if err != nil || math.Abs(result.Report.DeficitAfter-want) > within {
							t.Errorf("what if %s: %v, a deficit of %.1f, want %.1f", change, err, result.Report.DeficitAfter, want)
						}
						c.must(t, change)
					}
					p.run(t, g, 90*time.Second)
					c.registry.mu.Lock()
					got, of := c.registry.steering.law.out.Deficit, c.registry.steering.law.out.Demand
					c.registry.mu.Unlock()
					if math.Abs(got-want) > within || math.Abs(of-170) > 17 {
						t.Errorf("after %s the deficit is %.1f of %.1f, want %.1f", change, got, of, want)
					}
					said := strings.Count(logged.String(), "more than all regions") - strings.Count(logged.String(), "All demand fits again")
					if (said == 1) != (want > 0) {
						t.Errorf("after %s the log says\n%s", change, logged)
					}
				}
				p.run(t, g, 2*time.Minute)
				for i, want := range []float64{0, 80, 170} {
					if tc.more != "" && strings.HasPrefix(tc.more, "shed") && i == 1 {
						want = 0 // the name takes it
					}
					do(tc.gone[i], want, 2+want/10)
				}
				if tc.more != "" {
					return
				}
				p.run(t, g, 15*time.Minute)
				for i, want := range []float64{80, 0, 0} {
					do(tc.back[2-i], want, 2+want/10)
				}
			})
		})
	}
}

// TestDemandIsConserved holds that clients that move, or find nobody for a while, are not
// taken for more of them.
func TestDemandIsConserved(t *testing.T) {
	for _, tc := range []struct{ gone, back string }{
		{"drain on region=us host=api.example.com", "cancel 1"},
		{"drain on region=eu host=api.example.com", "cancel 1"},
		{"192.0.2.2 fail", "192.0.2.2 pass"},
		{"192.0.2.1 fail, 192.0.2.2 fail, 192.0.2.3 fail", "192.0.2.1 pass, 192.0.2.2 pass, 192.0.2.3 pass"},
	} {
		for _, away := range []time.Duration{6 * time.Second, time.Minute} {
			t.Run(tc.gone+" "+away.String(), func(t *testing.T) {
				p := newShared(t)
				synctest.Test(t, func(t *testing.T) {
					logged := logTo(t)
					w := newWorld()
					c := w.clerk(t, t.TempDir())
					gen, g := c.start(t, p.block())
					defer c.stop(gen)
					p.run(t, g, 2*time.Minute)
					for _, change := range []string{tc.gone, tc.back} {
						if strings.HasPrefix(change, "192") {
							w.set(change)
						} else {
							c.must(t, change)
						}
						for range away / time.Second {
							p.run(t, g, time.Second)
							c.registry.mu.Lock()
							if all := c.registry.steering.law.out.Demand; all > 1.1*170 {
								t.Errorf("after %s demand is said to be %.1f", change, all)
							}
							c.registry.mu.Unlock()
						}
					}
					p.run(t, g, time.Minute)
					n := strings.Count(logged.String(), "more than all regions")
					if all := strings.Count(tc.gone, "fail") == 3; (n == 1) != all || n != strings.Count(logged.String(), "All demand fits again") {
						t.Errorf("logged\n%s", logged)
					}
				})
			})
		}
	}
}
