package config

import (
	"slices"
	"time"
)

// WarningsAt gives what the operator should know of schedules when the block
// is loaded at now: what is over and done, and what will surprise. It is safe
// for concurrent use.
func (b *Block) WarningsAt(now time.Time) []Warning {
	w := &Block{Hosts: b.Hosts, Regions: b.Regions} // for its warnings
	for i := range b.Regions {
		w.warnTimes(&b.Regions[i].Levers, quoted("region", b.Regions[i].Name), now)
	}
	for i := range b.Hosts {
		h := &b.Hosts[i]
		for k := range h.Pools {
			w.warnTimes(&h.Pools[k].Levers, "the pool of "+quoted("region", h.Pools[k].Region), now)
		}
		w.warnDrains(h, now)
	}
	for _, a := range b.Guard.Accepted {
		if !a.Until.After(now) {
			w.note(a.Pos, "guard accept is over since "+a.Until.Format(time.RFC3339)+": remove it")
		}
	}
	return w.Warnings
}

// warnTimes notes lines that are over, and traffic before a soak begins.
func (b *Block) warnTimes(l *Levers, of string, now time.Time) {
	over(b, "drain", l.Drain, now)
	over(b, "dial", l.Dial, now)
	over(b, "share", l.Share, now)
	first := -1
	for i, s := range l.Share {
		if !s.When.From.After(now) {
			return // holds, has held, or comes back every day
		}
		if first < 0 || s.When.From.Before(l.Share[first].When.From) {
			first = i
		}
	}
	if first >= 0 && !l.Share[first].Off {
		s := l.Share[first]
		b.note(s.Pos, "until "+s.When.From.Format(time.RFC3339)+" "+of+" is an ordinary candidate: to keep clients away until then, write `share 0%` as well")
	}
}

func over[L scheduled](b *Block, word string, lines []L, now time.Time) {
	for _, line := range lines {
		if until := line.when().Until; !until.IsZero() && !until.After(now) {
			b.note(line.pos(), word+" is over since "+until.Format(time.RFC3339)+": remove it")
		}
	}
}

// warnDrains notes the first time at which schedules drain a host altogether.
func (b *Block) warnDrains(h *Host, now time.Time) {
	var lines []When
	for i := range h.Pools {
		for _, d := range b.LeversOf(&h.Pools[i]).Drain {
			lines = append(lines, d.When)
		}
	}
	if len(lines) > maxHostLines || b.drained(h, h.regions(), time.Time{}) {
		return // too many to tell, or told already
	}
	for _, t := range moments(lines, now) {
		if b.drained(h, h.regions(), t) {
			b.note(h.Pos, "host "+h.title()+": at "+t.Format(time.RFC3339)+" every endpoint is drained: "+h.whenDrained())
			return
		}
	}
}

// warnLevers notes what is written and can have no effect.
func (b *Block) warnLevers() {
	for i := range b.Regions {
		r := &b.Regions[i]
		var pools []*Pool
		for k := range b.Hosts {
			if p := b.Hosts[k].poolOf(r.Name); p != nil {
				pools = append(pools, p)
			}
		}
		b.warnIdle(&r.Levers, quoted("region", r.Name), "region", len(b.Regions) == 1, pools)
	}
	for i := range b.Hosts {
		for k := range b.Hosts[i].Pools {
			p := &b.Hosts[i].Pools[k]
			b.warnIdle(&p.Levers, "the pool of "+quoted("region", p.Region), "pool of its host", len(b.Hosts[i].Pools) == 1, []*Pool{p})
		}
	}
	b.warnCapacity()
	targeted := func(h Host) bool { return h.targeted() }
	if b.Resolvers != nil && !slices.ContainsFunc(b.Hosts, targeted) {
		b.note(b.Resolvers.Pos, "no pool has a target, which is all that resolvers are for")
	}
}

// warnIdle notes levers of what has the pools that nothing can come of.
func (b *Block) warnIdle(l *Levers, of, kind string, alone bool, pools []*Pool) {
	checked := slices.ContainsFunc(pools, func(p *Pool) bool { return len(p.Checks) > 0 })
	ramps := l.Ramp != nil && l.Ramp.Value > 0
	switch {
	case ramps && alone:
		b.note(l.Ramp.Pos, "ramp of "+of+", the only "+kind+": no other can serve meanwhile")
	case ramps && len(pools) > 0 && !checked:
		b.note(l.Ramp.Pos, "ramp of "+of+": no pool there has a check, so there is no return from an outage")
	}
	if alone && l.Trickle != nil && l.Trickle.Value > 0 {
		b.note(l.Trickle.Pos, "trickle of "+of+", the only "+kind+": there is no next one to get it")
	}
	for _, d := range l.Dial {
		if alone && d.Percent < 100 {
			b.note(d.Pos, "dial of "+of+", the only "+kind+": no other can take what it leaves")
		}
	}
	if i := slices.IndexFunc(l.Drain, func(d Drain) bool { return d.When == When{} }); i >= 0 && len(l.Drain) > 1 {
		b.note(l.Drain[i].Pos, of+" is drained without a time, so its other lines of drain have no effect")
	}
}

// warnCapacity notes what needs a capacity and finds none, and capacities without a load.
func (b *Block) warnCapacity() {
	for i := range b.Regions {
		b.warnUnread(&b.Regions[i].Levers, quoted("region", b.Regions[i].Name))
	}
	limited := false
	for i := range b.Hosts {
		h := &b.Hosts[i]
		capable := slices.ContainsFunc(h.Pools, func(p Pool) bool { return b.LeversOf(&p).Capacity != nil })
		limited = limited || capable
		for k := range h.Pools {
			b.warnUnread(&h.Pools[k].Levers, "the pool of "+quoted("region", h.Pools[k].Region))
		}
		if h.Shed != nil && !capable {
			b.note(h.Shed.Pos, "shed to "+h.Shed.Name+" of host "+h.title()+": no region or pool of it has a capacity, so none is ever full")
		}
	}
	if b.Guard.MaxUse > 0 && !limited {
		b.note(b.guards["max_use"], "guard max_use: no region or pool has a capacity to compare with")
	}
}

// warnUnread notes a capacity of whose load nothing is ever heard.
func (b *Block) warnUnread(l *Levers, of string) {
	if c := l.Capacity; c != nil && l.Load == nil {
		b.note(c.Pos, "capacity of "+of+" has no `load`: it is taken for filled to its target, so what others spill finds no room there, and nothing spills from it; "+
			"to have it go by what comes, write `load`")
	}
}
