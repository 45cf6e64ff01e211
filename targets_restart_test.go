package gslb

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/target"

	"go.uber.org/goleak"
)

// TestTargetsRestart ends a process and starts another one that no resolver answers:
// the last good addresses serve, if they are known and young enough.
func TestTargetsRestart(t *testing.T) {
	const last = "192.0.2.1 192.0.2.2 ttl 30"
	for _, tc := range []struct {
		name   string
		killed bool
		away   time.Duration
		spoil  string // what the file is overwritten with; "-": it is removed
		want   string // of api at once
		only   string
		log    string
	}{
		{"stopped", false, 5 * time.Minute, "", last, "192.0.2.7 ttl 30", ""},
		{"killed", true, 5 * time.Minute, "", last, "192.0.2.7 ttl 30", ""},
		{"away for longer than one is kept", false, 30 * time.Minute, "", "192.0.2.9 ttl 30", "192.0.2.7 ttl 30", ""},
		{"away for long", false, 2 * time.Hour, "", "192.0.2.9 ttl 30", "SERVFAIL", ""},
		{"no file", false, time.Minute, "-", "192.0.2.9 ttl 30", "SERVFAIL", ""},
		{"damaged", false, time.Minute, "gslb-targets 1 0000000000000000\n{}\n", "192.0.2.9 ttl 30", "SERVFAIL", "Saved addresses of targets can't be read: FILE: saved targets: the checksum is wrong: the file is damaged; starting without it, set aside as FILE.bad"},
		{"of another version", false, time.Minute, "gslb-targets 0\n", "192.0.2.9 ttl 30", "SERVFAIL", "FILE: saved targets: the first line is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "state")
			file := filepath.Join(dir, target.File)
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w, n := newWorld(), newNames()
				n.set("lb.example.net.", "192.0.2.1 192.0.2.2 ttl 60")
				n.set("only.example.net.", "192.0.2.7 ttl 60")
				text := strings.Replace(balanced(only+"state "+dir+"\n"), "target lb.example.net", "target lb.example.net\nkeep 10m", 1)
				before := n.resolving(w.registry())
				gen, g := before.mustStart(t, text)
				later(10 * time.Minute)
				wants(t, "before", g, "api A", last, "only A", "192.0.2.7 ttl 30")
				kept, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				before.stop(gen)
				if tc.killed {
					replace(t, file, kept)
				}
				switch tc.spoil {
				case "":
				case "-":
					os.Remove(file)
				default:
					replace(t, file, []byte(tc.spoil))
				}
				time.Sleep(tc.away)
				logged.Reset()
				n.setDumb("127.0.0.53:53", true)
				r := n.resolving(w.registry())
				after, g := r.mustStart(t, text)
				wants(t, "at once", g, "api A", tc.want, "only A", tc.only)
				if tc.log != "" {
					wantLog(t, logged, strings.ReplaceAll(tc.log, "FILE", file))
					if spoilt, err := os.ReadFile(file + ".bad"); err != nil || string(spoilt) != tc.spoil {
						t.Errorf("the bad file is not set aside: %q, %v", spoilt, err)
					}
				}
				n.setDumb("127.0.0.53:53", false)
				later(70 * time.Second)
				wants(t, "resolvers are back", g, "api A", last, "only A", "192.0.2.7 ttl 30")
				r.stop(after)
			})
		})
	}
}

// A start is held against what was accepted last. What no resolver answers for at
// that moment is no change of the operator's.
func TestTargetsPassStartGuards(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		text := balanced(only + "state " + dir + "\n")
		for _, dumb := range []bool{true, false, true} { // unresolved when it is remembered, and when it is held against that
			n.setDumb("127.0.0.53:53", dumb)
			n.set("lb.example.net.", "192.0.2.1 ttl 60")
			n.set("only.example.net.", "192.0.2.7 ttl 60")
			os.Remove(filepath.Join(dir, target.File))
			r := n.resolving(w.registry())
			gen, _, err := r.startTexts(t, text)
			if err != nil {
				t.Fatalf("resolvers are dumb %v: %v", dumb, err)
			}
			later(time.Minute)
			r.stop(gen)
		}
	})
}

