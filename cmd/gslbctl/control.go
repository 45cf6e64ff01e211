package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// controlCommand is a command that asks running servers.
type controlCommand struct {
	args, about string
	changes     bool // it takes the flags of a change
	do          func(c *controlCall, s *server) (reply any, err error)
}

// controlCommands are those, by name.
var controlCommands = map[string]controlCommand{
	"status":    {"", "shows regions, hosts and overrides, and where each lever comes from", false, (*controlCall).status},
	"overrides": {"", "lists the overrides, with who, why and until when", false, (*controlCall).overrides},
	"audit":     {"", "shows the end of the audit log: every change, done or refused", false, (*controlCall).audit},
	"drain":     {"REGION|ADDRESS", "takes a region, a host's pool there (-host) or an endpoint out of service", true, (*controlCall).change},
	"undrain":   {"REGION|ADDRESS", "takes a drain back, an override's or the Corefile's", true, (*controlCall).change},
	"dial":      {"REGION PERCENT", "lets a region, or a host's pool there, take a part of what would come", true, (*controlCall).change},
	"share":     {"REGION PERCENT|off", "gives a region, or a host's pool there, an absolute part", true, (*controlCall).change},
	"trickle":   {"REGION PERCENT", "lets the next candidate have a part, to keep it proven", true, (*controlCall).change},
	"weight":    {"ADDRESS 0..10000", "sets the weight of an endpoint", true, (*controlCall).change},
	"force":     {"ADDRESS up|down", "takes an endpoint for up or down, whatever its checks say", true, (*controlCall).change},
	"cancel":    {"ID", "cancels an override: the Corefile holds again", true, (*controlCall).change},
	"return":    {"ADDRESS CHECK", "takes an endpoint back into service, if the check says `return manual`", true, (*controlCall).takeBack},
	"whatif": {"COMMAND …", "tells what drain, undrain, dial, share, trickle, weight, force or cancel would do", true,
		(*controlCall).whatIf},
}

func init() {
	for name, command := range controlCommands {
		commands[name] = func(args []string, stdout, stderr io.Writer) int { return command.run(name, args, stdout, stderr) }
	}
}

// controlCall is one call of such a command.
type controlCall struct {
	name string
	args []string
	out  io.Writer // for people; nothing is written there with -json

	control.Terms
	until              string
	host, region, area string
	force, quiet       bool
	limit              int
	given              []string // of the command line: how to reach the servers
	request            control.Request
}

// outcome is what one server made of a command; as JSON it is stable.
type outcome struct {
	Control string `json:"control"`
	Reply   any    `json:"reply,omitempty"`
	Error   string `json:"error,omitempty"`
	// Failure is the server's own error.
	Failure *control.Failure `json:"failure,omitempty"`
}

// run asks every server. It fails if any of them does.
func (cc *controlCommand) run(name string, args []string, stdout, stderr io.Writer) int {
	help := fmt.Sprintf("Usage: gslbctl %s [flags] %s\n\nIt %s.\n\nFlags may stand anywhere:\n", name, cc.args, cc.about)
	flags := newFlags(name, help, stdout, stderr)
	to := connect(flags)
	asJSON := flags.Bool("json", false, "write JSON: a list with an entry for each server")
	c := &controlCall{name: name, out: stdout}
	if name == "audit" {
		flags.IntVar(&c.limit, "limit", 20, "the `number` of entries, at most 1000")
	}
	if cc.changes {
		flags.StringVar(&c.Why, "why", "", "the `reason`: what others read in the audit log")
		flags.StringVar(&c.For, "for", "", "how long it holds: a `duration` like 90m")
		flags.StringVar(&c.until, "until", "", "until when it holds: a `time` like 2030-01-31T12:00:00Z")
		flags.BoolVar(&c.Never, "never", false, "it holds until it is cancelled")
		flags.StringVar(&c.host, "host", "", "of this `host` only")
		flags.StringVar(&c.region, "region", "", "of an endpoint: in this `region` only")
		flags.StringVar(&c.area, "area", "", "of a share: for the clients of this `area` only")
		flags.BoolVar(&c.force, "force", false, "do it though guards refuse it")
		flags.BoolVar(&c.quiet, "quiet", false, "don't tell what it moves before doing it")
	}
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	c.args = rest
	if err := c.read(cc); err != nil {
		return misuse(flags, "%v", err)
	}
	servers, err := to.servers()
	if err != nil {
		return misuse(flags, "%v", err)
	}
	for _, n := range to.names {
		c.given = append(c.given, "-control "+n)
	}
	if *asJSON {
		c.out = io.Discard
	}
	return c.each(servers, cc, *asJSON, stdout, stderr)
}

// each does a command on every server.
func (c *controlCall) each(servers []*server, cc *controlCommand, asJSON bool, stdout, stderr io.Writer) int {
	code, outcomes := exitOK, make([]outcome, len(servers))
	for i, s := range servers {
		if len(servers) > 1 {
			fmt.Fprintf(c.out, "%s\n", s.name)
		}
		reply, err := cc.do(c, s)
		outcomes[i] = outcome{Control: s.name, Reply: reply}
		if err == nil {
			continue
		}
		code = exitError
		outcomes[i].Reply, outcomes[i].Error = nil, err.Error()
		if f := (*failed)(nil); errors.As(err, &f) {
			outcomes[i].Failure = &f.Failure
		}
		if !asJSON {
			fmt.Fprintf(stderr, "gslbctl %s: %s: %s\n", c.name, s.name, strings.ReplaceAll(err.Error(), "\n", "\n    "))
		}
	}
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(outcomes); err != nil {
			return fail(stderr, err)
		}
	}
	return code
}

