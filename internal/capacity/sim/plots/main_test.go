package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/capacity/sim"
)

// The plots that are kept are those the simulator makes now.
func TestPlotsAreUpToDate(t *testing.T) {
	const dir = "../../../../docs/capacity"
	known := make(map[string]bool)
	for _, f := range sim.Figures() {
		name := filepath.Join(dir, f.File+".svg")
		known[name] = true
		kept, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var made bytes.Buffer
		if err := f.WriteSVG(&made); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, made.Bytes()) {
			t.Errorf("%s is not what the simulator makes; run: go generate ./internal/capacity/sim/plots", name)
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if !known[name] {
			t.Errorf("nobody makes %s", name)
		}
	}
}
