// Command gen writes the hand-made databases of testdata into a directory.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"
)

func main() {
	dir := flag.String("dir", "testdata", "directory to write to")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for name, database := range mmdbtest.Fixtures() {
		data, err := database.Build()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
