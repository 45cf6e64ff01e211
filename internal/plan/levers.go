package plan

import (
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Moves are what moves clients at one time besides their health: the levers that
// the Corefile has at that time, what operators have overridden, regions that are
// coming back, and what the law of capacity admits. The functions may be nil.
type Moves struct {
	Now       time.Time
	Overrides *control.Overrides
	// Ramp is the part, 0..1, that a region takes of a host's clients while it
	// comes back after an outage.
	Ramp func(h *Host, r steer.Region) float64
	// Admission is the part, 0..1, that the law admits, by candidate list; nil: all.
	Admission func(h *Host, r steer.Region) []float64
	// Full tells whether the law has taken in that all that is alive of a pool is full.
	// Then the pool gives up nothing for that by itself: the law's admission is for it.
	Full func(h *Host, r steer.Region) bool
}

// Lever is where one lever is and what put it there: a place in the Corefile as
// file:line, or an override by its number. From is empty where nobody did.
type Lever struct {
	Percent float64 // of dial, share, trickle
	On      bool    // of drain, and of share
	Area    string  // of share
	From    string
}

// Settings are the levers of the pool of a host in a region.
type Settings struct {
	Drain, Dial, Share, Trickle Lever
	// Next is when the Corefile changes one of them next; zero: never.
	Next time.Time
}

// Settings gives where the levers of a host's pool in a region are. An override
// wins over what is written, until it expires.
func (p *Plan) Settings(h *Host, pool *config.Pool, m *Moves) Settings {
	levers := p.Block.LeversOf(pool)
	s := written(&levers, m.Now)
	o := m.Overrides.Region(h.Config.Names[0], pool.Region)
	s.override(o)
	return s
}

// RegionSettings gives where the levers of a region are, for hosts that say
// nothing of their own.
func (p *Plan) RegionSettings(region *config.Region, m *Moves) Settings {
	s := written(&region.Levers, m.Now)
	s.override(m.Overrides.Region("", region.Name))
	return s
}

func written(levers *config.Levers, now time.Time) (s Settings) {
	at, next := levers.At(now)
	s.Next = next
	s.Drain = Lever{On: at.Drain, From: place(at.DrainPos)}
	s.Dial = Lever{Percent: at.Dial, From: place(at.DialPos)}
	if at.Share != nil {
		s.Share = Lever{On: true, Percent: at.Share.Percent, Area: at.Share.Area, From: place(at.Share.Pos)}
	}
	if levers.Trickle != nil {
		s.Trickle = Lever{Percent: at.Trickle, From: place(levers.Trickle.Pos)}
	}
	return s
}

func place(pos config.Pos) string {
	if pos.Line == 0 {
		return ""
	}
	return pos.String()
}

func (s *Settings) override(o control.Region) {
	if o.Drain != nil {
		s.Drain = Lever{On: o.Drain.Value.On(), From: overrideOf(o.Drain)}
	}
	if o.Dial != nil {
		percent, _ := o.Dial.Value.Percent()
		s.Dial = Lever{Percent: percent, From: overrideOf(o.Dial)}
	}
	if o.Share != nil {
		percent, on := o.Share.Value.Percent()
		s.Share = Lever{On: on, Percent: percent, Area: o.Share.Area, From: overrideOf(o.Share)}
	}
	if o.Trickle != nil {
		percent, _ := o.Trickle.Value.Percent()
		s.Trickle = Lever{Percent: percent, From: overrideOf(o.Trickle)}
	}
}

func overrideOf(o *control.Override) string { return "override " + o.ID }

// levers are the settings as a decision needs them.
func (p *Plan) levers(h *Host, r steer.Region, s *Settings, m *Moves) steer.Levers {
	l := steer.NoLevers()
	l.Dial, l.Why.Dial = s.Dial.Percent/100, s.Dial.From
	l.Trickle, l.Why.Trickle = s.Trickle.Percent/100, s.Trickle.From
	if s.Share.On {
		l.Shared, l.Share, l.Why.Share = true, s.Share.Percent/100, s.Share.From
		if s.Share.Area != "" {
			l.Mark = slices.Index(p.marks(), s.Share.Area)
			if l.Mark < 0 { // it can't be told apart: nobody takes part
				l.Share = 0
			}
		}
	}
	if m.Ramp != nil {
		if l.Ramp = m.Ramp(h, r); l.Ramp < 1 {
			l.Why.Ramp = "back from an outage"
		}
	}
	l.Full = m.Full != nil && m.Full(h, r)
	if m.Admission != nil {
		if l.Admission = m.Admission(h, r); l.Admission != nil {
			l.Why.Admission = "capacity"
		}
	}
	return l
}

// Marked tells whether the topologies tell the clients of an area apart, as a share
// for them needs. Areas that no share of the Corefile names are not: that would
// change scopes.
func (p *Plan) Marked(area string) bool { return slices.Contains(p.marks(), area) }

// marks are the areas that shares of the block name, in the order that the areas
// are written.
func (p *Plan) marks() []string { return marksOf(p.Block) }

func marksOf(b *config.Block) (names []string) {
	named := make(map[string]bool)
	note := func(l *config.Levers) {
		for _, s := range l.Share {
			named[s.Area] = true
		}
	}
	for i := range b.Regions {
		note(&b.Regions[i].Levers)
	}
	for i := range b.Hosts {
		for j := range b.Hosts[i].Pools {
			note(&b.Hosts[i].Pools[j].Levers)
		}
	}
	for _, a := range b.Areas {
		if named[a.Name] && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Endpoint is the state of an endpoint of a pool: an override wins over what is
// written, and that over what checks say. A drained pool drains all of its own.
func (m *Moves) Endpoint(h *Host, pool *config.Pool, e *config.Endpoint, s *Settings, st steer.EndpointState) steer.EndpointState {
	o := m.Overrides.Endpoint(h.Config.Names[0], pool.Region, e.Addr)
	if o.Weight != nil {
		st.Weight, st.Weighed = uint32(o.Weight.Value.Weight()), true
	}
	if o.Force != nil {
		st.Verdict, st.Streak, st.Reason = steer.Down, false, "forced down by "+overrideOf(o.Force)
		if o.Force.Value.Up() {
			st.Verdict, st.Reason = steer.Up, "forced up by "+overrideOf(o.Force)
		}
	}
	switch {
	case o.Drain != nil && o.Drain.Value.On():
		st.Verdict, st.Streak, st.Reason = steer.Drained, false, "drained by "+overrideOf(o.Drain)
	case o.Drain != nil && st.Verdict == steer.Drained:
		st.Verdict, st.Reason = steer.Up, "drain taken back by "+overrideOf(o.Drain)
	}
	if s.Drain.On && st.Verdict != steer.Drained {
		st.Verdict, st.Streak, st.Reason = steer.Drained, false, "drained by "+s.Drain.From
	}
	return st
}

// RampOf is how long a return after an outage takes a host's pool, see [config.RampTime].
func (p *Plan) RampOf(h *Host, pool *config.Pool) time.Duration {
	levers := p.Block.LeversOf(pool)
	return config.RampTime(levers.Ramp, time.Duration(h.Config.TTL)*time.Second)
}

// Pool gives the host's pool in a region; nil: it has none.
func (h *Host) Pool(r steer.Region) *config.Pool {
	if !h.Pooled(r) {
		return nil
	}
	return &h.Config.Pools[h.pools[r]]
}

// NextChange is when the Corefile's levers change next at any of the hosts; zero: never.
func (p *Plan) NextChange(now time.Time) (next time.Time) {
	for _, h := range p.Hosts {
		for i := range h.Config.Pools {
			levers := p.Block.LeversOf(&h.Config.Pools[i])
			_, at := levers.At(now)
			if next.IsZero() || !at.IsZero() && at.Before(next) {
				next = at
			}
		}
	}
	return next
}
