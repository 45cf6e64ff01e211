package gslb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// guarded answers 192.0.2.1 from a, or 192.0.2.2 from b where b is first. %s is more.
func guarded(first string, more ...string) string {
	order := "a b"
	if first == "b" {
		order = "b a"
	}
	return "gslb {\nregion a b\nclients rest {\norder " + order + "\n}\nhost api.example.com {\npool a 192.0.2.1\npool b 192.0.2.2\n}\n" + strings.Join(more, "\n") + "\n}"
}

const fromA, fromB = "192.0.2.1 ttl 30", "192.0.2.2 ttl 30"

// refusals is how often a guard has refused.
func refusals(guard string) float64 {
	return testutil.ToFloat64(guardRefusals.WithLabelValues(guard))
}

// TestReloadIsGuarded reloads a Corefile that moves everybody.
func TestReloadIsGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		r := newWorld().registry()
		first, g := r.mustStart(t, guarded("a"))
		before := refusals("max_move")
		_, _, err := r.startTexts(t, guarded("b"))
		const want = "refused: Corefile:1: guard max_move: 100.0% of the blocks of IPv6 resolvers asking for A and 100.0% of the address space of IPv4 clients asking for A would get another region at once; the limit is 50% (100.0% from a to b). " +
			"If it is meant, write `guard accept \"WHY\" until 2000-01-01T01:00:00Z` into the gslb block at Corefile:1, and reload. The Corefile before stays in service"
		if err == nil || err.Error() != want {
			t.Errorf("error %v", err)
		}
		expect(t, "refused", g, fromA)
		if n := refusals("max_move") - before; n != 1 || len(r.generations) != 1 {
			t.Errorf("%v refusals, %d generations", n, len(r.generations))
		}
		logged.Reset()
		late := guarded("b", "guard accept toolate until 2000-01-01T00:00:00Z")
		if _, _, err := r.startTexts(t, late); err == nil {
			t.Error("accepted by what is over")
		}
		second, g := r.mustStart(t, guarded("b", "guard max_move 60%", "guard accept ticket-7 until 2000-01-01T00:00:01Z"))
		expect(t, "accepted", g, fromB)
		if got := logged.String(); strings.Count(got, "Corefile:11: let through by `guard accept` (ticket-7): guard max_move: 100.0%") != 1 {
			t.Errorf("logged %s", got)
		}
		if n := refusals("max_move") - before; n != 2 {
			t.Errorf("%v refusals", n)
		}
		time.Sleep(time.Second)
		third, g := r.mustStart(t, guarded("b", "guard accept ticket-7 until 2000-01-01T00:00:01Z"))
		expect(t, "nothing moves any more", g, fromB)
		for _, gen := range []*generation{first, second, third} {
			r.stop(gen)
		}
	})
}

// served is a block at a place: "SERVER VIEW ZONE…"; "-" is no view.
func servedAt(t *testing.T, where, text string) *GSLB {
	t.Helper()
	words := strings.Fields(where)
	block, err := config.Parse(words[2:], tokens(text))
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGSLB(block, "")
	if err != nil {
		t.Fatal(err)
	}
	g.files.server = words[0]
	if words[1] != "-" {
		g.files.view = words[1]
	}
	return g
}

// startAt starts a load of blocks: place and text by turns.
func (r *registry) startAt(t *testing.T, blocks []string) (*generation, error) {
	t.Helper()
	gen := &generation{}
	for i := 0; i < len(blocks); i += 2 {
		gen.loaded = append(gen.loaded, servedAt(t, blocks[i], blocks[i+1]))
	}
	for _, g := range gen.loaded {
		if err := r.start(gen, g); err != nil {
			r.onlyLive(func(o *generation) bool { return o != gen })
			return gen, err
		}
	}
	return gen, nil
}

