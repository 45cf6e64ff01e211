package gslb

import (
	"math"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/prometheus/client_golang/prometheus"
)

// steeringCollector gathers what moves clients when it is asked for.
type steeringCollector struct{ r *registry }

func init() { prometheus.MustRegister(steeringCollector{&running}) }

// sinkDesc describes a metric of a sink of the law of capacity: host is empty for a region,
// and names the pool's host where that has a capacity of its own.
func sinkDesc(metric, help string) *prometheus.Desc { return desc(metric, help, "host", "region") }

// What steeringCollector gathers.
var (
	sinkCapacity = sinkDesc("capacity",
		"What a region can take, in the unit of its load.")
	sinkLoad = sinkDesc("load",
		"Last load measured of a region that can be one; missing while there is none.")
	sinkLoadAge = sinkDesc("load_age_seconds",
		"Age of the last load measured of a region that can be one.")
	sinkSay = sinkDesc("load_weight_ratio",
		"The say that a region's load has by its age: 1 is fresh, 0 is absent, which is never taken for no load.")
	sinkRefused = sinkDesc("load_refused",
		"1 while the load of a region can't be read, or can't be (not a number, negative, absurdly large).")
	sinkDamped = sinkDesc("damped",
		"1 while the law of capacity damps a region: its load jumped again and again by itself, so what has left it stays away.")
	sinkUse = sinkDesc("utilisation_ratio",
		"Load of a region by its capacity.")
	sinkDemand = sinkDesc("demand",
		"Estimate of what would come to a region if every region took everything; its target where a load was never read.")
	sinkWanted = sinkDesc("flow_wanted",
		"What a region is to take.")
	sinkExpected = sinkDesc("flow_expected",
		"What a region will take once resolvers have followed.")
	sinkTrim = sinkDesc("trim_ratio",
		"The feedback's factor on a region's limit.")
	sinkOscillating = sinkDesc("oscillating",
		"1 while a region's load goes up and down again and again.")
	sinkStuck = sinkDesc("load_stuck",
		"1 while a region reports the very same load although what comes to it has changed: it is taken for old.")
	sinkSilent = sinkDesc("load_silent_endpoints",
		"Endpoints of a region that are alive and whose load, which their health checks bring, isn't known: they are taken to bear what the others do.")
	lawDeficit = desc("deficit",
		"Demand that no region can take: what is above all limits, and that of clients for whom no region is usable.")
	lawMoved = desc("moved_ratio",
		"Part of all demand that the last step of the law of capacity moved.")
	lawLeft = desc("unmoved_ratio",
		"Part of all demand that is still to be moved.")
	regionAdmission = desc("admission_ratio",
		"Part of the clients that come to a region which the law of capacity admits, over all candidate lists by their resolutions.",
		"view", "host", "region")
	regionWanted = desc("share_wanted_ratio",
		"Part of a host's clients that a region is to get: by=\"resolutions\" weighs candidate lists by the resolutions of late, by=\"demand\" by estimated demand.",
		"view", "host", "region", "by")
	regionServed = desc("share_served_ratio",
		"Part of a host's resolutions of late that a region got, by the same.",
		"view", "host", "region", "by")
	regionDeviation = desc("share_deviation_ratio",
		"Standard deviation that a region's share of demand has, as resolvers are few or unequal.",
		"view", "host", "region")
	hostConcentration = desc("resolver_concentration",
		"Herfindahl-Hirschman index of a host's resolutions over its resolvers: 1 is one resolver, 0 infinitely many alike.",
		"view", "host")
	regionDial = desc("region_dial_ratio",
		"Part of what would come that operators let a region take.",
		"view", "host", "region")
	regionRamp = desc("region_ramp_ratio",
		"Part of what would come that a region takes while it comes back from an outage.",
		"view", "host", "region")
	regionSoak = desc("region_share_ratio",
		"Absolute part of a host's resolutions that a region gets as a soak; missing for all others.",
		"view", "host", "region")
	regionDrained = desc("region_drained",
		"1 while operators have drained a region for a host.",
		"view", "host", "region")
	overridesActive = desc("overrides_active",
		"Overrides in force, by lever.", "lever")
	overridesEndless = desc("overrides_without_end",
		"Overrides in force that hold until somebody cancels them, by lever.", "lever")
	overridesPostponed = desc("overrides_postponed",
		"Overrides that have expired and stay in force, as guards are against their end.")
	wrongTokens = desc("control_wrong_tokens_total",
		"Requests to the control API without a good token.")
	mapBuilt = desc("map_build_timestamp_seconds",
		"When the latency map in use was built.", "file")
	mapEntries = desc("map_entries",
		"Entries of the latency map in use.", "file")
	mapIgnored = desc("map_ignored",
		"1 while a latency map is left out, as it is older than max_age.", "file")
	targetAddresses = desc("target_addresses",
		"Addresses that a target resolves to, or resolved to last while they are young enough for one of its pools.", "target", "family")
	targetFailing = desc("target_failing",
		"1 while a target can't be resolved and its last good addresses serve, if they are young enough.", "target")
)

