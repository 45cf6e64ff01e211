package control

import (
	"context"
	"fmt"
	"net/netip"
)

// Return takes an endpoint back into service, and writes it down first. If something else ends
// the wait at that very moment, the audit log has both that it was accepted and that it failed.
func (s *Store) Return(ctx context.Context, by Author, r ReturnRequest) (Returned, error) {
	endpoint, wrong := parseEndpoint(r.Endpoint)
	if wrong != nil {
		return Returned{}, wrong
	}
	why, wrong := checkWhy(r.Why)
	if wrong != nil {
		return Returned{}, wrong
	}
	if r.Check == "" || len(r.Check) > 63 {
		return Returned{}, invalid("check", "the name of a check that says `return manual`", "%.70q is none", r.Check)
	}
	if err := s.lock(ctx); err != nil {
		return Returned{}, err
	}
	defer s.unlock()
	e := Entry{Time: s.Now(), Who: by.Name, From: by.From, Action: "return", Object: "endpoint " + endpoint.String(),
		Value: r.Check, Why: why, Version: s.Version(), Outcome: OutcomeAccepted}
	if r.Version != "" && r.Version != e.Version {
		e.Outcome, e.Reason = OutcomeRefused, ErrStale.Error()
		s.note(e)
		return Returned{}, ErrStale
	}
	if err := s.Backend.Returnable(ctx, endpoint, r.Check); err != nil {
		e.Outcome, e.Reason = OutcomeRefused, err.Error()
		s.note(e)
		return Returned{}, err
	}
	if err := s.audit.write(e); err != nil {
		return Returned{}, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	if err := s.Backend.Return(context.WithoutCancel(ctx), endpoint, r.Check); err != nil {
		e.Outcome, e.Reason = OutcomeRefused, err.Error()
		s.note(e)
		return Returned{}, err
	}
	return Returned{Version: s.Version(), Endpoint: endpoint, Check: r.Check}, nil
}

// ReturnRequest asks to take an endpoint back into service.
type ReturnRequest struct {
	Endpoint string `json:"endpoint"` // its address
	Check    string `json:"check"`    // that says `return manual`
	Why      string `json:"why"`
	Version  string `json:"version,omitempty"`
}

// Returned says that an endpoint is back.
type Returned struct {
	Version  string     `json:"version"`
	Endpoint netip.Addr `json:"endpoint"`
	Check    string     `json:"check"`
}
