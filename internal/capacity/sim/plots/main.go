// Command plots writes the plots of docs/capacity from the simulator. Run it by
//
//	go generate ./internal/capacity/sim/plots
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/seed-945f90c5/gslb/internal/capacity/sim"
)

//go:generate go run . ../../../../docs/capacity

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: plots DIR")
	}
	for _, f := range sim.Figures() {
		if err := os.WriteFile(filepath.Join(os.Args[1], f.File+".svg"), f.SVG(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
