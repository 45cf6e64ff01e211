package gslb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestBeaconsAreSeen holds that a beacon that doesn't answer is told of before it is
// needed.
func TestBeaconsAreSeen(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		w := newWorld()
		w.setBeacon(false)
		r := w.registry()
		gen, _ := r.mustStart(t, pair("beacon 192.0.2.53:53"))
		time.Sleep(oneProbe)
		seen := func(want float64, warnings int) {
			t.Helper()
			synctest.Wait()
			text := fmt.Sprintf("# HELP coredns_gslb_beacon_answers 1 while a beacon answers; it is asked once a minute.\n"+
				"# TYPE coredns_gslb_beacon_answers gauge\ncoredns_gslb_beacon_answers{beacon=\"192.0.2.53:53\"} %v\n", want)
			if err := testutil.CollectAndCompare(healthCollector{r}, strings.NewReader(text), "coredns_gslb_beacon_answers"); err != nil {
				t.Error(err)
			}
			if n := strings.Count(logged.String(), "Beacon 192.0.2.53:53 doesn't answer"); n != warnings {
				t.Errorf("%d warnings in %q", n, logged.String())
			}
		}
		seen(0, 1)
		time.Sleep(3 * askEvery)
		seen(0, 1)
		w.setBeacon(true)
		time.Sleep(askEvery)
		seen(1, 1)
		w.setBeacon(false)
		time.Sleep(askEvery)
		seen(0, 2)
		next, _ := r.mustStart(t, pair("beacon 192.0.2.53:53\nstate "+dir)) // another scheduler
		r.stop(gen)
		gen = next
		time.Sleep(oneProbe)
		seen(0, 3)
		r.stop(gen)
		if n := testutil.CollectAndCount(healthCollector{r}, "coredns_gslb_beacon_answers"); n != 0 {
			t.Errorf("%d beacons after the end", n)
		}
	})
}
