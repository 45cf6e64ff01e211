package probe

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// maxLooks bounds how often conditions look at what has come so far, against
// peers that send single bytes. The end of the text is always looked at.
const maxLooks = 64

// tcpProber connects, with TLS or without, sends what is to be sent, and reads
// until all conditions hold. Without conditions the connection is enough.
type tcpProber struct {
	stateless
	judge
	dialer *dialer
	places places
	send   []byte
}

func newTCP(c *check.Check) (prober, error) {
	p := &tcpProber{send: []byte(c.Send)}
	var err error
	if len(c.Full) > 0 && len(c.Expect) == 0 {
		return nil, errors.New("full: a tcp check reads only what an expect waits for: write one")
	}
	if p.judge, err = newJudge(c, "", nil, nil); err != nil {
		return nil, err
	}
	if p.dialer, err = newDialer(c, c.TLS); err != nil {
		return nil, err
	}
	if p.places, err = newPlaces(c, 0); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *tcpProber) probe(ctx context.Context, a *attempt, t Target) error {
	at, err := p.places.of(t)
	if err != nil {
		return err
	}
	conn, err := p.dialer.dial(ctx, a, at)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer bound(ctx, conn)()
	a.phase = phaseFirstByte
	if len(p.send) > 0 {
		if _, err := conn.Write(p.send); err != nil {
			return err
		}
	}
	if len(p.expect) == 0 {
		return nil
	}
	return p.read(ctx, a, conn)
}

// read judges what has come after every read, and in the end says why it wasn't
// enough.
func (p *tcpProber) read(ctx context.Context, a *attempt, conn net.Conn) error {
	buf := make([]byte, check.MaxBody)
	o := &outcome{}
	for looks := 0; ; looks++ {
		n, err := conn.Read(buf[len(o.body):])
		if n > 0 {
			a.answered()
			a.phase = phaseBody
		}
		o.body = buf[:len(o.body)+n]
		last := err != nil || len(o.body) == len(buf)
		if looks >= maxLooks && !last {
			continue
		}
		var f *finding
		judged := p.judge.of(o)
		switch {
		case judged == nil, errors.As(judged, &f) && f.status == Full:
			return judged
		case last && len(o.body) == 0:
			return err
		case last:
			return p.ended(ctx, a, f, len(o.body), err)
		}
	}
}

// ended adds to what was missing how the peer's text came to its end.
func (p *tcpProber) ended(ctx context.Context, a *attempt, missing *finding, size int, err error) error {
	switch {
	case err == nil:
		return fail(missing.class, "%s, in the first %d bytes", missing.reason, size)
	case errors.Is(err, io.EOF):
		return fail(missing.class, "%s, in %d bytes before the connection was closed", missing.reason, size)
	}
	end := a.explain(ctx, err)
	return fail(end.class, "%s: %s, in %d bytes", end.reason, missing.reason, size)
}
