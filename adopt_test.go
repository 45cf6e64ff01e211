package gslb

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/probe"

	"go.uber.org/goleak"
)

// pair is two endpoints under the check web, and more in the block.
func pair(more string) string {
	return probed("host api.example.com {\ncheck web\npool a 192.0.2.1 192.0.2.2\n}\n" + more)
}

const (
	alive  = "192.0.2.1 192.0.2.2 ttl 30"
	oneWay = "192.0.2.2 ttl 30" // 192.0.2.1 is dead
)

// expect holds what a client is answered.
func expect(t *testing.T, what string, g *GSLB, want string) {
	t.Helper()
	if got := told(t, g, "api A", ""); got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// outage starts a registry and has 192.0.2.1 be known dead.
func outage(t *testing.T, w *world, text string) (*registry, *generation, *GSLB) {
	t.Helper()
	r := w.registry()
	gen, g := r.mustStart(t, text)
	w.set("192.0.2.1 fail")
	time.Sleep(fallen)
	synctest.Wait()
	expect(t, "in the outage", g, oneWay)
	return r, gen, g
}

// TestReloadKeepsVerdicts reloads in the middle of an outage.
func TestReloadKeepsVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name, before, after string
		same                bool // one scheduler goes on
	}{
		{"the same", pair(""), pair(""), true},
		{"b8: more weight", pair(""), strings.Replace(pair(""), "192.0.2.1 192.0.2.2", "{\nendpoint 192.0.2.1 weight 9\nendpoint 192.0.2.2 weight 9\n}", 1), true},
		{"another name of the check", pair(""), strings.ReplaceAll(pair(""), "check web", "check page"), true},
		{"new beacons", pair(""), pair("beacon 192.0.2.53:53"), false},
		{"a new state directory", pair("state DIR/one"), pair("state DIR/two"), false},
		{"a first state directory", pair(""), pair("state DIR/one"), false},
		{"no state directory any more", pair("state DIR/one"), pair(""), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				r, first, old := outage(t, w, strings.ReplaceAll(tc.before, "DIR", dir))
				second, g := r.mustStart(t, strings.ReplaceAll(tc.after, "DIR", dir))
				expect(t, "at once", g, oneWay)
				expect(t, "the old generation", old, oneWay)
				if !r.ready() {
					t.Error("not ready, though all is known")
				}
				if same := first.prober == second.prober; same != tc.same {
					t.Errorf("the scheduler goes on: %v", same)
				}
				r.stop(first)
				for range 10 {
					time.Sleep(5 * time.Second)
					synctest.Wait()
					expect(t, "later", g, oneWay)
				}
				w.set("192.0.2.1 pass")
				time.Sleep(risen)
				synctest.Wait()
				expect(t, "when it is back", g, alive)
				asked := w.count("web@192.0.2.2")
				r.stop(second)
				time.Sleep(time.Minute)
				if again := w.count("web@192.0.2.2"); again != asked {
					t.Errorf("%d probes after the end", again-asked)
				}
			})
		})
	}
}

// b65: what is not in the new Corefile is not probed any more, and what is new
// is within 10 s.
func TestReloadChangesWhatIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r, first, _ := outage(t, w, pair(""))
		second, _ := r.mustStart(t, strings.ReplaceAll(pair(""), "192.0.2.2", "192.0.2.7"))
		defer r.stop(second)
		r.stop(first)
		gone := w.count("web@192.0.2.2")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if w.count("web@192.0.2.7") == 0 {
			t.Error("a new endpoint was not probed within 10 s")
		}
		if n := w.count("web@192.0.2.2"); n != gone {
			t.Errorf("%d probes of an endpoint that is gone", n-gone)
		}
	})
}

