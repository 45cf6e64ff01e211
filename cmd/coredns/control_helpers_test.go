package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/control"

	"github.com/miekg/dns"
)

const (
	aliceToken = "alice-0123456789abcdef"
	readToken  = "grafana-0123456789abcd"
)

// gslbctl is the command, built once.
var gslbctl = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gslbctl")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gslbctl")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/gslbctl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// operator is one who has a token for a server's control API.
type operator struct {
	dir     string
	control string // as -control wants it
	flags   []string
}

// newOperator makes a directory with tokens, and room for a socket and state.
func newOperator(t *testing.T) *operator {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "o") // every change is synced, and disks are slow
	if err != nil {
		dir, err = os.MkdirTemp("", "o") // and paths of sockets are short
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &operator{dir: dir, control: "unix:" + filepath.Join(dir, "s")}
	o.secret(t, "tokens", "alice "+aliceToken+"\ngrafana "+readToken+" read\nold old-0123456789abcdef00 until 2020-01-01T00:00:00Z")
	o.secret(t, "mine", aliceToken)
	return o
}

// secret writes a file that only its owner may read.
func (o *operator) secret(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// controlled is a server block with a control API: three regions, of which a has the
// clients of 0.0.0.0/2, b those of 64.0.0.0/2 and c the others. DIR in more stands for
// the directory.
func (o *operator) controlled(more string) string {
	return strings.ReplaceAll(`example.com:53 {
 gslb {
  state DIR/state
  control unix:DIR/s token DIR/tokens
  region a b c
  area near prefix 16.0.0.0/7
  clients prefix 0.0.0.0/2 {
   order a b c
  }
  clients prefix 64.0.0.0/2 {
   order b c a
  }
  clients rest {
   order c a b
  }
`+more+`
 }
}
`, "DIR", o.dir)
}

const controlledHost = `
  guard max_move 100%
  host api.example.com {
   pool a 192.0.2.1
   pool b 192.0.2.2
   pool c {
    endpoint 192.0.2.3
    share 90% area near from 2150-01-01T00:00:00Z
   }
  }`

// run runs gslbctl with the operator's token; ~ in the line is a space in an argument.
func (o *operator) run(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	path, err := gslbctl()
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "~", " ")
	}
	cmd := exec.CommandContext(t.Context(), path, append(args, o.flags...)...)
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "GSLBCTL_CONTROL="+o.control, "GSLBCTL_TOKEN_FILE="+filepath.Join(o.dir, "mine"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Run() // its code says it all
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// reply runs a command that must succeed, and reads what the server replied.
func reply[T any](t *testing.T, o *operator, line string) (into T) {
	t.Helper()
	code, stdout, stderr := o.run(t, line+" -json")
	var all []struct{ Reply json.RawMessage }
	if err := json.Unmarshal([]byte(stdout), &all); code != 0 || err != nil || len(all) != 1 {
		t.Fatalf("gslbctl %s: %d %v\n%s%s", line, code, err, stdout, stderr)
	}
	if err := json.Unmarshal(all[0].Reply, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

// refused runs a command that must fail, and gives what the server said.
func (o *operator) refused(t *testing.T, line string) control.Failure {
	t.Helper()
	code, stdout, stderr := o.run(t, line+" -json")
	var all []struct{ Failure *control.Failure }
	if err := json.Unmarshal([]byte(stdout), &all); code == 0 || err != nil || len(all) != 1 || all[0].Failure == nil {
		t.Fatalf("gslbctl %s: %d %v\n%s%s", line, code, err, stdout, stderr)
	}
	return *all[0].Failure
}

func (o *operator) must(t *testing.T, line string) control.Result {
	t.Helper()
	return reply[control.Result](t, o, line)
}

// population is 2,000 clients, each of a /16 of its own: half of region a, and a
// quarter each of b and c.
var population = sync.OnceValue(func() (all []netip.Prefix) {
	add := func(first, n int) {
		for i := range n {
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(first + i/256), byte(i), 7, 0}), 24))
		}
	}
	add(16, 1000)
	add(70, 500)
	add(150, 500)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) // so that a part is like the whole
	return all
})

// served asks for every client, and gives the region that it got: a, b, c, or "" for
// none.
func served(t *testing.T, s *server) []string {
	t.Helper()
	conn, err := dns.DialTimeout("udp", s.addr, deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := dns.Client{Timeout: deadline}
	regions := map[string]string{"192.0.2.1": "a", "192.0.2.2": "b", "192.0.2.3": "c"}
	var got []string
	for _, p := range population() {
		q := parseQuery(t, "api.example.com A +subnet="+p.String())
		r, _, err := client.ExchangeWithConn(q.msg(t), conn)
		if err != nil {
			t.Fatal(err)
		}
		region := ""
		if len(r.Answer) == 1 {
			region = regions[data(r.Answer[0])]
		}
		got = append(got, region)
	}
	return got
}

// percent is the part of the clients for whom something holds.
func percent(n int, holds func(i int) bool) float64 {
	is := 0
	for i := range n {
		if holds(i) {
			is++
		}
	}
	return 100 * float64(is) / float64(n)
}

// post sends a body to the socket, and gives the status and the error.
func (o *operator) post(t *testing.T, token, path, body string) (code int, f control.Failure) {
	t.Helper()
	client := http.Client{Timeout: deadline, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(o.control, "unix:"))
	}}}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&f); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	return answer.StatusCode, f
}
