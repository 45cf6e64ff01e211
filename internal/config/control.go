package config

import (
	"net/netip"
	"slices"
	"strings"
)

// Limits of what is listened at and asked.
const (
	maxResolvers  = 16
	maxSocketPath = 107 // bytes of a path that fit into sockaddr_un on Linux
)

// resolvers reads the servers that targets are looked up at.
func (p *parser) resolvers(s *statement) error {
	r := &Resolvers{Pos: s.Pos}
	for _, t := range s.args {
		ap, err := dialled(t, true)
		if err != nil {
			return err
		}
		if ap.Port() == 0 {
			ap = netip.AddrPortFrom(ap.Addr(), 53)
		}
		if slices.Contains(r.Servers, ap.String()) {
			return t.errorf("resolver %s is written twice", ap)
		}
		if len(r.Servers) == maxResolvers {
			return t.errorf("too many resolvers: at most %d", maxResolvers)
		}
		r.Servers = append(r.Servers, ap.String())
	}
	p.Resolvers = r
	return nil
}

// control reads where the control API listens.
func (p *parser) control(s *statement) error {
	if s.args[1].Text != "token" {
		return s.args[1].errorf("unexpected %q: expected `control LISTEN token FILE`", s.args[1].Text)
	}
	c := &Control{Pos: s.Pos, Token: s.args[2].Text}
	if s.opened {
		said := map[string]Pos{}
		err := s.block(
			word{"tls", "CERTFILE KEYFILE", 2, 2, noBlock, once(said, func(s *statement) error {
				c.Cert, c.Key = s.args[0].Text, s.args[1].Text
				return nil
			})},
			word{"client_ca", "FILE", 1, 1, noBlock, once(said, func(s *statement) error {
				c.ClientCA = s.args[0].Text
				return nil
			})},
		)
		if err != nil {
			return err
		}
		if at, written := said["client_ca"]; written && c.Cert == "" {
			return at.errorf("client_ca asks clients for certificates, which needs tls: write `tls CERTFILE KEYFILE` as well")
		}
	}
	if err := c.listen(s.args[0]); err != nil {
		return err
	}
	p.Control = c
	return nil
}

// listen reads LISTEN. Whoever reaches the API may move all traffic, so beyond
// this machine a token alone is too little.
func (c *Control) listen(t Token) error {
	if path, unix := strings.CutPrefix(t.Text, "unix:"); unix {
		c.Network, c.Address = "unix", path
		switch {
		case path == "":
			return t.errorf("%q has no path: expected one like unix:/run/gslb.sock", t.Text)
		case len(path) > maxSocketPath:
			return t.errorf("the path of a unix socket is at most %d bytes long, and this one %d", maxSocketPath, len(path))
		case c.Cert != "":
			return t.errorf("tls on a unix socket: it never leaves this machine, and its file mode says who may use it; remove tls, or listen at an address")
		}
		return nil
	}
	ap, err := netip.ParseAddrPort(t.Text)
	if err != nil || ap.Port() == 0 || ap.Addr().Zone() != "" || ap.Addr().Is4In6() {
		return t.errorf("%q: expected unix:PATH or a loopback address and port, like 127.0.0.1:8053 or [::1]:8053", t.Text)
	}
	if !ap.Addr().IsLoopback() && c.ClientCA == "" {
		return t.errorf("%q can be reached from other machines, and whoever has a token may move all traffic: listen at unix:PATH or a loopback address like 127.0.0.1:%d, or ask clients for certificates with `tls` and `client_ca`",
			t.Text, ap.Port())
	}
	c.Network, c.Address = "tcp", ap.String()
	return nil
}