// read makes a request of the arguments.
func (c *controlCall) read(cc *controlCommand) (err error) {
	if c.until != "" {
		if c.Until, err = time.Parse(time.RFC3339, c.until); err != nil {
			return fmt.Errorf("-until %s: expected a time like 2030-01-31T12:00:00Z", c.until)
		}
	}
	switch {
	case c.name == "return":
		if len(c.args) != 2 {
			return errors.New("expected ADDRESS and CHECK")
		}
		return nil
	case c.name == "whatif":
		if len(c.args) == 0 {
			return errors.New("expected a command, as in: gslbctl whatif drain eu")
		}
		c.request.Change, err = c.changeOf(c.args[0], c.args[1:])
		if c.request.Why == "" {
			c.request.Why = "what if"
		}
		if c.request.Cancel == "" && c.For == "" && c.until == "" {
			c.request.Never = true
		}
		return err
	case cc.changes:
		c.request.Change, err = c.changeOf(c.name, c.args)
		c.request.Force = c.force
		return err
	case len(c.args) > 0:
		return fmt.Errorf("unexpected %q", c.args[0])
	}
	return nil
}

func (c *controlCall) status(s *server) (any, error) {
	var status control.Status
	if err := s.ask(http.MethodGet, "/v1/status", nil, &status); err != nil {
		return nil, err
	}
	printStatus(c.out, &status, time.Now())
	return status, nil
}

func (c *controlCall) overrides(s *server) (any, error) {
	var list control.OverrideList
	if err := s.ask(http.MethodGet, "/v1/overrides", nil, &list); err != nil {
		return nil, err
	}
	printWarnings(c.out, list.Warnings)
	printOverrides(c.out, list.Overrides, list.Unmatched, time.Now())
	return list, nil
}

func (c *controlCall) audit(s *server) (any, error) {
	var list control.AuditList
	if err := s.ask(http.MethodGet, "/v1/audit?limit="+strconv.Itoa(c.limit), nil, &list); err != nil {
		return nil, err
	}
	printAudit(c.out, list.Entries)
	return list, nil
}

func (c *controlCall) takeBack(s *server) (any, error) {
	var list control.OverrideList // for the version
	if err := s.ask(http.MethodGet, "/v1/overrides", nil, &list); err != nil {
		return nil, err
	}
	var back control.Returned
	r := control.ReturnRequest{Endpoint: c.args[0], Check: c.args[1], Why: c.Why, Version: list.Version}
	if err := s.ask(http.MethodPost, "/v1/return", r, &back); err != nil {
		return nil, err
	}
	row(c.out, "done", "endpoint %s is back in service for check %s", back.Endpoint, back.Check)
	return back, nil
}

func (c *controlCall) whatIf(s *server) (any, error) {
	var result control.Result
	if err := s.ask(http.MethodPost, "/v1/whatif", c.request, &result); err != nil {
		return nil, err
	}
	printReport(c.out, &result)
	printRefusals(c.out, result.Report.Refusals)
	return result, nil
}

// change foretells, and does. It is done on what was foretold: if anything
// changes in between, the server refuses. What wasn't foretold is done on whatever holds.
func (c *controlCall) change(s *server) (any, error) {
	request := c.request
	if !c.quiet {
		var foretold control.Result
		asked := request
		asked.Force = false
		if err := s.ask(http.MethodPost, "/v1/whatif", asked, &foretold); err != nil {
			return nil, err
		}
		request.Version = foretold.Version
		printReport(c.out, &foretold)
	}
	var result control.Result
	if err := s.ask(http.MethodPost, "/v1/changes", request, &result); err != nil {
		return nil, err
	}
	c.printDone(&result, time.Now())
	return result, nil
}

// explain asks every server what explain asks of a Corefile.
func (c *connection) explain(r *request, asJSON bool, stdout, stderr io.Writer) int {
	servers, err := c.servers()
	if err != nil {
		return fail(stderr, err)
	}
	q := url.Values{"host": {r.name}}
	if r.subnet.IsValid() {
		q.Set("client", r.subnet.String())
	}
	if !r.assumed {
		q.Set("resolver", r.transport.String())
	}
	if r.view != "" {
		q.Set("view", r.view)
	}
	if len(r.families) == 1 {
		q.Set("type", map[string]string{"v4": "A", "v6": "AAAA"}[r.families[0].String()])
	}
	cc := &controlCommand{do: func(c *controlCall, s *server) (any, error) {
		var all report
		if err := s.ask(http.MethodGet, "/v1/explain?"+q.Encode(), nil, &all); err != nil {
			return nil, err
		}
		all.print(c.out)
		return all, nil
	}}
	call := &controlCall{name: "explain", out: stdout}
	if asJSON {
		call.out = io.Discard
	}
	return call.each(servers, cc, asJSON, stdout, stderr)
}
