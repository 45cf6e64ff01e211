package guard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// fixtures is where the databases are.
const fixtures = "../../testdata"

// parse reads statements as the gslb block of example.com. Words are cut at blanks, and
// "~" stands for a blank inside one.
func parse(statements string) (*config.Block, error) {
	var words []config.Token
	for i, line := range strings.Split("gslb {\n"+statements+"\n}", "\n") {
		for word := range strings.FieldsSeq(line) {
			words = append(words, config.Token{Text: strings.ReplaceAll(word, "~", " "), Pos: config.Pos{File: "Corefile", Line: i + 1}})
		}
	}
	return config.Parse([]string{"example.com."}, words)
}

func tryBuild(statements string) (*plan.Plan, error) {
	b, err := parse(statements)
	if err != nil {
		return nil, err
	}
	return plan.Build(b, plan.Options{Root: fixtures})
}

func build(t testing.TB, statements string) *plan.Plan {
	t.Helper()
	p, err := tryBuild(statements)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// written is the side of a plan as it is written.
func written(p *plan.Plan) *Side {
	return &Side{Plan: p, Snapshots: p.Snapshots(plan.Written, &plan.Moves{})}
}

// compared is the report of a change from one text to another, and the side after.
func compared(t testing.TB, before, after string) (*Report, *Side) {
	t.Helper()
	now := written(build(t, after))
	return Compare([]Pair{{Old: written(build(t, before)), New: now}}), now
}

// writer writes random gslb blocks.
type writer struct {
	*rand.Rand
	strings.Builder
	regions []string
	orders  bool // no list splits
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *writer) maybe(percent int) bool { return w.IntN(100) < percent }

func (w *writer) pick(words ...string) string { return words[w.IntN(len(words))] }

// some gives at least one of the words, in random order.
func (w *writer) some(words []string) []string {
	words = slices.Clone(words)
	w.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:1+w.IntN(len(words))]
}

// matches are of clients that the fixtures know; no two overlap in one kind.
var matches = []string{
	"continent EU", "continent NA", "continent AS SA", "country DE", "country JP US", "subdivision US-CA", "subdivision US-VA DE-HE",
	"asn 3320", "asn 64496 65536", "prefix 198.51.100.0/24", "prefix 198.51.100.192/27 10.9.0.0/16", "prefix 2001:db8:1::/48 0.0.0.0/1",
}

// randomBlock is the text of a block; some are not valid. No host is balanced: who
// takes turns can't be asked twice. Where lists split, options are long enough for
// thousands of keys, so that parts are close to the weights.
func randomBlock(r *rand.Rand, orders bool) string {
	w := &writer{Rand: r, regions: []string{"eu", "us", "ap", "sa"}[:2+r.IntN(3)], orders: orders}
	w.line("geoip city city.mmdb\ngeoip asn asn.mmdb")
	switch w.IntN(6) {
	case 0:
		w.line("ecs off")
	case 1, 2:
		least4, least6 := 12, 24
		if orders {
			least4, least6 = 0, 0
		}
		w.line("ecs {\n max %d %d\n fill %s\n}", least4+w.IntN(33-least4), least6+w.IntN(129-least6), w.pick("on", "off"))
	}
	if w.maybe(40) {
		w.line("area fenced %s", w.pick(matches[:12]...))
		w.line("fence fenced %s", strings.Join(w.some(w.regions), " "))
	}
	for i, name := range w.regions {
		w.line("region %s {\nlocation %d.5 %d", name, w.IntN(170)-85, w.IntN(359)-179)
		if w.maybe(40) {
			w.line("clients %s", matches[i])
		}
		if w.maybe(60) {
			w.line("capacity %d", 1+w.IntN(100))
		}
		w.line("}")
	}
	for _, m := range matches[4:] {
		if w.maybe(25) {
			w.line("clients %s {\n%s\n}", m, w.list())
		}
	}
	w.line("clients rest {\n%s\n}", w.list())
	for _, host := range w.some([]string{"a", "b", "c"}) {
		w.line("host %s.example.com {\nspread %s", host, w.pick("sticky", "sticky 12 24", "resolver"))
		w.line("last_resort %s\nfamilies mixed\nfenced_ok", w.pick("open", "closed", "addresses 203.0.113.250"))
		for _, name := range w.some(w.regions) {
			w.line("pool %s {", name)
			for e := range 1 + w.IntN(3) {
				k := 10*slices.Index([]string{"eu", "us", "ap", "sa"}, name) + e
				w.line("endpoint %s %s", w.pick(fmt.Sprintf("203.0.113.%d", k), fmt.Sprintf("203.0.113.%d", k), fmt.Sprintf("2001:db8::%d", k)), w.pick("", "", "down", "drain"))
			}
			w.line("}")
		}
		w.line("}")
	}
	return w.String()
}

func (w *writer) list() string {
	if w.maybe(10) {
		return "refuse"
	}
	if w.maybe(50) && !w.orders {
		text := "split"
		for _, r := range w.some(w.regions) {
			text += fmt.Sprintf(" %s %d", r, 1+w.IntN(4))
		}
		return text
	}
	return "order " + strings.Join(w.some(w.regions), " ") + " rest"
}

// randomSide is a plan in a random state, with levers or without.
func randomSide(r *rand.Rand, p *plan.Plan, still bool) *Side {
	s := &Side{Plan: p}
	for _, h := range p.Hosts {
		var load, demand []float64
		for range h.Need.Topology.Lists {
			demand, load = append(demand, float64(r.IntN(1000))), append(load, float64(r.IntN(100)))
		}
		s.Demand, s.Load = append(s.Demand, demand), append(s.Load, load)
		moved := r.IntN(2) == 0 && !still
		levers := make([]steer.Levers, len(p.Block.Regions))
		for i := range levers {
			levers[i] = steer.NoLevers()
			if moved && r.IntN(3) == 0 {
				levers[i].Dial = []float64{0, 0.25, r.Float64()}[r.IntN(3)]
			}
			if moved && r.IntN(5) == 0 {
				levers[i].Trickle = r.Float64() / 2
			}
			if moved && r.IntN(6) == 0 {
				levers[i].Shared, levers[i].Share = true, r.Float64()/2
			}
		}
		verdict := func() steer.Verdict {
			return []steer.Verdict{steer.Up, steer.Up, steer.Up, steer.Down, steer.Drained}[r.IntN(5)]
		}
		var regions []steer.Verdict
		for range p.Block.Regions {
			regions = append(regions, verdict())
		}
		s.Snapshots = append(s.Snapshots, h.Steer.NewSnapshot(func(region steer.Region, _ int) steer.EndpointState {
			if still { // else some of a region spill
				return steer.EndpointState{Verdict: regions[region]}
			}
			return steer.EndpointState{Verdict: verdict()}
		}, func(region steer.Region) steer.Levers { return levers[region] }))
	}
	return s
}

// randomSides are two states of one plan, or of two. If they are simple, all clients of a
// list get the same region.
func randomSides(t *testing.T, r *rand.Rand, simple bool) (before, after *Side, texts string) {
	t.Helper()
	random := func() (*plan.Plan, string) {
		for range 200 {
			text := randomBlock(r, simple)
			if p, err := tryBuild(text); err == nil {
				return p, text
			}
		}
		t.Fatal("no block is valid")
		return nil, ""
	}
	old, text := random()
	p, other := old, ""
	if r.IntN(2) == 0 {
		p, other = random()
	}
	return randomSide(r, old, simple), randomSide(r, p, simple), text + "\n--\n" + other
}
