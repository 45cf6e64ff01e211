package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

const (
	answerTime = 40 * time.Second // longer than the server gives itself
	maxAnswer  = 64 << 20
)

// connection says which servers are meant, and how to reach them.
type connection struct {
	names         []string // as given with -control
	tokenFile     string
	ca, cert, key string
}

// connect adds the flags of a connection.
func connect(flags *flag.FlagSet) *connection {
	c := &connection{}
	flags.Func("control", "the `server` to ask: unix:/PATH, https://ADDRESS:PORT or http://127.0.0.1:PORT; may be given several times (environment: GSLBCTL_CONTROL, with commas between)", func(name string) error {
		c.names = append(c.names, name)
		return nil
	})
	flags.StringVar(&c.tokenFile, "token-file", os.Getenv("GSLBCTL_TOKEN_FILE"), "the `file` that holds the token, for its owner alone (environment: GSLBCTL_TOKEN_FILE)")
	flags.StringVar(&c.ca, "ca", "", "`file` with the authority of the server's certificate, if the system doesn't know it")
	flags.StringVar(&c.cert, "cert", "", "`file` with the client certificate")
	flags.StringVar(&c.key, "key", "", "`file` with its key")
	return c
}

// servers are those that are meant.
func (c *connection) servers() ([]*server, error) {
	names := c.names
	if len(names) == 0 {
		names = strings.FieldsFunc(os.Getenv("GSLBCTL_CONTROL"), func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(names) == 0 {
		return nil, errors.New("no server: say -control unix:/PATH or https://ADDRESS:PORT, or set GSLBCTL_CONTROL")
	}
	if c.tokenFile == "" {
		return nil, errors.New("no token: say -token-file FILE, or set GSLBCTL_TOKEN_FILE")
	}
	token, err := readToken(c.tokenFile)
	if err != nil {
		return nil, err
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	all := make([]*server, len(names))
	for i, name := range names {
		if all[i], err = newServer(name, token, config); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readToken reads the first token of a file: alone on its line, or after the
// name of its owner as in the server's file.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("-token-file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("-token-file %s: expected a file that only its owner may read: chmod 600 it, and think of the token as known", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return "", fmt.Errorf("-token-file: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(line); len(words) {
		case 0:
		case 1:
			return words[0], nil
		default:
			return words[1], nil
		}
	}
	return "", fmt.Errorf("-token-file %s: it holds no token, expected a line TOKEN, or NAME TOKEN", path)
}

func (c *connection) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("-ca %s: it holds no certificate in PEM", c.ca)
		}
	}
	if (c.cert == "") != (c.key == "") {
		return nil, errors.New("-cert and -key belong together")
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("-cert and -key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// server is one control API.
type server struct {
	name  string // as given
	base  string // of its URLs
	token string
	http  http.Client
}

func newServer(name, token string, config *tls.Config) (*server, error) {
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	s := &server{name: name, token: token, http: http.Client{Transport: transport, Timeout: answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if path, unix := strings.CutPrefix(name, "unix:"); unix {
		s.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return s, nil
	}
	const expected = "expected unix:/PATH, https://ADDRESS:PORT or http://127.0.0.1:PORT"
	u, err := url.Parse(name)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("-control %s: %s", name, expected)
	}
	addr, err := netip.ParseAddr(u.Hostname())
	local := err == nil && addr.IsLoopback() || u.Hostname() == "localhost"
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, fmt.Errorf("-control %s: %s: a token doesn't go over a network in the clear", name, expected)
	}
	s.base = u.Scheme + "://" + u.Host
	return s, nil
}

// failed is what a server answers instead.
type failed struct {
	status int
	control.Failure
}

// Error is the server's own, and what to do.
func (f *failed) Error() string {
	text := f.Failure.Error
	if f.status == http.StatusUnauthorized {
		text = "the server doesn't take the token: it is wrong, or has expired"
	}
	if f.Hint != "" {
		text += "\n" + f.Hint
	}
	return text
}

// ask makes a request and reads the answer. A server's own error is a *failed.
func (s *server) ask(method, path string, body, into any) error {
	var data io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		data = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, s.base+path, data)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	reply, err := s.http.Do(r)
	if err != nil {
		return unanswered(method, path, unwrapURL(err))
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return unanswered(method, path, fmt.Errorf("the answer can't be read: %w", err))
	}
	if reply.StatusCode != http.StatusOK {
		f := &failed{status: reply.StatusCode}
		if json.Unmarshal(text, &f.Failure) != nil || f.Failure.Error == "" {
			return fmt.Errorf("the answer is %s, and no JSON: is that the control API?", reply.Status)
		}
		return f
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer can't be understood: %w", err)
	}
	return nil
}

// unanswered says of an error what is not known after it: a server that was asked for a
// change may have made it, or make it yet.
func unanswered(method, path string, err error) error {
	var at *net.OpError
	if method == http.MethodGet || path == "/v1/whatif" || errors.As(err, &at) && at.Op == "dial" {
		return err
	}
	return fmt.Errorf("%w; look with \"gslbctl audit\" whether it was done", err)
}

// unwrapURL drops the method and the URL from an error: the server is named beside it.
func unwrapURL(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}
