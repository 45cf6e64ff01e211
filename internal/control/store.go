package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"
)

// retryAfter is how long Run waits after an expiry that couldn't be kept.
const retryAfter = 10 * time.Second

// StoreOptions are what a Store is made of. All are needed.
type StoreOptions struct {
	Dir     string // that overrides.json and audit.log are kept in; it must exist
	Backend Backend
	Now     func() time.Time
	Logf    func(format string, args ...any) // for what somebody must see
}

// Store keeps the overrides: in service, in a file, and in the audit log. A change
// is judged, saved, written to the log and put into service before it is
// acknowledged, or it is taken back. Changes wait for each other; Overrides and
// Version never wait. There must be one Store for a directory, in one process.
type Store struct {
	StoreOptions
	audit   *Audit
	current atomic.Pointer[Overrides]
	turn    chan struct{} // holds one: whose turn it is to change
	changed chan struct{} // wakes Run
	damage  string        // what Open found wrong
	// unsaved says that the file is not what is in service, which takes two
	// failures at once.
	unsaved atomic.Bool
}

// Open reads the overrides of a directory, and drops what has expired since. It
// doesn't call the Backend: what it found is in Overrides. If it was damaged or is
// gone, the error is an ErrSetAside, and the Store works, empty: shout, and go on.
func Open(o StoreOptions) (*Store, error) {
	audit, err := openAudit(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{StoreOptions: o, audit: audit, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	now := o.Now()
	set, lost := load(o.Dir, now)
	if lost != nil && !errors.Is(lost, ErrSetAside) {
		audit.Close()
		return nil, lost
	}
	highest := audit.highestID()
	if set == nil && lost == nil && highest > 0 {
		lost = fmt.Errorf("%w: %s is gone, though audit.log beside it tells of overrides. Look there for what was overridden, and make it again", ErrSetAside, filepath.Join(o.Dir, overridesFile))
	}
	if set == nil {
		set = &Overrides{epoch: now.UnixMilli(), next: highest + 1}
	}
	set, expired := set.prune(now)
	if err := set.save(o.Dir); err != nil {
		audit.Close()
		return nil, errors.Join(lost, err)
	}
	s.current.Store(set)
	for _, e := range expired {
		s.note(s.expiry(e, now))
	}
	if lost != nil {
		s.damage = lost.Error()
	}
	return s, lost
}

// Close closes the audit log. No change may be made after it.
func (s *Store) Close() error { return s.audit.Close() }

// Overrides are those in service.
func (s *Store) Overrides() *Overrides { return s.current.Load() }

// Version is one word for the plan and the overrides in service.
func (s *Store) Version() string { return s.Overrides().version(s.Backend.Digest()) }

// Audit gives the last entries of the audit log, the oldest first; at most 1000.
func (s *Store) Audit(limit int) ([]Entry, error) { return s.audit.tail(limit) }

// lock waits for its turn, until ctx ends.
func (s *Store) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another change: %w", context.Cause(ctx))
	}
}

func (s *Store) unlock() { <-s.turn }

// WhatIf tells what a request would do. It changes nothing.
func (s *Store) WhatIf(ctx context.Context, by Author, r *Request) (Result, error) {
	p, err := s.propose(ctx, by, r)
	if err != nil {
		return Result{}, err
	}
	return Result{Version: p.version, Applied: p.applied, Report: p.report}, nil
}

// Do does what a request asks for, all of it or nothing. The error is an *Invalid,
// a *Refused, an ErrStale or an ErrNotKept, or the Backend's; the overrides are then
// what they were. Whatever it is, but for an *Invalid, is in the audit log.
func (s *Store) Do(ctx context.Context, by Author, r *Request) (Result, error) {
	if err := s.lock(ctx); err != nil {
		return Result{}, err
	}
	defer s.unlock()
	p, err := s.propose(ctx, by, r)
	if p == nil {
		return Result{}, err
	}
	if err == nil && len(p.report.Refusals) > 0 && !r.Force {
		err = &Refused{p.report.Refusals}
	}
	if err != nil {
		s.refuse(p, err)
		return Result{Report: p.report}, err
	}
	ctx = context.WithoutCancel(ctx) // who asked may go, but not half-way
	if err := s.commit(ctx, p); err != nil {
		s.refuse(p, err)
		return Result{Report: p.report}, err
	}
	return Result{Version: s.Version(), Applied: p.applied, Report: p.report, Forced: p.forced}, nil
}

// commit saves a proposal, writes it down and puts it into service, or takes all
// of it back. The file comes first, as the log tells of what is certain; traffic
// comes last, so that no failure to write ever moves any.
func (s *Store) commit(ctx context.Context, p *proposal) error {
	old := s.current.Load()
	err := p.next.save(s.Dir)
	if err == nil {
		err = s.audit.write(p.entries(true, "")...)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotKept, err)
	} else {
		err = s.Backend.Publish(ctx, p.next, p.digest)
	}
	if err != nil {
		s.keep(old)
		return err
	}
	s.current.Store(p.next)
	s.unsaved.Store(false)
	s.wake()
	return nil
}

// keep saves what is in service, after something else was saved or should have been.
func (s *Store) keep(set *Overrides) {
	err := set.save(s.Dir)
	if known := s.unsaved.Swap(err != nil); err != nil && !known {
		s.Logf("control: %v: after a restart the overrides may be others than those in service; trying again", err)
		s.wake()
	}
}

// wake makes Run look again at what it waits for.
func (s *Store) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// refuse writes down that a proposal was refused.
func (s *Store) refuse(p *proposal, why error) { s.note(p.entries(false, why.Error())...) }

// note writes entries of what can't be refused any more.
func (s *Store) note(entries ...Entry) {
	if err := s.audit.write(entries...); err != nil {
		s.Logf("control: %v: not in the audit log: %s", err, entries)
	}
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
// saved is dropped all the same.
func (s *Store) Expire(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if s.unsaved.Load() {
		s.keep(s.current.Load())
	}
	now := s.Now()
	next, expired := s.current.Load().prune(now)
	if len(expired) == 0 {
		return nil
	}
	if report, err := s.Backend.WhatIf(ctx, next); err == nil && len(report.Refusals) > 0 {
		s.Logf("control: an override expires, as was said when it was made, though %v", &Refused{report.Refusals})
	}
	if err := s.Backend.Publish(context.WithoutCancel(ctx), next, ""); err != nil {
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

// Status is the Backend's, with the version and the overrides it was made at.
func (s *Store) Status(ctx context.Context) (Status, error) {
	set := s.Overrides()
	status, err := s.Backend.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	status.Version, status.Overrides = set.version(status.Digest), set.All()
	if s.damage != "" {
		status.Warnings = append([]string{s.damage}, status.Warnings...)
	}
	return status, nil
}

// Unmatched are the overrides that match nothing of the plan in service, with the
// reason, by ID.
func (s *Store) Unmatched(ctx context.Context) map[string]string {
	unmatched := map[string]string{}
	for _, o := range s.Overrides().All() {
		if _, err := s.Backend.Base(ctx, o.Lever, o.Object); err != nil {
			unmatched[o.ID] = err.Error()
		}
	}
	return unmatched
}
