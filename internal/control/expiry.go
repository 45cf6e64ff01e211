package control

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// retryAfter is how long Run waits after an expiry that couldn't be kept, or that was
// postponed.
const retryAfter = 10 * time.Second

// Postponed is an override that has expired and stays in force all the same: guards are
// against its end.
type Postponed struct {
	*Override
	Against error // a *Refused
}

// String tells of it, and what to do.
func (p Postponed) String() string {
	return fmt.Sprintf("override %s (%s of %s = %s, by %s: %s) has expired but stays in force until guards let it end: %v. To end it now, cancel it with force",
		p.ID, p.Lever, p.Object, p.Value, p.By, p.Why, p.Against)
}

// expiry is the entry of an override that has expired.
func (s *Store) expiry(o *Override, now time.Time) Entry {
	e := entryOf(o)
	e.Time, e.Who, e.From, e.Action, e.Outcome = now, "gslb", "", "expire", OutcomeAccepted
	e.Previous, e.Value = string(o.Value), ""
	e.Version = s.Version()
	return e
}

// Expire drops what has expired, and puts the rest into service. What can't be
// saved is dropped all the same. What would leave clients without a region is postponed.
func (s *Store) Expire(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if s.unsaved.Load() {
		s.keep(s.current.Load())
	}
	now := s.Now()
	next, expired := s.ending(ctx, now)
	if len(expired) == 0 {
		return nil
	}
	if err := s.Backend.Publish(context.WithoutCancel(ctx), Publication{Next: next}); err != nil {
		return fmt.Errorf("an override has expired, but can't be taken out of service: %w", err)
	}
	s.current.Store(next)
	s.keep(next)
	for _, o := range expired {
		s.note(s.expiry(o, now))
		s.Logf("control: override %s (%s of %s = %s, by %s: %s) has expired", o.ID, o.Lever, o.Object, o.Value, o.By, o.Why)
	}
	return nil
}

// Run drops overrides when they expire, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	for {
		wait := time.Hour // clocks are set
		if at := s.Overrides().Expiry(); !at.IsZero() {
			wait = min(wait, max(0, at.Sub(s.Now())))
		}
		if len(s.Postponed()) > 0 {
			wait = retryAfter
		}
		if s.unsaved.Load() {
			wait = min(wait, retryAfter)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.changed:
			timer.Stop()
			continue
		case <-timer.C:
		}
		if err := s.Expire(ctx); err != nil && ctx.Err() == nil {
			s.Logf("control: %v; trying again", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryAfter):
			}
		}
	}
}

// Postponed are the overrides that stay in force though they have expired.
func (s *Store) Postponed() []Postponed {
	list := s.postponed.Load()
	if list == nil {
		return nil
	}
	set := s.Overrides()
	return slices.DeleteFunc(slices.Clone(*list), func(p Postponed) bool { return set.Find(p.ID) == nil })
}

// ending gives the set without what ends now, and that: all that has expired, or if that
// would leave clients without a region, those that do no harm each by itself. The rest is
// postponed.
func (s *Store) ending(ctx context.Context, now time.Time) (next *Overrides, ended []*Override) {
	set := s.current.Load()
	next, ended = set.prune(now)
	var why error
	if len(ended) > 0 {
		why = s.loses(ctx, next)
	}
	if why == nil {
		s.postpone(nil)
		return next, ended
	}
	var kept []Postponed
	expired := ended
	next, ended = set, nil
	for _, o := range expired {
		less := next.clone()
		less.drop(o)
		if len(expired) > 1 {
			why = s.loses(ctx, less)
		}
		if why != nil {
			kept = append(kept, Postponed{o, why})
			continue
		}
		next, ended = less, append(ended, o)
	}
	s.postpone(kept)
	return next, ended
}

// loses tells which guards are against a set as it would leave clients without a region, or a
// host without those that it needs; nil: none. What merely moves many at once was said
// when the override was made.
func (s *Store) loses(ctx context.Context, next *Overrides) error {
	report, err := s.Backend.WhatIf(ctx, next)
	if err != nil {
		return nil // nobody can say what it would do
	}
	lost := slices.DeleteFunc(slices.Clone(report.Refusals), func(r Refusal) bool { return r.Guard != "usable" && r.Guard != "require" })
	if len(lost) > 0 {
		return &Refused{lost}
	}
	if len(report.Refusals) > 0 {
		s.Logf("control: an override expires, as was said when it was made, though %v", &Refused{report.Refusals})
	}
	return nil
}

// postpone notes what is postponed, and tells of what wasn't before.
func (s *Store) postpone(list []Postponed) {
	before := s.Postponed()
	s.postponed.Store(&list)
	for _, p := range list {
		if !slices.ContainsFunc(before, func(b Postponed) bool { return b.ID == p.ID }) {
			s.Logf("control: %s", p)
		}
	}
}
