package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	health "github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/failover"
)

const failoverHelp = `Usage: gslbctl failover [flags] [NAME]

Works out what an outage of a region costs: how long clients keep going there, how
many of their requests fail, and what a shorter TTL or faster checks would change.
With -conf and NAME, the TTL, the figures of checks, the ramp and the capacities are those
of that host; flags win.

-population NAME:SHARE:TIME[:fixed] says how a part of the clients keeps an answer;
it may be repeated and replaces the customary 80% that honour the TTL, 15% whose
resolver raises it to 300s, and 5% that hold on for 1800s, or twice the TTL if that is
more. What is left of TIME, which is the TTL ("ttl") or longer, is spread evenly; with fixed
they all stay until TIME after the outage began, however long that is:

    gslbctl failover -conf Corefile -rate 40000 api.example.com
    gslbctl failover -interval 10s -fall 3 -publish 10s -phase=false -ttl 60 -rate 40000 -horizon 340s
    gslbctl failover -population mobile:40%:600s:fixed -population rest:60%:ttl -svg out.svg

-load says what a region bears now; given for several, it tells what becomes of them when
the first one fails and each can take its whole capacity. -target sets what an outage costs
against a budget of availability, and -lowered tells how long old answers live after a
planned move:

    gslbctl failover -load eu:40000:48000 -load us:30000:36000 -load ap:20000:24000
    gslbctl failover -conf Corefile -target 99.95% api.example.com
    gslbctl failover -ttl 86400 -lowered 60 -before 1h

Flags may stand anywhere:
`

// failoverRequest is what is to be worked out.
type failoverRequest struct {
	model       failover.Model
	ttl         time.Duration
	seconds     float64 // -ttl
	late, marks string  // -stragglers, -at
	written     words
	plan        planRequest
	stragglers  float64
	straggler   time.Duration
	draws       int
	seed        uint64
	caches      float64
	price       float64
	regions     int
	at          []float64 // times of the curve, in seconds; none: ten steps and where it bends
	from        string    // where interval, fall and TTL are from
	checksFound bool
	assumed     bool          // nobody says the timeout: it is the interval
	floor       time.Duration // the host's ttl_floor
}

func failoverCommand(args []string, stdout, stderr io.Writer) int {
	r := failoverRequest{}
	flags := newFlags("failover", failoverHelp, stdout, stderr)
	conf := flags.String("conf", "", "the Corefile `file` that NAME is read from")
	r.flags(flags)
	svg := flags.String("svg", "", "draw the curve into this `file`")
	asJSON := flags.Bool("json", false, "write JSON")
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	r.ttl = time.Duration(r.seconds * float64(time.Second))
	if err := r.read(*conf, rest, set); err != nil {
		return misuse(flags, "%v", err)
	}
	if len(rest) == 1 {
		if err := r.host(*conf, nameOf(rest[0]), set); err != nil {
			return fail(stderr, err)
		}
	}
	if err := r.complete(set); err != nil {
		return misuse(flags, "%v", err)
	}
	result := r.result()
	if *svg != "" {
		if err := r.plot(*svg, result); err != nil {
			return fail(stderr, err)
		}
	}
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(result); err != nil {
			return fail(stderr, err)
		}
		return exitOK
	}
	result.print(stdout)
	return exitOK
}

// flags adds those that say what is to be worked out.
func (r *failoverRequest) flags(flags *flag.FlagSet) {
	flags.DurationVar(&r.model.Interval, "interval", 10*time.Second, "`time` between two probes")
	flags.IntVar(&r.model.Fall, "fall", 3, "failed `probes` in a row that make the verdict")
	flags.DurationVar(&r.model.Timeout, "timeout", 0, "`time` that a probe takes to fail; 0s: the region refuses at once (default the interval)")
	flags.DurationVar(&r.model.Detection, "detection", 0, "whole `time` to the verdict, instead of interval, fall, timeout and phase")
	flags.DurationVar(&r.model.Publish, "publish", 0, "`time` from the verdict to the first new answer")
	flags.BoolVar(&r.model.Phase, "phase", true, "count the time until the first probe that fails begins, half an interval on average")
	flags.Float64Var(&r.seconds, "ttl", 30, "TTL in `seconds`")
	flags.Float64Var(&r.model.Rate, "rate", 0, "requests per second that go to the region")
	flags.DurationVar(&r.model.Horizon, "horizon", 0, "count failures up to this `time`; 0: until everybody has moved")
	flags.Var(&r.written, "population", "`NAME:SHARE:TIME[:fixed]`, may be repeated")
	flags.StringVar(&r.late, "stragglers", "3%", "`percent` of clients that take up to -straggler longer, for the percentiles")
	flags.DurationVar(&r.straggler, "straggler", 900*time.Second, "the longest `time` that stragglers take beyond the TTL")
	flags.IntVar(&r.draws, "draws", 100000, "clients to simulate, up to 10 million")
	flags.Uint64Var(&r.seed, "seed", 1, "seed of the simulation")
	flags.Float64Var(&r.caches, "caches", 0, "resolver caches that ask for the name: gives the query rate that the TTL implies")
	flags.Float64Var(&r.price, "price", 0, "price of a million queries")
	flags.IntVar(&r.regions, "regions", 0, "equal regions: gives the headroom that the loss of one takes")
	r.plan.flags(flags)
	flags.StringVar(&r.marks, "at", "", "tell the curve at these `seconds`, such as 0,40,100")
}

