package gslb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
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
	server   *http.Server
	api      *control.Server
	listener net.Listener
	done     sync.WaitGroup
}

// deskSettings are what a desk can't change later.
type deskSettings struct {
	network, address, token, cert, key, clientCA, dir string
}

// ledger is the store of one state directory: there must be no two of them.
type ledger struct {
	*control.Store
	dir    string
	users  int // desks
	cancel context.CancelFunc
	done   sync.WaitGroup
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
		s := &deskSettings{network: c.Network, address: c.Address, token: path(c.Token), cert: path(c.Cert), key: path(c.Key), clientCA: path(c.ClientCA)}
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

// openDesk gives a generation its desk: the one of the generation before, if that
// was made with the same settings; the registry's lock is held.
func (r *registry) openDesk(gen *generation) error {
	settings, pos, err := deskOf(gen.loaded)
	if settings == nil || err != nil {
		return err
	}
	var old *desk
	if n := len(r.generations); n > 0 {
		old = r.generations[n-1].desk
	}
	if old != nil && old.settings == *settings {
		old.users++
		gen.desk = old
		return nil
	}
	d := &desk{settings: *settings, users: 1}
	if err := d.open(r, old); err != nil {
		return fmt.Errorf("%s: %w", pos, err)
	}
	gen.desk = d
	return nil
}

// open starts the desk. If another one, that goes on until its generation ends,
// has the same directory, they share its store.
func (d *desk) open(r *registry, old *desk) error {
	s := &d.settings
	tokens, err := control.OpenTokens(s.token, time.Now)
	if err != nil {
		return err
	}
	var certs *control.Certs
	if s.cert != "" {
		certs = &control.Certs{Cert: s.cert, Key: s.key, ClientCA: s.clientCA, Logf: log.Warningf}
		if err := certs.Load(); err != nil {
			return err
		}
	}
	if old != nil && old.store.dir == s.dir {
		d.store = old.store
	} else if d.store, err = openLedger(r, s.dir); err != nil {
		return err
	}
	if d.listener, err = control.Listen(s.network, s.address, certs); err != nil {
		if d.store.users == 0 {
			go d.store.close() // it may wait for the registry, whose lock is held
		}
		return err
	}
	d.store.users++
	d.api = control.New(control.Options{Store: d.store.Store, Tokens: tokens, Now: time.Now, Logf: log.Warningf})
	d.server = d.api.HTTP()
	d.done.Go(func() {
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			log.Errorf("The control API has ended: %v", err)
		}
	})
	return nil
}

// openLedger opens the store of a directory.
func openLedger(r *registry, dir string) (*ledger, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("state directory: %w: expected one that this process can write to", err)
	}
	store, err := control.Open(control.StoreOptions{Dir: dir, Backend: backend{r}, Now: time.Now, Logf: log.Errorf})
	if store == nil {
		return nil, err
	}
	if err != nil {
		log.Errorf("%v", err)
	}
	l := &ledger{Store: store, dir: dir}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.done.Go(func() { store.Run(ctx) })
	return l, nil
}

// close ends the store. The registry's lock must not be held.
func (l *ledger) close() {
	l.cancel()
	l.done.Wait()
	if err := l.Close(); err != nil {
		log.Errorf("The audit log: %v", err)
	}
}

// deskGrace is how long requests that are being served may take at the end.
const deskGrace = 2 * time.Second

// close ends the desk, but not its store. The registry's lock must not be held:
// requests may wait for it.
func (d *desk) close() {
	ctx, cancel := context.WithTimeout(context.Background(), deskGrace)
	defer cancel()
	if err := d.server.Shutdown(ctx); err != nil {
		d.server.Close()
	}
	d.done.Wait()
}
