package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// StoreOptions are what a Store is made of. All but Idle are needed.
type StoreOptions struct {
	Dir     string // that overrides.json and audit.log are kept in; it must exist
	Backend Backend
	Now     func() time.Time
	Logf    func(format string, args ...any) // for what somebody must see
	// Idle says that what is kept in Dir has had no effect of late, though clients were
	// answered: Open drops what has expired, as its end moves nobody.
	Idle bool
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
	asking  chan struct{} // holds one: who has what-if worked out
	changed chan struct{} // wakes Run
	damage  string        // what Open found wrong
	// postponed are the overrides that Expire has found guards to keep in force.
	postponed atomic.Pointer[[]Postponed]
	// unsaved says that the file is not what is in service, which takes two
	// failures at once.
	unsaved atomic.Bool
}

// Open reads the overrides of a directory. It doesn't call the Backend: what it found is
// in Overrides, unless Idle also what has expired, as guards may be against its end; Run sees
// to that first. If the directory can be read but not written to, the Store works, and no change can be
// made until it can. If the file was damaged or is gone, the error is an ErrSetAside, and the Store
// works, empty: shout, and go on.
func Open(o StoreOptions) (*Store, error) {
	audit, err := openAudit(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{StoreOptions: o, audit: audit, turn: make(chan struct{}, 1), asking: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
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
	if o.Idle {
		left, expired := set.prune(now)
		for _, e := range expired {
			s.note(expiry(e, now, set.version("")))
		}
		set = left
	}
	s.current.Store(set)
	s.keep(set) // a full disk is no reason not to start: what is there was read, and no change is made until it can be saved
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

// lock waits for the turn to change, until ctx ends.
func (s *Store) lock(ctx context.Context) error { return wait(ctx, s.turn, "another change") }

func (s *Store) unlock() { <-s.turn }

// wait waits for a turn, until ctx ends.
func wait(ctx context.Context, turn chan struct{}, what string) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
	}
}

// WhatIf tells what a request would do. It changes nothing. As it may take long, it waits
// for others that ask the same, but no change waits for it.
func (s *Store) WhatIf(ctx context.Context, by Author, r *Request) (Result, error) {
	if err := wait(ctx, s.asking, "another what-if"); err != nil {
		return Result{}, err
	}
	defer func() { <-s.asking }()
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
	if err == nil {
		err = p.accept(p.report)
	}
	if err == nil {
		err = s.commit(context.WithoutCancel(ctx), p) // who asked may go, but not half-way
	}
	if err != nil {
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
		written := p.forced
		err = s.Backend.Publish(ctx, Publication{p.next, p.ended(), p.digest, p.report, p.accept})
		if err == nil && p.forced && !written { // guards were not against it before
			s.note(p.entries(true, "")...)
		}
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

// Status is the Backend's, with the version and the overrides it was made at.
func (s *Store) Status(ctx context.Context) (Status, error) {
	set := s.Overrides()
	status, err := s.Backend.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	status.Version, status.Overrides = set.version(status.Digest), set.All()
	status.Warnings = append(s.Lost(), status.Warnings...)
	postponed := s.Postponed()
	slices.SortFunc(postponed, func(a, b Postponed) int { return a.number() - b.number() })
	for _, p := range postponed {
		status.Warnings = append(status.Warnings, p.String())
	}
	return status, nil
}

// Lost tells of overrides that were lost before Open: none, or one text.
func (s *Store) Lost() []string {
	if s.damage == "" {
		return nil
	}
	return []string{s.damage}
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
