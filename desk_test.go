package gslb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

const aliceToken = "alice-0123456789abcdef"

// office is a directory with what a control API needs.
type office struct{ dir string }

func newOffice(t *testing.T) *office {
	t.Helper()
	dir, err := os.MkdirTemp("", "o") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &office{dir}
	o.tokens(t, "tokens", "alice "+aliceToken)
	return o
}

func (o *office) path(name string) string { return filepath.Join(o.dir, name) }

func (o *office) tokens(t *testing.T, name, line string) {
	t.Helper()
	if err := os.WriteFile(o.path(name), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// block is one with a control API; DIR in more stands for the directory.
func (o *office) block(more string) string {
	return strings.ReplaceAll("gslb {\n"+more+`
	region a b
	clients rest {
		order a b
	}
	guard max_move 100%
	host api.example.com {
		pool a 192.0.2.1
		pool b 192.0.2.2
	}
}`, "DIR", o.dir)
}

const onSocket = "state DIR/state\ncontrol unix:DIR/s token DIR/tokens"

// ask makes a request at a socket of the office, and gives the status and the reply.
func (o *office) ask(socket, token, method, path, body string) (int, map[string]any) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", o.path(socket))
	}}}
	r, err := http.NewRequest(method, "http://localhost/v1/"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(r)
	if err != nil {
		return 0, map[string]any{"error": err.Error()}
	}
	defer reply.Body.Close()
	data, _ := io.ReadAll(reply.Body)
	var into map[string]any
	if json.Unmarshal(data, &into) != nil {
		into = map[string]any{"error": string(data)}
	}
	return reply.StatusCode, into
}

// drain drains region a, or takes that back; it tells how the server answers.
func (o *office) drain(t *testing.T, socket, value string) {
	t.Helper()
	body := fmt.Sprintf(`{"lever":"drain","region":"a","value":%q,"why":"test","for":"1h"}`, value)
	if code, reply := o.ask(socket, aliceToken, "POST", "changes", body); code != 200 {
		t.Errorf("drain %s at %s: %d %v", value, socket, code, reply)
	}
}

const (
	inA = "192.0.2.1 ttl 30"
	inB = "192.0.2.2 ttl 30"
)

// What can't be opened fails the load, and says what is wrong.
func TestDeskRefused(t *testing.T) {
	o := newOffice(t)
	o.tokens(t, "short", "alice x")
	o.tokens(t, "open", "alice "+aliceToken)
	os.Chmod(o.path("open"), 0o644)
	replace(t, o.path("file"), []byte("x"))
	for more, want := range map[string]string{
		"control unix:DIR/s token DIR/tokens":                                         "Corefile:2: control needs `state DIR`: overrides and the audit log are kept there",
		"state DIR/state\ncontrol unix:DIR/s token DIR/none":                          "none: no such file",
		"state DIR/state\ncontrol unix:DIR/s token DIR/short":                         "short: line 1: ",
		"state DIR/state\ncontrol unix:DIR/s token DIR/open":                          "chmod 600",
		"state DIR/state\ncontrol unix:DIR/file token DIR/tokens":                     "there is a file that is no socket",
		"state DIR/file\ncontrol unix:DIR/s token DIR/tokens":                         "state directory: mkdir " + o.path("file"),
		"state DIR/state\ncontrol 127.0.0.1:1 token DIR/tokens {\ntls DIR/c DIR/k\n}": "control certificate: open " + o.path("c"),
		"state DIR/state\ncontrol unix:DIR/no/where token DIR/tokens":                 "no such file",
	} {
		ignore := goleak.IgnoreCurrent()
		r := new(registry)
		gen, _, err := r.startTexts(t, o.block(more))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "Corefile:") {
			t.Errorf("%s: %v, want %s", more, err, want)
		}
		if r.steering != nil || len(r.generations) > 0 {
			t.Errorf("%s: something is left", more)
		}
		r.stop(gen)
		nothingLeft(t, ignore)
	}
	r := new(registry)
	if _, _, err := r.startTexts(t, o.block(onSocket), "\n\n"+o.block("control unix:DIR/other token DIR/tokens")); err == nil || !strings.HasPrefix(err.Error(), "Corefile:4: control is written with another meaning at Corefile:3") {
		t.Errorf("two controls: %v", err)
	}
}

