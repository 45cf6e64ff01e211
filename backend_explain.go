package gslb

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Explain implements control.Backend.
func (b backend) Explain(_ context.Context, q control.Question) (control.Explained, error) {
	b.r.mu.Lock()
	now, views := time.Now(), b.r.views()
	moves := make([]*plan.Moves, len(views))
	for i, v := range views {
		moves[i] = v.g.stillMoves(now)
	}
	b.r.mu.Unlock() // an explanation takes as long as a compilation
	name := strings.ToLower(strings.TrimSuffix(q.Host, ".")) + "."
	out := control.Explained{Name: name, Blocks: []control.ExplainedBlock{}}
	resolver := q.Resolver
	if !resolver.IsValid() {
		resolver, out.TransportAssumed = q.Client.Addr(), true
	}
	if !resolver.IsValid() {
		return out, &control.Invalid{Field: "client", Text: "neither client nor resolver", Expected: "one of them", Hint: "say whom the answer is for"}
	}
	if err := known(q.View, views); err != nil {
		return out, err
	}
	families := map[string][]steer.Family{"": {steer.V4, steer.V6}, "A": {steer.V4}, "AAAA": {steer.V6}}[q.Type]
	for i, live := range views {
		g := live.g
		zone := plugin.Zones(g.zones).Matches(name)
		if zone == "" || q.View != "" && q.View != g.files.view {
			continue
		}
		block := control.ExplainedBlock{At: g.block.Pos.String(), Zone: zone, View: g.files.view}
		host, exists := live.plan.Find(zone, name)
		switch {
		case host != nil:
			e := live.plan.Explain(host, live.snapshots[host.Index], moves[i], q.Client, resolver, families...)
			raw, err := json.Marshal(e)
			if err != nil {
				return out, err
			}
			block.Explanation = raw
		case g.falls(name):
			block.Unsteered, block.Exists = "fallthrough", exists
		case exists || name == zone:
			block.Unsteered, block.Exists = "nodata", true
		default:
			block.Unsteered = "nxdomain"
		}
		out.Blocks = append(out.Blocks, block)
	}
	if len(out.Blocks) == 0 {
		text := name + " is in no zone of a gslb block"
		if q.View != "" {
			text += " in view " + q.View
		}
		return out, &control.Invalid{Field: "host", Text: text, Missing: true}
	}
	return out, nil
}

// known holds that there is a view of a name; empty is none.
func known(name string, views []view) error {
	var names []string
	for _, v := range views {
		if v.g.files.view != "" {
			names = append(names, v.g.files.view)
		}
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return missingObject("view", name, names)
}
