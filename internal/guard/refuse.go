package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// Refusal is a guard that a change doesn't pass, by the word of its statement,
// and why, in a sentence. Line is that of the statement where the block has several
// of them; 0: the first.
type Refusal struct {
	Guard, Why string
	Line       config.Pos
}

// String is the guard and why.
func (r Refusal) String() string { return "guard " + r.Guard + ": " + r.Why }

// enough is how many resolutions must have been observed for them to be held
// against a change: a few say nothing of what is usual.
const enough = 1000

// slack is how much, in points of a percentage, may be the rounding of what was written.
const slack = 0.01

// Refusals are the guards of a block that a change with this report doesn't pass.
// after is the block's side after the change.
func Refusals(g *config.Guard, r *Report, after *Side) (list []Refusal) {
	list = append(r.lost(g, after), r.moves(g)...)
	if r.Subnets != "" && g.MaxMove < 100 {
		list = append(list, Refusal{Guard: "max_move", Why: fmt.Sprintf("%s: it isn't known how many clients would get another region by that; the limit is %g%%", r.Subnets, g.MaxMove)})
	}
	if g.MaxUse == 0 {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(r.Use)) {
		if use := r.Use[name]; 100*use.After > g.MaxUse+slack && use.After > use.Before+tiny {
			list = append(list, Refusal{Guard: "max_use", Why: fmt.Sprintf("%s would be expected at %.0f%% of its capacity, now %.0f%%; the limit is %g%%",
				name, 100*use.After, 100*use.Before, g.MaxUse)})
		}
	}
	return list
}

// lost are the refusals for what would be lost rather than moved.
func (r *Report) lost(g *config.Guard, after *Side) []Refusal {
	list := r.usable()
	for _, q := range g.Require {
		list = append(list, r.require(q, after)...)
	}
	return list
}

// shown is how many of a kind a sentence names.
const shown = 3

func (r *Report) usable() (list []Refusal) {
	for i, s := range r.Stranded {
		if i == shown {
			return append(list, Refusal{Guard: "usable", Why: fmt.Sprintf("and %d more hosts or families", len(r.Stranded)-i)})
		}
		fenced := ""
		if s.Fenced {
			fenced = ", which a fence holds there"
		}
		list = append(list, Refusal{Guard: "usable", Why: fmt.Sprintf("host %s (%s) would have no usable region left for %.1f%% of its blocks: those with the candidate list [%s]%s%s",
			s.Host, s.Family, 100*s.Blocks, strings.Join(s.Regions, " "), fenced, more(s.Lists-1, "other list"))})
	}
	return list
}

// more tells of n others.
func more(n int, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and 1 " + what
	}
	return fmt.Sprintf(", and %d %ss", n, what)
}

// moves refuses what moves too much at once, by any measure. Demand has a say where it is
// known well enough.
func (r *Report) moves(g *config.Guard) []Refusal {
	var parts []string
	var by func(Move) float64 // of the first that is too much
	measure := func(part float64, of string, move func(Move) float64) {
		if 100*part <= g.MaxMove+slack {
			return
		}
		if parts = append(parts, fmt.Sprintf("%.1f%% of %s", 100*part, of)); by == nil {
			by = move
		}
	}
	measure(r.Blocks, "the blocks of "+r.Kind, func(m Move) float64 { return m.Blocks })
	measure(r.Space, "the address space of "+r.SpaceKind, func(m Move) float64 { return m.Space })
	if r.Total >= enough {
		measure(r.Demand, "the demand of late", func(m Move) float64 { return m.Demand })
	}
	if len(parts) == 0 {
		return nil
	}
	why := fmt.Sprintf("%s would get another region at once; the limit is %g%%", strings.Join(parts, " and "), g.MaxMove)
	var most []string
	for _, m := range slices.SortedStableFunc(slices.Values(r.Moves), func(a, b Move) int { return cmp.Compare(by(b), by(a)) }) {
		if m.From != Nowhere && by(m) >= 0.0005 && len(most) < shown {
			most = append(most, fmt.Sprintf("%.1f%% from %s to %s", 100*by(m), m.From, m.To))
		}
	}
	if len(most) > 0 {
		why += " (" + strings.Join(most, ", ") + ")"
	}
	return []Refusal{{Guard: "max_move", Why: why}}
}