// places are loads that come one after the other, and what guards say of the second.
var places = []struct {
	name          string
	before, after []string
	want          string // of the error; "": none
}{
	{"the same place", []string{":53 - example.com.", guarded("a")}, []string{":53 - example.com.", guarded("b")}, "max_move"},
	{"another address", []string{":53 - example.com.", guarded("a")}, []string{"127.0.0.1:53 - example.com.", guarded("b")}, "max_move"},
	{"another view", []string{":53 in example.com.", guarded("a")}, []string{":53 inside example.com.", guarded("b")}, "max_move"},
	{"a zone more", []string{":53 - example.com.", guarded("a")}, []string{":53 - example.net. example.com.", guarded("b")}, "max_move"},
	{"a zone above", []string{":53 - example.com.", guarded("a")}, []string{":53 - com.", guarded("b")}, "max_move"},
	{"one more block, that serves others", []string{":53 - example.com.", guarded("a")}, []string{":53 - example.com.", guarded("a"), ":5353 - example.com.", guarded("b")}, ""},
	{"one more view", []string{":53 - example.com.", guarded("a")}, []string{":53 in example.com.", guarded("b"), ":53 - example.com.", guarded("a")}, ""},
	{"views change places", []string{":53 in example.com.", guarded("a"), ":53 - example.com.", guarded("b")}, []string{":53 in example.com.", guarded("b"), ":53 - example.com.", guarded("a")}, "max_move"},
	{"the second of two", []string{":53 - example.com.", guarded("a"), ":54 - example.com.", guarded("a")}, []string{":53 - example.com.", guarded("a"), ":54 - example.com.", guarded("b")}, "max_move"},
	{"a block is gone, its hosts are elsewhere", []string{":53 - example.com.", guarded("a"), ":54 - example.com.", guarded("a")}, []string{":54 - example.com.", guarded("a")}, ""},
	{"a block is gone", []string{":53 - example.com.", guarded("a"), ":53 - example.net.", ofNet("a")}, []string{":53 - example.com.", guarded("a")}, "guard hosts: 1 of the 1 host names in service would be gone, such as api.example.net."},
	{"a block is gone, and that is accepted", []string{":53 - example.com.", guarded("a"), ":53 - example.net.", ofNet("a")}, []string{":53 - example.com.", guarded("a", "guard accept moved-out until 2100-01-01T00:00:00Z")}, ""},
	{"two blocks become one", []string{":53 - example.com.", guarded("a"), ":53 - example.net.", ofNet("a")}, []string{":53 - example.com. example.net.", guarded("a", "host api.example.net {\npool a 192.0.2.1\npool b 192.0.2.2\n}")}, ""},
	{"a host of two is gone", []string{":53 - example.com.", guarded("a", "host www.example.com {\npool a 192.0.2.1\n}")}, []string{":53 - example.com.", guarded("a")}, ""},
	{"two of three are gone", []string{":53 - example.com.", guarded("a", "host www.example.com ftp.example.com {\npool a 192.0.2.1\n}")}, []string{":53 - example.com.", guarded("a")}, "guard hosts: 2 of the 3"},
	{"a new block that nobody could use", []string{":53 - example.com.", guarded("a")}, []string{":53 - example.com.", guarded("a"), ":53 - example.net.", strings.NewReplacer("pool a 192.0.2.1", "pool a {\nendpoint 192.0.2.1 drain\n}", "pool b 192.0.2.2\n", "").Replace(ofNet("a"))}, "guard usable: host api.example.net. (v4) would have no usable region left for 100.0%"},
}

func ofNet(first string) string {
	return strings.ReplaceAll(guarded(first), "example.com", "example.net")
}

// TestReloadFindsWhatWasBefore moves blocks to other places: guards follow.
func TestReloadFindsWhatWasBefore(t *testing.T) {
	for _, tc := range places {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWorld().registry()
				first, err := r.startAt(t, tc.before)
				if err != nil {
					t.Fatal(err)
				}
				r.leave(first, true)
				second, err := r.startAt(t, tc.after)
				if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v; want %q", err, tc.want)
				}
				if left := len(r.generations) == 2; left != (err == nil) {
					t.Errorf("%d generations are left", len(r.generations))
				}
				r.stop(second)
				expect(t, "the one before", first.instances[0], fromA)
				r.stop(first)
			})
		})
	}
}