// One server block may have the directory and another one the API, or both the same.
func TestDeskOfSeveralBlocks(t *testing.T) {
	o := newOffice(t)
	for _, texts := range [][]string{{o.block("state DIR/state"), o.block("control unix:DIR/s token DIR/tokens")}, {o.block(onSocket), o.block(onSocket)}} {
		r := new(registry)
		gen, gs, err := r.startTexts(t, texts...)
		if err != nil {
			t.Fatal(err)
		}
		o.drain(t, "s", "on")
		for i, g := range gs {
			expect(t, fmt.Sprintf("block %d", i), g, inB)
		}
		o.drain(t, "s", "off")
		r.stop(gen)
	}
}

// reload starts another generation and ends the one before.
func reload(t *testing.T, r *registry, old *generation, text string) (*generation, *GSLB) {
	t.Helper()
	gen, g := r.mustStart(t, text)
	r.stop(old)
	return gen, g
}

// Reloads that change what the API is made of, one after the other.
func TestDeskReloads(t *testing.T) {
	o := newOffice(t)
	ignore := goleak.IgnoreCurrent()
	r := new(registry)
	gen, g := r.mustStart(t, o.block(onSocket))
	o.drain(t, "s", "on")
	expect(t, "drained", g, inB)
	version := func(socket, token string) int { code, _ := o.ask(socket, token, "GET", "status", ""); return code }

	o.tokens(t, "others", "bob bob-0123456789abcdef0")
	gen, g = reload(t, r, gen, o.block("state DIR/state\ncontrol unix:DIR/s token DIR/others"))
	expect(t, "with other tokens", g, inB)
	if old, is := version("s", aliceToken), version("s", "bob-0123456789abcdef0"); old != 401 || is != 200 {
		t.Errorf("other tokens: the old one has %d, the new one %d", old, is)
	}

	gen, g = reload(t, r, gen, o.block("state DIR/state\ncontrol unix:DIR/t token DIR/tokens"))
	expect(t, "at another address", g, inB)
	if _, err := os.Stat(o.path("s")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket before: %v", err)
	}
	if code := version("t", aliceToken); code != 200 {
		t.Errorf("the new one answers %d", code)
	}

	gen, g = reload(t, r, gen, o.block("state DIR/elsewhere\ncontrol unix:DIR/t token DIR/tokens"))
	expect(t, "with another directory", g, inA)
	o.drain(t, "t", "on")
	expect(t, "drained there", g, inB)

	gen, g = reload(t, r, gen, o.block("state DIR/state"))
	expect(t, "without control", g, inA)
	if code := version("t", aliceToken); code != 0 {
		t.Errorf("without control it answers %d", code)
	}

	gen, g = reload(t, r, gen, o.block(onSocket))
	expect(t, "with control again", g, inB)
	o.drain(t, "s", "off")
	expect(t, "undrained", g, inA)
	r.stop(gen)
	if left, _ := filepath.Glob(o.path("[st]")); len(left) > 0 {
		t.Errorf("at the end, there are %v", left)
	}
	nothingLeft(t, ignore)
}

// A generation whose end nobody told of gives its place to one that comes later.
func TestDeskOfForgottenGeneration(t *testing.T) {
	o := newOffice(t)
	ignore := goleak.IgnoreCurrent()
	r := new(registry)
	r.mustStart(t, o.block(onSocket)) // never stopped
	o.drain(t, "s", "on")
	r.mustStart(t, o.block("state DIR/state")) // neither
	third, g := r.mustStart(t, o.block(onSocket))
	expect(t, "in the third", g, inB)
	o.drain(t, "s", "off")
	expect(t, "in the third", g, inA)
	r.onlyLive(func(gen *generation) bool { return gen == third })
	r.stop(third)
	nothingLeft(t, ignore)
}

