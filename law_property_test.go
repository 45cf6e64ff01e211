package gslb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// lawBlock writes a random block whose regions have capacities.
type lawBlock struct {
	*rand.Rand
	strings.Builder
	regions []string
	shares  bool // there are soaks, and no dials
}

func (w *lawBlock) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *lawBlock) maybe(percent int) bool { return w.IntN(100) < percent }

func (w *lawBlock) some(most int) []string {
	words := slices.Clone(w.regions)
	w.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:1+w.IntN(min(most, len(words)))]
}

func (w *lawBlock) list() {
	switch {
	case w.maybe(40):
		w.WriteString("split")
		for _, r := range w.some(5) {
			fmt.Fprintf(w, " %s %d", r, w.IntN(5))
		}
		w.line("")
	case w.maybe(8):
		w.line("refuse")
	default:
		w.line("order %s %s", strings.Join(w.some(5), " "), []string{"", "rest"}[w.IntN(2)])
	}
}

func (w *lawBlock) rules() {
	for i := range 6 {
		if w.maybe(50) {
			w.line("clients prefix 20.%d.0.0/16 {", i)
			w.list()
			w.line("}")
		}
	}
	w.line("clients rest {\norder %s rest\n}", w.regions[0])
}

// write writes a block of n regions. Blocks of one seed have the same regions.
func (w *lawBlock) write(n int, regions *rand.Rand) string {
	w.line("gslb {")
	places := regions.IntN(2) == 0
	for i := range n {
		name := fmt.Sprint("r", i)
		w.regions = append(w.regions, name)
		w.line("region %s {", name)
		if places {
			w.line("location %d %d", regions.IntN(120)-60, regions.IntN(300)-150)
		}
		if regions.IntN(10) < 8 {
			w.line("capacity %d", 20+regions.IntN(100))
		}
		w.line("}")
	}
	if w.maybe(30) {
		w.line("area fenced prefix 20.0.0.0/15\nfence fenced %s", strings.Join(w.some(2), " "))
	}
	w.rules()
	for i := range 1 + w.IntN(3) {
		w.host(i)
	}
	w.line("}")
	return w.String()
}

func (w *lawBlock) host(i int) {
	w.line("host h%d.example.com {", i)
	w.line("fenced_ok")
	if w.maybe(30) {
		w.rules()
	}
	if w.maybe(15) {
		w.line("shed to origin.example.net")
	}
	pools := w.some(5)
	for k, name := range pools {
		w.line("pool %s {", name)
		for e := range 1 + w.IntN(3) {
			w.line("endpoint 203.0.%s.%d", name[1:], 10*i+e)
		}
		switch w.IntN(8) {
		case 0:
			if !w.shares {
				w.line("dial %d%%", 25*w.IntN(5))
			}
		case 1:
			w.line("capacity %d", 10+w.IntN(50))
		case 2:
			if w.shares && k > 0 {
				w.line("share %d%%", 1+w.IntN(20))
			}
		}
		w.line("}")
	}
	w.line("}")
}

// randomViews are blocks of the same regions, with random verdicts on their endpoints
// and demand of their lists.
func randomViews(r *rand.Rand) (views []view, text string) {
	n, seed := 2+r.IntN(4), r.Uint64()
	shares := r.IntN(2) == 0
	for range 1 + r.IntN(2) {
		w := &lawBlock{Rand: r, shares: shares}
		one := w.write(n, rand.New(rand.NewPCG(seed, 2)))
		text += one + "\n"
		block, err := config.Parse([]string{"example.com."}, tokens(one))
		if err != nil {
			return nil, err.Error() + "\n" + one
		}
		g, err := newGSLB(block, "")
		if err != nil {
			return nil, err.Error() + "\n" + one
		}
		live := g.live.Load()
		sick := map[*config.Endpoint]steer.EndpointState{}
		ill := r.IntN(2) == 0
		for _, h := range live.plan.Hosts {
			for i := range h.Config.Pools {
				same := r.IntN(3) == 0
				verdict := steer.Verdict(r.IntN(4))
				for k := range h.Config.Pools[i].Endpoints {
					if !same {
						verdict = steer.Verdict(r.IntN(4))
					}
					if ill && r.IntN(3) == 0 {
						sick[&h.Config.Pools[i].Endpoints[k]] = steer.EndpointState{Verdict: verdict}
					}
				}
			}
		}
		v := view{g: g, plan: live.plan, demand: newDemand(live.plan)}
		if shares {
			v.snapshots = live.plan.Snapshots(plan.Written, &plan.Moves{Now: start})
		} else { // dials come later, as an outage does: loads are those of before
			v.snapshots = live.plan.Snapshots(plan.Written, nil)
		}
		for i := range v.demand.hosts {
			for l := range v.demand.hosts[i].lists {
				v.demand.hosts[i].lists[l] = 1 + r.ExpFloat64()*100
			}
		}
		views = append(views, v)
		verdictsOf[g] = sick
	}
	return views, text
}

var (
	start      = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	verdictsOf = map[*GSLB]map[*config.Endpoint]steer.EndpointState{}
)

