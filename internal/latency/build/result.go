package build

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// Result is a map and how it came to be.
type Result struct {
	Map    *latency.Map
	Report *Report
}

// Build makes the map of all that was added. The builder can't be used again
// but to be closed.
func (b *Builder) Build() (*Result, error) {
	clients, resolvers := newChooser(&b.o, Clients), newChooser(&b.o, Resolvers)
	if err := b.bad.check(b.lines, b.o.MaxBad); err != nil {
		return nil, err
	}
	if b.oldest > b.newest && !b.o.Force {
		return nil, b.nothing()
	}
	recent := b.recent()
	half := b.o.HalfLife.Hours() / 24
	poolers := [2]*pooler{newPooler(clients, half, b.newest, recent), newPooler(resolvers, half, b.newest, recent)}
	capped, err := b.each(func(c *cell) error {
		poolers[c.key.kind()].add(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	report := b.report(capped)
	from, until := b.o.Until.Add(-b.o.Window), b.o.Until
	m := &latency.Map{
		Built: utc(b.o.Built), From: utc(from), Until: utc(until), Regions: b.o.Regions,
	}
	for k, p := range poolers {
		p.end()
		side, entries := p.chooser.finish()
		if Kind(k) == Clients {
			report.Clients, m.Clients = side, entries
		} else {
			report.Resolvers, m.Resolvers = side, entries
		}
		m.Demand[k] = p.chooser.measured()
		if err := p.chooser.halved(entries); err != nil {
			return nil, err
		}
	}
	return &Result{m, report}, nil
}

// nothing is the error for inputs of which nothing counts: a map of them would be empty.
func (b *Builder) nothing() error {
	text := fmt.Sprintf("no measurements from %s until %s in %d lines: a map of them would have no entries; look at the inputs, -until and -window, or use -force",
		utc(b.o.Until.Add(-b.o.Window)).Format(time.RFC3339), utc(b.o.Until).Format(time.RFC3339), b.lines)
	for _, r := range b.bad.rejected() {
		text += fmt.Sprintf("\n  %d  %s", r.Lines, r.Reason)
	}
	return errors.New(text)
}

func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// each calls yield for each cell in order, and writes sketches of them if asked to.
func (b *Builder) each(yield func(*cell) error) (capped [2]uint64, err error) {
	if err := b.bad.check(b.lines, b.o.MaxBad); err != nil {
		return capped, err
	}
	records, cells, err := b.sorted()
	if err != nil {
		return capped, err
	}
	g := &grouper{records: records, cells: cells, caps: [2]int{b.o.sourceCap(Clients), b.o.sourceCap(Resolvers)}}
	var sketches *sketchWriter
	if b.o.Sketches != nil {
		if sketches, err = newSketchWriter(b); err != nil {
			return capped, err
		}
	}
	before := key(0)
	for n := int64(0); ; n++ {
		c, err := g.next()
		if err != nil || c == nil {
			if err == nil && sketches != nil {
				err = sketches.close()
			}
			return g.capped, err
		}
		if sketches != nil && b.wholeDay(c.day) {
			if err := sketches.write(c); err != nil {
				return capped, err
			}
		}
		if err := yield(c); err != nil {
			return capped, err
		}
		if n&0xffff == 0 || c.key < before {
			b.progress("deciding", int64(c.key>>32), 1<<32)
		}
		before = c.key
	}
}

// finish holds the choices to the budget and makes entries of them.
func (c *chooser) finish() (*Side, []latency.Entry) {
	c.addSilent()
	s := c.budget()
	pieces := c.partition(true)
	if normal, _ := c.limits(c.measured()); s.normal+c.along(pieces) > normal {
		pieces = c.partition(false)
	}
	var entries []latency.Entry
	for i := range pieces {
		if p := &pieces[i]; p.region != none {
			entries = append(entries, c.entryOf(p))
		}
	}
	return c.side(&s, pieces, len(entries)), entries
}

// along is the demand of leaves that change only because their neighbours do.
func (c *chooser) along(pieces []piece) (demand uint64) {
	for i := range pieces {
		p := &pieces[i]
		for at := p.from; at < p.to; at++ {
			if l := &c.leaves[at]; !l.moves && l.current() != none && l.after(p) != l.current() {
				demand += uint64(l.demand)
			}
		}
	}
	return demand
}

// after is the region that a leaf has with its piece in service.
func (l *leaf) after(p *piece) uint8 {
	if p.region == none {
		return l.geo
	}
	return p.region
}
