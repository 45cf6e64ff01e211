package gslb

import (
	"context"
	"errors"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// errEnding says that there is nothing left to control.
var errEnding = errors.New("the server ends")

// WhatIf implements control.Backend: what would be is worked out on copies, by the
// same functions that do it, and without the registry's lock.
func (b backend) WhatIf(ctx context.Context, next *control.Overrides) (control.Report, error) {
	o, err := b.ask(next)
	if err != nil {
		return control.Report{}, err
	}
	return o.foretell(ctx, next)
}

// ask copies what a what-if goes by, if the set of overrides can be put into service.
func (b backend) ask(next *control.Overrides) (*outlook, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if b.r.steering == nil {
		return nil, errEnding
	}
	if err := b.marked(next); err != nil {
		return nil, err
	}
	return b.outlook(b.r.views(), time.Now()), nil
}

// marked holds that every override that is new can have its effect; what a reload has left
// without one is no fault of this change.
func (b backend) marked(next *control.Overrides) error {
	for _, o := range next.All() {
		if o.Area == "" || b.ledger.inService.Find(o.ID) == o {
			continue
		}
		if err := b.r.marked(o); err != nil {
			return err
		}
	}
	return nil
}

// asides is how often a change is worked out without the registry's lock before it is with
// it: what it rests on may have changed each time that it is to take effect.
const asides = 2

// Publish implements control.Backend.
func (b backend) Publish(ctx context.Context, p control.Publication) error {
	b.r.stepping.Lock()
	defer b.r.stepping.Unlock()
	judged, _ := p.Report.Basis.(*outlook)
	for range asides {
		now, err := b.publish(ctx, &p, judged, true)
		if now == nil || err != nil {
			return err
		}
		judged = now
	}
	_, err := b.publish(ctx, &p, judged, false)
	return err
}

// publish works out what a set of overrides does, aside (without the registry's lock) or not,
// and puts it into service. judged is what guards have judged by; if that is no longer so,
// they judge again. If what is worked out aside no longer is either, nothing is put into
// service, and what it went by is given.
func (b backend) publish(ctx context.Context, p *control.Publication, judged *outlook, aside bool) (*outlook, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	switch {
	case b.r.steering == nil:
		return nil, errEnding
	case p.Digest != "" && p.Digest != b.r.digest():
		return nil, control.ErrStale
	}
	now := time.Now()
	o := b.outlook(b.r.steering.settled(now), now)
	var h *hearing
	var v verdicts
	var err error
	work := func() {
		if p.Accept != nil && !o.same(judged) {
			err = o.judge(ctx, p)
		}
		if err == nil {
			h, v = o.step(p.Next)
		}
	}
	if aside {
		b.r.without(work)
	} else {
		work()
	}
	if err != nil {
		return nil, err
	}
	if aside && !b.holds(o) {
		return o, nil
	}
	b.serve(p, h, v, time.Now())
	return nil, nil
}

// without does something without the lock, which is held before and after.
func (r *registry) without(work func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	work()
}

// judge has a change judged again.
func (o *outlook) judge(ctx context.Context, p *control.Publication) error {
	report, err := o.foretell(ctx, p.Next)
	if err != nil {
		return err
	}
	return p.Accept(report)
}

// serve puts a set of overrides into service, with what the law comes to with it: it must
// know at once who takes what. The registry's lock is held.
func (b backend) serve(p *control.Publication, h *hearing, v verdicts, now time.Time) {
	tellOverrides(b.ledger.inService, p)
	b.ledger.inService = p.Next
	b.r.steering.keep(h, v)
	for _, g := range b.r.instances() {
		g.refresh(now)
	}
}