// require refuses what leaves a host fewer regions than required, and fewer than it had:
// what an outage has brought about is no change's fault. A host with pools in fewer
// of the regions has no say.
func (r *Report) require(q config.Require, after *Side) (list []Refusal) {
	hosts := 0
	for _, u := range r.served {
		if !slices.Contains(after.Plan.Hosts, u.host) {
			continue
		}
		pooled, is := 0, among(u.after, q.Regions)
		for i := range u.host.Config.Pools {
			if slices.Contains(q.Regions, u.host.Config.Pools[i].Region) {
				pooled++
			}
		}
		if pooled < q.Count || len(is) >= q.Count || u.known && len(is) >= len(among(u.before, q.Regions)) {
			continue
		}
		if hosts++; hosts > 1 {
			continue
		}
		left := "none"
		if len(is) > 0 {
			left = "only " + strings.Join(is, " ")
		}
		list = append(list, Refusal{Guard: "require", Line: q.Pos, Why: fmt.Sprintf("host %s would have %s of [%s] in use; required are %d",
			u.host.Config.Names[0], left, strings.Join(q.Regions, " "), q.Count)})
	}
	if hosts > 1 {
		list[0].Why += more(hosts-1, "more host")
	}
	return list
}

// among are those of the names that are in a list.
func among(names, list []string) (in []string) {
	for _, n := range names {
		if slices.Contains(list, n) {
			in = append(in, n)
		}
	}
	return in
}

// Hosts refuses a plan with fewer hosts than the block's guard has it.
func Hosts(p *plan.Plan) []Refusal {
	if n := len(p.Hosts); n < p.Block.Guard.Hosts {
		return []Refusal{{Guard: "hosts", Why: fmt.Sprintf("the block has %d hosts, fewer than %d: look for an import that matches no file, as that leaves hosts out without an error", n, p.Block.Guard.Hosts)}}
	}
	return nil
}

// Gone refuses to leave out hosts that are in service: more of them than max_move
// has it. served are the names in service, gone those that nothing answers for after.
func Gone(g *config.Guard, served, gone []string) []Refusal {
	if len(served) == 0 || 100*float64(len(gone))/float64(len(served)) <= g.MaxMove+slack {
		return nil
	}
	names := slices.Sorted(slices.Values(gone))
	names = names[:min(len(names), shown)]
	return []Refusal{{Guard: "hosts", Why: fmt.Sprintf("%d of the %d host names in service would be gone, such as %s, more than max_move %g%%: look for an import that matches no file, as that leaves hosts out without an error",
		len(gone), len(served), strings.Join(names, " "), g.MaxMove)}}
}

// Accepted gives the reason of a guard accept statement that holds at the time,
// if there is one.
func Accepted(g *config.Guard, now time.Time) (string, bool) {
	for _, a := range g.Accepted {
		if now.Before(a.Until) {
			return a.Reason, true
		}
	}
	return "", false
}

// Error puts refusals into one error that says where the guards are written, and what
// to do; nil if there are none.
func Error(b *config.Block, list []Refusal, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	var texts []string
	for _, r := range list {
		pos := r.Line
		if pos.Line == 0 {
			pos = b.GuardPos(r.Guard)
		}
		texts = append(texts, fmt.Sprintf("%s: %s", pos, r))
	}
	return fmt.Errorf("refused: %s. If it is meant, write `guard accept \"WHY\" until %s` into the gslb block at %s",
		strings.Join(texts, "; "), now.Add(time.Hour).UTC().Format(time.RFC3339), b.Pos)
}
