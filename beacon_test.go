package gslb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestBeaconsAreSeen holds that a beacon that doesn't answer is told of before it is
// needed.
func TestBeaconsAreSeen(t *testing.T) {
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
			if got := testutil.ToFloat64(beaconAnswers.WithLabelValues("192.0.2.53:53")); got != want {
				t.Errorf("beacon_answers is %v", got)
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
		r.stop(gen)
		if n := testutil.CollectAndCount(beaconAnswers); n != 0 {
			t.Errorf("%d beacons after the end", n)
		}
	})
}
