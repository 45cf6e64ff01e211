package latency

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFromFuture holds that a map whose builder's clock was ahead gives way to a rollback, or by
// force, and to nothing else; and that one within an hour is a map as any other.
func TestFromFuture(t *testing.T) {
	for _, ahead := range []int{10, 1} {
		path := filepath.Join(t.TempDir(), "map.txt")
		publishAt(t, path, hour(0))
		publishAt(t, path, hour(10))
		now := hour(10 - ahead)
		o := PublishOptions{By: "ann", Why: "clock"}
		err := Publish(path, versionAt(t, now), now, o)
		if want := map[int]string{10: "from the future", 1: "not after"}[ahead]; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "map rollback") {
			t.Errorf("%d hours ahead: %v", ahead, err)
		}
		o.Force = true
		if err := Publish(path, versionAt(t, now), now, o); (err == nil) != (ahead == 10) {
			t.Errorf("%d hours ahead, by force: %v", ahead, err)
		}
		if ahead == 10 {
			now = hour(1)
			publishAt(t, path, hour(10))
		}
		o.Force = false
		_, put, err := RollBack(path, 0, now, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := must(Read(path)).Validate(now); err != nil || put.Built.After(now) {
			t.Errorf("%d hours ahead: put back %s, %v", ahead, put.Built, err)
		}
	}
}

// TestNoRegions holds that a text map without a line of regions is told so.
func TestNoRegions(t *testing.T) {
	_, err := ReadText("map.txt", strings.NewReader("gslb-latency 1\nbuilt 2026-11-30T03:00:00Z\n\nclients\n192.0.2.0/24 eu\n"))
	if err == nil || !strings.Contains(err.Error(), `map.txt:5: region "eu": expected a line "regions NAME…"`) {
		t.Error(err)
	}
}
