package gslb

import (
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// sinks are what the law moves demand between: regions by name, over all blocks, and
// pools with a capacity of their own.
type sinks struct {
	list  []capacity.Sink
	keys  []sinkKey
	index map[sinkKey]int
	sums  []sinkSum
}

// sinkKey names what clients load: a region, or, with a host (the first of its names), that
// host's pool there, which has a capacity of its own.
type sinkKey struct{ host, region string }

func (k sinkKey) String() string {
	return control.Object{Host: k.host, Region: k.region}.String()
}

// sinkSum adds up what the pools of a sink are like, by the answers of their hosts that
// resolvers hold.
type sinkSum struct {
	weight, dial  float64 // a drained pool, and a soak, has a dial of 0
	counted       float64 // weight of those that are not drained
	health, alive float64 // of those; alive is as if what is full were not
	pools         int
	drained, soak int
	usable, full  int
	levers        *config.Levers
}

// elsewhere is the sink for what is shed to a name: it takes everything. No region can
// have that name.
var elsewhere = sinkKey{region: "none"}

// at is the index of a sink; a new one has these levers.
func (s *sinks) at(key sinkKey, levers *config.Levers) int {
	i, ok := s.index[key]
	if !ok {
		i = len(s.list)
		s.index[key] = i
		s.keys = append(s.keys, key)
		s.list = append(s.list, capacity.Sink{Name: key.String()})
		s.sums = append(s.sums, sinkSum{})
	}
	if s.sums[i].levers == nil || s.sums[i].levers.Capacity == nil {
		s.sums[i].levers = levers
	}
	return i
}

// pools adds up the state of the sinks that a host has pools in; at gives their
// indexes by region.
func (s *sinks) pools(p *plan.Plan, h *plan.Host, snapshot *steer.Snapshot, weight float64) (at []int) {
	f := family(h)
	at = make([]int, len(p.Block.Regions))
	for r := range p.Block.Regions {
		region := &p.Block.Regions[r]
		pool := h.Pool(steer.Region(r))
		if pool == nil {
			continue
		}
		i := s.at(sinkOf(h, pool), leversOfSink(region, pool))
		at[r] = i
		st := snapshot.Region(steer.Region(r), f)
		sum := &s.sums[i]
		sum.weight += weight
		sum.pools++
		dial := st.Dial * st.Ramp
		if st.Shared {
			sum.soak++
			dial = 0
		}
		if st.Drained {
			sum.drained++
			continue
		}
		sum.counted += weight
		sum.dial += weight * dial
		if !st.Usable {
			continue
		}
		sum.usable++
		sum.health += weight * st.Availability
		sum.alive += weight * snapshot.Alive(steer.Region(r), f)
		if st.Full {
			sum.full++
		}
	}
	return at
}

// sinkOf is what a pool's clients load: its region, or itself if it has a capacity of its
// own.
func sinkOf(h *plan.Host, pool *config.Pool) sinkKey {
	if pool.Levers.Capacity != nil {
		return sinkKey{h.Config.Names[0], pool.Region}
	}
	return sinkKey{region: pool.Region}
}

func leversOfSink(region *config.Region, pool *config.Pool) *config.Levers {
	if pool.Levers.Capacity != nil {
		return &pool.Levers
	}
	return &region.Levers
}

// complete works out what every sink is.
//
// A sink with a capacity is full when all of its pools are, in which all that is alive
// says so. The law then lets it keep nine tenths of what it has, again and again,
// which stands for the half that steer would have it give up (see plan.Moves.Full). Where
// only a part is full, or no capacity is known, that half stays.
func (s *sinks) complete(signals *signals, now time.Time) {
	for i := range s.list {
		sink, sum := &s.list[i], &s.sums[i]
		sink.Health, sink.Dial = 1, 1
		c := sum.levers.Capacity
		sink.Full = c != nil && sum.usable > 0 && sum.full == sum.usable
		if sum.weight > 0 {
			sink.Dial = sum.dial / sum.weight
		}
		switch {
		case sum.counted > 0 && sink.Full:
			sink.Health = sum.alive / sum.counted
		case sum.counted > 0:
			sink.Health = sum.health / sum.counted
		}
		sink.Drained = sum.pools > 0 && sum.drained == sum.pools
		sink.Soak = sum.pools > 0 && sum.soak == sum.pools
		if c != nil {
			sink.Capacity, sink.Target, sink.Growth = c.Value, c.Target/100, c.Growth/100
			if c.Score {
				sink.Capacity = 1
			}
			sink.Signal = signals.read(s.keys[i], c.Score, now)
		}
	}
}

// family is the one that stands for a host in the law: neither resolutions nor admissions
// are told apart by family.
func family(h *plan.Host) steer.Family {
	if h.Steer.Offers(steer.V4) {
		return steer.V4
	}
	return steer.V6
}
