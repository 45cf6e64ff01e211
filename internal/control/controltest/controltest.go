// Package controltest has a small pretended plugin, for tests of the control API
// and its command line.
package controltest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// Backend pretends to be a plugin with the regions eu, us and ap, which get 30, 50
// and 20 % of blocks and demand, and one host, api.example.com., with an endpoint
// in each. IPv6 clients move half as much. Its Corefile dials us to 50 % and drains ap. What a drained region had
// goes to the first that isn't; dials move nothing. Guards: usable, and
// max_move 50 %.
type Backend struct {
	mu       sync.Mutex
	digest   string
	current  *control.Overrides
	returned []string
	ended    []string
	fails    func(method string) error
	upset    *control.Report // what the next Publish foretells; nil: what WhatIf did
	// Now is the clock; nil: the real one.
	Now func() time.Time
}

// New makes one.
func New() *Backend { return &Backend{digest: "00000000000000aa"} }

var regions = []struct {
	name     string
	blocks   float64
	endpoint string
}{{"eu", 30, "192.0.2.1"}, {"us", 50, "192.0.2.2"}, {"ap", 20, "192.0.2.3"}}

// FailWith gives what every call fails with, by the name of the method.
func (b *Backend) FailWith(fails func(method string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = fails
}

func (b *Backend) fail(method string) error {
	b.mu.Lock()
	fails := b.fails
	b.mu.Unlock()
	if fails == nil {
		return nil
	}
	return fails(method)
}

// Reload changes the plan.
func (b *Backend) Reload(digest string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.digest = digest
}

// Current is the set in service.
func (b *Backend) Current() *control.Overrides {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current
}

// Ended are the overrides that have ended, and why.
func (b *Backend) Ended() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ended)
}

// Returned are the endpoints taken back, with their checks.
func (b *Backend) Returned() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.returned)
}

// Digest is that of the last Reload.
func (b *Backend) Digest() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.digest
}

// Base is what the pretended Corefile holds.
func (b *Backend) Base(_ context.Context, l control.Lever, o control.Object) (control.Base, error) {
	if err := b.fail("Base"); err != nil {
		return control.Base{}, err
	}
	if o.Host == "www.example.com." { // another name of the host
		o.Host = "api.example.com."
	}
	if o.Host != "" && o.Host != "api.example.com." {
		return control.Base{}, &control.Invalid{Field: "host", Text: fmt.Sprintf("no host %q", o.Host), Missing: true}
	}
	known := func(region, endpoint string) bool {
		for _, r := range regions {
			if (region == "" || region == r.name) && (endpoint == "" || endpoint == r.endpoint) {
				return true
			}
		}
		return false
	}
	if endpoint := o.Endpoint; endpoint.IsValid() && !known(o.Region, endpoint.String()) {
		return control.Base{}, &control.Invalid{Field: "endpoint", Text: fmt.Sprintf("no endpoint %s", endpoint), Missing: true}
	}
	if !known(o.Region, "") {
		return control.Base{}, &control.Invalid{Field: "region", Text: fmt.Sprintf("no region %q", o.Region), Expected: "eu, us or ap", Missing: true}
	}
	base := control.Base{Object: o, Value: map[control.Lever]control.Value{
		control.Drain: "off", control.Dial: "100%", control.Weight: "1", control.Share: "off", control.Trickle: "0%", control.Force: "up"}[l]}
	switch {
	case o.Endpoint.IsValid():
	case l == control.Drain && o.Region == "ap":
		base.Value, base.At, base.Written = "on", "Corefile:12", true
	case l == control.Dial && o.Region == "us":
		base.Value, base.At, base.Written = "50%", "Corefile:9", true
	}
	return base, nil
}

// drained tells whether a region is, with a set of overrides.
func drained(set *control.Overrides, region string) bool {
	if o := set.Region("", region).Drain; o != nil {
		return o.Value.On()
	}
	return region == "ap"
}

// shares gives what each region gets, and the last resort as "".
func shares(set *control.Overrides) map[string]float64 {
	all, first := map[string]float64{}, ""
	for _, r := range slices.Backward(regions) {
		if !drained(set, r.name) {
			first = r.name
		}
	}
	for _, r := range regions {
		if drained(set, r.name) {
			all[first] += r.blocks
		} else {
			all[r.name] += r.blocks
		}
	}
	return all
}

// WhatIf compares a set with the one in service.
func (b *Backend) WhatIf(_ context.Context, next *control.Overrides) (control.Report, error) {
	if err := b.fail("WhatIf"); err != nil {
		return control.Report{}, err
	}
	was, is := shares(b.Current()), shares(next)
	var r control.Report
	for _, region := range regions {
		before, after := was[region.name], is[region.name]
		r.Regions = append(r.Regions, control.RegionReport{Name: region.name, BlocksBefore: before, BlocksAfter: after, UtilisationAfter: &after})
		if lost := before - after; lost > 0 {
			r.MovedBlocks += lost
			for _, to := range []string{"eu", "us", "ap", ""} {
				if is[to] > was[to] {
					r.Flows = append(r.Flows, control.Flow{From: region.name, To: to, Blocks: lost})
				}
			}
		}
	}
	moved := r.MovedBlocks
	r.MovedDemand, r.Kind = &moved, "IPv4 clients asking for A"
	r.Kinds = []control.KindReport{{Kind: r.Kind, Blocks: 80, MovedBlocks: moved}, {Kind: "IPv6 clients asking for A", Blocks: 20, MovedBlocks: moved / 2}}
	if moved > 0 {
		r.Hosts = []control.HostReport{{Host: "api.example.com.", MovedBlocks: moved, MovedDemand: &moved}}
	}
	if is[""] > was[""] {
		r.Stranded = []control.Stranded{{Host: "api.example.com.", List: []string{"eu", "us", "ap"}, Blocks: is[""], Why: "all are drained"}}
		r.Refusals = append(r.Refusals, control.Refusal{Guard: "usable", Reason: "api.example.com has no region left for eu us ap"})
	}
	if r.MovedBlocks > 50 {
		r.Refusals = append(r.Refusals, control.Refusal{Guard: "max_move", Reason: fmt.Sprintf("%.1f %% of blocks would move, at most 50 %% may", r.MovedBlocks)})
	}
	return r, nil
}

