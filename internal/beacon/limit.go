package beacon

import (
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// limiter counts the reports of each prefix in a minute. It has a fixed number of
// counters, which prefixes share by a keyed hash: nobody can make it grow, and nobody
// knows whose counter is also somebody else's.
type limiter struct {
	most uint16
	seed [8]byte

	mu       sync.Mutex
	minute   int64
	counters [1 << 16]uint16
}

func newLimiter(most int, random io.Reader) (*limiter, error) {
	l := &limiter{most: uint16(most)}
	_, err := io.ReadFull(random, l.seed[:])
	return l, err
}

// allow counts a report and tells whether it may pass.
func (l *limiter) allow(p netip.Prefix, now time.Time) bool {
	var b [24]byte
	addr := p.Addr().As16()
	copy(b[:], l.seed[:])
	copy(b[8:], addr[:])
	i := uint16(xxhash.Sum64(b[:]))
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute := now.Unix() / 60; minute != l.minute {
		l.minute = minute
		clear(l.counters[:])
	}
	if l.counters[i] >= l.most {
		return false
	}
	l.counters[i]++
	return true
}
