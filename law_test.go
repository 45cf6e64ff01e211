package gslb

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// plant is two regions whose loads are what the answers make of the demand at eu.
type plant struct {
	dir    string
	demand float64 // of clients whose first region is eu; 20 are at us
	part   float64 // of it that eu got last
}

const plantBlock = `gslb {
	state DIR/state
	region eu {
		clients prefix 0.0.0.0/1
		capacity 100
		load file DIR/eu every 5s
	}
	region us {
		clients rest
		capacity 100
		load file DIR/us every 5s
	}
	host api.example.com {
		pool eu 192.0.2.1
		pool us 192.0.2.2
		MORE
	}
}`

// loadDir is a directory for files with loads, under the same name in every run: the name of a file says when
// its load is read.
func loadDir(t *testing.T) string {
	t.Chdir(t.TempDir())
	return "."
}

func newPlant(t *testing.T, demand float64) *plant {
	return &plant{dir: loadDir(t), demand: demand, part: 1}
}

func (p *plant) block(more string) string {
	return strings.ReplaceAll(strings.ReplaceAll(plantBlock, "DIR", p.dir), "MORE", more)
}

// run lets time go by, with loads that follow the answers every 5 s.
func (p *plant) run(t *testing.T, g *GSLB, span time.Duration) {
	t.Helper()
	for range span / (5 * time.Second) {
		p.part = share(t, g, "api A", "192.0.2.1")
		p.write(t)
		time.Sleep(5 * time.Second)
		synctest.Wait()
	}
	p.part = share(t, g, "api A", "192.0.2.1")
}

func (p *plant) write(t *testing.T) {
	t.Helper()
	for name, load := range map[string]float64{"eu": p.demand * p.part, "us": 20 + p.demand*(1-p.part)} {
		replace(t, filepath.Join(p.dir, name), fmt.Appendln(nil, load))
	}
}

// got holds what eu gets of the clients that are nearest to it.
func (p *plant) got(t *testing.T, what string, g *GSLB, want, within float64) {
	t.Helper()
	if got := share(t, g, "api A", "192.0.2.1"); math.Abs(got-want) > within {
		t.Errorf("%s: eu gets %.3f of its clients, want %.3f", what, got, want)
	}
}

// TestSpill has a region spill what is above its target, and take it back.
func TestSpill(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		defer r.stop(gen)
		p.run(t, g, time.Minute)
		p.got(t, "while there is room", g, 1, 0)
		p.demand = 120
		p.run(t, g, 10*time.Minute)
		p.got(t, "120 of 100, the target is 90", g, 0.75, 0.05)
		if out := r.steering.law.out; out.Deficit > 0 || out.Sinks[1].Load > 90 {
			t.Errorf("deficit %v, us has %v", out.Deficit, out.Sinks[1].Load)
		}
		p.demand = 60
		p.run(t, g, 10*time.Minute)
		p.got(t, "when there is room again", g, 1, 0.01)
	})
}