// A reload that fails leaves the API, its tokens and what it has set as they were.
func TestDeskOfFailedReload(t *testing.T) {
	o := newOffice(t)
	ignore := goleak.IgnoreCurrent()
	r := newWorld().registry()
	live, g := r.mustStart(t, o.block(onSocket))
	o.drain(t, "s", "on")
	o.tokens(t, "others", "bob bob-0123456789abcdef0")
	broken := strings.Replace(o.block("check impossible {\ntcp :1\n}"), "pool a", "check impossible\npool a", 1)
	for _, first := range []string{
		o.block(onSocket), o.block(""), o.block("state DIR/state\ncontrol unix:DIR/s token DIR/others"),
		o.block("state DIR/other\ncontrol unix:DIR/t token DIR/tokens"), o.block("state DIR/state\ncontrol unix:DIR/s token DIR/none"),
	} {
		failed, _, err := r.startTexts(t, first, broken)
		if err == nil {
			t.Fatalf("it has not failed:\n%s", first)
		}
		status, reply := o.ask("s", aliceToken, "GET", "overrides", "") // before anybody knows
		if list, _ := reply["overrides"].([]any); status != 200 || len(list) != 1 {
			t.Errorf("meanwhile: %d %v", status, reply)
		}
		r.onlyLive(func(gen *generation) bool { return gen == live })
		expect(t, "afterwards", g, inB)
		o.drain(t, "s", "off")
		expect(t, "undrained", g, inA)
		o.drain(t, "s", "on")
		expect(t, "drained", g, inB)
		if _, err := os.Stat(o.path("t")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket of what has failed: %v", err)
		}
		r.stop(failed)
	}
	r.stop(live)
	nothingLeft(t, ignore)
}

// Twenty reloads, under requests, leave nothing behind and answer all of them.
func TestDeskManyReloads(t *testing.T) {
	o := newOffice(t)
	ignore := goleak.IgnoreCurrent()
	r := new(registry)
	gen, _ := r.mustStart(t, o.block(onSocket))
	o.tokens(t, "more", "alice "+aliceToken+"\nbob bob-0123456789abcdef0")
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			value := []string{"on", "off"}[i%2]
			o.drain(t, "s", value)
			if code, reply := o.ask("s", aliceToken, "GET", "status", ""); code != 200 || len(reply["hosts"].([]any)) != 1 {
				t.Errorf("status in a reload: %d %v", code, reply)
			}
		}
	})
	for i := range 20 {
		file := []string{"tokens", "more"}[i%2]
		gen, _ = reload(t, r, gen, o.block("state DIR/state\ncontrol unix:DIR/s token DIR/"+file)+strings.Repeat("\n", i))
	}
	close(stop)
	done.Wait()
	r.stop(gen)
	nothingLeft(t, ignore)
}

// The TLS of an address in use stays as it is: that is said, and the server goes on.
func TestDeskKeepsItsTLS(t *testing.T) {
	o := newOffice(t)
	r := new(registry)
	var gen *generation
	address, err := "", error(syscall.EADDRINUSE)
	for port := 30_000; errors.Is(err, syscall.EADDRINUSE); port++ { // nobody can take it between a look and the start
		address = fmt.Sprintf("127.0.0.1:%d", port)
		gen, _, err = r.startTexts(t, o.block("state DIR/state\ncontrol "+address+" token DIR/tokens"))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.startTexts(t, o.block("state DIR/state\ncontrol "+address+" token DIR/tokens {\ntls DIR/c DIR/k\n}"))
	if err == nil || !strings.Contains(err.Error(), "Corefile:3: control "+address+": its TLS can't be changed") {
		t.Errorf("error %v", err)
	}
	reply, err := http.Get("http://" + address + "/v1/status")
	if err != nil || reply.StatusCode != 401 {
		t.Errorf("afterwards: %v %v", reply, err)
	}
	reply.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	r.stop(gen)
}
