//go:build unix

package control_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// TestTokensPipe holds that nobody waits for a pipe in the place of the token file.
func TestTokensPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.OpenTokens(path, time.Now); err == nil || !strings.Contains(err.Error(), "tokens is no file") {
		t.Errorf("it is %v", err)
	}
}
