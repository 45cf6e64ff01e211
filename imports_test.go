package gslb

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestInternalIsPure holds that the packages below internal can be used and
// tested without CoreDNS and its DNS library.
func TestInternalIsPure(t *testing.T) {
	files := 0
	err := filepath.WalkDir("internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			for _, banned := range []string{"github.com/coredns/", "github.com/miekg/dns", "github.com/prometheus/", "math/rand"} {
				if strings.HasPrefix(name, banned) {
					t.Errorf("%s imports %s", path, name)
				}
			}
		}
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files read: %v", files, err)
	}
}