// TestSpaceIsReported tells operators what of the address space moves, where there is any.
func TestSpaceIsReported(t *testing.T) {
	out := reportOf(&guard.Report{Blocks: 0.25, Space: 0.5, SpaceKind: "IPv4 clients asking for A", Moves: []guard.Move{{From: "a", To: "b", Blocks: 0.25}, {From: "b", To: "a", Space: 0.5}}})
	if out.MovedSpace == nil || *out.MovedSpace != 50 || out.SpaceKind != "IPv4 clients asking for A" || len(out.Flows) != 1 {
		t.Errorf("%+v", out)
	}
	if out := reportOf(&guard.Report{Blocks: 0.25}); out.MovedSpace != nil {
		t.Errorf("%v of no space", *out.MovedSpace)
	}
}

// A load without any gslb block has no setup of ours: it is refused all the same, as it
// leaves all names out.
func TestReloadWithoutUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "refused: Corefile:1: guard hosts: 1 of the 1 host names in service would be gone, such as api.example.com., more than max_move 50%"
		for _, tc := range []struct{ text, want string }{
			{guarded("a"), want},
			{guarded("a", "guard accept farewell until 2000-01-01T01:00:00Z"), ""},
			{guarded("a", "guard accept toolate until 2000-01-01T00:00:00Z"), "guard hosts"},
			{guarded("a", "guard max_move 100%"), ""},
		} {
			r := newWorld().registry()
			gen, err := r.startAt(t, []string{":53 - example.com.", tc.text})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.guardLast(time.Now()); err != nil {
				t.Errorf("%s: another start in the process: %v", tc.text, err)
			}
			r.leave(gen, true)
			err = r.guardLast(time.Now())
			if (err != nil) != (tc.want != "") || err != nil && !(strings.Contains(err.Error(), tc.want) && strings.HasSuffix(err.Error(), ", reload, and then remove the block. The Corefile before stays in service")) {
				t.Errorf("%s: error %v", tc.text, err)
			}
			r.stop(gen)
		}
	})
}

// Another start in the process replaces nothing, so there is nothing to hold it against.
func TestStartBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		first, _ := r.startAt(t, []string{":53 - example.com.", guarded("a")})
		second, err := r.startAt(t, []string{":53 - example.com.", guarded("b")})
		if err != nil {
			t.Error(err)
		}
		r.leave(first, true) // and after a reload that failed
		r.leave(first, false)
		third, err := r.startAt(t, []string{":53 - example.com.", guarded("a")})
		if err != nil {
			t.Error(err)
		}
		for _, gen := range []*generation{first, second, third} {
			r.stop(gen)
		}
	})
}

// TestHostsGuard is at a cold start, too.
func TestHostsGuard(t *testing.T) {
	before := refusals("hosts")
	_, err := tryLoad(t, guarded("a", "guard hosts 2"))
	if err == nil || !strings.Contains(err.Error(), "Corefile:10: guard hosts: the block has 1 hosts, fewer than 2: look for an import that matches no file") {
		t.Errorf("error %v", err)
	}
	if n := refusals("hosts") - before; n != 1 {
		t.Errorf("%v refusals", n)
	}
	until := time.Now().Add(time.Hour).Format(time.RFC3339)
	for _, more := range []string{"guard hosts 1", "guard hosts 2\nguard accept why until " + until} {
		if _, err := tryLoad(t, guarded("a", more)); err != nil {
			t.Error(err)
		}
	}
}