// brought is what the flows of all lists bring to each sink: the slow and obvious way from
// admissions back to loads.
func brought(views []view, v *verdicts) []float64 {
	loads := make([]float64, len(v.sinks.list))
	for i, w := range views {
		m := &plan.Moves{Now: start}
		v.admitted[i].move(m)
		snapshots := w.plan.Snapshots(func(e *config.Endpoint) steer.EndpointState { return verdictsOf[w.g][e] }, m)
		for k, h := range w.plan.Hosts {
			f := family(h)
			for list := range h.Need.Topology.Lists {
				flow := h.Steer.Flow(snapshots[k], list, f)
				soaked := 0.0 // a soak's part is no demand that the law knows
				for r := range flow[:len(flow)-1] {
					st := snapshots[k].Region(steer.Region(r), f)
					if st.Shared && h.Steer.Open(snapshots[k], list, steer.Region(r), f, false) == 0 {
						soaked += flow[r]
						flow[r] = 0
					}
				}
				for r, part := range flow {
					sink := v.sinks.index[elsewhere]
					if r < len(flow)-1 && part > 0 {
						sink = v.sinks.index[sinkOf(h, h.Pool(steer.Region(r)))]
					}
					if part > 0 {
						loads[sink] += part / (1 - soaked) * v.loads[i][k][list]
					}
				}
			}
		}
	}
	return loads
}

// stricken runs the law once with everything up and loads as the lists' demand makes them, and
// again when the verdicts have changed and regions are as loaded as before.
func stricken(r *rand.Rand, views []view) (*hearing, verdicts) {
	l := &law{}
	h := l.hear(views, start)
	if len(h.sinks.list) == 0 {
		return h, h.judge()
	}
	probe := *h // to see which sink each group begins with
	probe.judge()
	loads, capacities, total := make([]float64, len(probe.sinks.list)), 0.0, 0.0
	for _, g := range probe.in.Groups {
		loads[g.Sinks[0]] += g.Weight
		total += g.Weight
	}
	least := math.Inf(1) // nobody is full at first, so that all stays where it belongs
	for i, s := range h.sinks.list {
		if capacities += s.Capacity; s.Capacity > 0 && loads[i] > 0 {
			least = min(least, 0.8*s.Capacity/loads[i])
		}
	}
	signals := func(h *hearing, scale float64) {
		for i := range h.sinks.list {
			h.sinks.list[i].Signal = capacity.Signal{Value: scale * loads[i], Valid: true}
		}
	}
	signals(h, min(least, 1))
	v := h.judge()
	l.state = v.state
	for i := range views {
		m := &plan.Moves{Now: start}
		v.admitted[i].move(m)
		views[i].snapshots = views[i].plan.Snapshots(func(e *config.Endpoint) steer.EndpointState { return verdictsOf[views[i].g][e] }, m)
	}
	h = l.hear(views, start.Add(15*time.Second))
	// What is above 3 capacities has to stand before it is believed.
	signals(h, min(capacities*2.5*r.Float64()/max(total, 1), 2.9/0.8*least))
	return h, h.judge()
}

// TestAdmissionsBringWhatTheLawExpects holds the way from the plan to the law and back: what
// decisions bring to each region is what the law thinks they do.
func TestAdmissionsBringWhatTheLawExpects(t *testing.T) {
	valid, spilled, shed, fits, split, fullPools := 0, 0, 0, 0, 0, 0
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 1))
		views, text := randomViews(r)
		if views == nil {
			continue
		}
		valid++
		h, v := stricken(r, views)
		if v.out == nil {
			continue
		}
		for _, s := range h.sinks.list {
			if s.Full {
				fullPools++
			}
		}
		got, total := brought(views, &v), v.out.Demand
		for i := range v.sinks.list {
			want, homeless := v.out.Sinks[i].Expected, v.out.Sinks[i].Demand
			for _, g := range h.in.Groups {
				if g.Sinks[0] == i {
					homeless = 0
				}
			}
			if v.sinks.list[i].Health == 0 {
				homeless = 0
			}
			want -= homeless // the load of a sink that no list begins with is no group's
			if math.Abs(got[i]-want) > 0.02*total+1e-9 {
				t.Errorf("seed %d: sink %s gets %.4g, the law expects %.4g of %.4g\n%s", seed, v.sinks.list[i].Name, got[i], want, total, text)
			}
			if limit := max(v.out.Sinks[i].Limit, capacity.DefaultTarget*v.sinks.list[i].Capacity); v.sinks.list[i].Capacity > 0 && v.out.Deficit+v.out.Left < 1e-6*total && got[i]+homeless > limit+0.02*total {
				t.Errorf("seed %d: sink %s gets %.4g above its limit of %.4g, and there is no deficit", seed, v.sinks.list[i].Name, got[i], limit)
			}
			if v.sinks.keys[i] == elsewhere && got[i] > 0 {
				shed++
			}
		}
		if v.out.Deficit < 1e-6*total {
			fits++
		}
		for _, row := range h.rows {
			if row.part < 1 && !row.sheds {
				split++
				break
			}
		}
		for i := range v.admitted {
			if len(v.admitted[i].parts) > 0 {
				spilled++
			}
		}
		if t.Failed() {
			for i, g := range h.in.Groups {
				row := h.rows[i]
				t.Logf("view %d host %d list %d part %.3g: sinks %v open %.3g admission %.3g flow %.3g of %.3g", row.view, row.host, row.list, row.part,
					g.Sinks, g.Open, v.out.Admission[i], row.flow(v.out.Admission[i]), v.loads[row.view][row.host][row.list])
			}
			for i, s := range v.sinks.list {
				t.Logf("%d %+v\n%+v gets %.4g", i, s, v.out.Sinks[i], got[i])
			}
			break
		}
	}
	t.Logf("%d valid, %d spill, %d fit, %d shed, %d with splits, %d full", valid, spilled, fits, shed, split, fullPools)
	if valid < 200 || spilled < 100 || shed < 20 || fits < 50 || split < 80 || fullPools < 8 {
		t.Error("too few blocks show anything")
	}
}
