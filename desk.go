package gslb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// desk is the control API of a generation, and of the one before if that has the
// same settings. The registry's lock guards it.
type desk struct {
	settings deskSettings
	users    int // generations
	store    *ledger
	door     *door
	api      *control.Server
}

// deskSettings are what a desk can't change later.
type deskSettings struct {
	doorSettings
	token, dir string
}

// ledger is the store of one state directory: there must be no two of them.
type ledger struct {
	*control.Store
	inService *control.Overrides // what answers follow
	dir       string
	users     int                // desks
	cancel    context.CancelFunc // of what drops overrides that expire; nil: it doesn't run yet
	done      sync.WaitGroup
}

// door is where the API listens. A desk with other tokens or another directory takes
// the place of the one before without a moment in which nobody answers.
type door struct {
	settings doorSettings
	users    int // desks
	server   *http.Server
	front    atomic.Pointer[desk] // that of the live generation
	done     sync.WaitGroup
}

// doorSettings are what a door can't change later. Files are absolute, or as seen
// from the working directory.
type doorSettings struct {
	network, address, cert, key, clientCA string
}

// deskOf gives what the instances of a generation say of the control API; nil:
// nothing.
func deskOf(instances []*GSLB) (*deskSettings, config.Pos, error) {
	for _, g := range instances {
		c := g.block.Control
		if c == nil {
			continue
		}
		path := func(p string) string {
			if p == "" {
				return ""
			}
			return plan.Join(g.options.Root, p)
		}
		s := &deskSettings{doorSettings{c.Network, c.Address, path(c.Cert), path(c.Key), path(c.ClientCA)}, path(c.Token), ""}
		if c.Network == "unix" {
			s.address = path(c.Address)
		}
		for _, other := range instances {
			if s.dir == "" {
				s.dir = other.stateDir()
			}
		}
		if s.dir == "" {
			return nil, c.Pos, fmt.Errorf("%s: control needs `state DIR`: overrides and the audit log are kept there", c.Pos)
		}
		return s, c.Pos, nil
	}
	return nil, config.Pos{}, nil
}

// openDesk gives a generation its desk: the one of a generation before, if that was
// made with the same settings, else one that shares what it can; the registry's lock
// is held. What is opened is the generation's, also after an error.
func (r *registry) openDesk(gen *generation) error {
	settings, pos, err := deskOf(gen.loaded)
	if settings == nil || err != nil {
		return err
	}
	for _, other := range r.generations {
		if d := other.desk; d != nil && d.settings == *settings {
			d.users++
			gen.desk = d
			return nil
		}
	}
	gen.desk = &desk{settings: *settings, users: 1}
	if err := gen.desk.open(r); err != nil {
		return fmt.Errorf("%s: %w", pos, err)
	}
	return nil
}

// open starts the desk. Those of generations that go on until they end may have the
// same directory, or listen at the same address.
func (d *desk) open(r *registry) error {
	s := &d.settings
	tokens, err := control.OpenTokens(s.token, time.Now)
	if err != nil {
		return err
	}
	var same *door
	for _, gen := range r.generations {
		if other := gen.desk; other != nil {
			if other.store.dir == s.dir {
				d.store = other.store
			}
			if other.door.settings.network == s.network && other.door.settings.address == s.address {
				same = other.door
			}
		}
	}
	if same != nil && same.settings != s.doorSettings {
		return fmt.Errorf("control %s: its TLS can't be changed while it listens there: expected the same files, whose content may change; take another address, or restart", s.address)
	}
	if d.store == nil {
		if d.store, err = openLedger(r, s.dir); err != nil {
			return err
		}
	}
	d.store.users++
	d.api = control.New(control.Options{Store: d.store.Store, Tokens: tokens, Now: time.Now, Logf: log.Warningf})
	if same == nil {
		if same, err = openDoor(d); err != nil {
			return err
		}
	}
	d.door = same
	d.door.users++
	return nil
}

