//go:build unix

package probe

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a command into a process group of its own, which is killed as a
// whole at the end of its time.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return killGroup(c) }
}

func killGroup(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
