// Package probe carries out health checks: probers, one for each kind of check,
// a scheduler that runs them for tens of thousands of endpoints, and the rules
// that make a verdict of their results.
package probe

import (
	"context"
	"net/netip"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Target is what one probe goes to.
type Target struct {
	Addr netip.Addr // always dialled, whatever names say
	Port uint16     // 0: the check's, else the kind's own
	Name string     // owner name of the host, for checks with `authority each`
}

// Status is what one probe found.
type Status uint8

// The statuses of a probe.
const (
	Pass Status = iota
	Full        // alive, but overloaded
	Fail
)

// Class is a reason for a status in one word, for metrics.
type Class string

// The classes of reasons.
const (
	ClassOK       Class = "ok"
	ClassFull     Class = "full"
	ClassConnect  Class = "connect"  // refused, unreachable, reset before an answer
	ClassTimeout  Class = "timeout"  // any of the timeouts
	ClassTLS      Class = "tls"      // handshake or certificate
	ClassStatus   Class = "status"   // HTTP or gRPC status, DNS rcode, exit code
	ClassContent  Class = "content"  // body, header, JSON field or address not as expected
	ClassProtocol Class = "protocol" // an answer that can't be understood
	ClassInternal Class = "internal" // the prober itself: no socket, no file
)

// Result is the outcome of one probe.
type Result struct {
	Status Status
	Class  Class
	Reason string // for people, bounded to MaxReason bytes; empty for a plain pass
	// RetryAfter is how long the endpoint asked to be left alone; 0: it didn't.
	RetryAfter time.Duration
	// Reported are the headers that the check asks for, of the answer that was
	// judged; those that weren't in it are left out, and the values of one that
	// was in it more than once are joined by ", ". They are the endpoint's word.
	Reported []check.Header
	// Times since the probe began; 0 for what it did not come to.
	Connected, Secured, FirstByte, Total time.Duration
}

// MaxReason bounds Result.Reason, in bytes.
const MaxReason = 256

// Prober runs one probe and returns within the check's timeout and soon after
// ctx ends. It may be called by any number of goroutines at once.
type Prober func(ctx context.Context, t Target) Result