// TestSpillOutlives holds that a spill goes on over a reload and a restart, without a jump
// in between.
func TestSpillOutlives(t *testing.T) {
	for _, tc := range []struct {
		name  string
		away  time.Duration // 0: a reload
		spoil string
		want  string // log
		keeps bool
	}{
		{"a reload", 0, "", "", true},
		{"a restart", time.Minute, "", "", true},
		{"a long time", 5 * time.Hour, "", "", true},
		{"a damaged file", time.Minute, `{"format":1,"checksum":"0","law":{}}`, "its checksum is wrong: it is damaged; starting without it, set aside as ", false},
		{"another format", time.Minute, `{"format":2}`, "its format is 2, expected 1", false},
		{"no JSON", time.Minute, "hello", "invalid character", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlant(t, 120)
			file := filepath.Join(p.dir, "state", lawFile)
			synctest.Test(t, func(t *testing.T) {
				r := newWorld().registry()
				gen, g := r.mustStart(t, p.block(""))
				p.run(t, g, 10*time.Minute)
				before := p.part
				p.got(t, "before", g, 0.75, 0.05)
				logged := logTo(t)
				if tc.away > 0 {
					r.stop(gen)
					if tc.spoil != "" {
						replace(t, file, []byte(tc.spoil))
					}
					time.Sleep(tc.away)
					r = newWorld().registry()
					gen, g = r.mustStart(t, p.block(""))
				} else {
					old := gen
					gen, g = r.mustStart(t, p.block("ttl 20"))
					r.stop(old)
				}
				defer r.stop(gen)
				if !tc.keeps {
					before = 1
				}
				p.got(t, "at once", g, before, 0.011)
				if !strings.Contains(logged.String(), tc.want) || tc.want == "" && strings.Contains(logged.String(), "law") {
					t.Errorf("logged %q, want %q", logged, tc.want)
				}
				if _, err := os.Stat(file + ".bad"); (err == nil) != (tc.spoil != "") {
					t.Errorf("set aside: %v", err)
				}
				if !tc.keeps {
					return
				}
				for range 24 {
					p.run(t, g, 5*time.Second)
					p.got(t, "later", g, before, 0.04)
				}
			})
		})
	}
}

// TestLawIsSaved holds how often, and that nothing is where no region has a capacity.
func TestLawIsSaved(t *testing.T) {
	p := newPlant(t, 120)
	file := filepath.Join(p.dir, "state", lawFile)
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		p.run(t, g, 25*time.Second)
		if _, err := os.Stat(file); err == nil {
			t.Error("saved within 30 s")
		}
		p.run(t, g, 10*time.Second)
		first, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p.run(t, g, 20*time.Second)
		if again, _ := os.ReadFile(file); string(again) != string(first) {
			t.Error("saved again within 30 s")
		}
		r.stop(gen)
		if again, _ := os.ReadFile(file); string(again) == string(first) {
			t.Error("not saved at the end")
		}
	})
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, _ := r.mustStart(t, pair("state "+dir))
		time.Sleep(time.Minute)
		r.stop(gen)
		if _, err := os.Stat(filepath.Join(dir, lawFile)); err == nil {
			t.Error("there is a state of a law that nobody asked for")
		}
	})
}

// TestLawHearsOfFullness: a pool that is alive and full keeps nine tenths of what it has,
// again and again, where the law knows its capacity; elsewhere it gives up half.
func TestLawHearsOfFullness(t *testing.T) {
	dir := loadDir(t)
	text := `gslb {
	region a {
		capacity 100
		load file ` + dir + `/a every 5s
	}
	region b c
	clients rest {
		order a b
	}
	check web {
		http :8080 /healthz
	}
	host api.example.com {
		check web
		pool a 192.0.2.1
		pool b {
			endpoint 192.0.2.2 up
		}
	}
	host www.example.com {
		check web
		order c b
		pool c 192.0.2.3
		pool b {
			endpoint 192.0.2.4 up
		}
	}
}`
	replace(t, filepath.Join(dir, "a"), []byte("50\n"))
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, text)
		defer r.stop(gen)
		time.Sleep(time.Minute)
		w.set("192.0.2.1 full, 192.0.2.3 full")
		first := 0.0
		for range 30 {
			time.Sleep(time.Second)
			synctest.Wait()
			if first = share(t, g, "api A", "192.0.2.1"); first < 1 && r.steering.law.out.Sinks[0].Limit < 90 {
				break
			}
		}
		time.Sleep(2 * time.Second)
		if first = share(t, g, "api A", "192.0.2.1"); math.Abs(first-0.9) > 0.06 {
			t.Errorf("right after it is full, a gets %.3f, want nine tenths", first)
		}
		replace(t, filepath.Join(dir, "a"), []byte("40\n"))
		time.Sleep(5 * time.Minute)
		if got := share(t, g, "api A", "192.0.2.1"); got > 0.8 || got < 0.1 {
			t.Errorf("after five minutes full, a gets %.3f", got)
		}
		if got := share(t, g, "www A", "192.0.2.3"); math.Abs(got-0.5) > 0.05 {
			t.Errorf("c, without a capacity, gets %.3f, want half", got)
		}
		w.set("192.0.2.1 pass, 192.0.2.3 pass")
		time.Sleep(40 * time.Minute)
		if got := share(t, g, "api A", "192.0.2.1"); got < 0.99 {
			t.Errorf("long after, a gets %.3f", got)
		}
	})
}