// read completes the request from the arguments and a Corefile.
func (r *failoverRequest) read(conf string, rest []string, set map[string]bool) (err error) {
	switch {
	case len(rest) > 1:
		return fmt.Errorf("unexpected %q: expected at most one NAME", rest[1])
	case len(rest) == 1 && conf == "":
		return fmt.Errorf("NAME without -conf: say which Corefile %s is in", rest[0])
	case len(rest) == 0 && conf != "":
		return fmt.Errorf("-conf without NAME: say which host of %s", conf)
	case r.draws < 0 || r.draws > 10e6:
		return fmt.Errorf("-draws %d: expected 0 to 10 million", r.draws)
	case !(r.seconds >= 0 && r.seconds <= 86400):
		return fmt.Errorf("-ttl %g: expected 0 to 86400 seconds", r.seconds)
	case !(r.caches >= 0 && r.caches <= most && r.price >= 0 && r.price <= most):
		return fmt.Errorf("-caches %g, -price %g: expected 0 to %g", r.caches, r.price, most)
	case r.straggler < 0 || r.straggler > longest:
		return fmt.Errorf("-straggler %s: expected 0 to %s", r.straggler, longest)
	case r.regions < 0 || r.regions == 1:
		return fmt.Errorf("-regions %d: expected 2 or more, or 0 for none", r.regions)
	case set["price"] && !set["caches"]:
		return fmt.Errorf("-price without -caches: say how many caches ask, such as -caches 200000")
	case r.model.Fall < 1:
		return fmt.Errorf("-fall %d: expected 1 or more failures", r.model.Fall)
	}
	if set["detection"] {
		if set["fall"] || set["timeout"] || set["phase"] && r.model.Phase {
			return fmt.Errorf("-fall, -timeout or -phase beside -detection: expected one or the other, as -detection is the whole time to the verdict")
		}
		r.model.Fall = 0
	}
	if r.stragglers, err = share(r.late); err != nil {
		return fmt.Errorf("-stragglers %v", err)
	}
	return r.plan.read(set)
}

// complete works out the populations, and reads the times that are asked for.
func (r *failoverRequest) complete(set map[string]bool) (err error) {
	m := &r.model
	r.assumed = m.Fall > 0 && m.Timeout == 0 && !set["timeout"]
	switch {
	case m.Fall == 0 && set["interval"] && !r.plan.recovers:
		return fmt.Errorf("-interval beside -detection: expected one of them, unless the way back is asked for (-rise)")
	case r.caches > 0 && r.ttl == 0:
		return fmt.Errorf("-caches with a TTL of 0: expected a TTL above 0, as caches keep nothing without")
	case r.assumed:
		m.Timeout = m.Interval
	case !set["timeout"]:
		m.Timeout = failover.Timeout(m.Timeout, m.Interval, m.Retry)
	}
	if r.model.Populations, err = r.populations(r.ttl); err != nil {
		return err
	}
	for _, word := range strings.FieldsFunc(r.marks, func(c rune) bool { return c == ',' }) {
		t, err := strconv.ParseFloat(word, 64)
		if err != nil || !(t >= 0 && t <= 1e7) || len(r.at) == maxTimes {
			return fmt.Errorf("-at %s: expected up to %d times in seconds, such as 0,40,100", r.marks, maxTimes)
		}
		r.at = append(r.at, t)
	}
	if err := m.Check(); err != nil {
		return err
	}
	return r.plan.complete(r)
}

// maxTimes is how many times of a curve may be asked for.
const maxTimes = 1000

