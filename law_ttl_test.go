package gslb

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// keeper is a client that asks for a host again when the answer that it keeps ends.
type keeper struct {
	host   string
	net    byte
	n      int // of those of its net
	demand float64
	ttl    int // s
	region string
}

// TestLawOfHostsWithOtherTTLs has one of two hosts leave a region that they share half and half: the
// one whose answers are kept for a twelfth of the time is asked for twelve times as often.
func TestLawOfHostsWithOtherTTLs(t *testing.T) {
	for _, away := range []string{"api", "batch"} {
		t.Run(away, func(t *testing.T) {
			p := newShared(t)
			p.demands["us"], p.busy = 40, 40
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w := newWorld()
				c := w.clerk(t, t.TempDir())
				gen, g := c.start(t, strings.Replace(p.block(), "ttl 5\n\t\torder us eu", "ttl 60\n\t\torder us eu", 1))
				defer c.stop(gen)
				var all []*keeper
				for i := range 120 {
					for _, from := range homes {
						all = append(all, &keeper{"api", from.net, i, p.demands[from.region] / 120, 5, ""})
						if from.region == "us" {
							all = append(all, &keeper{"batch", from.net, i, p.busy / 120, 60, ""})
						}
					}
				}
				now, high := 0, 0.0
				run := func(seconds int) {
					time.Sleep(beat / 100) // what happens at one moment happens in any order
					for range seconds {
						p.loads = map[string]float64{}
						for i, k := range all {
							if k.region == "" || (now+i/4)%k.ttl == 0 {
								k.region = given(g, k.host, k.net, k.n)
							}
							p.loads[k.region] += k.demand
						}
						for _, from := range homes {
							p.noise = math.Mod(p.noise+0.618, 1)
							replace(t, filepath.Join(p.dir, from.region), fmt.Appendln(nil, p.loads[from.region]*(0.999+0.002*p.noise)))
						}
						later(time.Second)
						now++
						high = max(high, p.loads["eu"])
					}
				}
				run(300)
				p.knows(t, c)
				c.must(t, "drain on region=us host="+away+".example.com")
				run(300)
				p.knows(t, c)
				c.must(t, "cancel 1")
				run(300)
				p.knows(t, c)
				if log := logged.String(); high > 100 || strings.Contains(log, "damps") || strings.Contains(log, "more than all") {
					t.Errorf("eu has up to %.1f; logged\n%s", high, log)
				}
			})
		})
	}
}
