//go:build unix && !solaris && !aix

package beacon

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lockDir takes a lock that ends with the process.
func lockDir(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another collector writes there")
		}
		return nil, err
	}
	return f, nil
}
