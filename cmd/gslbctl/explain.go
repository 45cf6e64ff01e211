package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

const explainHelp = `Usage: gslbctl explain [flags] NAME [CLIENT]

Tells what the server answers to a query for NAME, and why. It works from the
Corefile and its data files, and from what the server saves if it has a state
directory: verdicts, addresses of targets, overrides. Without one, endpoints with
checks are never probed, and targets not resolved. What the law of capacity admits,
and how far a region has come back after an outage, only the server knows: with
-control running servers are asked instead.

CLIENT is an address or a prefix, taken as the client subnet that a resolver
sends. Of an address that is its /24 or /56, as resolvers do; -exact sends it
whole. Without CLIENT, or with -, the query has no client subnet; then -resolver
says where it comes from. Without -resolver it comes from CLIENT's own address.

Flags may stand anywhere:
`

// Lengths that resolvers cut client subnets to (RFC 7871, section 11.1).
const (
	sent4 = 24
	sent6 = 56
)

// request is what is to be explained.
type request struct {
	name      string
	subnet    netip.Prefix // zero: a query without client subnet
	transport netip.Addr
	assumed   bool // the transport is the client's own address for want of a better one
	families  []steer.Family
	view      string
}

// report is what explain prints; its JSON form is stable.
type report struct {
	Name string `json:"name"`
	// TransportAssumed: no resolver was given, so the transport is the client.
	TransportAssumed bool `json:"transport_assumed"`
	// Blocks are the gslb blocks that can get the query: several with views or ports.
	Blocks []blockReport `json:"blocks"`
}

// blockReport is what one gslb block makes of the query.
type blockReport struct {
	At   string `json:"at"`
	Zone string `json:"zone"`
	View string `json:"view,omitempty"`
	// Unsteered says what is answered for a name that is no host: nodata,
	// nxdomain, or fallthrough when the plugins below are asked.
	Unsteered string `json:"unsteered,omitempty"`
	// Exists says that an unsteered name exists, above a host or as whoami: the
	// plugins below can't deny it.
	Exists      bool              `json:"exists,omitempty"`
	Suggestion  string            `json:"did_you_mean,omitempty"`
	Explanation *plan.Explanation `json:"explanation,omitempty"`
	// StateError is why what the server saved (verdicts, overrides, addresses of targets)
	// can't be read.
	StateError string `json:"state_error,omitempty"`
	// StateMissing: the host has checks or targets, but the block no state directory
	// that verdicts and addresses could be read from.
	StateMissing bool `json:"state_missing,omitempty"`
}

func explain(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("explain", explainHelp, stdout, stderr)
	conf := flags.String("conf", "Corefile", "the `file` to explain")
	resolver := flags.String("resolver", "", "the `address` the query comes from")
	qtype := flags.String("type", "", "`A` or AAAA; both if not given")
	exact := flags.Bool("exact", false, "send CLIENT whole")
	view := flags.String("view", "", "the `name` of the view that takes the query")
	asJSON := flags.Bool("json", false, "write JSON")
	live := connect(flags)
	flags.Lookup("control").Usage = "ask this running `server` instead: unix:/PATH, https://ADDRESS:PORT or http://127.0.0.1:PORT; may be given several times"
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	if len(rest) == 0 || len(rest) > 2 {
		return misuse(flags, "expected NAME and at most one CLIENT")
	}
	req := request{name: nameOf(rest[0]), view: *view}
	if err := req.read(append(rest[1:], "-")[0], *resolver, *qtype, *exact); err != nil {
		return misuse(flags, "%v", err)
	}
	if len(live.names) > 0 {
		return live.explain(&req, *asJSON, stdout, stderr)
	}
	blocks, err := readCorefile(*conf)
	if err != nil {
		return fail(stderr, err)
	}
	r, err := req.explain(*conf, blocks)
	if err != nil {
		return fail(stderr, err)
	}
	if !*asJSON {
		r.print(stdout)
		return exitOK
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(r); err != nil {
		return fail(stderr, err)
	}
	return exitOK
}

// read reads the arguments that say who asks for what.
func (r *request) read(client, resolver, qtype string, exact bool) (err error) {
	switch strings.ToUpper(qtype) {
	case "":
		r.families = []steer.Family{steer.V4, steer.V6}
	case "A":
		r.families = []steer.Family{steer.V4}
	case "AAAA":
		r.families = []steer.Family{steer.V6}
	default:
		return fmt.Errorf("-type %s: expected A or AAAA", qtype)
	}
	if resolver != "" {
		if r.transport, err = netip.ParseAddr(resolver); err != nil {
			return fmt.Errorf("-resolver %s: expected an IP address", resolver)
		}
		r.transport = r.transport.Unmap().WithZone("")
	}
	if client == "-" {
		if !r.transport.IsValid() {
			return fmt.Errorf("neither CLIENT nor -resolver: say whom the answer is for")
		}
		return nil
	}
	if r.subnet, err = subnetOf(client, exact); err != nil {
		return err
	}
	if !r.transport.IsValid() {
		r.transport, r.assumed = r.subnet.Addr().Unmap(), true
	}
	return nil
}

// subnetOf is the client subnet of a client. It keeps all bits of its address,
// so that more can be told than the server sees.
func subnetOf(client string, exact bool) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(client); err == nil {
		return p, nil
	}
	addr, err := netip.ParseAddr(client)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("CLIENT %s: expected an address, or a prefix like 198.51.100.0/24", client)
	}
	bits := addr.BitLen()
	switch {
	case exact:
	case addr.Is4():
		bits = sent4
	case addr.Is4In6(): // the IPv4 address in it is what is cut
		bits = 96 + sent4
	default:
		bits = sent6
	}
	return netip.PrefixFrom(addr, bits), nil
}

