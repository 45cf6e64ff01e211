package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// examples are the directories of examples, each with questions. What is asked
// with from= has that transport address, which the databases place.
var examples = map[string][]exchangeCase{
	"quickstart": {
		{"Europe", "api.example.org A +subnet=193.0.6.0/24", "203.0.113.45 /19"},
		{"Europe, AAAA", "api.example.org AAAA +subnet=193.0.6.0/24", "2001:db8:e::45 /19"},
		{"America", "api.example.org A +subnet=8.8.8.0/24", "198.51.100.22 /16"},
		{"Japan, by IPv6", "api.example.org A +subnet=2001:200::/56", "192.0.2.88 /32"},
		{"by the transport", "api.example.org A from=127.1.0.1", "203.0.113.45"},
		{"by another one", "api.example.org A from=127.2.0.1", "198.51.100.22"},
		{"and another", "api.example.org A from=127.3.0.1", "192.0.2.88"},
	},
	"01-active-passive": {
		{"everybody", "api.example.com A", "203.0.113.45"},
		{"with a client subnet", "api.example.com A +subnet=193.0.6.0/24", "203.0.113.45 /16"},
		{"no AAAA", "api.example.com AAAA", "NODATA"},
	},
	"02-nearest-20": {
		{"Frankfurt", "www.example.com A from=127.1.0.1", "203.0.113.45"},
		{"Los Angeles, another name", "m16.example.com A from=127.6.0.1", "198.51.100.22"},
		{"Sydney", "img.example.com A from=127.8.0.1", "192.0.2.88"},
		{"Frankfurt, by subnet", "m01.example.com A +subnet=2001:db8::/48", "203.0.113.45 /48"},
	},
	"03-fence-split": {
		{"Germany", "api.example.com A +subnet=91.0.0.0/24", "203.0.113.1 /16"},
		{"Germany, its other part", "api.example.com A +subnet=91.2.0.0/24", "203.0.113.65 /16"},
		{"Netherlands", "api.example.com A +subnet=193.0.6.0/24", "198.51.100.22 /19"},
		{"America", "api.example.com A from=127.2.0.1", "198.51.100.22"},
	},
	"04-soak": {
		{"Frankfurt", "api.example.com A from=127.1.0.1", "203.0.113.45"},
		{"Tokyo, nearer to ap, which gets nothing now", "api.example.com A from=127.3.0.1", "203.0.113.45"},
		{"Tokyo, by subnet", "api.example.com A +subnet=127.3.0.0/24", "203.0.113.45 /8"},
	},
	"05-asn": {
		{"Germany", "api.example.com A from=127.1.0.1", "203.0.113.45"},
		{"Germany, the provider", "api.example.com A from=127.1.128.1", "198.51.100.22"},
		{"America", "api.example.com A from=127.2.0.1", "198.51.100.22"},
		{"Japan", "api.example.com A from=127.3.0.1", "198.51.100.22"},
		{"Europe, by subnet", "api.example.com A +subnet=193.0.6.0/24", "203.0.113.45 /19"},
	},
	"06-apex": {
		{"Europe", "example.com A from=127.1.0.1", "203.0.113.45"},
		{"America, signed", "example.com AAAA +do from=127.2.0.1", "2001:db8:2::22 RRSIG(AAAA)"},
		{"MX", "example.com MX", "MX 10 mail.example.com."},
		{"TXT", "example.com TXT", `TXT "v=spf1 mx -all"`},
		{"NS", "example.com NS", "NS ns1.example.com. NS ns2.example.com."},
		{"SOA", "example.com SOA", "SOA ns1.example.com."},
		{"HTTPS", "example.com HTTPS +subnet=193.0.6.0/24", "NODATA /0"},
		{"mail", "mail.example.com A +subnet=193.0.6.0/24", "192.0.2.25 /0"},
		{"missing", "missing.example.com A", "NXDOMAIN"},
	},
	"07-elb": {
		{"America, to one balancer", "api.example.com A from=127.2.0.1", "127.0.3.161"},
		{"America, to the other", "api.example.com A from=127.2.3.1", "127.0.3.162"},
		{"Europe", "api.example.com A from=127.1.0.1", "203.0.113.45"},
		{"no AAAA", "api.example.com AAAA from=127.2.0.1", "NODATA"},
	},
	"08-customers": {
		{"one customer, Europe", "www.c1.com A from=127.1.0.1", "203.0.113.1"},
		{"one customer, Japan", "www.c1.com A from=127.3.0.1", "198.51.100.1"},
		{"another customer, Europe", "www.c2.com A from=127.1.0.1", "203.0.113.2"},
		{"not a customer", "www.c3.com A", "REFUSED"},
	},
	"09-view": {
		{"outside, Europe", "api.example.com A from=127.1.0.1", "203.0.113.45"},
		{"outside, America", "api.example.com A from=127.2.0.1", "198.51.100.22"},
		{"outside, by subnet", "api.example.com A +subnet=193.0.6.0/24", "203.0.113.45 /19"},
		{"a subnet doesn't get inside", "api.example.com A +subnet=10.1.0.0/24 from=127.2.0.1", "198.51.100.22 /8"},
	},
	"10-drain": {
		{"Europe, before its window", "api.example.com A +subnet=193.0.6.0/24", "203.0.113.45 /19"},
		{"America", "api.example.com A +subnet=8.8.8.0/24", "198.51.100.22 /16"},
		{"Europe, by the transport", "api.example.com A from=127.1.0.1", "203.0.113.45"},
	},
	"11-v6only": {
		{"Europe, AAAA", "api.example.com AAAA from=127.1.0.1", "2001:db8:1::45"},
		{"Europe, A", "api.example.com A from=127.1.0.1", "198.51.100.22"},
		{"America, AAAA", "api.example.com AAAA from=127.2.0.1", "2001:db8:2::22"},
	},
	"12-order": {
		{"Europe", "api.example.com A from=127.1.0.1", "192.0.2.1"},
		{"America", "api.example.com A from=127.2.0.1", "192.0.2.2"},
		{"Japan", "api.example.com A from=127.3.0.1", "192.0.2.3"},
		{"batch, Europe", "batch.example.com A from=127.1.0.1", "192.0.2.3"},
		{"batch, America", "batch.example.com A from=127.2.0.1", "192.0.2.2"},
	},
	"13-gdnsd": {
		{"Europe", "www.bench.test A from=127.1.0.1", "192.0.2.1 192.0.2.2"},
		{"Turkey", "www.bench.test A from=127.4.0.1", "192.0.2.1 192.0.2.2"},
		{"Japan", "www.bench.test AAAA from=127.3.0.1", "2001:db8:c::1"},
		{"a network of the file", "www.bench.test A +subnet=100.64.1.0/24", "203.0.113.1 203.0.113.2 /16"},
		{"a network written", "www.bench.test A +subnet=10.1.0.0/24", "198.51.100.1 198.51.100.2 /16"},
		{"by order", "meta.bench.test A from=127.2.0.1", "192.0.2.1"},
	},
}

