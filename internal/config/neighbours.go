package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// signatures is how many signatures dnssec keeps unless told otherwise.
const signatures = 10000

// answering are the directives of plugins that come after gslb and can answer
// queries. The directives sign and transfer are none: the one only writes files
// for others, the other only hands out the zones of others.
var answering = []string{
	"template", "dynupdate", "hosts", "route53", "azure", "clouddns", "k8s_external", "kubernetes", "file", "auto",
	"secondary", "etcd", "forward", "grpc", "erratic", "whoami", "nomad",
}

// CheckNeighbours refuses other plugins of the server block that this block
// can't work with. The siblings map each directive of the server block to all
// words of its statements, one statement after the other, braces included. The
// error is an *Error.
func (b *Block) CheckNeighbours(siblings map[string][]string) error {
	_, caches := siblings["cache"]
	if caches && b.Inherited && slices.Contains(b.Zones, ".") {
		return b.errorf("gslb without zones answers for everything (.), so cache would be left nothing to cache: " +
			"write the zones after gslb, such as `gslb example.com {`")
	}
	if rewritesSubnet(siblings["rewrite"]) {
		return b.errorf("rewrite edns0 subnet changes the client subnet before gslb sees it, and resolvers drop replies whose client subnet isn't theirs: remove it")
	}
	return nil
}

// rewritesSubnet reports whether the words of rewrite put another client subnet
// into queries. To unset it is fine: the reply then has none.
func rewritesSubnet(words []string) bool {
	for i := range len(words) - 2 {
		option := strings.ToLower(words[i] + " " + words[i+1])
		action := strings.ToLower(words[i+2])
		if option == "edns0 subnet" && slices.Contains([]string{"set", "replace", "append"}, action) {
			return true
		}
	}
	return false
}

// NeighbourWarnings gives what works badly with the other plugins of the server
// block. The siblings are those of CheckNeighbours; answerSets is the most
// different answers that dnssec may be asked to sign.
func (b *Block) NeighbourWarnings(siblings map[string][]string, answerSets int) []Warning {
	var list []Warning
	if words, signs := siblings["dnssec"]; signs {
		if kept := capacity(words); answerSets > kept {
			text := fmt.Sprintf("Up to %d signed answers are possible, more than the %d signatures that dnssec keeps: set its cache_capacity to at least %d",
				answerSets, kept, answerSets)
			if slices.ContainsFunc(b.Hosts, func(h Host) bool { return h.targeted() }) {
				text += ", or to less if targets never have 64 addresses of each family, as they are counted here"
			}
			list = append(list, Warning{b.Pos, text})
		}
	}
	answers := func(directive string) bool { _, there := siblings[directive]; return there }
	if b.Fallthrough != nil && !slices.ContainsFunc(answering, answers) {
		list = append(list, Warning{b.Fallthrough.Pos, "no plugin here that fallthrough could ask"})
	}
	return list
}

// capacity is how many signatures dnssec keeps, by its words.
func capacity(words []string) int {
	if i := slices.Index(words, "cache_capacity"); i >= 0 && i+1 < len(words) {
		if n, err := strconv.Atoi(words[i+1]); err == nil {
			return n
		}
	}
	return signatures
}

// Authority gives the place and the word of what the block says of the zone's
// authority, soa or ns.
func (b *Block) Authority() (pos Pos, word string, written bool) {
	switch {
	case b.SOA != nil:
		return b.SOA.Pos, "soa", true
	case len(b.NS) > 0:
		return b.Pos, "ns", true
	}
	return Pos{}, "", false
}
