package control

import (
	"context"
	"fmt"
	"time"
)

// proposal is what a request comes to.
type proposal struct {
	by      Author
	now     time.Time
	version string // it was computed from
	digest  string // of its plan
	changes []Change
	next    *Overrides
	applied []Applied
	report  Report
	force   bool // guards are to be overruled
	forced  bool // and are
}

// propose works out what a request comes to. An *Invalid comes without a
// proposal, any other error with as much of it as the audit log needs.
func (s *Store) propose(ctx context.Context, by Author, r *Request) (*proposal, error) {
	list, wrong := r.list()
	if wrong != nil {
		return nil, wrong
	}
	cur := s.current.Load()
	p := &proposal{by: by, now: s.Now(), digest: s.Backend.Digest(), next: cur.clone(), force: r.Force}
	p.version = cur.version(p.digest)
	for i, c := range list {
		checked, wrong := c.check(p.now)
		if wrong != nil {
			return nil, wrong.of(i, len(list))
		}
		p.changes = append(p.changes, checked)
	}
	if r.Version != "" && r.Version != p.version {
		return p, ErrStale
	}
	set := map[key]bool{}
	for i, c := range p.changes {
		wrong, err := p.apply(ctx, s.Backend, c, set)
		if wrong != nil {
			return nil, wrong.of(i, len(list))
		}
		if err != nil {
			return p, err
		}
	}
	if p.next.Len() > maxOverrides {
		return nil, &Invalid{Text: fmt.Sprintf("there would be %d overrides", p.next.Len()), Expected: fmt.Sprintf("at most %d", maxOverrides),
			Hint: "cancel some; what is to stay belongs in the Corefile"}
	}
	report, err := s.Backend.WhatIf(ctx, p.next)
	if wrong, ok := err.(*Invalid); ok {
		return nil, wrong
	}
	p.report = report
	return p, err
}

// accept takes what is foretold of a proposal, unless guards refuse that and aren't to be
// overruled.
func (p *proposal) accept(report Report) error {
	p.report, p.forced = report, p.force && len(report.Refusals) > 0
	if len(report.Refusals) > 0 && !p.force {
		return &Refused{report.Refusals}
	}
	return nil
}

// ended says how the overrides ended that a proposal takes away, by ID.
func (p *proposal) ended() map[string]string {
	how := make(map[string]string)
	for i, a := range p.applied {
		by := fmt.Sprintf("by %s: %s", p.by.Name, p.changes[i].Why)
		if a.Cancelled != nil {
			how[a.Cancelled.ID] = "cancelled " + by
		}
		if a.Replaced != nil {
			how[a.Replaced.ID] = fmt.Sprintf("override %s is in its place, %s", a.Override.ID, by)
		}
	}
	return how
}

// of tells which change of a list is wrong.
func (i *Invalid) of(at, n int) *Invalid {
	if n == 1 {
		return i
	}
	of := *i
	of.Text = fmt.Sprintf("change %d: %s", at+1, i.Text)
	return &of
}

// apply makes one change to the set proposed. set are the levers of objects that
// the request has set already.
func (p *proposal) apply(ctx context.Context, b Backend, c Change, set map[key]bool) (*Invalid, error) {
	if c.Cancel != "" {
		o := p.next.Find(c.Cancel)
		if o == nil {
			return &Invalid{Field: "cancel", Text: fmt.Sprintf("there is no override %.20q", c.Cancel), Missing: true,
				Hint: "it may have expired or been replaced: list the overrides"}, nil
		}
		if set[key{o.Lever, o.Object}] {
			return invalid("cancel", "one change", "%s of %s is changed twice", o.Lever, o.Object), nil
		}
		set[key{o.Lever, o.Object}] = true
		p.next.drop(o)
		p.applied = append(p.applied, Applied{Cancelled: o})
		return nil, nil
	}
	base, err := b.Base(ctx, c.Lever, c.Object)
	if wrong, ok := err.(*Invalid); ok {
		return wrong, nil
	}
	if err != nil {
		return nil, err
	}
	k := key{c.Lever, base.Object}
	if set[k] {
		return invalid("lever", "one change", "%s of %s is changed twice", c.Lever, base.Object), nil
	}
	set[k] = true
	return p.set(c, k, base), nil
}

// set puts an override, or cancels one where that is what taking a lever back
// comes to.
func (p *proposal) set(c Change, k key, base Base) *Invalid {
	before, own := p.next.find(k.lever, k.object), p.next.all[k]
	if own != nil {
		p.next.drop(own)
	}
	under := p.next.find(k.lever, k.object)
	if c.Lever.takesBack(c.Value) && under == nil && base.Value == c.Value {
		if own != nil {
			p.applied = append(p.applied, Applied{Cancelled: own})
			return nil
		}
		if !base.Written {
			return &Invalid{Field: "value", Text: fmt.Sprintf("%s of %s is %s already, and nothing is written of it", c.Lever, base.Object, c.Value),
				Hint: "look at the status: another lever, host or region may be meant"}
		}
	}
	if c.Until.IsZero() && !c.Never {
		return &Invalid{Field: "until", Text: "missing", Expected: "until, for or never",
			Hint: fmt.Sprintf("%s of %s is %s: only an override can change it, and that says how long it holds", c.Lever, base.Object, held(before, base))}
	}
	made := p.next.put(Override{
		Lever: c.Lever, Object: base.Object, Value: c.Value, Area: c.Area, By: p.by.Name, Why: c.Why,
		Made: p.now.UTC().Truncate(time.Second), Until: c.Until, Never: c.Never, Previous: held(before, base), Version: p.version,
	})
	p.applied = append(p.applied, Applied{Override: made, Replaced: own})
	return nil
}

// held is a value in text, and what gave it.
func held(o *Override, base Base) string {
	switch {
	case o != nil:
		return fmt.Sprintf("%s (override %s)", o.Value, o.ID)
	case base.At != "":
		return fmt.Sprintf("%s (%s)", base.Value, base.At)
	}
	return string(base.Value)
}

// entries are what a proposal is in the audit log: one for each change.
func (p *proposal) entries(accepted bool, reason string) []Entry {
	entries := make([]Entry, len(p.changes))
	for i, c := range p.changes {
		e := Entry{Action: string(c.Lever), Object: c.Object.String(), Value: string(c.Value), Why: c.Why, Until: c.Until, Never: c.Never}
		if c.Cancel != "" {
			e.Action, e.ID = "cancel", c.Cancel
		}
		if i < len(p.applied) {
			p.applied[i].tell(&e)
		}
		e.Time, e.Who, e.From, e.Version = p.now, p.by.Name, p.by.From, p.version
		e.Outcome, e.Reason, e.Forced = OutcomeAccepted, reason, p.forced
		if !accepted {
			e.Outcome = OutcomeRefused
		} else if p.forced {
			e.Reason = "overruled: " + (&Refused{p.report.Refusals}).Error()
		}
		entries[i] = e
	}
	return entries
}

// tell completes an entry by what a change came to.
func (a *Applied) tell(e *Entry) {
	switch {
	case a.Override != nil:
		o := entryOf(a.Override)
		e.ID, e.Object, e.Value, e.Previous = o.ID, o.Object, o.Value, o.Previous
	case a.Cancelled != nil:
		o := entryOf(a.Cancelled)
		e.ID, e.Object, e.Previous = o.ID, o.Object, fmt.Sprintf("%s %s (override %s)", o.Action, o.Value, o.ID)
	}
}