// openLedger opens the store of a directory; the registry's lock is held.
func openLedger(r *registry, dir string) (*ledger, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("state directory: %w: expected one that this process can write to", err)
	}
	l := &ledger{dir: dir}
	store, err := control.Open(control.StoreOptions{
		Dir: dir, Backend: backend{r, l}, Now: time.Now, Logf: log.Warningf, Idle: len(r.generations) > 0,
	})
	if store == nil {
		return nil, err
	}
	if err != nil {
		log.Errorf("%v", err)
	}
	l.Store, l.inService = store, store.Overrides()
	return l, nil
}

// run has overrides dropped when they expire: from when somebody follows them, who can be
// asked what that would do, as soon as it is known who is down. The registry's lock is held.
func (l *ledger) run(r *registry) {
	if l.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.done.Go(func() {
		if r.known(ctx) {
			l.Run(ctx)
		}
	})
}

// known waits until it is known who is down, and tells whether it is: not if ctx has ended.
// After a long time down probes find it out, and not with the first one.
func (r *registry) known(ctx context.Context) bool {
	if r.ready() {
		return true
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for since := time.Now(); time.Since(since) < firstRound; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if !r.ready() {
			since = time.Now()
		}
	}
	return true
}

// close ends the store. The registry's lock must not be held.
func (l *ledger) close() {
	if l.cancel != nil {
		l.cancel()
	}
	patiently(func() {
		l.done.Wait()
		if err := l.Close(); err != nil {
			log.Errorf("The audit log: %v", err)
		}
	})
}

// openDoor listens for a desk.
func openDoor(d *desk) (*door, error) {
	o := &door{settings: d.settings.doorSettings}
	var certs *control.Certs
	if s := &o.settings; s.cert != "" {
		certs = &control.Certs{Cert: s.cert, Key: s.key, ClientCA: s.clientCA, Logf: log.Warningf}
		if err := certs.Load(); err != nil {
			return nil, err
		}
	}
	listener, err := control.Listen(o.settings.network, o.settings.address, certs)
	if err != nil {
		return nil, err
	}
	o.front.Store(d)
	o.server = d.api.HTTP()
	o.server.Handler = o
	o.done.Go(func() {
		if err := o.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Errorf("The control API has ended: %v", err)
		}
	})
	return o, nil
}

// ServeHTTP lets the desk in front answer.
func (o *door) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.front.Load().api.ServeHTTP(w, r) }

// deskGrace is how long requests that are being served may take at the end.
const deskGrace = 2 * time.Second

// close ends the door. The registry's lock must not be held: requests may wait for it.
func (o *door) close() {
	ctx, cancel := context.WithTimeout(context.Background(), deskGrace)
	defer cancel()
	if err := o.server.Shutdown(ctx); err != nil {
		o.server.Close()
	}
	o.done.Wait()
}

// promote puts the desk of the live generation in front of each door, and has its ledger
// run; the registry's lock is held.
func (r *registry) promote() {
	for _, gen := range r.generations {
		if gen.desk != nil && gen.whole() {
			gen.desk.door.front.Store(gen.desk)
			gen.desk.store.run(r)
		}
	}
}

// releaseDesk takes one user from a generation's desk; the registry's lock is held.
func (c *closing) releaseDesk(d *desk) {
	if d.users--; d.users > 0 {
		return
	}
	if o := d.door; o != nil {
		if o.users--; o.users == 0 {
			c.doors = append(c.doors, o)
		}
	}
	if l := d.store; l != nil {
		if l.users--; l.users == 0 {
			c.ledgers = append(c.ledgers, l)
		}
	}
}

// overrides are those that the latest generation follows; the registry's lock is held.
func (r *registry) overrides() *control.Overrides {
	if all := r.latest(); len(all) > 0 && all[0].ledger != nil {
		return all[0].ledger.inService
	}
	return nil
}