// Publish keeps the set.
func (b *Backend) Publish(_ context.Context, p control.Publication) error {
	if err := b.fail("Publish"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Digest != "" && p.Digest != b.digest {
		return control.ErrStale
	}
	upset := b.upset
	b.upset = nil
	if upset != nil && p.Accept != nil {
		if err := p.Accept(*upset); err != nil {
			return err
		}
	}
	b.current = p.Next
	for _, id := range slices.Sorted(maps.Keys(p.Ended)) {
		b.ended = append(b.ended, id+" "+p.Ended[id])
	}
	return nil
}

// Upset has the next Publish find that what was foretold is no longer so, but this.
func (b *Backend) Upset(is control.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.upset = &is
}

// Status tells of the regions and the host.
func (b *Backend) Status(context.Context) (control.Status, error) {
	if err := b.fail("Status"); err != nil {
		return control.Status{}, err
	}
	set, now := b.Current(), time.Now
	if b.Now != nil {
		now = b.Now
	}
	s := control.Status{Digest: b.Digest(), Time: now().UTC()}
	host := control.HostStatus{Name: "api.example.com."}
	capacity := 100.0
	for _, r := range regions {
		setting := func(l control.Lever, o *control.Override) control.Setting {
			base, _ := b.Base(context.Background(), l, control.Object{Region: r.name})
			if o == nil {
				return control.Setting{Value: base.Value, From: base.At}
			}
			return control.Setting{Value: o.Value, From: "override " + o.ID}
		}
		held := set.Region("", r.name)
		load := r.blocks
		s.Regions = append(s.Regions, control.RegionStatus{Name: r.name, Drain: setting(control.Drain, held.Drain), Dial: setting(control.Dial, held.Dial),
			Share: setting(control.Share, held.Share), Trickle: setting(control.Trickle, held.Trickle), Capacity: &capacity, Load: &load, Utilisation: &load})
		wanted := shares(set)[r.name]
		pool := control.HostRegion{Name: r.name, Usable: !drained(set, r.name), Availability: 100, Wanted: &wanted,
			Endpoints: []control.EndpointStatus{{Endpoint: netip.MustParseAddr(r.endpoint), State: "up", Weight: control.Setting{Value: "1"}}}}
		if !pool.Usable {
			pool.Why = "drained"
		}
		host.Regions = append(host.Regions, pool)
	}
	s.Hosts = []control.HostStatus{host}
	return s, nil
}

// Explain tells the question.
func (b *Backend) Explain(_ context.Context, q control.Question) (control.Explained, error) {
	if q.Host != "api.example.com." {
		return control.Explained{}, &control.Invalid{Field: "host", Text: fmt.Sprintf("no host %q", q.Host), Missing: true}
	}
	if q.View != "" && q.View != "inside" {
		return control.Explained{}, &control.Invalid{Field: "view", Text: fmt.Sprintf("no view %q", q.View), Missing: true}
	}
	transport := q.Resolver
	if !transport.IsValid() {
		transport = q.Client.Addr()
	}
	client := map[string]any{"source": "ecs", "subnet": q.Client.Masked(), "prefix": q.Client.Masked(), "block": "198.51.0.0/16", "transport": transport}
	why := map[string]any{"host": q.Host, "at": "Corefile:20", "digest": b.Digest(), "client": client,
		"facts": map[string]any{"address": q.Client.Addr()}, "list": map[string]any{"by": "written", "order": []string{"eu", "us", "ap"}},
		"decisions": []any{map[string]any{"host": q.Host, "family": "v4", "outcome": "answer", "region": "eu", "answer": []string{"192.0.2.1"}, "ttl": 30, "scope": 16, "scope_why": "block"}}}
	data, err := json.Marshal(why)
	return control.Explained{Name: q.Host, TransportAssumed: !q.Resolver.IsValid(), Blocks: []control.ExplainedBlock{{At: "Corefile:3", Zone: "example.com.", View: q.View, Explanation: data}}}, err
}

// Returnable knows the check web.
func (b *Backend) Returnable(_ context.Context, endpoint netip.Addr, check string) error {
	if check != "web" {
		return &control.Invalid{Field: "check", Text: fmt.Sprintf("no check %q of %s waits to be told", check, endpoint), Missing: true}
	}
	return nil
}

// Return remembers.
func (b *Backend) Return(ctx context.Context, endpoint netip.Addr, check string) error {
	if err := b.fail("Return"); err != nil {
		return err
	}
	if err := b.Returnable(ctx, endpoint, check); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.returned = append(b.returned, endpoint.String()+" "+check)
	return nil
}
