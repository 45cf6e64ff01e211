package gslb

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStatus holds every field of the status of two server blocks in the order of the
// Corefile, with what put each lever where it is.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(loadDir(t), "load")
	synctest.Test(t, func(t *testing.T) {
		if err := os.WriteFile(file, []byte("250\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Now() // the file's own time is that of another clock
		if err := os.Chtimes(file, now, now); err != nil {
			t.Fatal(err)
		}
		w := newWorld()
		w.set("192.0.2.1 fail")
		c := w.clerk(t, dir)
		gen, g := c.start(t, `gslb {
	region b {
		dial 80%
		capacity 1000
		load file `+file+`
	}
	region a {
		trickle 10%
	}
	guard max_move 100%
	clients rest {
		order a b
	}
	check web {
		http :8080 /healthz
		fall 1
	}
	host two.example.com {
		pool b 192.0.2.9
		pool a {
			endpoint 192.0.2.8 weight 7
			dial 30%
		}
	}
	host one.example.com www.example.com {
		check web
		pool a 192.0.2.1
		pool b {
			endpoint 192.0.2.2 weight 5
			endpoint 192.0.2.3 drain
			endpoint 192.0.2.4 up
			answers 1
		}
	}
}`)
		defer c.stop(gen)
		c.must(t, "dial 50% region=b host=one.example.com")
		c.must(t, "weight 9 endpoint=192.0.2.2")
		c.must(t, "drain on region=a")
		for range 10 {
			told(t, g, "www A", "")
			told(t, g, "two A", "")
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		s, err := c.desk.store.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Version != c.desk.store.Version() || !strings.HasPrefix(s.Version, s.Digest+".") || !s.Time.Equal(time.Now()) || len(s.Warnings) > 0 {
			t.Errorf("version %s, digest %s, time %s, warnings %q", s.Version, s.Digest, s.Time, s.Warnings)
		}
		b := s.Regions[0]
		if b.Capacity == nil || *b.Capacity != 1000 || b.Load == nil || *b.Load != 250 || b.LoadAge == nil || *b.LoadAge < 0 || *b.LoadAge > 30 ||
			b.Utilisation == nil || *b.Utilisation != 25 || b.Admission == nil || *b.Admission != 100 || b.Demand == nil || *b.Demand <= 0 || b.Deficit != 0 {
			t.Errorf("region b: %s", asJSON(b))
		}
		s.Regions[0].Load, s.Regions[0].LoadAge, s.Regions[0].Demand = nil, nil, nil
		for i, want := range []string{
			`{"name":"b","drain":{"value":"off"},"dial":{"value":"80%","from":"Corefile:3"},"share":{"value":"off"},"trickle":{"value":"0%"},"capacity":1000,"utilisation":25,"admission":100}`,
			`{"name":"a","drain":{"value":"on","from":"override 3"},"dial":{"value":"100%"},"share":{"value":"off"},"trickle":{"value":"10%","from":"Corefile:8"}}`,
		} {
			if got := asJSON(s.Regions[i]); got != want {
				t.Errorf("region %d:\n%s, want\n%s", i, got, want)
			}
		}
		for i, want := range []string{
			`{"name":"two.example.com.","regions":[{"name":"b","usable":true,"availability":100,"wanted":100,"served":100,"endpoints":[{"endpoint":"192.0.2.9","state":"up","weight":{"value":"1","from":"Corefile:19"}}]},` +
				`{"name":"a","usable":false,"why":"drained","availability":0,"wanted":0,"served":0,"dial":{"value":"30%","from":"Corefile:22"},"endpoints":[{"endpoint":"192.0.2.8","state":"drained","from":"drained by override 3","weight":{"value":"7","from":"Corefile:21"}}]}]}`,
			`{"name":"one.example.com.","regions":[{"name":"a","usable":false,"why":"drained","availability":0,"wanted":0,"served":0,"endpoints":[{"endpoint":"192.0.2.1","state":"drained","from":"drained by override 3","weight":{"value":"1","from":"Corefile:27"}}]},` +
				`{"name":"b","usable":true,"availability":100,"wanted":100,"served":100,"dial":{"value":"50%","from":"override 1"},"endpoints":[{"endpoint":"192.0.2.2","state":"up","from":"web: up since TIME","weight":{"value":"9","from":"override 2"}},` +
				`{"endpoint":"192.0.2.3","state":"drained","from":"written drain","weight":{"value":"1","from":"Corefile:30"}},{"endpoint":"192.0.2.4","state":"up","from":"written up","weight":{"value":"1","from":"Corefile:31"}}]}]}`,
		} {
			if got := clock.ReplaceAllString(asJSON(s.Hosts[i]), "TIME"); got != want {
				t.Errorf("host %d:\n%s, want\n%s", i, got, want)
			}
		}
		var ids []string
		for _, o := range s.Overrides {
			ids = append(ids, o.ID)
		}
		if got := strings.Join(ids, " "); got != "1 2 3" {
			t.Errorf("overrides %s", got)
		}
	})
}

// A lever that blocks have differently is told where it is another than that shown of
// the region; and to take it back, it is enough that one block has it.
func TestStatusOfSeveralBlocks(t *testing.T) {
	o := newOffice(t)
	r := new(registry)
	drained := strings.Replace(o.block("state DIR/state"), "region a b", "region a {\ndrain\n}\nregion b", 1)
	gen, gs, err := r.startTexts(t, o.block(onSocket), drained)
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop(gen)
	expect(t, "one block", gs[0], inA)
	expect(t, "the other block", gs[1], inB)
	_, status := o.ask("s", aliceToken, "GET", "status", "")
	hosts := status["hosts"].([]any)
	for i, want := range []string{"", `{"from":"Corefile:4","value":"on"}`} {
		region := hosts[i].(map[string]any)["regions"].([]any)[0].(map[string]any)
		got := ""
		if region["drain"] != nil {
			got = asJSON(region["drain"])
		}
		if got != want {
			t.Errorf("block %d: drain %s, want %s", i, got, want)
		}
	}
	o.drain(t, "s", "off")
	expect(t, "the other block, undrained", gs[1], inA)
}

// clock is a time.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