func TestExamples(t *testing.T) {
	dirs, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join("examples", dir.Name(), "Corefile")); err != nil {
			continue
		}
		t.Run(dir.Name(), func(t *testing.T) {
			cases := examples[dir.Name()]
			if len(cases) == 0 {
				t.Fatal("no questions for this example")
			}
			serveExample(t, dir.Name()).check(t, cases)
		})
	}
	for name := range examples {
		if _, err := os.Stat(filepath.Join("examples", name)); err != nil {
			t.Errorf("questions for an example that isn't there: %s", name)
		}
	}
}

var bindLine = regexp.MustCompile(`(?m)^\s*bind .*\n`)

// unbound is a Corefile without bind, which start adds.
func unbound(corefile string) string { return bindLine.ReplaceAllString(corefile, "") }

var keyFile = regexp.MustCompile(`key file (\S+)`)

// serveExample starts an example as one would from the root of the repository,
// in a copy to which the key is added that an operator has to make.
func serveExample(t *testing.T, name string) *server {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join("examples", name)
	if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testdata, filepath.Join(root, "testdata")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	t.Setenv("GEO_DB", "testdata/world-country.mmdb")
	path := filepath.Join(dir, "Corefile")
	corefile, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := keyFile.FindSubmatch(corefile); m != nil {
		_, made := makeKey(t, dir, "example.com")
		for _, suffix := range []string{".key", ".private"} {
			if err := os.Rename(made+suffix, string(m[1])+suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, targets := withResolver(t, unbound(string(corefile)))
	s, err := start(path, text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	for i := range targets {
		eventually(t, "all targets are resolved", func() bool { return metric(t, "coredns_gslb_endpoint_state", "endpoint", loopback(161+i)) > 0 })
	}
	return s
}

var (
	resolversLine = regexp.MustCompile(`(?m)^(\s*resolvers) .*$`)
	targetLine    = regexp.MustCompile(`(?m)^\s*target (\S+)`)
)

// withResolver is a Corefile whose resolvers are replaced by one that gives each of
// its targets an address on this machine, in their order, which nobody listens on.
func withResolver(t *testing.T, corefile string) (text string, targets int) {
	t.Helper()
	var names []string
	for i, m := range targetLine.FindAllStringSubmatch(corefile, -1) {
		names = append(names, m[1]+" "+loopback(161+i))
	}
	if len(names) == 0 {
		return corefile, 0
	}
	return resolversLine.ReplaceAllString(corefile, "${1} "+resolves(t, names...).addr), len(names)
}

var (
	fence   = regexp.MustCompile("(?ms)^```corefile\n(.*?)^```$")
	digLine = regexp.MustCompile(`(?m)^dig @127\.0\.0\.1 -p 1053 (\+subnet=\S+) (\S+) +# (\S+) \(\S+\), scope (\d+)$`)
)

// Every Corefile in the manual page and the other pages starts.
func TestReadmeCorefiles(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := fence.FindAllSubmatch(text, -1)
		if page == "README.md" && len(blocks) == 0 {
			t.Errorf("%s has no Corefile", page)
		}
		for i, block := range blocks {
			t.Run(fmt.Sprint(page, " ", i+1), func(t *testing.T) {
				s := serve(t, unbound(string(block[1])))
				s.exchange(t, "example.org SOA")
			})
		}
	}
}

// What the manual page says that dig will show is so.
func TestReadmeDig(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := digLine.FindAllStringSubmatch(string(text), -1)
	if len(lines) < 3 {
		t.Fatalf("%d lines with dig in README.md", len(lines))
	}
	var cases []exchangeCase
	for _, m := range lines {
		cases = append(cases, exchangeCase{m[1], strings.Join([]string{m[2], "A", m[1]}, " "), m[3] + " /" + m[4]})
	}
	serveExample(t, "quickstart").check(t, cases)
}