// targetUsers are those of all names that are resolved for the instances.
func targetUsers(gs ...*GSLB) (all []string) {
	for _, g := range gs {
		for name, one := range g.targets {
			all = append(all, name+" by "+strings.TrimSpace(strings.Join(one.Users(), "+")))
		}
	}
	slices.Sort(all)
	return all
}

// TestTargetsReload changes targets and resolvers while it serves.
func TestTargetsReload(t *testing.T) {
	const both = "192.0.2.1 192.0.2.2 ttl 30"
	ignore := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.1 192.0.2.2 ttl 60")
		n.set("only.example.net.", "192.0.2.7 ttl 60")
		n.setDumb("127.0.0.54:53", true)
		r := n.resolving(w.registry())
		gen, g := r.mustStart(t, balanced(""))
		later(10 * time.Second)
		w.set("192.0.2.1 fail")
		later(fallen)
		wants(t, "one is dead", g, "api A", "192.0.2.2 ttl 30")
		change := func(what, text string, pairs ...string) {
			t.Helper()
			probes := w.count("web@192.0.2.2")
			next, g := r.mustStart(t, text)
			wants(t, what+", at once", g, pairs...)
			r.stop(gen)
			gen = next
			later(30 * time.Second)
			wants(t, what+", later", g, pairs...)
			if more := w.count("web@192.0.2.2") - probes; more < 2 || more > 4 {
				t.Errorf("%s: %d probes in 30 s of what stays", what, more)
			}
		}
		asked := n.count("A lb.example.net.")
		change("the same", balanced(""), "api A", "192.0.2.2 ttl 30")
		if more := n.count("A lb.example.net.") - asked; more > 1 {
			t.Errorf("a reload asked %d times", more)
		}
		change("another target", balanced(only), "api A", "192.0.2.2 ttl 30", "only A", "192.0.2.7 ttl 30")
		change("other resolvers, which don't answer", strings.Replace(balanced(only), "127.0.0.53", "127.0.0.54", 1), "api A", "192.0.2.2 ttl 30", "only A", "192.0.2.7 ttl 30")
		change("written in place of one", strings.Replace(balanced(only), "target lb.example.net", "endpoint 192.0.2.2", 1), "api A", "192.0.2.2 ttl 30", "only A", "192.0.2.7 ttl 30")
		w.set("192.0.2.1 pass")
		change("and back", balanced(""), "api A", both)
		if got := strings.Join(targetUsers(gen.instances...), ", "); got != "lb.example.net. by example.com." {
			t.Errorf("users %s", got)
		}
		if n := r.steering.targets.resolver.Stats().Targets; n != 1 {
			t.Errorf("%d names are resolved, want 1", n)
		}
		if got := strings.Join(users(gen), ", "); got != "api.example.com. a 192.0.2.1, api.example.com. a 192.0.2.2, api.example.com. b 192.0.2.9" {
			t.Errorf("probes are used by %s", got)
		}

		// A load that fails leaves nothing, and the live one goes on.
		failed, _, err := r.startTexts(t, strings.Replace(balanced(only+"check impossible {\ntcp :1\n}\n"), "pool b 192.0.2.9", "pool b {\nendpoint 192.0.2.9\ncheck impossible\n}", 1))
		if err == nil || len(failed.instances) > 0 {
			t.Error("a check that can't be carried out is no error")
		}
		if n := r.steering.targets.resolver.Stats().Targets; n != 1 {
			t.Errorf("%d names are resolved after a load that failed, want 1", n)
		}
		later(time.Minute)
		wants(t, "after it", gen.instances[0], "api A", both)
		r.stop(gen)
	})
	nothingLeft(t, ignore)
}

