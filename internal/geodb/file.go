package geodb

import (
	"fmt"
	"os"
)

// statRegular is os.Stat for files that can be read whole. It follows links.
func statRegular(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: expected a regular file, this is %s", path, info.Mode())
	case info.Size() > maxFileSize:
		return nil, fmt.Errorf("%s: %d bytes is more than the most that is read, %d", path, info.Size(), int64(maxFileSize))
	}
	return info, nil
}
