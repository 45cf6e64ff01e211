package gslb

import (
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics of probes. Checks and endpoints are named by the configuration.
var (
	probeSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: name, Name: "probe_duration_seconds",
		Help:    "Time that probes took.",
		Buckets: plugin.SlimTimeBuckets, NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
	}, []string{"check"})
	probeCount = counter("probes_total",
		"Probes by result and class of reason.",
		"check", "result", "class")
	transitionCount = counter("transitions_total",
		"Changes of the verdict on an endpoint, by the verdict after.",
		"check", "verdict")
	stateFailing = gauge("state_failing",
		"1 while something can't be saved in the state directory, or that takes long.")
)

var probeResults = map[probe.Status]string{probe.Pass: "pass", probe.Full: "full", probe.Fail: "fail"}

// observeProbe counts a probe.
func observeProbe(p *probe.Probe, r probe.Result, _ time.Duration) {
	c := p.Check().Name
	probeSeconds.WithLabelValues(c).Observe(r.Total.Seconds())
	probeCount.WithLabelValues(c, probeResults[r.Status], string(r.Class)).Inc()
}

// healthCollector gathers the state of health when it is asked for.
type healthCollector struct{ r *registry }

func desc(metric, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(plugin.Namespace, name, metric), help, labels, nil)
}

// What healthCollector gathers.
var (
	endpointState = desc("endpoint_state",
		"State of an endpoint: 0 down, 1 up, 2 full, 3 drained; what an unknown one is taken for.",
		"view", "host", "region", "endpoint")
	endpointsProbed = desc("probed_endpoints",
		"Endpoints that are probed, by verdict; never_probed ones are unknown too.",
		"verdict")
	regionAvailability = desc("region_availability_ratio",
		"Part of the clients that come which a region takes, 0 where it is not usable.",
		"view", "host", "region", "family")
	regionsHeldUp = desc("regions_held_up",
		"Regions that only max_down keeps in service.",
		"view", "host")
	listsLastResort = desc("lists_last_resort",
		"Candidate lists for whose clients the last resort answers.",
		"view", "host", "family")
	listsSingle = desc("lists_without_standby",
		"Candidate lists that have one usable region left.",
		"view", "host", "family")
	isolated = desc("isolated",
		"1 while this vantage takes itself for cut off and holds the last verdicts.")
	beaconAnswers = desc("beacon_answers",
		"1 while a beacon answers; it is asked once a minute.",
		"beacon")
	probesLate = desc("probes_late_total",
		"Probes that had to wait since too many were running.")
	probesOverran = desc("probes_overran_total",
		"Probes that did not return in time.")
)

func init() { prometheus.MustRegister(healthCollector{&running}) }

// Describe implements prometheus.Collector.
func (healthCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		endpointState, endpointsProbed, regionAvailability, regionsHeldUp, listsLastResort, listsSingle, isolated, beaconAnswers, probesLate, probesOverran,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It speaks of the latest generation.
func (c healthCollector) Collect(ch chan<- prometheus.Metric) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	n := len(c.r.generations)
	if n == 0 {
		return
	}
	gen := c.r.generations[n-1]
	seen := make(map[string]bool) // hosts by view: two blocks may have one
	for _, g := range gen.instances {
		g.collectHosts(ch, seen)
	}
	if gen.prober != nil {
		gen.collectProbes(ch)
	}
}

func value(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// states are the values of endpointState.
var states = map[steer.Verdict]float64{steer.Down: 0, steer.Up: 1, steer.Full: 2, steer.Drained: 3}

// collectHosts tells the state of an instance's hosts.
func (g *GSLB) collectHosts(ch chan<- prometheus.Metric, seen map[string]bool) {
	live, view := g.live.Load(), g.files.view
	for i, h := range live.plan.Hosts {
		host := h.Config.Names[0]
		if seen[view+" "+host] {
			continue
		}
		seen[view+" "+host] = true
		s := live.snapshots[i]
		for f := steer.V4; f <= steer.V6; f++ {
			if !h.Steer.Offers(f) {
				continue
			}
			without, single := h.Steer.Lists(s, f)
			value(ch, listsLastResort, float64(without), view, host, f.String())
			value(ch, listsSingle, float64(single), view, host, f.String())
			for r, region := range g.block.Regions {
				if h.Pooled(steer.Region(r)) {
					value(ch, regionAvailability, s.Region(steer.Region(r), f).Availability, view, host, region.Name, f.String())
				}
			}
		}
		value(ch, regionsHeldUp, float64(s.HeldUp()), view, host)
		for j := range h.Config.Pools {
			p := &h.Config.Pools[j]
			for k := range p.Endpoints {
				e := &p.Endpoints[k]
				value(ch, endpointState, states[g.verdict(e).Verdict], view, host, p.Region, e.Addr.String())
			}
		}
	}
}

// collectProbes tells the state of a generation's probes.
func (gen *generation) collectProbes(ch chan<- prometheus.Metric) {
	counts := map[string]float64{"unknown": 0, "up": 0, "full": 0, "down": 0, "never_probed": 0}
	counted := make(map[*probe.Probe]bool)
	for _, g := range gen.instances {
		for _, l := range g.health.leases {
			if counted[l.probe] {
				continue
			}
			counted[l.probe] = true
			s := l.probe.State()
			counts[s.Verdict.String()]++
			if !s.Probed {
				counts["never_probed"]++
			}
		}
	}
	for verdict, n := range counts {
		value(ch, endpointsProbed, n, verdict)
	}
	stats := gen.prober.scheduler.Stats()
	cut := 0.0
	if stats.Isolated {
		cut = 1
	}
	value(ch, isolated, cut)
	if answered := gen.prober.answered.Load(); answered != nil {
		for i, ok := range *answered {
			value(ch, beaconAnswers, oneIf(ok), placeOf(gen.prober.beacons[i]))
		}
	}
	ch <- prometheus.MustNewConstMetric(probesLate, prometheus.CounterValue, float64(stats.Late))
	ch <- prometheus.MustNewConstMetric(probesOverran, prometheus.CounterValue, float64(stats.Overran))
}