// users are those of all probes of a generation.
func users(gen *generation) (all []string) {
	for _, g := range gen.instances {
		for _, l := range g.health.leases {
			all = append(all, l.probe.State().Users...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestFailedReloadReleases has loads fail at several points: nothing of them is
// left, and the live one goes on.
func TestFailedReloadReleases(t *testing.T) {
	other := probed("guard max_move 100%\nhost www.example.com {\ncheck web\npool a 192.0.2.1 192.0.2.9\n}")
	for _, tc := range []struct {
		name  string
		texts []string
		want  string // error
	}{
		{"a later plugin fails", []string{other}, ""},
		{"with a scheduler of its own", []string{strings.Replace(other, "region a b c", "region a b c\nbeacon 192.0.2.53:53", 1)}, ""},
		{"the state directory can't be made", []string{strings.Replace(other, "region a b c", "region a b c\nstate /dev/null/x", 1)}, "state directory: mkdir /dev/null: not a directory: expected one that this process can write to"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ignore := goleak.IgnoreCurrent()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				r, live, g := outage(t, w, pair(""))
				failed, _, err := r.startTexts(t, tc.texts...)
				if tc.want != "" && (err == nil || err.Error() != tc.want) || tc.want == "" && err != nil {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				time.Sleep(oneProbe)
				r.onlyLive(func(gen *generation) bool { return gen == live })
				if got := users(failed); len(got) > 0 {
					t.Errorf("still used by %v", got)
				}
				if got := strings.Join(users(live), ", "); got != "api.example.com. a 192.0.2.1, api.example.com. a 192.0.2.2" {
					t.Errorf("the live one is used by %s", got)
				}
				if n := live.prober.scheduler.Stats().Endpoints; n != 2 {
					t.Errorf("%d endpoints are probed, want 2", n)
				}
				asked := w.count("web@192.0.2.9")
				time.Sleep(risen)
				synctest.Wait()
				if n := w.count("web@192.0.2.9"); n != asked {
					t.Errorf("%d probes of the failed load's endpoint", n-asked)
				}
				expect(t, "afterwards", g, oneWay)
				r.stop(live)
			})
			nothingLeft(t, ignore)
		})
	}
}

// A check that can't be carried out fails its instance, and leaves nothing of
// those that it had begun.
func TestFailedStartReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r, live, _ := outage(t, w, pair(""))
		defer r.stop(live)
		text := strings.Replace(pair("check impossible {\ntcp :1\n}\nhost www.example.com {\ncheck impossible\npool a 192.0.2.5\n}"), "host api", "host other", 1)
		gen, _, err := r.startTexts(t, text)
		if err == nil || err.Error() != "Corefile:18: check impossible: not on this machine" {
			t.Errorf("error %v", err)
		}
		if len(gen.instances) > 0 || len(gen.loaded[0].health.leases) > 0 {
			t.Error("the instance counts as started, or keeps probes")
		}
		if got := strings.Join(users(live), ", "); got != "api.example.com. a 192.0.2.1, api.example.com. a 192.0.2.2" {
			t.Errorf("the probes are used by %s", got)
		}
		r.onlyLive(func(gen *generation) bool { return gen == live })
	})
}

// TestSchedulerEnds holds that it does with the last generation that uses it,
// also if nobody told of the end of one in between.
func TestSchedulerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r, _, _ := outage(t, w, pair("")) // never stopped
		second, _ := r.mustStart(t, pair(""))
		third, _ := r.mustStart(t, pair(""))
		r.stop(second)
		asked := w.count("web@192.0.2.1")
		time.Sleep(oneProbe)
		if w.count("web@192.0.2.1") == asked {
			t.Error("nothing is probed any more")
		}
		r.stop(third)
		if _, err := third.prober.scheduler.Acquire(third.loaded[0].live.Load().plan.Checks(&third.loaded[0].block.Hosts[0].Pools[0])[0], probe.Target{}, ""); err == nil {
			t.Error("the scheduler goes on")
			third.prober.close()
		}
	})
}

func TestStateDirectoriesDiffer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		gen, _, err := r.startTexts(t, pair("state "+one), "\n"+pair("state "+two))
		want := "Corefile:14: state " + two + ", but Corefile:13 says another directory: one process keeps its state in one"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		r.stop(gen)
		gen, _, err = r.startTexts(t, pair("state "+one), pair(""), pair("state "+one))
		if err != nil {
			t.Error(err)
		}
		r.stop(gen)
	})
}