// explain asks every gslb block that can get the query.
func (r *request) explain(conf string, blocks []serverBlock) (*report, error) {
	all := &report{Name: r.name, TransportAssumed: r.assumed}
	serving, err := r.serving(conf, blocks)
	if err != nil {
		return nil, err
	}
	for _, s := range serving {
		p, err := s.build()
		if err != nil {
			return nil, err
		}
		zone := plugin.Zones(p.Block.Zones).Matches(r.name)
		if zone == "" {
			continue
		}
		all.Blocks = append(all.Blocks, r.ask(s, p, zone))
	}
	if len(all.Blocks) == 0 {
		return nil, fmt.Errorf("%s: %s is in no zone of a gslb block%s: CoreDNS answers it without gslb", conf, r.name, r.inView())
	}
	return all, nil
}

func (r *request) inView() string {
	if r.view == "" {
		return ""
	}
	return " in view " + r.view
}

// serving are the server blocks with gslb that can get the query: the longest
// key wins, but a block with a view may leave the query to others.
func (r *request) serving(conf string, blocks []serverBlock) (serving []*serverBlock, err error) {
	taken := make(map[string]int) // length of the longest key without a view, by where it listens
	var views []string
	for _, s := range blocks {
		if s.view != "" {
			views = append(views, s.view)
			continue
		}
		for _, k := range s.keys {
			if within(k.zone, r.name) {
				taken[k.listen] = max(taken[k.listen], len(k.zone))
			}
		}
	}
	if r.view != "" && !slices.Contains(views, r.view) {
		return nil, fmt.Errorf("%s: no view %q%s", conf, r.view, config.DidYouMean(r.view, views))
	}
	for i := range blocks {
		s := &blocks[i]
		gets := func(k key) bool { return within(k.zone, r.name) && len(k.zone) >= taken[k.listen] }
		if len(s.tokens) > 0 && slices.ContainsFunc(s.keys, gets) && (r.view == "" || r.view == s.view) {
			serving = append(serving, s)
		}
	}
	return serving, nil
}

// ask explains what one block answers.
func (r *request) ask(s *serverBlock, p *plan.Plan, zone string) blockReport {
	b := blockReport{At: p.Block.Pos.String(), Zone: zone, View: s.view}
	host, exists := p.Find(zone, r.name)
	if host != nil {
		b.StateMissing = p.Block.State == nil && slices.ContainsFunc(host.Config.Pools, func(p config.Pool) bool { return len(p.Checks)+len(p.Targets) > 0 })
		verdict, err := s.verdicts(p)
		moves, overridden := s.moves(p.Block)
		if err = errors.Join(err, overridden, s.targetsError); err != nil {
			b.StateError = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		e := p.Explain(host, p.Snapshot(host.Index, verdict, moves), moves, r.subnet, r.transport, r.families...)
		b.Explanation = &e
		return b
	}
	whoami := r.name == p.Block.WhoAmI
	b.Exists = exists || whoami || r.name == zone
	switch {
	case falls(p.Block, r.name) && !whoami:
		b.Unsteered = "fallthrough"
	case b.Exists:
		b.Unsteered = "nodata"
	default:
		b.Unsteered = "nxdomain"
	}
	if !b.Exists {
		var names []string
		for _, h := range p.Hosts {
			names = append(names, h.Config.Names...)
		}
		b.Suggestion = config.DidYouMean(r.name, names)
	}
	return b
}

// falls tells whether the plugins below are asked for a name that isn't steered.
func falls(b *config.Block, name string) bool {
	f := b.Fallthrough
	return f != nil && (len(f.Zones) == 0 || plugin.Zones(f.Zones).Matches(name) != "")
}
