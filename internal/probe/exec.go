package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// killWait is how long a command's output may stay open after its end. What it said is
// read by then, even on a busy machine; and one that has been killed must have ended before
// its probe is given up for lost, as a timeout counts and what is lost doesn't.
const killWait = overrun / 2

// execProber runs a command: exit code 0 passes, any other fails, and
// conditions look at the first check.MaxBody bytes of its output (both of its
// streams). The command has the environment of this process and in
// it GSLB_ADDRESS, GSLB_PORT (empty if none) and GSLB_HOST (the authority, if
// any). When its time is over it is killed with all that it started, unless
// that left its process group.
type execProber struct {
	stateless
	judge
	path   string
	args   []string // with the command's own name
	places places
}

func newExec(c *check.Check) (prober, error) {
	if len(c.Command) == 0 {
		return nil, errors.New("exec: no command")
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, fmt.Errorf("%w: expected a program that this process may run", err)
	}
	if c.Port < 0 || c.Port > 65535 {
		return nil, fmt.Errorf("port %d, expected 0 to 65535", c.Port)
	}
	p := &execProber{path: path, args: c.Command}
	p.places = places{port: uint16(c.Port), authority: hostname(c.Authority), each: c.Each}
	if p.judge, err = newJudge(c, "", nil, nil); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *execProber) probe(ctx context.Context, a *attempt, t Target) error {
	at, err := p.places.of(t)
	if err != nil {
		return err
	}
	a.phase = phaseCommand
	output := &limited{max: check.MaxBody}
	command := exec.CommandContext(ctx, p.path)
	command.Args = p.args
	command.Env = append(os.Environ(), environment(at)...)
	command.Stdout, command.Stderr = output, output
	command.WaitDelay = killWait
	ownGroup(command)
	err = command.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		// It ended well, but left something behind that holds its output.
		killGroup(command)
		err = nil
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return p.failed(exit, output)
	case err != nil:
		return err
	}
	return p.judge.of(&outcome{body: output.kept, more: output.more})
}

// failed judges a command that failed: full wins over that, as everywhere.
func (p *execProber) failed(exit *exec.ExitError, output *limited) error {
	if f := p.overload(&outcome{body: output.kept, more: output.more}); f != nil {
		return f
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(output.kept), []byte("\n"))
	if len(line) == 0 {
		return fail(ClassStatus, "command: %s", exit.ProcessState)
	}
	return fail(ClassStatus, "command: %s: %s", exit.ProcessState, line)
}

func environment(at place) []string {
	port := ""
	if at.addr.Port() != 0 {
		port = strconv.Itoa(int(at.addr.Port()))
	}
	return []string{"GSLB_ADDRESS=" + at.addr.Addr().String(), "GSLB_PORT=" + port, "GSLB_HOST=" + at.name}
}

// limited takes all that is written, and keeps the first bytes of it.
type limited struct {
	max  int
	kept []byte
	more bool
}

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	room := min(l.max-len(l.kept), len(b))
	l.kept = append(l.kept, b[:room]...)
	l.more = l.more || room < len(b)
	return len(b), nil
}
