package control_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/control/controltest"
)

// modelled is one override of the model.
type modelled struct {
	id     int
	lever  control.Lever
	object control.Object
	value  control.Value
	until  time.Time // zero: never
}

// model is overrides as one would explain them: a list, searched from end to end.
type model struct {
	list []modelled
	next int
}

func (m *model) expire(now time.Time) {
	m.list = slices.DeleteFunc(m.list, func(o modelled) bool { return !o.until.IsZero() && !now.Before(o.until) })
}

func (m *model) drop(l control.Lever, o control.Object) bool {
	n := len(m.list)
	m.list = slices.DeleteFunc(m.list, func(x modelled) bool { return x.lever == l && x.object == o })
	return len(m.list) < n
}

// held is what holds for a pool or an endpoint in it: of all that match, the one
// that names the host, then the one that names the region.
func (m *model) held(l control.Lever, o control.Object) (best *modelled) {
	rank := func(x *modelled) int {
		n := 0
		if x.object.Host != "" {
			n += 2
		}
		if x.object.Region != "" {
			n++
		}
		return n
	}
	for i := range m.list {
		x := &m.list[i]
		if x.lever != l || x.object.Endpoint != o.Endpoint || x.object.Host != "" && x.object.Host != o.Host ||
			x.object.Region != "" && x.object.Region != o.Region {
			continue
		}
		if best == nil || rank(x) > rank(best) {
			best = x
		}
	}
	return best
}

func (m *model) text() string {
	var lines []string
	for _, o := range m.list {
		lines = append(lines, fmt.Sprintf("%d %s %s = %s", o.id, o.lever, o.object, o.value))
	}
	return strings.Join(lines, "\n")
}

var (
	modelRegions = []string{"eu", "us", "ap"}
	modelHosts   = []string{"", "api.example.com."}
	modelAddrs   = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	modelValues  = map[control.Lever][]control.Value{
		control.Drain: {"on", "off"}, control.Dial: {"0%", "12.5%", "100%"}, control.Share: {"off", "5%"}, control.Trickle: {"0%", "1%"},
		control.Weight: {"0", "7"}, control.Force: {"up", "down"},
	}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// change makes a random change, and what the model makes of it; false: it is
// refused.
func (m *model) change(r *rand.Rand, b *controltest.Backend, now time.Time) (control.Change, bool) {
	c := control.Change{Terms: control.Terms{Why: "random"}}
	if len(m.list) > 0 && r.IntN(5) == 0 {
		o := pick(r, m.list)
		c.Cancel = fmt.Sprint(o.id)
		return c, m.drop(o.lever, o.object)
	}
	c.Lever = pick(r, control.Levers)
	i := r.IntN(3)
	c.Region, c.Host, c.Value = modelRegions[i], pick(r, modelHosts), pick(r, modelValues[c.Lever])
	if c.Lever == control.Weight || c.Lever == control.Force || c.Lever == control.Drain && r.IntN(2) == 0 {
		c.Endpoint = addr(modelAddrs[i])
		if r.IntN(2) == 0 {
			c.Region = ""
		}
	}
	var until time.Time
	switch r.IntN(4) {
	case 0:
		c.Never = true
	case 1: // forgotten
	default:
		d := time.Duration(1+r.IntN(7200)) * time.Second
		c.For, until = d.String(), now.Add(d)
	}
	base, _ := b.Base(context.Background(), c.Lever, c.Object)
	neutral := map[control.Lever]control.Value{control.Drain: "off", control.Dial: "100%", control.Share: "off", control.Trickle: "0%"}[c.Lever] == c.Value
	before := slices.Clone(m.list)
	replaced := m.drop(c.Lever, c.Object)
	under := m.held(c.Lever, c.Object)
	if neutral && under == nil && base.Value == c.Value {
		if replaced {
			return c, true
		}
		if !base.Written {
			return c, false
		}
	}
	if until.IsZero() && !c.Never {
		m.list = before
		return c, false
	}
	m.list = append(m.list, modelled{m.next, c.Lever, c.Object, c.Value, until})
	m.next++
	return c, true
}

// TestModel makes random changes, lets time pass, restarts, and compares what holds
// with the model.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { testModel(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func testModel(t *testing.T, r *rand.Rand) {
	m := &model{next: 1}
	dir := t.TempDir()
	var s *control.Store
	var b *controltest.Backend
	open := func() (stop func()) {
		b = controltest.New()
		var err error
		s, err = control.Open(control.StoreOptions{Dir: dir, Backend: b, Now: time.Now, Logf: func(string, ...any) {}})
		if err != nil {
			t.Fatal(err)
		}
		b.Publish(t.Context(), control.Publication{Next: s.Overrides()})
		return runUntil(t, s)
	}
	stop := open()
	for range 60 {
		switch r.IntN(8) {
		case 0: // a restart, which takes a while
			stop()
			time.Sleep(time.Duration(r.IntN(3600)) * time.Second)
			stop = open()
		case 1, 2:
			time.Sleep(time.Duration(r.IntN(1800)) * time.Second)
		default:
			m.expire(time.Now())
			c, want := m.change(r, b, time.Now())
			if _, err := s.Do(t.Context(), alice, &control.Request{Change: c, Force: true}); (err == nil) != want {
				t.Fatalf("%+v: %v, expected %v", c, err, want)
			}
		}
		synctest.Wait()
		m.expire(time.Now())
		m.compare(t, b.Current())
		if t.Failed() {
			break
		}
	}
	stop()
}

func runUntil(t *testing.T, s *control.Store) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { s.Run(ctx); close(done) }()
	return func() { cancel(); <-done; s.Close() }
}

// compare compares all that can be asked.
func (m *model) compare(t *testing.T, set *control.Overrides) {
	t.Helper()
	if got := stateOf(set); got != m.text() {
		t.Fatalf("there are\n%s\nexpected\n%s", got, m.text())
	}
	for _, host := range modelHosts {
		for i, region := range modelRegions {
			pool := set.Region(host, region)
			endpoint := set.Endpoint(host, region, addr(modelAddrs[i]))
			at := control.Object{Region: region, Host: host}
			m.compareOne(t, at, map[control.Lever]*control.Override{control.Drain: pool.Drain, control.Dial: pool.Dial, control.Share: pool.Share, control.Trickle: pool.Trickle})
			at.Endpoint = netip.MustParseAddr(modelAddrs[i])
			m.compareOne(t, at, map[control.Lever]*control.Override{control.Drain: endpoint.Drain, control.Weight: endpoint.Weight, control.Force: endpoint.Force})
		}
	}
}

func (m *model) compareOne(t *testing.T, at control.Object, got map[control.Lever]*control.Override) {
	t.Helper()
	for _, l := range slices.Collect(maps.Keys(got)) {
		want, o := m.held(l, at), got[l]
		if (o == nil) != (want == nil) || o != nil && (o.ID != fmt.Sprint(want.id) || o.Value != want.value) {
			t.Errorf("%s of %s is %+v, expected %+v", l, at, o, want)
		}
	}
}

func TestNothingIsASet(t *testing.T) {
	var none *control.Overrides
	if none.Len() != 0 || none.All() != nil || none.Find("1") != nil || none.Revision() != 0 ||
		none.Region("a.", "eu") != (control.Region{}) || none.Endpoint("a.", "eu", addr("192.0.2.1")) != (control.Endpoint{}) {
		t.Error("nil holds something")
	}
}