// A state directory that comes and goes with reloads is written to while it is said.
func TestTargetsStateDirectory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.1 ttl 60")
		r := n.resolving(w.registry())
		gen, _ := r.mustStart(t, balanced(""))
		later(time.Minute)
		holds := func(text, want string) {
			t.Helper()
			next, _ := r.mustStart(t, text)
			r.stop(gen)
			gen = next
			later(2 * saveAtAll)
			for _, name := range []string{"one", "two"} {
				path := filepath.Join(dir, name, target.File)
				_, err := os.Stat(path)
				if (err == nil) != (name == want) {
					t.Errorf("want it in %q: %s: %v", want, path, err)
				}
				os.Remove(path)
			}
		}
		holds(balanced("state "+dir+"/one\n"), "one")
		holds(balanced("state "+dir+"/two\n"), "two")
		holds(balanced(""), "")
		r.stop(gen)
		if _, err := os.Stat(filepath.Join(dir, "two", target.File)); err == nil {
			t.Error("written to the directory of an earlier load")
		}
	})
}

// Guards let a name take the place of addresses if it resolves, and only then.
func TestTargetsReloadGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("only.example.net.", "192.0.2.7 ttl 60")
		r := n.resolving(w.registry())
		gen, g := r.mustStart(t, probed("resolvers 127.0.0.53\n"+strings.Replace(only, "target only.example.net", "endpoint 192.0.2.7", 1)))
		later(time.Minute)
		failed, _, err := r.startTexts(t, probed("resolvers 127.0.0.53\n"+strings.ReplaceAll(only, "only.example.net", "missing.example.net")))
		if err == nil || !strings.Contains(err.Error(), "only.example.com") || len(failed.instances) > 0 {
			t.Errorf("a host is left without an address: error %v", err)
		}
		wants(t, "refused", g, "only A", "192.0.2.7 ttl 30")
		next, g := r.mustStart(t, probed("resolvers 127.0.0.53\n"+only))
		wants(t, "accepted", g, "only A", "192.0.2.7 ttl 30")
		r.stop(gen)
		r.stop(next)
	})
}

// What operators override goes by address, wherever that comes from.
func TestTargetsOverridden(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.1 192.0.2.2 ttl 60")
		c := w.clerk(t, dir)
		n.resolving(c.registry)
		gen, g := c.start(t, balanced(""))
		defer c.stop(gen)
		settle()
		c.must(t, "force down region=a host=api.example.com. endpoint=192.0.2.1")
		wants(t, "forced down", g, "api A", "192.0.2.2 ttl 30")
		n.set("lb.example.net.", "192.0.2.1 192.0.2.3 ttl 60")
		later(70 * time.Second)
		wants(t, "with other addresses", g, "api A", "192.0.2.3 ttl 30")
		if _, err := c.do("force down region=a host=api.example.com. endpoint=192.0.2.2"); err == nil {
			t.Error("an address that the name has lost can be forced")
		}
	})
}

// New data is put into service with the addresses of then, and not at all once the
// instance is over.
func TestTargetsStayWithNewData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.1 ttl 60")
		r := n.resolving(w.registry())
		gen, g := r.mustStart(t, balanced(""))
		later(time.Minute)
		compile := func() *plan.Plan {
			o := g.options
			o.Resolve = nil
			p, err := plan.Compile(g.block, g.live.Load().plan.Data, o)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := compile() // it takes a while, and addresses change
		n.set("lb.example.net.", "192.0.2.2 ttl 60")
		later(70 * time.Second)
		if err := g.replace(p, time.Now(), 0); err != nil {
			t.Fatal(err)
		}
		wants(t, "new data", g, "api A", "192.0.2.2 ttl 30")
		if g.live.Load().plan.Needs[0] != p.Needs[0] {
			t.Error("the new plan is not in service")
		}
		r.stop(gen)
		if err := g.replace(compile(), time.Now(), 0); err != nil {
			t.Error(err)
		}
		wants(t, "a query after the end", g, "api A", "192.0.2.2 ttl 30")
	})
}
