package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

func TestOrder(t *testing.T) {
	at := func(directive string) int {
		i := slices.Index(dnsserver.Directives, directive)
		if i < 0 {
			t.Errorf("%s is no directive of this build", directive)
		}
		return i
	}
	if at("gslb") != at("dnssec")+1 {
		t.Errorf("gslb is directive %d and dnssec %d, want it right after", at("gslb"), at("dnssec"))
	}
	for _, above := range []string{
		"metadata", "reload", "nsid", "bufsize", "bind", "ready", "health", "prometheus", "errors", "log",
		"dnstap", "any", "loadbalance", "rewrite", "acl", "cache", "header", "dnssec",
	} {
		if at(above) > at("gslb") {
			t.Errorf("%s comes after gslb", above)
		}
	}
	for _, below := range []string{
		"tls", "minimal", "template", "transfer", "hosts", "file", "auto", "secondary", "etcd", "forward", "whoami", "view",
	} {
		if at(below) < at("gslb") {
			t.Errorf("%s comes before gslb", below)
		}
	}
}

func TestInsert(t *testing.T) {
	old := slices.Clone(dnsserver.Directives)
	defer func() { dnsserver.Directives = old }()

	if err := insert("gslb", landmark); err != nil || !slices.Equal(dnsserver.Directives, old) {
		t.Errorf("a second insert: %v, and the order is %v", err, dnsserver.Directives)
	}
	dnsserver.Directives = slices.DeleteFunc(slices.Clone(old), func(d string) bool { return d == "gslb" || d == landmark })
	before := slices.Clone(dnsserver.Directives)
	if err := insert("gslb", landmark); err == nil || !strings.Contains(err.Error(), landmark) {
		t.Errorf("without the landmark: error %v, want one that names %s", err, landmark)
	}
	if !slices.Equal(dnsserver.Directives, before) {
		t.Error("without the landmark the order changed")
	}
}

// plugin.cfg is for those who build CoreDNS their own way; it must give the
// order that is tested here.
func TestPluginCfg(t *testing.T) {
	text, err := os.ReadFile("plugin.cfg")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		directive, pkg, ok := strings.Cut(line, ":")
		if !ok || strings.Contains(pkg, ":") {
			t.Errorf("line %q: want directive:package", line)
		}
		if directive == "gslb" && pkg != "github.com/seed-945f90c5/gslb" {
			t.Errorf("gslb is package %s", pkg)
		}
		order = append(order, directive)
	}
	if !slices.Equal(order, dnsserver.Directives) {
		t.Errorf("plugin.cfg gives the order\n%v\nand this build has\n%v", order, dnsserver.Directives)
	}
}

func TestPluginsFlag(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-plugins")
	cmd.Env = append(os.Environ(), asServer+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Fields(string(out)), "gslb") {
		t.Errorf("coredns -plugins doesn't list gslb:\n%s", out)
	}
}
