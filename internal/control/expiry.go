package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// retryAfter is how long Run waits after an expiry that couldn't be kept, and until it has
// what is postponed judged again.
const retryAfter = 10 * time.Second

// lookAfter is how long Run waits at most: clocks are set, and files removed.
const lookAfter = time.Minute

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
func expiry(o *Override, now time.Time, version string) Entry {
	e := entryOf(o)
	e.Time, e.Who, e.From, e.Action, e.Outcome = now, "gslb", "", "expire", OutcomeAccepted
	e.Previous, e.Value = string(o.Value), ""
	e.Version = version
	return e
}

// Expire drops what has expired, and puts the rest into service; the Backend tells of it.
// What can't be saved is dropped all the same. What would leave clients without a region is postponed, and
// all of it if ctx ends before that is known.
func (s *Store) Expire(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	gone := s.gone()
	if gone && !s.unsaved.Load() {
		s.Logf("control: %s is gone; saving the overrides in service again", overridesFile)
	}
	if gone || s.unsaved.Load() {
		s.keep(s.current.Load())
	}
	now := s.Now()
	next, expired, report := s.ending(ctx, now)
	if ctx.Err() != nil {
		return fmt.Errorf("judging the end of overrides: %w", context.Cause(ctx))
	}
	if len(expired) == 0 {
		return nil
	}
	how := make(map[string]string)
	for _, o := range expired {
		how[o.ID] = "it has expired"
	}
	if err := s.Backend.Publish(context.WithoutCancel(ctx), Publication{Next: next, Ended: how, Report: report, Accept: lost}); err != nil {
		return fmt.Errorf("an override has expired, but can't be taken out of service: %w", err)
	}
	s.current.Store(next)
	s.keep(next)
	for _, o := range expired {
		s.note(expiry(o, now, s.Version()))
	}
	return nil
}

// gone tells whether somebody has removed the file, or all of the directory.
func (s *Store) gone() bool {
	_, err := os.Stat(filepath.Join(s.Dir, overridesFile))
	return errors.Is(err, fs.ErrNotExist)
}

// Run drops overrides when they expire, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	again := s.Now().Add(retryAfter)
	for {
		timer := time.NewTimer(s.pause(again))
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
		again = s.Now().Add(retryAfter)
	}
}

// pause is how long Run waits: until an override expires, or until again where one is postponed
// or not saved.
func (s *Store) pause(again time.Time) time.Duration {
	now, postponed := s.Now(), s.Postponed()
	wait := lookAfter
	for _, o := range s.Overrides().All() {
		if !o.Never && !names(postponed, o) {
			wait = min(wait, o.Until.Sub(now))
		}
	}
	if len(postponed) > 0 || s.unsaved.Load() {
		wait = min(wait, again.Sub(now))
	}
	return max(0, wait)
}

// names tells whether an override is among those postponed.
func names(list []Postponed, o *Override) bool {
	return slices.ContainsFunc(list, func(p Postponed) bool { return p.ID == o.ID })
}

// Postponed are the overrides that stay in force though they have expired, those first that
// were judged longest ago.
func (s *Store) Postponed() []Postponed {
	list := s.postponed.Load()
	if list == nil {
		return nil
	}
	set := s.Overrides()
	return slices.DeleteFunc(slices.Clone(*list), func(p Postponed) bool { return set.Find(p.ID) == nil })
}

// ending gives the set without what ends now, that, and what it would do: all that has
// expired, or if that would leave clients without a region, those that do no harm each by
// itself. The rest is postponed. To judge takes long, and changes wait: of those that are
// postponed already only one is judged by itself, in turn.
func (s *Store) ending(ctx context.Context, now time.Time) (next *Overrides, ended []*Override, report Report) {
	set := s.current.Load()
	next, ended = set.prune(now)
	var why error
	if len(ended) > 0 {
		report, why = s.loses(ctx, next)
	}
	if why == nil {
		s.postpone(nil)
		return next, ended, report
	}
	expired := ended
	kept := slices.DeleteFunc(s.Postponed(), func(p Postponed) bool { return !slices.Contains(expired, p.Override) })
	due := slices.DeleteFunc(slices.Clone(expired), func(o *Override) bool { return names(kept, o) })
	if len(kept) > 0 {
		due, kept = append(due, kept[0].Override), kept[1:]
	}
	next, ended = set, nil
	for _, o := range due {
		less := next.clone()
		less.drop(o)
		judged := report
		if len(expired) > 1 {
			judged, why = s.loses(ctx, less)
		}
		if why != nil {
			kept = append(kept, Postponed{o, why})
			continue
		}
		next, ended, report = less, append(ended, o), judged
	}
	s.postpone(kept)
	return next, ended, report
}

// loses foretells what a set would do, and why it must not.
func (s *Store) loses(ctx context.Context, next *Overrides) (Report, error) {
	report, err := s.Backend.WhatIf(ctx, next)
	if err != nil {
		return report, nil // nobody can say what it would do
	}
	if err := lost(report); err != nil {
		return report, err
	}
	if len(report.Refusals) > 0 {
		s.Logf("control: an override expires, as was said when it was made, though %v", &Refused{report.Refusals})
	}
	return report, nil
}

// lost tells which guards are against what would leave clients without a region, or a host
// without those that it needs; nil: none. What merely moves many at once was said when the
// override was made.
func lost(report Report) error {
	list := slices.DeleteFunc(slices.Clone(report.Refusals), func(r Refusal) bool { return r.Guard != "usable" && r.Guard != "require" })
	if len(list) > 0 {
		return &Refused{list}
	}
	return nil
}

// postpone notes what is postponed, and tells of what wasn't before.
func (s *Store) postpone(list []Postponed) {
	before := s.Postponed()
	s.postponed.Store(&list)
	for _, p := range list {
		if !names(before, p.Override) {
			s.Logf("control: %s", p)
		}
	}
}
