// Package failover works out what an outage of a region costs: how long clients
// keep going to its addresses, how many of their requests fail, and what a
// shorter TTL or a faster check would change.
//
// Detection takes a phase of up to one interval, since an outage begins anywhere
// between two probes, then enough failed probes, then the time to publish. From
// there on caches let go: those that honour the TTL have kept the answer for a
// time between nothing and the TTL, evenly spread, and others keep it longer.
package failover

import (
	"fmt"
	"math"
	"time"
)

// Population is a part of the clients that keeps an answer alike.
type Population struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // of all clients, 0..1
	// Keep is how long an answer is kept. Without Fixed, what is left of it when
	// the new answer is out is spread evenly between nothing and Keep. With Fixed,
	// these clients stay until Keep after the outage began, all of them.
	Keep  time.Duration `json:"keep_ns"`
	Fixed bool          `json:"fixed"`
}

// Model is what the course of a failover follows from.
type Model struct {
	// Interval and Fall are those of the health check: so many failed probes in a row,
	// so far apart. Detection, where it is positive, replaces their product.
	Interval  time.Duration
	Fall      int
	Detection time.Duration
	// Phase adds the time until the first failed probe, spread evenly over one
	// interval, where it counts: in curves by its mean, in percentiles as it is.
	Phase       bool
	Publish     time.Duration // from the verdict to the first new answer
	Populations []Population
	Horizon     time.Duration // how far the integral goes; 0: until everybody has moved
	Rate        float64       // requests per second to the region
}

// Bounds of what is worked out.
const (
	longest      = 30 * 24 * time.Hour
	mostFailures = 1000
)

// Check says what of a model can't be meant.
func (m *Model) Check() error {
	if m.Detection <= 0 && (m.Interval <= 0 || m.Interval > longest || m.Fall < 1 || m.Fall > mostFailures) {
		return fmt.Errorf("interval %s and fall %d: expected an interval above 0 and up to %s, and 1 to %d failures", m.Interval, m.Fall, longest, mostFailures)
	}
	if m.Detection > longest || m.Publish > longest || m.Horizon > longest {
		return fmt.Errorf("detection, publish delay and horizon: expected up to %s", longest)
	}
	if m.Publish < 0 || m.Horizon < 0 || m.Rate < 0 || math.IsNaN(m.Rate) || math.IsInf(m.Rate, 0) {
		return fmt.Errorf("publish delay, horizon and rate can't be below 0 or without end")
	}
	sum := 0.0
	for _, p := range m.Populations {
		if !(p.Share >= 0 && p.Share <= 1) || p.Keep < 0 || p.Keep > longest {
			return fmt.Errorf("population %s: expected a share of 0..1 and a time of 0 to %s", p.Name, longest)
		}
		sum += p.Share
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the populations add up to %.4g: expected 1", sum)
	}
	return nil
}

// detected is the time from the outage to the first new answer, without the phase.
func (m *Model) detected() float64 {
	d := m.Detection
	if d <= 0 {
		d = time.Duration(m.Fall) * m.Interval
	}
	return (d + m.Publish).Seconds()
}

// Start is when the first new answer is out, in seconds after the outage began;
// with Phase, on average.
func (m *Model) Start() float64 {
	d := m.detected()
	if m.Phase {
		d += m.Interval.Seconds() / 2
	}
	return d
}

// Left is the part of the clients, 0..1, that still go to the region t seconds after
// the outage began.
func (m *Model) Left(t float64) float64 {
	start := m.Start()
	if t < start {
		return 1
	}
	left := 0.0
	for _, p := range m.Populations {
		left += p.Share * p.left(t, start)
	}
	return left
}

func (p *Population) left(t, start float64) float64 {
	keep := p.Keep.Seconds()
	switch {
	case p.Fixed && t < keep:
		return 1
	case p.Fixed || keep == 0:
		return 0
	}
	return max(0, 1-(t-start)/keep)
}

// Lost is the integral of Left up to the horizon, in seconds: the time for which
// all requests would have to fail to lose as many.
func (m *Model) Lost() float64 {
	start, end := m.Start(), math.Inf(1)
	if m.Horizon > 0 {
		end = m.Horizon.Seconds()
	}
	lost := min(start, end)
	for _, p := range m.Populations {
		lost += p.Share * p.lost(start, end)
	}
	return lost
}

// lost is the part of the integral after start.
func (p *Population) lost(start, end float64) float64 {
	keep := p.Keep.Seconds()
	if end <= start || keep == 0 {
		return 0
	}
	if p.Fixed {
		return max(0, min(keep, end)-start)
	}
	span := min(end-start, keep)
	return span - span*span/(2*keep)
}

// Failed is how many requests fail up to the horizon.
func (m *Model) Failed() float64 { return m.Rate * m.Lost() }

// Moved is when the last client has moved, in seconds after the outage began.
func (m *Model) Moved() float64 {
	last := m.Start()
	for _, p := range m.Populations {
		if p.Share == 0 {
			continue
		}
		if p.Fixed {
			last = max(last, p.Keep.Seconds())
		} else {
			last = max(last, m.Start()+p.Keep.Seconds())
		}
	}
	return last
}

// Customary is the split of clients that measurements of resolvers suggest: 80%
// honour the TTL, 15% of resolvers raise it to five minutes, and 5% hold a
// connection or an answer for half an hour, or twice the TTL where that is longer.
func Customary(ttl time.Duration) []Population {
	return []Population{
		{Name: "honouring", Share: 0.80, Keep: ttl},
		{Name: "clamped", Share: 0.15, Keep: max(ttl, 300*time.Second)},
		{Name: "sticky", Share: 0.05, Keep: max(1800*time.Second, 2*ttl), Fixed: true},
	}
}
