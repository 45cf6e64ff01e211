package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// process is the server in a process of its own.
type process struct {
	addr string
	path string // of its Corefile
	cmd  *exec.Cmd
	out  *lockedBuffer
}

// run starts a server process and waits until it answers; the test ends it.
func run(t *testing.T, corefile string) *process {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{addr: addr, out: new(lockedBuffer)}
	p.path = writeFile(t, t.TempDir(), "Corefile", onAddr(corefile, addr))
	p.begin(t)
	return p
}

// begin starts the process, for the first time or again, and waits until it
// answers.
func (p *process) begin(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-conf", p.path)
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd = cmd
	t.Cleanup(func() { cmd.Wait() }) // the context has killed it by then
	eventually(t, "the server answers", func() bool {
		q := parseQuery(t, "example.com SOA")
		r, err := q.exchange(q.msg(t), p.addr)
		return err == nil && len(r.Answer) > 0
	})
}

// write replaces the Corefile, at once: the process may be reading it.
func (p *process) write(t *testing.T, corefile string) {
	t.Helper()
	whole := writeFile(t, filepath.Dir(p.path), "new", onAddr(corefile, p.addr))
	if err := os.Rename(whole, p.path); err != nil {
		t.Fatal(err)
	}
}

// end ends the process by a signal and waits.
func (p *process) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
}

// A new Corefile is taken in by the reload plugin, or when the process is told;
// a bad one is not.
func TestProcessReload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, plugin string
		tell         func(*process) error
	}{
		{"reload plugin", "reload 2s 0s", func(*process) error { return nil }},
		{"SIGUSR1", "", func(p *process) error { return p.cmd.Process.Signal(syscall.SIGUSR1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := run(t, reloadable(1, c.plugin, "errors"))
			for _, step := range []struct {
				corefile string
				holds    func() bool
			}{
				{reloadable(2, c.plugin), func() bool { return brief(ask(t, p.addr, "www.example.com A")) == "192.0.2.2" }},
				{strings.Replace(reloadable(3, c.plugin), "region a", "reggion a", 1), func() bool { return strings.Contains(p.out.String(), "reggion") }},
			} {
				p.write(t, step.corefile)
				if err := c.tell(p); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the new Corefile has an effect", step.holds)
			}
			if got := brief(ask(t, p.addr, "www.example.com A")); got != "192.0.2.2" {
				t.Errorf("with a bad Corefile: %s, want the answer from before", got)
			}
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("the end on SIGTERM: %v\n%s", err, p.out)
			}
		})
	}
}
