package probe

import (
	"io"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// keeper keeps idle connections for the next probe, one for each place. The
// ones nobody comes back for are closed after two intervals, so endpoints that
// went away leave nothing behind.
type keeper[C io.Closer] struct {
	wait time.Duration

	mu   sync.Mutex
	idle map[place]*kept[C] // nil: nothing is kept, or not any more
}

type kept[C io.Closer] struct {
	conn  C
	timer *time.Timer
}

func newKeeper[C io.Closer](c *check.Check) *keeper[C] {
	k := &keeper[C]{wait: 2*c.Interval + c.Timeout}
	if c.KeepAlive {
		k.idle = map[place]*kept[C]{}
	}
	return k
}

// take returns the connection kept for p, which is the caller's from then on.
func (k *keeper[C]) take(p place) (conn C, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, ok := k.idle[p]
	if !ok {
		return conn, false
	}
	delete(k.idle, p)
	i.timer.Stop()
	return i.conn, true
}

// put keeps a connection, or closes it: where one is kept already, nothing is
// kept, or close was called.
func (k *keeper[C]) put(p place, conn C) {
	if !k.keep(p, conn) {
		conn.Close()
	}
}

func (k *keeper[C]) keep(p place, conn C) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle == nil || k.idle[p] != nil {
		return false
	}
	i := &kept[C]{conn: conn}
	i.timer = time.AfterFunc(k.wait, func() { k.expire(p, i) })
	k.idle[p] = i
	return true
}

// expire closes a connection that is still the one kept.
func (k *keeper[C]) expire(p place, i *kept[C]) {
	k.mu.Lock()
	still := k.idle[p] == i
	if still {
		delete(k.idle, p)
	}
	k.mu.Unlock()
	if still {
		i.conn.Close()
	}
}

func (k *keeper[C]) close() {
	k.mu.Lock()
	idle := k.idle
	k.idle = nil
	k.mu.Unlock()
	for _, i := range idle {
		i.timer.Stop()
		i.conn.Close()
	}
}