// TestRestart ends a process in the middle of an outage and starts another.
func TestRestart(t *testing.T) {
	const corrupt = "gslb-verdicts 1 0000000000000000\n{}\n"
	for _, tc := range []struct {
		name   string
		killed bool          // its state is that of the last second
		away   time.Duration // between the two
		spoil  string        // what the file is overwritten with
		want   string        // of the new process, at once
		log    string
	}{
		{"b10, b77: stopped", false, time.Minute, "", oneWay, ""},
		{"killed", true, time.Minute, "", oneWay, ""},
		{"away for too long", false, 11 * time.Minute, "", alive, ""},
		{"b10: a damaged file", false, time.Minute, corrupt, alive, "its checksum is wrong: it is damaged; starting without it, set aside as "},
		{"an older format", false, time.Minute, "verdicts 0\n", alive, "expected \"gslb-verdicts 1 \" and a checksum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "state")
			file := filepath.Join(dir, "verdicts")
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w := newWorld()
				before, gen, _ := outage(t, w, pair("state "+dir))
				time.Sleep(2 * saveCheck)
				kept, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				before.stop(gen)
				if tc.killed {
					replace(t, file, kept)
				}
				if tc.spoil != "" {
					replace(t, file, []byte(tc.spoil))
				}
				time.Sleep(tc.away)
				logged.Reset()
				r := w.registry()
				after, g := r.mustStart(t, pair("state "+dir))
				defer r.stop(after)
				expect(t, "at once", g, tc.want)
				if ready := tc.spoil == ""; r.ready() != ready {
					t.Errorf("ready is %v before the first round, want %v", !ready, ready)
				}
				if tc.log != "" && (strings.Count(logged.String(), "\n") != 1 || !strings.Contains(logged.String(), tc.log)) {
					t.Errorf("logged %q, want one line with %q", logged, tc.log)
				}
				if spoilt, err := os.ReadFile(file + ".bad"); tc.spoil != "" && (err != nil || string(spoilt) != tc.spoil) {
					t.Errorf("the bad file is not set aside: %q, %v", spoilt, err)
				}
				time.Sleep(15 * time.Second)
				synctest.Wait()
				expect(t, "after the first round", g, oneWay)
			})
		})
	}
}

// Flips and the operator's hold outlive a restart too.
func TestRestartKeepsHistory(t *testing.T) {
	for _, tc := range []struct{ name, option string }{
		{"hold", "fall 1\nrise 1\nhold 2 flips"},
		{"return manual", "fall 1\nrise 1\nreturn manual"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(pair("state "+t.TempDir()), "/healthz", "/healthz\n"+tc.option, 1)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				r := w.registry()
				gen, _ := r.mustStart(t, text)
				for _, result := range []string{"pass", "fail", "pass", "fail"} {
					w.set("192.0.2.1 " + result)
					time.Sleep(oneProbe)
				}
				r.stop(gen)
				w.set("192.0.2.1 pass")
				time.Sleep(time.Minute)
				r = w.registry()
				gen, g := r.mustStart(t, text)
				defer r.stop(gen)
				time.Sleep(9 * time.Minute)
				synctest.Wait()
				expect(t, "held", g, oneWay)
			})
		})
	}
}

// TestVerdictsAreSaved holds how soon: what changes within a second or two, the
// rest now and then.
func TestVerdictsAreSaved(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r, gen, _ := outage(t, w, pair("state "+dir))
		defer r.stop(gen)
		time.Sleep(2 * saveCheck)
		saved := func() string {
			all, err := probe.NewStore(dir).Peek(time.Now(), savedAge)
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for key, s := range all {
				words = append(words, key[strings.Index(key, "@")+1:]+" "+s.Verdict.String())
			}
			slices.Sort(words)
			return strings.Join(words, ", ")
		}
		if got := saved(); got != "192.0.2.1:8080 down, 192.0.2.2:8080 up" {
			t.Errorf("saved %s", got)
		}
		w.set("192.0.2.2 full")
		time.Sleep(oneProbe + 2*saveCheck)
		if got := saved(); got != "192.0.2.1:8080 down, 192.0.2.2:8080 full" {
			t.Errorf("saved %s", got)
		}
	})
}

// TestIsolation cuts the vantage off: verdicts are held until a beacon answers.
func TestIsolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, pair("beacon 192.0.2.53:53"))
		defer r.stop(gen)
		time.Sleep(oneProbe)
		lines := func() string {
			synctest.Wait()
			defer logged.Reset()
			return logged.String()
		}
		if got := lines(); got != "" {
			t.Errorf("logged %q of a good start", got)
		}
		w.setBeacon(false)
		w.set("192.0.2.1 fail, 192.0.2.2 fail")
		time.Sleep(10 * time.Minute)
		expect(t, "cut off", g, alive)
		if got := lines(); strings.Count(got, "Isolated:") != 1 || strings.Count(got, "\n") > 4 {
			t.Errorf("logged\n%s", got)
		}
		w.setBeacon(true)
		time.Sleep(2 * time.Minute)
		expect(t, "the beacon answers, and all are dead", g, "192.0.2.1 192.0.2.2 ttl 5")
		if got := lines(); strings.Count(got, "No longer isolated") != 1 {
			t.Errorf("logged\n%s", got)
		}
	})
}
