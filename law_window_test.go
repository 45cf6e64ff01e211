package gslb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLawBesideALongTTL has a host that nobody asks for, with answers that are kept for an hour: what
// the others' answers do, which are kept for 5 seconds, shows as soon as ever.
func TestLawBesideALongTTL(t *testing.T) {
	p := newShared(t)
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		w := newWorld()
		c := w.clerk(t, t.TempDir())
		block := strings.TrimSuffix(p.block(), "}") + "\thost static.example.com {\n\t\tttl 3600\n\t\tpool us 192.0.2.6\n\t}\n}"
		gen, g := c.start(t, block)
		defer c.stop(gen)
		p.run(t, g, 2*time.Minute)
		p.demands["eu"] = 130
		p.run(t, g, 3*time.Minute)
		for range 300 {
			if p.run(t, g, time.Second); p.loads["eu"] > 100 || p.loads["eu"] < 80 {
				t.Fatalf("eu has %.1f of 100", p.loads["eu"])
			}
		}
		if log := logged.String(); strings.Contains(log, "damps") || strings.Contains(log, "more than all") {
			t.Errorf("logged\n%s", log)
		}
	})
}
