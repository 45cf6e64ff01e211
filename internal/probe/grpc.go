package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// grpcProber asks the standard health service (grpc.health.v1.Health/Check).
// The connection is dialled before gRPC gets it, so failures have their reasons
// and nothing is resolved, proxied or dialled again behind the probe's back.
type grpcProber struct {
	dialer  *dialer
	places  places
	idle    *keeper[*grpc.ClientConn]
	keep    bool
	request *grpc_health_v1.HealthCheckRequest // only read
}

func newGRPC(c *check.Check) (prober, error) {
	p := &grpcProber{keep: c.KeepAlive, request: &grpc_health_v1.HealthCheckRequest{Service: c.Service}}
	// No condition applies: this is for the error that says so.
	_, err := newJudge(c, "", nil, nil)
	if err != nil {
		return nil, err
	}
	if p.dialer, err = newDialer(c, c.TLS, "h2"); err != nil {
		return nil, err
	}
	if p.places, err = newPlaces(c, 0); err != nil {
		return nil, err
	}
	p.idle = newKeeper[*grpc.ClientConn](c)
	return p, nil
}

func (p *grpcProber) close() { p.idle.close() }

func (p *grpcProber) probe(ctx context.Context, a *attempt, t Target) error {
	at, err := p.places.of(t)
	if err != nil {
		return err
	}
	if conn, ok := p.idle.take(at); ok {
		// gRPC may still say connecting when the first answer is here already. One that is
		// lost is idle: it is never dialled again.
		if state := conn.GetState(); state == connectivity.Ready || state == connectivity.Connecting {
			err := p.ask(ctx, a, at, conn)
			if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
				return p.judge(a, err)
			}
		} else {
			conn.Close()
		}
	}
	conn, err := p.open(ctx, a, at)
	if err != nil {
		return err
	}
	return p.judge(a, p.ask(ctx, a, at, conn))
}

func (p *grpcProber) open(ctx context.Context, a *attempt, at place) (*grpc.ClientConn, error) {
	conn, err := p.dialer.dial(ctx, a, at)
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if secure, ok := conn.(*tls.Conn); ok {
		state := secure.ConnectionState()
		if state.NegotiatedProtocol != "h2" {
			conn.Close()
			return nil, fail(ClassTLS, "tls handshake: the peer doesn't offer HTTP/2 (ALPN h2)")
		}
		creds = secured{credentials.TLSInfo{
			State:          state,
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		}}
	}
	var used atomic.Bool
	client, err := grpc.NewClient("passthrough:///"+at.addr.String(),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errors.New("connection lost")
			}
			return conn, nil
		}),
		grpc.WithTransportCredentials(creds),
		grpc.WithAuthority(p.authority(at)),
		grpc.WithUserAgent(userAgent),
		grpc.WithMaxHeaderListSize(maxHeader),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(check.MaxBody)),
		grpc.WithIdleTimeout(0),
		grpc.WithNoProxy(), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithDisableHealthCheck())
	if err != nil {
		conn.Close()
		return nil, err
	}
	return client, nil
}

func (p *grpcProber) authority(at place) string {
	if at.name != "" {
		return at.name
	}
	return at.addr.String()
}

// ask owns conn: afterwards it is kept or closed.
func (p *grpcProber) ask(ctx context.Context, a *attempt, at place, conn *grpc.ClientConn) error {
	a.phase = phaseAnswer
	reply, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, p.request)
	if err != nil && ctx.Err() != nil {
		conn.Close()
		return ctx.Err()
	}
	a.answered()
	if err != nil || !p.keep {
		conn.Close()
	} else {
		p.idle.put(at, conn)
	}
	if err != nil {
		return err
	}
	if s := reply.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return fail(ClassStatus, "health service says %v, expected SERVING", s)
	}
	return nil
}

// judge finds the words for what gRPC itself says.
func (p *grpcProber) judge(a *attempt, err error) error {
	s, ok := status.FromError(err)
	switch {
	case err == nil || !ok:
		return err
	case s.Code() == codes.NotFound:
		return fail(ClassStatus, "health service doesn't know the service %q", p.request.Service)
	case s.Code() == codes.Unimplemented:
		return fail(ClassStatus, "the peer has no health service (grpc.health.v1.Health)")
	case s.Code() == codes.DeadlineExceeded: // the server knows the deadline too
		return context.DeadlineExceeded
	case s.Code() == codes.Unavailable && a.rejected() != nil:
		return a.rejected()
	case s.Code() == codes.Unavailable:
		return fail(ClassConnect, "grpc status Unavailable: %s", s.Message())
	}
	return fail(ClassStatus, "grpc status %v: %s", s.Code(), s.Message())
}

// secured are the credentials of a connection that has its handshake behind it.
type secured struct{ info credentials.TLSInfo }

// ClientHandshake implements credentials.TransportCredentials.
func (s secured) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, s.info, nil
}

// ServerHandshake implements credentials.TransportCredentials.
func (s secured) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (s secured) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (s secured) Clone() credentials.TransportCredentials { return s }

// OverrideServerName implements credentials.TransportCredentials.
func (s secured) OverrideServerName(string) error { return nil }