// A pool that is down for one host only sends on that host's clients alone.
func TestLawKnowsHostsApart(t *testing.T) {
	p := newPlant(t, 60)
	text := strings.Replace(p.block(""), "\thost api", `	check web {
		http :8080 /healthz
	}
	host www.example.com {
		check web
		pool eu 192.0.2.3
		pool us {
			endpoint 192.0.2.4 up
		}
	}
	host api`, 1)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, text)
		defer r.stop(gen)
		p.run(t, g, time.Minute)
		w.set("192.0.2.3 fail")
		p.run(t, g, 2*time.Minute)
		p.got(t, "the host that is well", g, 1, 0)
		if got := share(t, g, "www A", "192.0.2.4"); got != 1 {
			t.Errorf("us gets %.3f of those of the host whose pool is down", got)
		}
	})
}

// TestLawStepsAtOnce holds that the law doesn't wait for its period when availability changes,
// nor for the next beat, and that many changes don't make as many steps.
func TestLawStepsAtOnce(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		block := strings.Replace(p.block("check web"), "gslb {", "gslb {\n\tcheck web {\n\t\ttcp :1\n\t\tinterval 10s\n\t\tfall 1\n\t}", 1)
		gen, g := r.mustStart(t, block)
		defer r.stop(gen)
		p.run(t, g, time.Minute)
		w.set("192.0.2.1 fail")
		for told(t, g, "api A", "") == "192.0.2.1 ttl 30" {
			later(time.Millisecond)
		}
		steps := func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.steering.law.stepped
		}
		if late := time.Since(steps()); late > 5*time.Millisecond {
			t.Errorf("no step of the law in the %s before the region was left", late)
		}
		at := steps()
		r.mu.Lock()
		r.steering.hurry(time.Now())
		r.mu.Unlock()
		synctest.Wait()
		if steps() != at {
			t.Error("a step right after a step")
		}
		later(beat)
		if steps() == at {
			t.Error("no step with the next beat")
		}
	})
}

// TestForetoldUndamped holds what is foretold of a change, which ends damping, against what
// comes of it.
func TestForetoldUndamped(t *testing.T) {
	p := newPlant(t, 120)
	synctest.Test(t, func(t *testing.T) {
		c := newWorld().clerk(t, p.dir)
		gen, g := c.start(t, p.block(""))
		defer c.stop(gen)
		p.run(t, g, 10*time.Minute)
		c.registry.mu.Lock()
		damped := *c.registry.steering.law.state
		damped.Sinks = slices.Clone(damped.Sinks)
		damped.Sinks[0].Damping = capacity.Damping{On: true, Since: time.Now(), Lump: 1}
		c.registry.steering.law.state = &damped
		c.registry.mu.Unlock()
		p.demand = 60
		p.run(t, g, 15*time.Minute)
		p.got(t, "damped", g, 0.75, 0.05)
		away := 100 * (1 - p.part)
		result, err := c.desk.store.WhatIf(t.Context(), clerkHerself, asked("weight 7 endpoint=192.0.2.2"))
		if err != nil {
			t.Fatal(err)
		}
		c.must(t, "weight 7 endpoint=192.0.2.2")
		p.run(t, g, 10*time.Minute)
		p.got(t, "after a change", g, 1, 0.01)
		if moved := result.Report.MovedBlocks; math.Abs(moved-away/2) > 3 { // eu's are half of the blocks
			t.Errorf("it was foretold that %.1f %% of blocks move; %.1f %% have", moved, away/2)
		}
	})
}
