//go:build unix

package load

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipe has a file that would never be opened.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readOnce(t, Source{Kind: File, File: pipe}, long); got != "it is no regular file" {
		t.Error(got)
	}
}
