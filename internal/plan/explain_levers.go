package plan

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// LeverWhy is where a lever of a region is for the host: one that is moved, or that
// the clock will move.
type LeverWhy struct {
	Region string `json:"region"`
	Lever  string `json:"lever"`          // drain, dial, share, trickle
	Value  string `json:"value"`          // on, off, or a percentage; of a share with its area
	From   string `json:"from,omitempty"` // file:line, or an override by its number; empty: nothing written holds now
	When   string `json:"when,omitempty"` // the schedule of that line, as in a Corefile
	By     string `json:"by,omitempty"`   // who made the override, and why
	Why    string `json:"why,omitempty"`
	// Next is when it changes next, as far as is known now: by the clock, or as an
	// override expires; zero: never. Then is its value from that time on.
	Next time.Time `json:"next,omitzero"`
	Then string    `json:"then,omitempty"`
}

// leversWhy explains the levers of the host's regions.
func (p *Plan) leversWhy(h *Host, m *Moves) (all []LeverWhy) {
	if m == nil {
		return nil
	}
	for r := range p.Block.Regions {
		pool := h.Pool(steer.Region(r))
		if pool == nil {
			continue
		}
		levers := p.Block.LeversOf(pool)
		o := m.Overrides.Region(h.Config.Names[0], pool.Region)
		for _, k := range leverKinds {
			if w, worth := k.why(&levers, &o, m.Now); worth {
				w.Region = pool.Region
				all = append(all, w)
			}
		}
	}
	return all
}

// leverKind is one lever as it is explained.
type leverKind struct {
	name     string
	still    string // its value where nobody moves it
	of       func(*Settings) Lever
	value    func(Lever) string
	override func(*control.Region) *control.Override
	when     func(l *config.Levers, from string) string
}

var leverKinds = []leverKind{
	{"drain", "off", func(s *Settings) Lever { return s.Drain }, onOff,
		func(o *control.Region) *control.Override { return o.Drain },
		func(l *config.Levers, from string) string {
			return schedule(l.Drain, from, func(d config.Drain) (config.Pos, config.When) { return d.Pos, d.When })
		}},
	{"dial", "100%", func(s *Settings) Lever { return s.Dial }, percentage,
		func(o *control.Region) *control.Override { return o.Dial },
		func(l *config.Levers, from string) string {
			return schedule(l.Dial, from, func(d config.Dial) (config.Pos, config.When) { return d.Pos, d.When })
		}},
	{"share", "off", func(s *Settings) Lever { return s.Share }, shareText,
		func(o *control.Region) *control.Override { return o.Share },
		func(l *config.Levers, from string) string {
			return schedule(l.Share, from, func(s config.Share) (config.Pos, config.When) { return s.Pos, s.When })
		}},
	{"trickle", "0%", func(s *Settings) Lever { return s.Trickle }, percentage,
		func(o *control.Region) *control.Override { return o.Trickle },
		func(*config.Levers, string) string { return "" }},
}

func onOff(l Lever) string {
	if l.On {
		return "on"
	}
	return "off"
}

func percentage(l Lever) string { return strconv.FormatFloat(l.Percent, 'f', -1, 64) + "%" }

func shareText(l Lever) string {
	switch {
	case !l.On:
		return "off"
	case l.Area != "":
		return fmt.Sprintf("%s area %s", percentage(l), l.Area)
	}
	return percentage(l)
}

// schedule is that of the line written at a place; empty: always.
func schedule[L any](lines []L, from string, of func(L) (config.Pos, config.When)) string {
	i := slices.IndexFunc(lines, func(line L) bool { pos, _ := of(line); return place(pos) == from })
	if i < 0 {
		return ""
	}
	_, when := of(lines[i])
	return when.String()
}

// why explains a lever, and tells whether it is worth it: it is moved, or will be.
func (k *leverKind) why(levers *config.Levers, overrides *control.Region, now time.Time) (w LeverWhy, worth bool) {
	s := written(levers, now)
	s.override(*overrides)
	o := k.override(overrides)
	w.Lever = k.name
	if o != nil {
		w.By, w.Why, w.Next = o.By, o.Why, o.Until
		if !o.Never {
			then := written(levers, o.Until)
			w.Then = k.value(k.of(&then))
		}
	} else {
		w.Next, w.Then = k.change(levers, now)
	}
	lever := k.of(&s)
	w.Value, w.From = k.value(lever), lever.From
	if o == nil {
		w.When = k.when(levers, w.From)
	}
	return w, o != nil || w.Value != k.still || !w.Next.IsZero()
}

// looked bounds how many changes of other levers are looked past.
const looked = 100

// change is when the Corefile gives the lever another value, and which.
func (k *leverKind) change(levers *config.Levers, now time.Time) (next time.Time, then string) {
	s := written(levers, now)
	is := k.value(k.of(&s))
	for range looked {
		next = s.Next
		if next.IsZero() {
			break
		}
		s = written(levers, next)
		if then := k.value(k.of(&s)); then != is {
			return next, then
		}
	}
	return time.Time{}, ""
}

// TargetWhy is a name that a pool is resolved from.
type TargetWhy struct {
	Region string `json:"region"`
	Target string `json:"target"`
	At     string `json:"at"`
	// Endpoints is how many addresses of the pool come from it now; 0: it has none, or
	// they are not known.
	Endpoints int  `json:"endpoints"`
	CName     bool `json:"cname,omitempty"` // the name itself is answered
}

// targetsWhy lists the targets of the host.
func (h *Host) targetsWhy() (all []TargetWhy) {
	for i := range h.Config.Pools {
		pool := &h.Config.Pools[i]
		for _, t := range pool.Targets {
			w := TargetWhy{Region: pool.Region, Target: t.Name, At: t.Pos.String(), CName: pool.CName}
			for k := range pool.Endpoints {
				if pool.Endpoints[k].Target == t.Name {
					w.Endpoints++
				}
			}
			all = append(all, w)
		}
	}
	return all
}

// unresolved puts the reason right of candidates whose pool has targets and not one
// address.
func (h *Host) unresolved(candidates []steer.TraceCandidate) {
	for i := range candidates {
		c := &candidates[i]
		pool := slices.IndexFunc(h.Config.Pools, func(p config.Pool) bool { return p.Region == c.Region })
		if c.Why == "no_pool" && pool >= 0 && len(h.Config.Pools[pool].Targets) > 0 {
			c.Why = "unresolved"
		}
	}
}