// host reads interval, fall and TTL of a host. Data files need not be there.
func (r *failoverRequest) host(conf, name string, set map[string]bool) error {
	blocks, err := readCorefile(conf)
	if err != nil {
		return err
	}
	var names []string
	for i := range blocks {
		b, err := blocks[i].parse()
		if err != nil {
			return err
		}
		if b == nil {
			continue
		}
		for j := range b.Hosts {
			h := &b.Hosts[j]
			names = append(names, h.Names...)
			if slices.ContainsFunc(h.Names, func(n string) bool { return covers(n, name) }) {
				r.from = h.Pos.String()
				r.use(b, h, set)
				return nil
			}
		}
	}
	return fmt.Errorf("%s: no host %s%s", conf, name, config.DidYouMean(name, names))
}

// covers tells whether a host's name, which may be a wildcard, is or covers a name.
func covers(owner, name string) bool {
	under, wild := strings.CutPrefix(owner, "*")
	return owner == name || wild && strings.HasSuffix(name, under) && name != under[1:]
}

// use takes what is known of a host: a pool is down as soon as one of its checks says
// so, and of all pools the one that takes longest counts.
func (r *failoverRequest) use(b *config.Block, h *config.Host, set map[string]bool) {
	var slowest *health.Check
	for i := range h.Pools {
		var fastest *health.Check
		for _, c := range checksOf(b, &h.Pools[i]) {
			if fastest == nil || detection(c) < detection(fastest) {
				fastest = c
			}
		}
		if fastest != nil && (slowest == nil || detection(fastest) > detection(slowest)) {
			slowest = fastest
		}
	}
	if slowest != nil {
		r.checksFound = true
		if !set["interval"] {
			r.model.Interval = slowest.Interval
		}
		if !set["detection"] {
			r.model.Retry = slowest.Retry
			if !set["fall"] {
				r.model.Fall = slowest.Fall
			}
			if !set["timeout"] {
				r.model.Timeout = slowest.Timeout
			}
		}
	}
	if !set["ttl"] {
		r.ttl = time.Duration(h.TTL) * time.Second
	}
	r.floor = time.Duration(h.TTLFloor) * time.Second
	r.plan.use(b, h, slowest, r.ttl, set)
}

// detection is how long a check takes for its verdict, in seconds, on average.
func detection(c *health.Check) float64 {
	m := failover.Model{Interval: c.Interval, Fall: c.Fall, Timeout: c.Timeout, Retry: c.Retry, Phase: true}
	return m.Start()
}

// populations are the parts of the clients for a TTL.
func (r *failoverRequest) populations(ttl time.Duration) (list []failover.Population, err error) {
	if len(r.written) == 0 {
		return failover.Customary(ttl), nil
	}
	for _, word := range r.written {
		parts := strings.Split(word, ":")
		bad := fmt.Errorf("-population %s: expected NAME:SHARE:TIME or NAME:SHARE:TIME:fixed, such as sticky:5%%:1800s:fixed", word)
		if len(parts) < 3 || len(parts) > 4 || len(parts) == 4 && parts[3] != "fixed" {
			return nil, bad
		}
		p := failover.Population{Name: parts[0], Keep: ttl, Fixed: len(parts) == 4}
		if p.Share, err = share(parts[1]); err != nil {
			return nil, bad
		}
		if parts[2] != "ttl" {
			if p.Keep, err = time.ParseDuration(parts[2]); err != nil {
				return nil, bad
			}
			if p.Keep < 0 || !p.Fixed && p.Keep < ttl {
				return nil, fmt.Errorf("-population %s: expected a TIME of at least the TTL, which is %s, or ttl for those that honour it; with :fixed, 0s or more", word, ttl)
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// share reads a percentage, or a part of 1.
func share(word string) (float64, error) {
	number, percent := strings.CutSuffix(word, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) || math.IsNaN(v) {
		return 0, fmt.Errorf("%q: expected a percentage such as 5%%", word)
	}
	return v, nil
}

// plot draws the curve and those of the alternatives.
func (r *failoverRequest) plot(path string, result *failoverResult) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	until := math.Ceil(r.model.Moved()*1.05/60) * 60
	if h := r.model.Horizon.Seconds(); h > 0 {
		until = h
	}
	var curves []failover.Curve
	for i := range result.alternatives {
		a := &result.alternatives[i]
		curves = append(curves, failover.Curve{Name: a.name, Model: &a.model})
	}
	if err := failover.Plot(file, "Clients that still go to the failed region", until, curves); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
