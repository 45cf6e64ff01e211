package steer

import "net/netip"

// Trace is a decision with its reasons. Its JSON form is stable: words for kinds,
// names for regions, seconds for TTLs. [Host.Decide] replaces all of it; what a
// decision did not come to stays empty.
type Trace struct {
	Host      string       `json:"host"`
	Family    string       `json:"family"` // v4, v6
	Client    netip.Prefix `json:"client"` // the prefix the topology was asked for
	Source    string       `json:"source"` // ecs, transport
	Transport netip.Addr   `json:"transport"`

	List   int      `json:"list"`
	Fences []string `json:"fences,omitempty"` // that confine the list
	Spread string   `json:"spread"`
	// Key is the prefixes the choice is made by; none where it is made in turn.
	Key []netip.Prefix `json:"key,omitempty"`

	// Candidates are in this client's order. Named regions of a last resort follow
	// them, in tier last_resort.
	Candidates []TraceCandidate `json:"candidates,omitempty"`
	// LastResort is the kind in use; empty while some candidate is usable.
	LastResort string `json:"last_resort,omitempty"`

	Outcome     string       `json:"outcome"`
	Reason      string       `json:"reason,omitempty"` // of a failure
	By          string       `json:"by,omitempty"`     // choice, spill, share, trickle, shed, forced: see By
	Region      string       `json:"region,omitempty"`
	Answer      []netip.Addr `json:"answer,omitempty"`
	Name        string       `json:"name,omitempty"` // answered instead of addresses
	FamilyMoved bool         `json:"family_moved,omitempty"`
	// Shares is what spread balanced gives over resolutions; Region and Answer are
	// only the next in turn.
	Shares []TraceShare `json:"shares,omitempty"`

	Scope    int    `json:"scope"`
	ScopeWhy string `json:"scope_why"` // block, grain, option_ignored, no_option, no_data
	TTL      uint32 `json:"ttl"`
	TTLClass string `json:"ttl_class,omitempty"` // steady, streak, last_resort
}

// TraceCandidate is one region that was considered.
type TraceCandidate struct {
	Region string `json:"region"`
	Tier   string `json:"tier"` // split, standby (weight 0 in the split), order, last_resort
	Weight uint32 `json:"weight,omitempty"`
	// Status is chosen; shared for one that takes its share in turn with the
	// chosen; next for one that would take the client if those before it didn't;
	// or passed. Why says why it is not usable: no_pool, no_family (no endpoint of
	// this family), drained, down, min_healthy (too few are alive); or fenced; or
	// spilled: usable, but not for this client. If that holds for every usable
	// candidate, the first of them is chosen, by force, and one dialled to 0 last. A
	// soak is no candidate, and trickled one that gave the client on. Whatever its
	// status, a candidate is held up if it is usable only because MaxDown keeps it in
	// service, and alone if it is a soak and the list has no other usable candidate.
	Status string `json:"status"`
	Why    string `json:"why,omitempty"`
	// Availability is the part of the clients that a usable candidate takes for its
	// health, if below 1; rounded up to four decimals.
	Availability float64 `json:"availability,omitempty"`
	// Levers are those that are moved.
	Levers []TraceLever `json:"levers,omitempty"`
	// Written: live weights were all 0, so the configured ones hold.
	Written bool `json:"written_weights,omitempty"`
	// OtherFamily: passed over for this family, taking the client for the other.
	OtherFamily bool            `json:"other_family,omitempty"`
	Endpoints   []TraceEndpoint `json:"endpoints,omitempty"` // of this family
}

// TraceLever is a lever that bears on a candidate.
type TraceLever struct {
	Lever string  `json:"lever"` // dial, ramp, admission, share, trickle
	Part  float64 `json:"part"`  // 0..1; a share that these clients take no part in has 0
	Why   string  `json:"why,omitempty"`
}

// TraceEndpoint is one endpoint of a candidate.
type TraceEndpoint struct {
	Addr     netip.Addr `json:"addr"`
	Weight   uint32     `json:"weight"`            // that holds
	Weighed  bool       `json:"weighed,omitempty"` // Weight was set live
	Verdict  string     `json:"verdict"`           // up, full, down, drained
	Streak   bool       `json:"streak,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Answered bool       `json:"answered,omitempty"`
}

// TraceShare is the part of resolutions that one answer gets, as a fraction in
// lowest terms: exact, but for rounding to millionths where a candidate spills or a
// lever is moved.
type TraceShare struct {
	Region string       `json:"region"`
	Answer []netip.Addr `json:"answer,omitempty"`
	Name   string       `json:"name,omitempty"` // answered instead of addresses
	Part   uint64       `json:"part"`
	Of     uint64       `json:"of"`
}

// trace fills tr for a decision made.
func (q *query) trace(d *Decision, tr *Trace) {
	h, c := q.host, q.client
	_, why := h.scope(c)
	*tr = Trace{
		Host: h.name, Family: q.family.String(), Client: cut(c.Addr, c.Bits), Source: c.Source.String(),
		Transport: c.Transport, List: c.List, Spread: h.spread.String(),
		Outcome: d.Outcome.String(), By: d.By.String(), Reason: d.Reason.String(), Region: h.regionName(d.Region),
		FamilyMoved: d.FamilyMoved, Scope: d.Scope, ScopeWhy: why.String(),
	}
	if d.Outcome == OutcomeNoFamily || d.Outcome == OutcomeRefused {
		tr.ScopeWhy = scopeNoData.String()
	}
	if d.Outcome == OutcomeNoFamily {
		return
	}
	l := &h.lists[c.List]
	tr.Fences = l.Fence
	if d.Outcome == OutcomeRefused {
		return
	}
	tr.Key = q.traceKey()
	if d.Outcome != OutcomeAnswer {
		tr.LastResort = h.lastResort.Kind.String()
	}
	q.ask(usable)
	q.forced = false
	tr.Candidates = q.explain(l, d)
	if d.Answer == nil {
		return
	}
	tr.Answer, tr.Name = d.Answer.Addrs, d.Answer.Name
	tr.TTL, tr.TTLClass = d.TTL, d.Class.String()
	if h.spread == Balanced && d.Region != NoRegion {
		tr.Shares = q.shares(d)
	}
}

// regionName is the name of r, empty for NoRegion.
func (h *Host) regionName(r Region) string {
	if r == NoRegion {
		return ""
	}
	return h.regions[r]
}

func (q *query) traceKey() []netip.Prefix {
	if q.host.spread == Balanced {
		return nil
	}
	first, second := q.host.keyPrefixes(q.client)
	if !second.IsValid() {
		return []netip.Prefix{first}
	}
	return []netip.Prefix{first, second}
}
