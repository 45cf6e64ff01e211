package gslb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// measuredBlock has the client 198.51.100.0/24 in the region of its map, others in fr.
const measuredBlock = `gslb {
	%s
	region de fr es
	clients rest {
		order fr de es
	}
	latency %s
	host api.example.com {
		pool de 192.0.2.1
		pool fr 192.0.2.2
		pool es 192.0.2.3
	}
}`

// mapFile writes a map that has the client in a region and n entries besides, over
// what is there.
func mapFile(t *testing.T, path string, built time.Time, region string, n int) {
	t.Helper()
	replace(t, path, []byte(mapContent(built, region, n)))
}

func mapContent(built time.Time, region string, n int) string {
	regions := "de fr es"
	if !strings.Contains(regions, region) {
		regions += " " + region
	}
	text := fmt.Sprintf("gslb-latency 1\nbuilt %s\nregions %s\nclients\n198.51.100.0/24 %s\n", built.UTC().Format(time.RFC3339), regions, region)
	for i := range n {
		text += fmt.Sprintf("20.%d.0.0/16 fr\n", 2*i)
	}
	return text
}

// gathered adds up the series of a metric that have the labels, given as name, value, ….
func gathered(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			has := make(map[string]string)
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			match := true
			for i := 0; i < len(labels); i += 2 {
				match = match && has[labels[i]] == labels[i+1]
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// mapState is what metrics say of a map.
func mapState(t *testing.T, path string) string {
	t.Helper()
	return fmt.Sprintf("failing %v, ignored %v, entries %v, taken %v, refused %v",
		gathered(t, "coredns_gslb_file_failing", "file", path), gathered(t, "coredns_gslb_map_ignored", "file", path), gathered(t, "coredns_gslb_map_entries", "file", path),
		gathered(t, "coredns_gslb_file_reloads_total", "file", path, "result", "success"), gathered(t, "coredns_gslb_file_reloads_total", "file", path, "result", "error"))
}

// settled waits until the watcher has seen a file twice.
func settled() {
	time.Sleep(3 * watchEvery)
	synctest.Wait()
}

// TestMapFollowed replaces a map while it is watched.
func TestMapFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := func(minutes int) time.Time { return start.Add(time.Duration(minutes-60) * time.Minute) }
		mapFile(t, path, at(0), "de", 10)
		logged := logTo(t)
		gen, g := begin(t, fmt.Sprintf(measuredBlock, "", path))
		defer running.stop(gen)
		whole := mapContent(at(10), "es", 10)
		back := strings.Replace(mapContent(at(0), "de", 10), "clients\n", "rollback "+at(20).Format(time.RFC3339)+" \"ops\" \"fr is slow\"\nclients\n", 1)
		for _, step := range []struct {
			what, content, region, state, log string
		}{
			{"at first", "", "de", "failing 0, ignored 0, entries 11, taken 0, refused 0", ""},
			{"a newer one", mapContent(at(5), "fr", 12), "fr", "failing 0, ignored 0, entries 13, taken 1, refused 0", "has changed and is in use"},
			{"an older one", mapContent(at(4), "de", 12), "fr", "failing 1, ignored 0, entries 13, taken 1, refused 1", "gslbctl map rollback"},
			{"the one in use again", mapContent(at(5), "fr", 12), "fr", "failing 0, ignored 0, entries 13, taken 2, refused 1", "has changed and is in use"},
			{"the same content in a new file", mapContent(at(5), "fr", 12), "fr", "failing 0, ignored 0, entries 13, taken 2, refused 1", ""},
			{"garbage", "gar bage", "fr", "failing 1, ignored 0, entries 13, taken 2, refused 2", "not a steering map"},
			{"half written", whole[:len(whole)/2-1], "fr", "failing 1, ignored 0, entries 13, taken 2, refused 3", path + ":"},
			{"empty", "\n", "fr", "failing 1, ignored 0, entries 13, taken 2, refused 4", "not a steering map"},
			{"an unknown region", mapContent(at(10), "mars", 12), "fr", "failing 1, ignored 0, entries 13, taken 2, refused 5", "regions that are not known: mars"},
			{"from the future", mapContent(at(200), "de", 12), "fr", "failing 1, ignored 0, entries 13, taken 2, refused 6", "in the future"},
			{"shrunk", mapContent(at(10), "de", 2), "fr", "failing 1, ignored 0, entries 13, taken 2, refused 7", "entries"},
			{"put back", back, "de", "failing 0, ignored 0, entries 11, taken 3, refused 7", "has changed and is in use"},
			{"what it replaced", mapContent(at(5), "fr", 12), "de", "failing 1, ignored 0, entries 11, taken 3, refused 8", "was put back"},
			{"the next one", mapContent(at(30), "es", 12), "es", "failing 0, ignored 0, entries 13, taken 4, refused 8", "has changed and is in use"},
		} {
			logged.Reset()
			if step.content != "" {
				replace(t, path, []byte(step.content))
			}
			settled()
			if got := map[string]string{"192.0.2.1": "de", "192.0.2.2": "fr", "192.0.2.3": "es"}[answered(t, g)]; got != step.region {
				t.Errorf("%s: got %s, want %s", step.what, got, step.region)
			}
			if got := mapState(t, path); got != step.state {
				t.Errorf("%s: %s, want %s", step.what, got, step.state)
			}
			lines := strings.Count(logged.String(), "\n")
			if (step.log == "") != (lines == 0) || lines > 1 || !strings.Contains(logged.String(), step.log) {
				t.Errorf("%s: logged %s, want %q", step.what, logged, step.log)
			}
		}
	})
}

