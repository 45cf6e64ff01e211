// Command plots writes the plots of docs/capacity from the simulator. Run it by
//
//	go generate ./internal/capacity/sim/plots
package main

import (
	"bytes"
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
		var picture bytes.Buffer
		if err := f.WriteSVG(&picture); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(os.Args[1], f.File+".svg"), picture.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
