package gslb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCopyTriedAgain holds that copies which could not be made are made later, and that both is
// said once.
func TestCopyTriedAgain(t *testing.T) {
	for _, file := range dataCases {
		t.Run(file.name, func(t *testing.T) {
			dir := t.TempDir()
			path, state := filepath.Join(dir, file.file), filepath.Join(dir, "state")
			text := strings.Replace(file.text(path), "gslb {", "gslb {\nstate "+state, 1)
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				file.good(t, path, "de", 10)
				replace(t, state, nil) // no directory
				gen, _ := begin(t, text)
				time.Sleep(3 * keepAgain)
				if err := os.Remove(state); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * keepAgain)
				synctest.Wait()
				replace(t, path, []byte("gar bage"))
				running.stop(gen)
				for _, said := range []string{"Data files can't be copied", "Data files are copied"} {
					if n := strings.Count(logged.String(), said); n != 1 {
						t.Errorf("%s: said %d times\n%s", said, n, logged)
					}
				}
				gen, g := begin(t, text)
				defer running.stop(gen)
				if got := region(t, g); got != "de" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}