// guardRefusals counts what guards have refused.
var guardRefusals = counter("guard_refusals_total",
	"Reloads of the Corefile and of data files, and schedules, that a guard has refused.", "guard")

func init() {
	for _, name := range []string{"hosts", "require", "max_move", "max_use", "usable"} {
		guardRefusals.WithLabelValues(name) // so that the first refusal shows in a rate
	}
}

// Describe implements prometheus.Collector.
func (steeringCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		sinkCapacity, sinkLoad, sinkLoadAge, sinkSay, sinkRefused, sinkDamped, sinkUse, sinkDemand, sinkWanted, sinkExpected, sinkTrim, sinkOscillating, sinkStuck, sinkSilent,
		lawDeficit, lawMoved, lawLeft, regionAdmission, regionWanted, regionServed, regionDeviation, hostConcentration,
		regionDial, regionRamp, regionSoak, regionDrained, overridesActive, overridesEndless, overridesPostponed, wrongTokens,
		mapBuilt, mapEntries, mapIgnored, targetAddresses, targetFailing,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It speaks of the latest generation.
func (c steeringCollector) Collect(ch chan<- prometheus.Metric) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	n := len(c.r.generations)
	if n == 0 || c.r.steering == nil {
		return
	}
	c.r.steering.law.collect(ch, time.Now())
	seen := make(map[string]bool)
	keep := keeps(c.r.latest())
	for _, g := range c.r.latest() {
		g.collectShares(ch, seen)
		g.collectFiles(ch, seen, keep)
	}
	counts, endless := make(map[control.Lever]float64), make(map[control.Lever]float64)
	for _, o := range c.r.overrides().All() {
		counts[o.Lever]++
		endless[o.Lever] += oneIf(o.Never)
	}
	for _, l := range control.Levers {
		value(ch, overridesActive, counts[l], string(l))
		value(ch, overridesEndless, endless[l], string(l))
	}
	if d := c.r.generations[n-1].desk; d != nil {
		value(ch, overridesPostponed, float64(len(d.store.Postponed())))
		ch <- prometheus.MustNewConstMetric(wrongTokens, prometheus.CounterValue, float64(d.api.WrongTokens()))
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// collect tells what the law made of its last step.
func (l *law) collect(ch chan<- prometheus.Metric, now time.Time) {
	if l.out == nil {
		return
	}
	value(ch, lawDeficit, l.out.Deficit)
	value(ch, lawMoved, l.out.Moved)
	value(ch, lawLeft, l.out.Left)
	for i := range l.sinks.list {
		key, levers, o := l.sinks.keys[i], l.sinks.sums[i].levers, &l.out.Sinks[i]
		tell := func(d *prometheus.Desc, v float64) { value(ch, d, v, key.host, key.region) }
		tell(sinkDemand, o.Demand)
		tell(sinkWanted, o.Wanted)
		tell(sinkExpected, o.Expected)
		if levers.Capacity == nil {
			continue
		}
		tell(sinkCapacity, l.sinks.list[i].Capacity)
		tell(sinkTrim, o.Trim)
		tell(sinkOscillating, oneIf(o.Oscillating))
		tell(sinkDamped, oneIf(o.Damped))
		if levers.Load == nil {
			continue
		}
		tell(sinkSay, o.Fade)
		tell(sinkStuck, oneIf(o.Stuck))
		tell(sinkRefused, oneIf(l.unreadable(i, now) != nil))
		all, _ := l.signals.total(key, levers.Capacity.Score, now)
		tell(sinkSilent, float64(all.Silent))
		if load, age, ok := l.lastLoad(i, now); ok {
			tell(sinkUse, o.Utilisation)
			tell(sinkLoad, load)
			tell(sinkLoadAge, age.Seconds())
		}
	}
}

// collectShares tells what the regions of each host are to get, and get.
func (g *GSLB) collectShares(ch chan<- prometheus.Metric, seen map[string]bool) {
	live, view := g.live.Load(), g.files.view
	for i, h := range live.plan.Hosts {
		host := h.Config.Names[0]
		if seen[view+" "+host] {
			continue
		}
		seen[view+" "+host] = true
		d := &live.demand.hosts[i]
		hhi, _ := d.concentration()
		value(ch, hostConcentration, hhi, view, host)
		shares := map[string][2][]float64{}
		wanted, served := live.demand.shares(live, i)
		shares["resolutions"] = [2][]float64{wanted, served}
		if g.loads != nil && len(g.loads[i]) == len(d.lists) {
			wanted, served := live.demand.weighed(live, i, g.loads[i])
			shares["demand"] = [2][]float64{wanted, served}
		}
		for r, region := range g.block.Regions {
			if !h.Pooled(steer.Region(r)) {
				continue
			}
			st := live.snapshots[i].Region(steer.Region(r), family(h))
			value(ch, regionDial, st.Dial, view, host, region.Name)
			value(ch, regionRamp, st.Ramp, view, host, region.Name)
			value(ch, regionDrained, oneIf(st.Drained), view, host, region.Name)
			if st.Shared {
				value(ch, regionSoak, st.Share, view, host, region.Name)
			}
			if g.lawful() {
				value(ch, regionAdmission, live.demand.admission(live, i, steer.Region(r)), view, host, region.Name)
			}
			for by, both := range shares {
				if both[0] == nil {
					continue
				}
				value(ch, regionWanted, both[0][r], view, host, region.Name, by)
				if both[1] != nil { // else there are too many lists to tell
					value(ch, regionServed, both[1][r], view, host, region.Name, by)
				}
			}
			if wanted != nil {
				value(ch, regionDeviation, deviation(wanted[r], hhi), view, host, region.Name)
			}
		}
	}
}

// deviation is the standard deviation of a share w of demand that falls to whole
// resolvers: sqrt(w (1-w) HHI).
func deviation(w, hhi float64) float64 { return math.Sqrt(max(0, w*(1-w)*hhi)) }

// collectFiles tells of latency maps and targets.
func (g *GSLB) collectFiles(ch chan<- prometheus.Metric, seen map[string]bool, keep map[string]time.Duration) {
	for _, m := range g.live.Load().plan.Maps() {
		if key := "map " + m.Path; !seen[key] {
			seen[key] = true
			value(ch, mapBuilt, float64(m.Built.Unix()), m.Path)
			value(ch, mapEntries, float64(m.Clients+m.Resolvers), m.Path)
			value(ch, mapIgnored, oneIf(m.TooOld), m.Path)
		}
	}
	for name, t := range g.targets {
		key := "target " + name
		if seen[key] {
			continue
		}
		seen[key] = true
		s, v4, v6 := t.State(), 0.0, 0.0
		for _, a := range s.Addresses(time.Now(), keep[name]) {
			v4, v6 = v4+oneIf(a.Is4()), v6+oneIf(a.Is6())
		}
		value(ch, targetAddresses, v4, strings.TrimSuffix(name, "."), "v4")
		value(ch, targetAddresses, v6, strings.TrimSuffix(name, "."), "v6")
		value(ch, targetFailing, oneIf(s.V4.Failing || s.V6.Failing), strings.TrimSuffix(name, "."))
	}
}

// keeps are how long the last good addresses of targets serve, each in the pool that keeps
// them longest.
func keeps(instances []*GSLB) map[string]time.Duration {
	longest := make(map[string]time.Duration)
	for _, g := range instances {
		for i := range g.block.Hosts {
			for _, pool := range g.block.Hosts[i].Pools {
				for _, t := range pool.Targets {
					longest[t.Name] = max(longest[t.Name], pool.Keep)
				}
			}
		}
	}
	return longest
}
