// Command coredns is CoreDNS with all its plugins and gslb.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin" // every plugin of CoreDNS
	"github.com/coredns/coredns/coremain"
	_ "github.com/seed-945f90c5/gslb"
)

// landmark is the directive that gslb stands right after: signatures are made
// of what we answer, and caches are farther out still.
const landmark = "dnssec"

func main() {
	if err := insert("gslb", landmark); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	coremain.Run()
}

// insert puts a directive right after another one.
func insert(directive, after string) error {
	i := slices.Index(dnsserver.Directives, after)
	if i < 0 {
		return fmt.Errorf("this CoreDNS has no directive %s for %s to stand after: the order must be thought over again", after, directive)
	}
	if !slices.Contains(dnsserver.Directives, directive) {
		dnsserver.Directives = slices.Insert(dnsserver.Directives, i+1, directive)
	}
	return nil
}
