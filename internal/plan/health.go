package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Seen is what the probes of one check say of an endpoint.
type Seen struct {
	Check *check.Check
	State *probe.State
}

// Judge is the state of an endpoint: what is written, else the worst of what its
// checks say, for all must pass. Without either it is up.
func Judge(e *config.Endpoint, seen []Seen) steer.EndpointState {
	if e.State != config.StateAuto || len(seen) == 0 {
		return Written(e)
	}
	var worst steer.EndpointState
	for i, s := range seen {
		one := steer.EndpointState{Verdict: verdicts[s.State.Assumed], Streak: s.State.Streak, Reason: reason(s)}
		if !s.State.Since.IsZero() {
			one.Since = s.State.Since.UnixNano()
		}
		streak := worst.Streak || one.Streak
		if i == 0 || one.Verdict > worst.Verdict {
			worst = one
		}
		worst.Streak = streak
	}
	return worst
}

// verdicts are what those of probes are to a decision. An unknown endpoint is
// taken for something, see probe.State.Assumed.
var verdicts = map[probe.Verdict]steer.Verdict{
	probe.VerdictUp: steer.Up, probe.VerdictFull: steer.Full, probe.VerdictDown: steer.Down,
}

// reason says what a check's verdict is, since when, and the last reasons.
func reason(s Seen) string {
	text := fmt.Sprintf("%s: %s since %s", s.Check.Name, s.State.Verdict, s.State.Since.UTC().Format(time.RFC3339))
	if s.State.Verdict == probe.VerdictUnknown {
		text = fmt.Sprintf("%s: never probed, taken for %s", s.Check.Name, s.State.Assumed)
		if !s.State.LastAt.IsZero() {
			text = fmt.Sprintf("%s: unknown, last probed %s, taken for %s", s.Check.Name, s.State.LastAt.UTC().Format(time.RFC3339), s.State.Assumed)
		}
	}
	switch {
	case s.State.Held:
		text += ", held down: it changed too often within the hour"
	case s.State.Waiting:
		text += ", until an operator returns it"
	}
	if s.State.Assumed == probe.VerdictUp && !s.State.Streak {
		return text
	}
	var reasons []string
	for _, n := range s.State.Notes {
		if !slices.Contains(reasons, n.Reason) {
			reasons = append(reasons, n.Reason)
		}
	}
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons, "; before that ")
	}
	return text
}

// Target is what the probes of an endpoint go to: its own address, or what is
// written for it.
func Target(h *config.Host, e *config.Endpoint) probe.Target {
	t := probe.Target{Addr: e.Addr, Name: strings.TrimSuffix(cmp.Or(e.Target, h.Names[0]), ".")}
	if e.Probe.IsValid() {
		t.Addr, t.Port = e.Probe.Addr(), e.Probe.Port()
	}
	return t
}

// Checks gives the checks of a pool.
func (p *Plan) Checks(pool *config.Pool) []*check.Check {
	var list []*check.Check
	for _, name := range pool.Checks {
		for i := range p.Block.Checks {
			if c := &p.Block.Checks[i].Check; c.Name == name {
				list = append(list, c)
			}
		}
	}
	return list
}

// Remembered gives the verdicts that a server saved, for those who have no
// probes of their own.
func (p *Plan) Remembered(saved map[string]probe.Saved, now time.Time) func(*config.Endpoint) steer.EndpointState {
	seen := make(map[*config.Endpoint][]Seen)
	for i := range p.Hosts {
		h := p.Hosts[i].Config
		for j := range h.Pools {
			pool := &h.Pools[j]
			for _, c := range p.Checks(pool) {
				for k := range pool.Endpoints {
					e := &pool.Endpoints[k]
					seen[e] = append(seen[e], remember(c, saved[probe.KeyOf(c, Target(h, e)).String()], now))
				}
			}
		}
	}
	return func(e *config.Endpoint) steer.EndpointState { return Judge(e, seen[e]) }
}

func remember(c *check.Check, saved probe.Saved, now time.Time) Seen {
	m := probe.NewMachine(c, saved, now)
	s := &probe.State{Verdict: saved.Verdict, Assumed: m.Assumed(), Since: saved.Since, LastAt: saved.At, Notes: saved.Notes, Held: m.Held(), Waiting: m.Waiting()}
	if now.Sub(saved.At) > c.InitialAge {
		s.Verdict = probe.VerdictUnknown
	}
	return Seen{c, s}
}

// prepareChecks holds that every check can be carried out here, and puts the
// paths of its files under the root.
func prepareChecks(b *config.Block, root string) error {
	for i := range b.Checks {
		c := &b.Checks[i].Check
		for _, path := range []*string{&c.CA, &c.Cert, &c.Key} {
			if *path != "" {
				*path = Join(root, *path)
			}
		}
		c.Report = reported(b, c.Name)
		if err := probe.Validate(c); err != nil {
			return fmt.Errorf("%s: check %s: %w", b.Checks[i].Pos, c.Name, err)
		}
		runner, err := probe.New(c)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Checks[i].Pos, err)
		}
		runner.Close()
	}
	return nil
}

// reported are the headers of a check's answers that loads are read from.
func reported(b *config.Block, check string) (names []string) {
	note := func(l *config.Load) {
		if l != nil && l.Kind == config.LoadHeader && l.Check == check && !slices.Contains(names, l.Header) {
			names = append(names, l.Header)
		}
	}
	for i := range b.Regions {
		note(b.Regions[i].Levers.Load)
	}
	for i := range b.Hosts {
		for j := range b.Hosts[i].Pools {
			note(b.Hosts[i].Pools[j].Levers.Load)
		}
	}
	return names
}
