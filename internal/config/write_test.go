package config_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// writer writes a block out in full, without policies and unwritten values.
type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func write(b *config.Block) string {
	w := &writer{}
	w.line("gslb %s {", strings.Join(b.Zones, " "))
	for _, g := range b.GeoIP {
		w.line("geoip %s %s%s", g.Kind, quote(g.Path), when(g.Optional, " optional"))
	}
	for _, n := range b.Nets {
		w.line("nets %s", quote(n.Path))
	}
	for _, r := range b.Regions {
		w.region(b, r)
	}
	w.steering(b)
	for _, a := range b.Areas {
		for _, m := range a.Lines {
			w.line("area %s %s", a.Name, match(m))
		}
	}
	for _, f := range b.Fences {
		w.line("fence %s %s", f.Area, strings.Join(f.Regions, " "))
	}
	for _, r := range b.Rules {
		if r.Region == "" {
			w.rule(r)
		}
	}
	w.zone(b)
	for _, c := range b.Checks {
		w.check(c)
	}
	for _, h := range b.Hosts {
		w.host(h)
	}
	w.line("}")
	return w.String()
}

func (w *writer) zone(b *config.Block) {
	if b.ECS.Off {
		w.line("ecs off")
	} else {
		w.line("ecs {\nmax %d %d\nfill %s", b.ECS.Max4, b.ECS.Max6, map[bool]string{true: "off", false: "on"}[b.ECS.NoFill])
		if len(b.ECS.From) > 0 {
			w.line("from %s", join(b.ECS.From))
		}
		w.line("}")
	}
	if b.SOA != nil {
		w.line("soa %s %s minimum %s", b.SOA.MName, b.SOA.RName, b.SOA.Minimum)
	}
	if len(b.NS) > 0 {
		w.line("ns %s", strings.Join(b.NS, " "))
	}
	if b.Fallthrough != nil {
		w.line("fallthrough %s", strings.Join(b.Fallthrough.Zones, " "))
	}
	for i, c := range b.Beacons {
		w.Builder.WriteString(when(i == 0, "beacon ") + c.AddrPort.String() + " ")
	}
	w.line("")
	if b.State != nil {
		w.line("state %s", quote(b.State.Path))
	}
	w.line("depth %d", b.Depth)
	if b.WhoAmI != "" {
		w.line("whoami %s", b.WhoAmI)
	}
}

func (w *writer) region(b *config.Block, r config.Region) {
	w.line("region %s {", r.Name)
	if r.Location != nil {
		w.line("location %v %v", r.Location.Lat, r.Location.Lon)
	}
	if r.Next != nil {
		w.line("next %s%s", strings.Join(r.Next, " "), when(r.NextRest, " rest"))
	}
	for _, rule := range b.Rules {
		if rule.Region == r.Name {
			w.line("clients %s", clients(rule))
		}
	}
	w.levers(r.Levers)
	w.line("}")
}

func (w *writer) rule(r config.Rule) {
	w.line("clients %s {", clients(r))
	if r.Refuse {
		w.line("refuse")
	}
	if len(r.List.Split) > 0 {
		list := "split"
		for _, s := range r.List.Split {
			list += fmt.Sprintf(" %s %d", s.Name, s.Weight)
		}
		w.line("%s", list)
	}
	if len(r.List.Order) > 0 {
		w.line("order %s%s", strings.Join(r.List.Order, " "), when(r.List.Rest, " rest"))
	}
	w.line("}")
}

func (w *writer) host(h config.Host) {
	w.line("host %s {", strings.Join(h.Names, " "))
	w.line("ttl %d", h.TTL)
	w.line("ttl_floor %s", strings.Replace(fmt.Sprint(h.TTLFloor), "-1", "off", 1))
	w.line("spread %s%s", h.Spread, when(h.Spread == config.Sticky, fmt.Sprintf(" %d %d", h.Grain4, h.Grain6)))
	w.line("families %s", h.Families)
	w.line("spill_below %s%%\nmax_down %s%%", number(h.SpillBelow), number(h.MaxDown))
	w.line("last_resort %s %s %s", h.LastResort.Kind, strings.Join(h.LastResort.Regions, " "), join(h.LastResort.Addresses))
	w.line("%s", when(h.FencedOK, "fenced_ok"))
	if h.Latency != nil {
		w.line("latency %s max_age %s", quote(h.Latency.Path), h.Latency.MaxAge)
	}
	if h.Shed != nil {
		w.line("shed to %s", h.Shed.Name)
	}
	for _, r := range h.Rules {
		w.rule(r)
	}
	for _, p := range h.Pools {
		w.pool(p)
	}
	w.line("}")
}

func (w *writer) pool(p config.Pool) {
	w.line("pool %s {", p.Region)
	for _, e := range p.Endpoints {
		w.line("endpoint %s weight %d %s%s", e.Addr, e.Weight, e.State, probe(e.Probe))
	}
	for _, t := range p.Targets {
		w.line("target %s weight %d %s%s", t.Name, t.Weight, t.State, when(t.Probe > 0, fmt.Sprintf(" probe :%d", t.Probe)))
	}
	if len(p.Targets) > 0 {
		w.line("keep %s\n%s", p.Keep, when(p.CName, "cname"))
	}
	w.levers(p.Levers)
	if p.Checks != nil {
		w.line("check %s", strings.Join(p.Checks, " "))
	}
	if p.Answers == 0 {
		w.line("answers all")
	} else {
		w.line("answers %d", p.Answers)
	}
	if p.MinHealthy.IsPct {
		w.line("min_healthy %s%%", number(p.MinHealthy.Percent))
	} else {
		w.line("min_healthy %d", p.MinHealthy.Count)
	}
	w.line("}")
}

func clients(r config.Rule) string {
	if r.Rest {
		return "rest"
	}
	return match(r.Match)
}

func match(m config.Match) string {
	var alts []string
	for _, a := range m.Alts {
		alts = append(alts, fmt.Sprintf("%s %s %s %s %s", a.Kind, strings.Join(a.Codes, " "), join(a.ASNs), join(a.Prefixes), quoteAny(a.File)))
	}
	return strings.Join(alts, " in ")
}

// number writes a percentage as the language has it.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func probe(p netip.AddrPort) string {
	switch {
	case !p.IsValid():
		return ""
	case p.Port() == 0:
		return " probe " + p.Addr().String()
	}
	return " probe " + p.String()
}

func quoteAny(file string) string {
	if file == "" {
		return ""
	}
	return quote(file)
}

func join[T any](list []T) string { return strings.Trim(fmt.Sprint(list), "[]") }

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