// answered are the addresses that the client of these tests gets.
func answered(t *testing.T, g *GSLB) string {
	t.Helper()
	m, _ := serve(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"))
	return addrs(m)
}

// TestMapGetsTooOld: a map that nobody renews is left out when its time has come, and
// a new one brings it back.
func TestMapGetsTooOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	synctest.Test(t, func(t *testing.T) {
		built := time.Now()
		mapFile(t, path, built, "de", 10)
		logged := logTo(t)
		gen, g := begin(t, fmt.Sprintf(measuredBlock, "depth 2", path+" max_age 10m"))
		defer running.stop(gen)
		digest := func() string { return fmt.Sprintf("%016x", g.live.Load().plan.Digest) }
		whole := digest()
		check := func(what, want, state string) {
			t.Helper()
			synctest.Wait()
			if got := answered(t, g); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
			if got := mapState(t, path); got != state {
				t.Errorf("%s: %s, want %s", what, got, state)
			}
			if gathered(t, "coredns_gslb_plan_info") != 1 || gathered(t, "coredns_gslb_plan_info", "digest", digest()) != 1 {
				t.Errorf("%s: the metric tells of another plan", what)
			}
		}
		warnings := func(want int) {
			t.Helper()
			if got := strings.Count(logged.String(), "is left out until there is a newer one"); got != want || strings.Count(logged.String(), "WARNING") != want {
				t.Errorf("%d warnings, want %d:\n%s", got, want, logged)
			}
		}
		time.Sleep(10*time.Minute - 2*time.Second)
		check("just before", "192.0.2.1", "failing 0, ignored 0, entries 11, taken 0, refused 0")
		warnings(0)
		time.Sleep(4 * time.Second)
		check("just after", "192.0.2.2", "failing 0, ignored 1, entries 11, taken 0, refused 0")
		warnings(1)
		time.Sleep(time.Hour)
		check("later", "192.0.2.2", "failing 0, ignored 1, entries 11, taken 0, refused 0")
		warnings(1)
		mapFile(t, path, built.Add(30*time.Minute), "es", 10)
		settled()
		check("newer, and too old", "192.0.2.2", "failing 0, ignored 1, entries 11, taken 1, refused 0")
		warnings(2)
		mapFile(t, path, time.Now().Truncate(time.Second), "de", 10)
		settled()
		check("a new one", "192.0.2.1", "failing 0, ignored 0, entries 11, taken 2, refused 0")
		if digest() != whole {
			t.Errorf("digest %s, want that of before, %s", digest(), whole)
		}
		time.Sleep(11 * time.Minute)
		check("that got too old, too", "192.0.2.2", "failing 0, ignored 1, entries 11, taken 2, refused 0")
		warnings(3)
	})
}

// TestMapDatedByFile: a file that doesn't say when it was built is as old as its last
// change; written anew with the same content, it is young again.
func TestMapDatedByFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nets")
	synctest.Test(t, func(t *testing.T) {
		write := func() {
			t.Helper()
			replace(t, path, []byte("198.51.100.0/24 => [de],\n"))
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		write()
		gen, g := begin(t, fmt.Sprintf(measuredBlock, "", path+" max_age 10m"))
		defer running.stop(gen)
		for i := range 3 {
			time.Sleep(9 * time.Minute)
			synctest.Wait()
			if got := answered(t, g); got != "192.0.2.1" {
				t.Errorf("written %d times: %s", i+1, got)
			}
			write()
			settled()
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if got := answered(t, g); got != "192.0.2.2" {
			t.Errorf("not written any more: %s", got)
		}
		write()
		settled()
		if got := answered(t, g); got != "192.0.2.1" {
			t.Errorf("written again after all: %s", got)
		}
	})
}

// TestMapMovesTooMuch: guards are held against a map; its file counts as failing until
// there is one that they let through.
func TestMapMovesTooMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		content := func(minutes int, half, other string) []byte {
			return fmt.Appendf(nil, "gslb-latency 1\nbuilt %s\nregions de fr es\nclients\n128.0.0.0/1 %s\n0.0.0.0/1 %s\n2000::/3 fr\n", now.Add(time.Duration(minutes-60)*time.Minute).Format(time.RFC3339), half, other)
		}
		replace(t, path, content(0, "de", "de"))
		logged := logTo(t)
		gen, g := begin(t, fmt.Sprintf(measuredBlock, "guard max_move 70%", path))
		defer running.stop(gen)
		before := g.live.Load().plan.Digest
		replace(t, path, content(1, "es", "es"))
		settled()
		if got := answered(t, g); got != "192.0.2.1" || g.live.Load().plan.Digest != before {
			t.Errorf("a map that moves everybody is in use: %s", got)
		}
		if n := strings.Count(logged.String(), "can't be used, its last good content stays in use"); n != 1 || !strings.Contains(logged.String(), "max_move") {
			t.Errorf("logged %s", logged)
		}
		if got := mapState(t, path); got != "failing 1, ignored 0, entries 3, taken 0, refused 1" {
			t.Error(got)
		}
		replace(t, path, content(2, "es", "de"))
		settled()
		if got := answered(t, g); got != "192.0.2.3" {
			t.Errorf("a map that moves half is not in use: %s\n%s", got, logged)
		}
		if got := mapState(t, path); got != "failing 0, ignored 0, entries 3, taken 1, refused 1" {
			t.Error(got)
		}
	})
}

