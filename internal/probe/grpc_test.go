package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// counted counts the connections a listener hands out.
type counted struct {
	net.Listener
	n atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return conn, err
}

// serveGRPC serves gRPC on loopback, with TLS if there is a configuration.
func serveGRPC(t testing.TB, config *tls.Config, register func(*grpc.Server), opts ...grpc.ServerOption) (string, *counted) {
	t.Helper()
	if config != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(config)))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &counted{Listener: l}
	s := grpc.NewServer(opts...)
	if register != nil {
		register(s)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(n) })
	t.Cleanup(func() { s.Stop(); wg.Wait() })
	return l.Addr().String(), n
}

// healthy registers the standard service with states of some services.
func healthy(s *grpc.Server) {
	h := health.NewServer()
	h.SetServingStatus("up.v1", grpc_health_v1.HealthCheckResponse_SERVING)
	h.SetServingStatus("down.v1", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	grpc_health_v1.RegisterHealthServer(s, h)
}

// odd answers every question by f.
type odd struct {
	grpc_health_v1.UnimplementedHealthServer
	f func(context.Context) error
}

func (o odd) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, o.f(ctx)
}

func answering(f func(context.Context) error) func(*grpc.Server) {
	return func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, odd{f: f}) }
}

func TestGRPC(t *testing.T) {
	noLeaks(t)
	late := fmt.Sprintf("answer: timeout after %v", soon)
	for _, tc := range []struct {
		name, service string
		register      func(*grpc.Server)
		want          outcomeOf
	}{
		{"server", "", healthy, passed},
		{"service", "up.v1", healthy, passed},
		{"not serving", "down.v1", healthy, outcomeOf{Fail, ClassStatus, "health service says NOT_SERVING, expected SERVING"}},
		{"unknown", "other.v1", healthy, outcomeOf{Fail, ClassStatus, `health service doesn't know the service "other.v1"`}},
		{"no health service", "", nil, outcomeOf{Fail, ClassStatus, "the peer has no health service (grpc.health.v1.Health)"}},
		{"denied", "", answering(func(context.Context) error { return status.Error(codes.PermissionDenied, "not\nyou") }),
			outcomeOf{Fail, ClassStatus, "grpc status PermissionDenied: not you"}},
		{"silent", "", answering(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }),
			outcomeOf{Fail, ClassTimeout, late}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			address, _ := serveGRPC(t, nil, tc.register)
			c := define(check.GRPC, func(c *check.Check) {
				c.Service, c.Timeout = tc.service, patience
				if tc.want.class == ClassTimeout {
					c.Timeout = soon
				}
			})
			tc.want.compareProbe(t, c, to(address))
		})
	}
}

func TestGRPCOfBadServers(t *testing.T) {
	noLeaks(t)
	r := prepare(t, define(check.GRPC, nil))
	outcomeOf{Fail, ClassConnect, "connect: connection refused"}.compare(t, r.Probe(t.Context(), to(refused)))
	for name, serve := range map[string]func(*rawConn){
		"closes":     func(*rawConn) {},
		"plain HTTP": func(c *rawConn) { io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") },
	} {
		got := r.Probe(t.Context(), to(serveRaw(t, serve)))
		if got.Status != Fail || got.Class != ClassConnect || got.Reason == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	outcomeOf{Fail, ClassTimeout, fmt.Sprintf("answer: timeout after %v", soon)}.compareProbe(t,
		define(check.GRPC, func(c *check.Check) { c.Timeout = soon }), to(serveRaw(t, (*rawConn).untilClosed)))
}

func TestGRPCWithTLS(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	var authority []string
	see := grpc.UnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		authority = md[":authority"]
		return h(ctx, r)
	})
	address, _ := serveGRPC(t, ca.server(t, "a.test"), healthy, see)
	for name, want := range map[string]outcomeOf{
		"a.test": passed,
		"b.test": {Fail, ClassTLS, "certificate is for a.test, expected b.test"},
	} {
		r := prepare(t, define(check.GRPC, func(c *check.Check) { c.TLS, c.CA, c.Authority = true, ca.file, name }))
		got := r.Probe(t.Context(), to(address))
		want.compare(t, got)
		if got.Status == Pass && (got.Secured < got.Connected || got.FirstByte < got.Secured || authority[0] != name) {
			t.Errorf("%+v, authority %v", got, authority)
		}
	}
	mutual := ca.server(t, "a.test")
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool()
	guarded, _ := serveGRPC(t, mutual, healthy)
	for range 2 {
		r := prepare(t, define(check.GRPC, func(c *check.Check) { c.TLS, c.CA, c.Authority = true, ca.file, "a.test" }))
		outcomeOf{Fail, ClassTLS, noCert}.compare(t, r.Probe(t.Context(), to(guarded)))
		r = prepare(t, define(check.GRPC, func(c *check.Check) {
			c.TLS, c.CA, c.Authority = true, ca.file, "a.test"
			c.Cert, c.Key = ca.client(t)
		}))
		passed.compare(t, r.Probe(t.Context(), to(guarded)))
	}
	config := ca.server(t, "a.test")
	config.NextProtos = []string{"http/1.1"}
	address = serveRaw(t, func(c *rawConn) {
		if s := tls.Server(c.Conn, config); s.Handshake() == nil {
			io.Copy(io.Discard, s)
		}
	})
	r := prepare(t, define(check.GRPC, func(c *check.Check) { c.TLS, c.CA, c.Authority = true, ca.file, "a.test" }))
	got := r.Probe(t.Context(), to(address))
	if got.Status != Fail || got.Class != ClassTLS {
		t.Errorf("without HTTP/2: %+v", got)
	}
}

func TestGRPCKeepAlive(t *testing.T) {
	noLeaks(t)
	for keep, want := range map[bool]int64{false: 4, true: 1} {
		address, n := serveGRPC(t, nil, healthy)
		r := prepare(t, define(check.GRPC, func(c *check.Check) { c.KeepAlive = keep }))
		for range 4 {
			passed.compare(t, r.Probe(t.Context(), to(address)))
		}
		if got := n.n.Load(); got != want {
			t.Errorf("keepalive %v: %d connections, want %d", keep, got, want)
		}
	}
	// A server that goes away and comes back meanwhile.
	r := prepare(t, define(check.GRPC, func(c *check.Check) { c.KeepAlive = true }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 3 {
		l.(*net.TCPListener).SetDeadline(time.Time{})
		s := grpc.NewServer()
		healthy(s)
		done := make(chan struct{})
		go func() { s.Serve(lent{l.(*net.TCPListener)}); close(done) }()
		passed.compare(t, r.Probe(t.Context(), to(l.Addr().String())))
		s.Stop()
		<-done
	}
}

// lent is a listener whose port stays ours when it is closed.
type lent struct{ *net.TCPListener }

func (l lent) Close() error { return l.SetDeadline(time.Unix(1, 0)) }
