// Package control is how an operator moves traffic while the server runs:
// overrides of the Corefile's levers, who may make them, what guards say of them,
// where they are kept and written down, and the HTTP API for all of it.
//
// A [Store] keeps the overrides. What they mean for traffic is a [Backend]'s
// affair: it says what the Corefile holds, foretells what a change would move, and
// puts a whole immutable set of [Overrides] into service. A [Server] is the API.
package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Backend is the running plugin. Its methods are called by several goroutines
// at once, but Publish by one at a time.
type Backend interface {
	// Digest is that of the plan in service: one word, of printable ASCII without
	// dots, which is another one after every change of Corefile or data.
	Digest() string
	// Base says what the Corefile holds of a lever now. The error is an *[Invalid] where
	// there is no such region, host or endpoint.
	Base(ctx context.Context, l Lever, o Object) (Base, error)
	// WhatIf foretells what putting a set of overrides into service in place of the
	// one that is would do, and which guards refuse it. It changes nothing, holds nothing
	// up, and gives up when ctx ends. The error is an *Invalid where the set can't be put
	// into service.
	WhatIf(ctx context.Context, next *Overrides) (Report, error)
	// Publish puts a set of overrides into service: when it returns, answers follow
	// it, and they go on to do so over changes of plan and verdicts. After any error the set
	// before is still in service.
	Publish(ctx context.Context, p Publication) error
	// Status is the state of everything. The server fills in Version and Overrides.
	Status(ctx context.Context) (Status, error)
	// Explain tells what a query gets and why. The error is an *Invalid where the
	// question makes no sense.
	Explain(ctx context.Context, q Question) (Explained, error)
	// Returnable holds that an endpoint waits to be taken back for a check. The error is an
	// *Invalid where it doesn't.
	Returnable(ctx context.Context, endpoint netip.Addr, check string) error
	// Return takes an endpoint whose check says `return manual` back into service.
	// The error is an *Invalid where that can't be.
	Return(ctx context.Context, endpoint netip.Addr, check string) error
}

// Publication is a set of overrides to be put into service, and on what terms.
type Publication struct {
	Next *Overrides
	// Ended says how the overrides ended that are in service and not in Next, by ID.
	Ended map[string]string
	// Digest is that of the plan that it is for; with another one in service the error is
	// ErrStale. Empty: it is for any.
	Digest string
	// Report is what WhatIf foretold. If what that rests on is no longer so, it is
	// foretold again, and Accept decides by that; its error is Publish's. A nil Accept takes
	// whatever comes of it.
	Report Report
	Accept func(Report) error
}

// Base is what the Corefile holds of one lever on one object.
type Base struct {
	Object Object // as the plan calls it: a host by its first name
	Value  Value  // at this time; "off" for no drain or share
	At     string // file:line of the statement that gives it; empty: nothing is written
	// Written says that the Corefile has this lever on this object, if only at
	// other times.
	Written bool
}

// Question is a query to explain. An empty Client is a query without client
// subnet; an empty Resolver is the client itself; an empty Type is both; an empty
// View is every one, and what is in none.
type Question struct {
	Host     string
	Client   netip.Prefix
	Resolver netip.Addr
	Type     string // A, AAAA or empty
	View     string // that takes the query
}

// Author is who asks for a change.
type Author struct {
	Name string // of the token
	From string // the address, or the peer of a unix socket
}

// ErrStale says that what a change was computed from is no longer so: the plan
// or the overrides have changed since.
var ErrStale = errors.New("the version this was computed from is no longer current")

// ErrNotKept says that a change was refused because it couldn't be written down,
// as state or in the audit log.
var ErrNotKept = errors.New("refused, as it can't be kept")

// Refused says that guards refuse a change.
type Refused struct{ Refusals []Refusal }

// Error names every guard.
func (r *Refused) Error() string {
	reasons := make([]string, len(r.Refusals))
	for i, f := range r.Refusals {
		reasons[i] = f.Guard + ": " + f.Reason
	}
	return "refused by guard " + strings.Join(reasons, "; ")
}

// Invalid says what is wrong with a request.
type Invalid struct {
	Field    string // of the request; empty: none in particular
	Text     string // what is wrong
	Expected string // instead; may be empty
	Hint     string // what to do; may be empty
	Missing  bool   // what is named doesn't exist
}

// Error gives the text and what was expected.
func (i *Invalid) Error() string {
	text := i.Text
	if i.Field != "" {
		text = i.Field + ": " + text
	}
	if i.Expected != "" {
		text += ", expected " + i.Expected
	}
	return text
}

// invalid finds fault with a field.
func invalid(field, expected, format string, args ...any) *Invalid {
	return &Invalid{Field: field, Text: fmt.Sprintf(format, args...), Expected: expected}
}
