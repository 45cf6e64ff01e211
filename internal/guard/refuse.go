package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Refusal is a guard that a change doesn't pass, by the word of its statement,
// and why, in a sentence.
type Refusal struct {
	Guard, Why string
}

// String is the guard and why.
func (r Refusal) String() string { return "guard " + r.Guard + ": " + r.Why }

// enough is how many resolutions must have been observed for them to be held
// against a change: a few say nothing of what is usual.
const enough = 1000

// Refusals are the guards of a block that a change with this report doesn't pass.
// after is the block's side after the change.
func Refusals(g *config.Guard, r *Report, after *Side) (list []Refusal) {
	refuse := func(guard, format string, args ...any) {
		list = append(list, Refusal{guard, fmt.Sprintf(format, args...)})
	}
	for _, s := range r.Stranded {
		fenced := ""
		if s.Fenced {
			fenced = ", fenced"
		}
		refuse("usable", "host %s (%s) would have no usable region for %d candidate lists, such as [%s]%s",
			s.Host, s.Family, s.Lists, strings.Join(s.Regions, " "), fenced)
	}
	if 100*r.Blocks > g.MaxMove+0.01 {
		refuse("max_move", "%.1f%% of blocks would get another region, more than %g%%", 100*r.Blocks, g.MaxMove)
	} else if r.Total >= enough && 100*r.Demand > g.MaxMove+0.01 {
		refuse("max_move", "%.1f%% of the observed demand would get another region, more than %g%%", 100*r.Demand, g.MaxMove)
	}
	for _, q := range g.Require {
		if host, in := unmet(q, after); host != "" {
			refuse("require", "host %s would have [%s] of [%s] in use, fewer than %d", host, strings.Join(in, " "), strings.Join(q.Regions, " "), q.Count)
		}
	}
	if g.MaxUse > 0 {
		for _, s := range r.Regions {
			if use := r.Use[s.Region]; 100*use.After > g.MaxUse+0.01 && use.After > use.Before+tiny {
				refuse("max_use", "region %s is expected at %.0f%% of its capacity, more than %g%%", s.Region, 100*use.After, g.MaxUse)
			}
		}
	}
	return list
}

// Hosts refuses a plan with fewer hosts than the block's guard has it.
func Hosts(p *plan.Plan) []Refusal {
	if n := len(p.Hosts); n < p.Block.Guard.Hosts {
		return []Refusal{{"hosts", fmt.Sprintf("%d hosts, fewer than %d: an import that matches no file leaves hosts out without an error", n, p.Block.Guard.Hosts)}}
	}
	return nil
}

// unmet gives a host of which fewer of the regions are in use than required,
// and those that are. A host with pools in fewer of them has no say.
func unmet(q config.Require, s *Side) (host string, in []string) {
	for i, h := range s.Plan.Hosts {
		pooled := 0
		in = nil
		for r, info := range h.Need.Input.Regions {
			if !slices.Contains(q.Regions, info.Name) || !info.Pooled {
				continue
			}
			pooled++
			if inUse(h, s.Snapshots[i], steer.Region(r)) {
				in = append(in, info.Name)
			}
		}
		if pooled >= q.Count && len(in) < q.Count {
			return h.Config.Names[0], in
		}
	}
	return "", nil
}

// inUse tells whether a region takes clients of a host, of any family.
func inUse(h *plan.Host, s *steer.Snapshot, r steer.Region) bool {
	for f := steer.V4; f <= steer.V6; f++ {
		if st := s.Region(r, f); h.Steer.Offers(f) && st.Usable && st.Dial > 0 {
			return true
		}
	}
	return false
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

// Error puts refusals into one error for a place in the configuration.
func Error(pos config.Pos, list []Refusal) error {
	if len(list) == 0 {
		return nil
	}
	var texts []string
	for _, r := range list {
		texts = append(texts, r.String())
	}
	return fmt.Errorf("%s: refused, what is in service stays: %s; if it is meant, write `guard accept \"WHY\" until TIME`", pos, strings.Join(texts, "; "))
}