// TestMapAtStart: at a start, an older map than the last that was in service gives way
// to the copy of that, and the next one is taken.
func TestMapAtStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "map.txt")
	text := fmt.Sprintf(measuredBlock, "state "+filepath.Join(dir, "state"), path)
	now := time.Now()
	mapFile(t, path, now.Add(-time.Hour), "de", 10)
	gen, g := begin(t, text)
	if got := answered(t, g); got != "192.0.2.1" {
		t.Errorf("at first: %s", got)
	}
	running.stop(gen)
	for _, c := range []struct {
		what    string
		built   time.Duration
		want    string
		failing float64
	}{
		{"an older map", -2 * time.Hour, "192.0.2.1", 1},
		{"once more", -2 * time.Hour, "192.0.2.1", 1},
		{"a newer one", -time.Minute, "192.0.2.3", 0},
		{"older than that", -time.Hour, "192.0.2.3", 1},
	} {
		mapFile(t, path, now.Add(c.built), "es", 10)
		logged := logTo(t)
		gen, g := begin(t, text)
		if got := answered(t, g); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		if told := strings.Contains(logged.String(), "map rollback"); told != (c.failing == 1) {
			t.Errorf("%s: logged %s", c.what, logged)
		}
		if f := gathered(t, "coredns_gslb_file_failing", "file", path); f != c.failing {
			t.Errorf("%s: file_failing is %v", c.what, f)
		}
		running.stop(gen)
	}
}

// TestMapMetrics: metrics and metadata say what gave the list and what decided on the
// region.
func TestMapMetrics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	mapFile(t, path, time.Now().Add(-time.Hour), "es", 1)
	block := strings.Replace(fmt.Sprintf(measuredBlock, "clients prefix 192.0.2.0/24 {\norder de fr\n}", path), "pool fr 192.0.2.2", "pool fr {\nendpoint 192.0.2.2\ntrickle 50%\n}", 1)
	gen, g := begin(t, block)
	defer running.stop(gen)
	counts := func() map[string]float64 {
		all := make(map[string]float64)
		for _, by := range []string{"latency", "prefix", "rest"} {
			all["located "+by] = gathered(t, "coredns_gslb_located_total", "host", "api.example.com.", "by", by)
		}
		for _, by := range []string{"choice", "trickle"} {
			all["chosen "+by] = gathered(t, "coredns_gslb_chosen_total", "host", "api.example.com.", "by", by)
		}
		return all
	}
	for _, c := range []struct{ subnet, want, located, by string }{
		{"198.51.100.0/24", "192.0.2.3", "latency", "choice"},
		{"192.0.2.0/24", "192.0.2.1", "prefix", "choice"},
		{trickled(t, g), "192.0.2.1", "rest", "trickle"},
	} {
		before := counts()
		ctx := metadata.ContextWithMetadata(t.Context())
		rec := dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: "192.0.2.53"})
		if _, err := g.ServeDNS(ctx, rec, ask("api.example.com.", dns.TypeA, c.subnet)); err != nil {
			t.Fatal(err)
		}
		if got := addrs(rec.Msg); got != c.want {
			t.Errorf("%s: %s, want %s", c.subnet, got, c.want)
		}
		for label, want := range map[string]string{"gslb/located": c.located, "gslb/by": c.by} {
			if f := metadata.ValueFunc(ctx, label); f == nil || f() != want {
				t.Errorf("%s: %s is not %s", c.subnet, label, want)
			}
		}
		for name, n := range counts() {
			want := before[name]
			if name == "located "+c.located || name == "chosen "+c.by {
				want++
			}
			if n != want {
				t.Errorf("%s: %s is %v, want %v", c.subnet, name, n, want)
			}
		}
	}
}

// trickled is a client, of no entry and no rule, that trickles on from its region.
func trickled(t *testing.T, g *GSLB) string {
	t.Helper()
	for i := range 100 {
		subnet := fmt.Sprintf("100.%d.0.0/24", i)
		if m, _ := serve(t, g, ask("api.example.com.", dns.TypeA, subnet)); addrs(m) == "192.0.2.1" {
			return subnet
		}
	}
	t.Fatal("nobody trickles on")
	return ""
}
