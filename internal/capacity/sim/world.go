package sim

import (
	"math"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// mix is a hash of two numbers (the finaliser of splitmix64).
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is a hash as a number in 0..1, 1 excluded.
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// populate makes the resolvers. Their demands fall with rank, and what they do with
// TTLs is spread over the ranks, so that the parts hold by demand.
func (w *world) populate(instances []Instance) {
	for l := range w.Lists {
		first := len(w.resolvers)
		rest := 1.0
		if w.Big > 0 && l == 0 {
			rest -= w.Big
			w.resolvers = append(w.resolvers, resolver{list: l, demand: w.Big, key: mix(w.Seed, 1<<40)})
		}
		sum := 0.0
		for i := range w.Resolvers {
			sum += math.Pow(float64(i+1), -w.Zipf)
		}
		kept, stuck, asked := 0.0, 0.0, 0.0
		parts := make([]float64, len(instances))
		for i := range w.Resolvers {
			r := resolver{list: l, key: mix(w.Seed, uint64(l)<<32|uint64(i))}
			r.demand = rest * math.Pow(float64(i+1), -w.Zipf) / sum
			asked += r.demand
			// Whoever is short of its part of the demand so far gets the next one.
			switch {
			case kept < w.Clamp*asked:
				r.ttl = w.ClampFor
				kept += r.demand
			case stuck < w.Sticky*asked:
				r.ttl = w.StickyFor
				stuck += r.demand
			}
			for j, in := range instances {
				if parts[j] <= in.Part*asked {
					r.instance = j
				}
			}
			parts[r.instance] += r.demand
			w.resolvers = append(w.resolvers, r)
		}
		// At the start all have an answer, of every age.
		for i := first; i < len(w.resolvers); i++ {
			r := &w.resolvers[i]
			ttl := r.ttl
			if ttl == 0 {
				ttl = w.TTL
			}
			r.region = w.Lists[l][0]
			at := int(unit(mix(r.key, 1<<50)) * float64(ttl))
			w.due[at] = append(w.due[at], i)
		}
	}
}

// measure records the loads of this second, and lets sensors see them.
func (w *world) measure() {
	clear(w.load)
	for i := range w.resolvers {
		r := &w.resolvers[i]
		w.load[r.region] += r.demand * w.Controls.Demand[r.list]
	}
	for r, load := range w.load {
		w.result.Load[r] = append(w.result.Load[r], load)
		w.result.Dead[r] = append(w.result.Dead[r], w.Dead[r])
		if w.Dead[r] {
			load = 0 // nothing serves, so nothing counts
		}
		w.sensors[r].see(w, r, load)
	}
	for i, s := range w.servers {
		shares := w.shares(s.admission)
		for r := range shares {
			w.result.Shares[i][r] = append(w.result.Shares[i][r], shares[r])
		}
	}
}

// shares is which part of the demand an admission sends to each region.
func (w *world) shares(admission [][]float64) []float64 {
	out := make([]float64, len(w.Regions))
	total := 0.0
	for l, demand := range w.Controls.Demand {
		total += demand
		left, first := demand, -1
		for k, r := range w.Lists[l] {
			if open := w.Health[r] * w.Dial[r]; open > 0 {
				if first < 0 {
					first = r
				}
				out[r] += left * open * admission[l][k]
				left -= left * open * admission[l][k]
			}
		}
		if first >= 0 {
			out[first] += left
		}
	}
	for r := range out {
		out[r] /= total
	}
	return out
}

// sensor measures the mean load of every period.
type sensor struct {
	sum      float64
	count    int
	readings []reading // the newest last
	seed     uint64
}

type reading struct {
	at    int
	value float64
}

func (s *sensor) see(w *world, r int, load float64) {
	s.sum += load
	s.count++
	// Sensors are out of step with each other, and with the servers.
	if (w.now+4*r)%w.Period != 0 {
		return
	}
	mean := s.sum / float64(s.count)
	s.sum, s.count = 0, 0
	s.seed++
	noise := 0.0
	for i := range uint64(4) { // nearly normal, of deviation Noise
		noise += unit(mix(w.Seed+7*uint64(r), s.seed<<2|i)) - 0.5
	}
	mean *= 1 + noise*math.Sqrt(3)*w.Noise
	switch n := len(s.readings); {
	case w.Frozen[r]:
		return
	case w.Stuck[r] && n > 0:
		mean = s.readings[n-1].value
	}
	s.readings = append(s.readings, reading{w.now, mean})
}

// signal is the newest reading that has arrived.
func (s *sensor) signal(w *world, _ int) capacity.Signal {
	period := time.Duration(w.Period) * time.Second
	for i := len(s.readings) - 1; i >= 0; i-- {
		if r := s.readings[i]; r.at+w.Delay+w.Hidden <= w.now {
			age := time.Duration(w.now-r.at-w.Hidden) * time.Second
			return capacity.Signal{Value: r.value, Age: age, Period: period, Valid: true}
		}
	}
	return capacity.Signal{Period: period}
}