// TestDataIsGuarded has a data file move nearly everybody: it is left alone, which is
// said once, until a Corefile accepts it.
func TestDataIsGuarded(t *testing.T) {
	for _, file := range dataCases[1:2] {
		t.Run(file.name, func(t *testing.T) {
			dir := t.TempDir()
			path := dir + "/" + file.file
			write := func(region string) {
				text := ""
				for i := range 200 {
					text += fmt.Sprintf("%d.%d.0.0/16 %s\n", 20+i%2, 2*(i/2), region)
				}
				replace(t, path, []byte("198.51.100.0/24 "+region+"\n"+text))
			}
			write("de")
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				text := strings.Replace(file.text(path), "host api", "guard max_move 10%\nhost api", 1)
				first, gs, err := running.startTexts(t, text)
				if err != nil {
					t.Fatal(err)
				}
				g := gs[0]
				write("fr")
				logged.Reset()
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := logged.String(); region(t, g) != "de" || strings.Count(got, "\n") != 1 ||
					!strings.Contains(got, "Data file "+path+" can't be used, its last good content stays in use: refused: Corefile:7: guard max_move: ") || !strings.Contains(got, "and reload") {
					t.Errorf("in %s; logged %s", region(t, g), got)
				}
				if f := testutil.ToFloat64(fileFailing.WithLabelValues(path)); f != 1 {
					t.Errorf("file_failing is %v", f)
				}
				_, _, err = running.startTexts(t, text)
				if err == nil || !strings.Contains(err.Error(), "The Corefile before stays in service. Of data files that were refused since, a reload takes the new content: "+path) {
					t.Errorf("a reload: %v", err)
				}
				if region(t, g) != "de" {
					t.Error("taken by a reload")
				}
				second, gs, err := running.startTexts(t, strings.Replace(text, "host api", "guard accept new-nets until 2000-01-02T00:00:00Z\nhost api", 1))
				if err != nil {
					t.Fatal(err)
				}
				if f := testutil.ToFloat64(fileFailing.WithLabelValues(path)); f != 0 || region(t, gs[0]) != "fr" {
					t.Errorf("accepted: in %s, file_failing is %v", region(t, gs[0]), f)
				}
				running.stop(first)
				running.stop(second)
			})
		})
	}
}

// A region that an outage has taken out refuses no reload that has nothing to do with it.
func TestReloadInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		text := probed("host api.example.com {\ncheck web\npool a 192.0.2.1\npool b 192.0.2.2\n}\nguard require 2 of a b")
		first, _ := r.mustStart(t, text)
		w.set("192.0.2.1 fail")
		time.Sleep(fallen)
		second, g := r.mustStart(t, text+"\n")
		expect(t, "in the outage", g, fromB)
		_, _, err := r.startTexts(t, strings.Replace(text, "pool b 192.0.2.2", "pool b {\nendpoint 192.0.2.2 drain\n}\npool c 192.0.2.3", 1))
		if err == nil || !strings.Contains(err.Error(), "guard require: host api.example.com. would have none of [a b] in use; required are 2") || slices.Contains(r.generations, nil) {
			t.Errorf("worse: %v", err)
		}
		r.stop(first)
		r.stop(second)
	})
}

// A data reload knows the verdicts of what targets resolve to: those that are down stay so,
// for guards too, to whom nobody moves.
func TestDataReloadWithTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.1 ttl 60")
		r := n.resolving(w.registry())
		gen, g := r.mustStart(t, balanced(""))
		defer r.stop(gen)
		settle()
		w.set("192.0.2.1 fail")
		later(fallen)
		wants(t, "it is down", g, "api A", "192.0.2.9 ttl 30")
		o := g.options
		o.Resolve = nil
		p, err := plan.Compile(g.block, g.live.Load().plan.Data, o)
		if err != nil {
			t.Fatal(err)
		}
		r.mu.Lock() // replace holds that of the process
		err = g.replace(p, time.Now(), 0)
		r.mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		wants(t, "after the reload", g, "api A", "192.0.2.9 ttl 30")
		probes := w.count("web@192.0.2.1")
		later(time.Minute)
		wants(t, "later", g, "api A", "192.0.2.9 ttl 30")
		if w.count("web@192.0.2.1") == probes {
			t.Error("it isn't probed any more")
		}
	})
}
