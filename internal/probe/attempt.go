package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

// phase is what a probe is busy with, for the reason of a failure.
type phase string

const (
	phaseConnect   phase = "connect"
	phaseHandshake phase = "tls handshake"
	phaseFirstByte phase = "first byte"
	phaseHeaders   phase = "headers"
	phaseBody      phase = "body"
	phaseAnswer    phase = "answer"
	phaseCommand   phase = "command"
)

// attempt follows one probe: what it is busy with, and how long each thing
// took. All of it belongs to the goroutine of the probe, but firstByte.
type attempt struct {
	start     time.Time
	timeout   time.Duration
	phase     phase
	timings   Result // only its times, RetryAfter and Reported
	firstByte atomic.Int64
	secrets   []string // never shown in a reason
	unproven  bool     // the peer asked for a client certificate, and there is none
}

// Only the first connection counts: later ones are those of redirects.
func (a *attempt) connected() { a.mark(&a.timings.Connected) }
func (a *attempt) secured()   { a.mark(&a.timings.Secured) }

func (a *attempt) mark(d *time.Duration) {
	if *d == 0 {
		*d = time.Since(a.start)
	}
}

// answered may be called by any goroutine.
func (a *attempt) answered() {
	a.firstByte.CompareAndSwap(0, int64(time.Since(a.start)))
}

// finding is an outcome that the prober itself puts into words.
type finding struct {
	status Status
	class  Class
	reason string
}

func (f *finding) Error() string { return f.reason }

func fail(class Class, format string, args ...any) *finding {
	return &finding{Fail, class, fmt.Sprintf(format, args...)}
}

func internal(format string, args ...any) *finding { return fail(ClassInternal, format, args...) }

// result makes the outcome of what a prober returned.
func (a *attempt) result(ctx context.Context, err error) Result {
	r := a.timings
	r.FirstByte = time.Duration(a.firstByte.Load())
	r.Total = time.Since(a.start)
	if err == nil {
		r.Class = ClassOK
		return r
	}
	f := a.explain(ctx, err)
	r.Status, r.Class, r.Reason = f.status, f.class, a.readable(f.reason)
	return r
}

// explain finds the words for an error by what the probe was busy with.
func (a *attempt) explain(ctx context.Context, err error) *finding {
	var f *finding
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(ctx.Err(), context.Canceled):
		return internal("%s: cancelled", a.phase)
	case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return fail(ClassTimeout, "%s: timeout after %v", a.phase, a.timeout)
	}
	if reason := a.certificate(err); reason != "" {
		return fail(ClassTLS, "%s", reason)
	}
	if f := a.rejected(); f != nil {
		return f
	}
	class := ClassProtocol
	switch a.phase {
	case phaseConnect, phaseFirstByte, phaseAnswer:
		class = ClassConnect
	case phaseHandshake:
		class = ClassTLS
	case phaseCommand:
		class = ClassInternal
	}
	return fail(class, "%s: %s", a.phase, cause(err))
}

// rejected is the finding for connections that the peer broke off for want of a
// client certificate. With TLS 1.3 it does so after the handshake, and what it
// says then is often lost; that it asked is known.
func (a *attempt) rejected() *finding {
	if a.unproven && a.phase != phaseConnect && a.phase != phaseBody {
		return fail(ClassTLS, "tls: the peer asked for a client certificate, got none, and broke off")
	}
	return nil
}

// cause is the innermost thing that an error of the network says.
func cause(err error) string {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "connection closed by the peer"
	}
	return err.Error()
}

// certificate tells what is wrong with TLS, or nothing if something else is.
func (a *attempt) certificate(err error) string {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		op      *net.OpError
	)
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("certificate is for %s, expected %s", subjects(name.Certificate), name.Host)
	case errors.As(err, &unknown):
		return "certificate is signed by an unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && a.start.Before(invalid.Cert.NotBefore):
		return "certificate is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "certificate expired at " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339)
	case errors.As(err, &verify):
		return "certificate: " + verify.Err.Error()
	case errors.As(err, &record):
		return "tls handshake: the peer doesn't speak TLS"
	case errors.As(err, &op) && op.Op == "remote error" && a.rejected() == nil:
		return "tls: the peer says: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	}
	return ""
}

// subjects lists the names a certificate is for, three at most.
func subjects(c *x509.Certificate) string {
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names[:len(names):len(names)], ip.String())
	}
	switch {
	case len(names) == 0:
		return "no name"
	case len(names) > 3:
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// readable makes a reason fit for a log line: no secrets, nothing that is not
// printed, MaxReason bytes at most.
func (a *attempt) readable(reason string) string {
	for _, s := range a.secrets {
		reason = strings.ReplaceAll(reason, s, "[hidden]")
	}
	reason = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, reason)
	if len(reason) <= MaxReason {
		return reason
	}
	const more = "…"
	return strings.ToValidUTF8(reason[:MaxReason-len(more)], "") + more
}
