package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/latency/build"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// geography is what a map is to beat: the regions, and the order in which clients would get
// them without any map.
type geography struct {
	conf, host, view, order, regions *string
}

// geographyFlags are the flags by which commands on maps learn of it.
func geographyFlags(flags interface {
	String(name, value, usage string) *string
}) *geography {
	return &geography{
		conf:    flags.String("conf", "", "the Corefile that a map is for; with -host"),
		host:    flags.String("host", "", "the `name` of the host that a map is for"),
		view:    flags.String("view", "", "the `name` of the view that has the host"),
		order:   flags.String("default-order", "", "without a Corefile, the `regions` in the order that all clients get them, with commas"),
		regions: flags.String("regions", "", "without either, the `regions` that may be measured, with commas"),
	}
}

// read gives the regions and the order without a map; nil if that is not known.
func (g *geography) read() (regions []string, order build.Geography, err error) {
	given := 0
	for _, s := range []string{*g.conf, *g.order, *g.regions} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, nil, fmt.Errorf("expected one of -conf with -host, -default-order, and -regions")
	case (*g.conf == "") != (*g.host == ""):
		return nil, nil, fmt.Errorf("expected -conf and -host together")
	case *g.conf == "" && *g.view != "":
		return nil, nil, fmt.Errorf("-view: expected -conf with it")
	case *g.regions != "":
		return splitWords(*g.regions), nil, nil
	case *g.order != "":
		regions = splitWords(*g.order)
		all := make([]uint8, len(regions))
		for i := range all {
			all[i] = uint8(i)
		}
		return regions, func(build.Kind, netip.Prefix) []uint8 { return all }, nil
	}
	return g.ofCorefile()
}

// splitWords splits at commas.
func splitWords(s string) (words []string) {
	for word := range strings.SplitSeq(s, ",") {
		words = append(words, strings.TrimSpace(word))
	}
	return words
}

// ofCorefile asks a host's topology, compiled without latency maps.
func (g *geography) ofCorefile() (regions []string, order build.Geography, err error) {
	blocks, err := readCorefile(*g.conf)
	if err != nil {
		return nil, nil, err
	}
	name := nameOf(*g.host)
	for i := range blocks {
		s := &blocks[i]
		if len(s.tokens) == 0 || s.view != *g.view {
			continue
		}
		for _, k := range s.keys {
			if !within(k.zone, name) {
				continue
			}
			p, err := s.buildWithoutMaps()
			if err != nil {
				return nil, nil, err
			}
			if h, _ := p.Find(k.zone, name); h != nil {
				regions, order = candidatesOf(p, h)
				return regions, order, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("%s: no gslb block%s has a host %s", *g.conf, inView(*g.view), name)
}

func inView(view string) string {
	if view == "" {
		return ""
	}
	return " in view " + view
}

// buildWithoutMaps makes the plan of the block as if no latency map were named.
func (s *serverBlock) buildWithoutMaps() (*plan.Plan, error) {
	zones := make([]string, len(s.keys))
	for i, k := range s.keys {
		zones[i] = k.zone
	}
	block, err := config.Parse(zones, s.tokens)
	if err != nil {
		return nil, err
	}
	for i := range block.Hosts {
		block.Hosts[i].Latency = nil
	}
	return plan.Build(block, plan.Options{Root: s.root})
}

// candidatesOf gives the regions of the block, and the candidates of a host by
// their numbers.
func candidatesOf(p *plan.Plan, h *plan.Host) (regions []string, order build.Geography) {
	for _, r := range p.Block.Regions {
		regions = append(regions, r.Name)
	}
	orders := make([][]uint8, len(h.Need.Topology.Lists))
	for i := range orders {
		orders[i] = []uint8{}
		add := func(name string) {
			if r := slices.Index(regions, name); r >= 0 && !slices.Contains(orders[i], uint8(r)) {
				orders[i] = append(orders[i], uint8(r))
			}
		}
		list := &h.Need.Topology.Lists[i]
		add(h.First(i)) // of a split, the one of most weight
		for _, w := range list.Split {
			add(h.Need.Input.Regions[w.Region].Name)
		}
		for _, r := range list.Order {
			add(h.Need.Input.Regions[r].Name)
		}
	}
	return regions, func(kind build.Kind, prefix netip.Prefix) []uint8 {
		if kind == build.Resolvers {
			return orders[h.Locate(netip.Prefix{}, prefix.Addr()).List]
		}
		return orders[h.Locate(prefix, netip.Addr{}).List]
	}
}
