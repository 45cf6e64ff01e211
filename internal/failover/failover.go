// Package failover works out what an outage of a region costs: how long clients
// keep going to its addresses, how many of their requests fail, and what a
// shorter TTL or a faster check would change.
//
// An outage begins anywhere between two probes, so the first that fails begins up to
// one interval after it. The one that makes the verdict begins fall-1 intervals later,
// takes the time that a probe takes to fail, and then the new answer is published. From
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
	// Interval and Fall are those of the health check: so many failed probes in a row, of
	// which one begins every interval.
	Interval time.Duration
	Fall     int
	// Timeout is how long a probe takes to fail, at most an interval: the timeout of the
	// check if the region is silent, 0 if it refuses at once. With Retry a failed probe is
	// tried again after a second before it counts.
	Timeout time.Duration
	Retry   bool
	// Phase adds the time until the first failed probe begins, spread evenly over one
	// interval: in curves by its mean, in percentiles as it is.
	Phase bool
	// Detection is the whole time from the outage to the verdict where Fall is 0.
	Detection   time.Duration
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
	if m.Fall != 0 {
		if err := m.checkProbes(); err != nil {
			return err
		}
	}
	for _, d := range []time.Duration{m.Detection, m.Publish, m.Horizon} {
		if d < 0 || d > longest {
			return fmt.Errorf("detection, publish delay and horizon: expected 0 to %s, not %s", longest, d)
		}
	}
	if m.Rate < 0 || math.IsNaN(m.Rate) || math.IsInf(m.Rate, 0) {
		return fmt.Errorf("rate %g: it can't be below 0 or without end", m.Rate)
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

func (m *Model) checkProbes() error {
	if m.Interval <= 0 || m.Interval > longest || m.Fall < 1 || m.Fall > mostFailures {
		return fmt.Errorf("interval %s and fall %d: expected an interval above 0 and up to %s, and 1 to %d failures", m.Interval, m.Fall, longest, mostFailures)
	}
	if most := Timeout(m.Interval, m.Interval, m.Retry); m.Timeout < 0 || m.Timeout > most {
		if m.Retry {
			return fmt.Errorf("timeout %s: two probes of it with a second between must fit in the interval of %s", m.Timeout, m.Interval)
		}
		return fmt.Errorf("timeout %s: expected 0 to the interval, which is %s", m.Timeout, m.Interval)
	}
	return nil
}

// retryDelay is how long after a failure a check with Retry tries again.
const retryDelay = time.Second

// Timeout is the longest timeout up to the one wanted that fits in an interval, beside a
// second probe with retry; below 0 if none does.
func Timeout(wanted, interval time.Duration, retry bool) time.Duration {
	if retry {
		return min(wanted, (interval-retryDelay)/2)
	}
	return min(wanted, interval)
}

// detected is the time to the first new answer from where the first failed probe
// begins; with Detection, from the outage.
func (m *Model) detected() time.Duration {
	d := m.Detection
	if m.Fall > 0 {
		d = time.Duration(m.Fall-1)*m.Interval + m.Timeout
		if m.Retry {
			d += retryDelay + m.Timeout
		}
	}
	return d + m.Publish
}

// phase is how long after the outage the first failed probe begins at most.
func (m *Model) phase() time.Duration {
	if m.Phase && m.Fall > 0 {
		return m.Interval
	}
	return 0
}

// Start is when the first new answer is out, in seconds after the outage began;
// with Phase, on average.
func (m *Model) Start() float64 {
	return m.detected().Seconds() + m.phase().Seconds()/2
}

// Refused is Start for a region that refuses probes at once.
func (m *Model) Refused() float64 {
	at := *m
	at.Timeout = 0
	return at.Start()
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
