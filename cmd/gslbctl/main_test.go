package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/golden and the example in docs/explain.md anew")

// call runs gslbctl in the package's directory. What it prints holds no absolute
// paths of the machine.
func call(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GSLBCTL_NETS", "../cmd/gslbctl/testdata/nets.txt") // from the root; it counts for the digest
	var out, errs bytes.Buffer
	code = run(strings.Fields(line), &out, &errs)
	clean := func(b bytes.Buffer) string {
		return strings.ReplaceAll(b.String(), here+string(filepath.Separator), "")
	}
	return code, clean(out), clean(errs)
}

// golden compares with a file of testdata/golden, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s; look, then run with -update\n%s", file, got)
	}
}

func TestGolden(t *testing.T) {
	const conf = " -conf testdata/Corefile "
	for name, line := range map[string]string{
		"check.txt":              "check" + conf,
		"family-moved.txt":       "explain" + conf + "api.example.com 127.2.200.7 -view public",
		"views.txt":              "explain" + conf + "-type A API.example.com. 127.1.0.9",
		"fence.txt":              "explain" + conf + "-view public -type A -resolver 192.0.2.53 api.example.com 198.51.100.1",
		"capped.txt":             "explain" + conf + "-view public -type A api.example.com 198.51.100.200",
		"exact.txt":              "explain" + conf + "-view public -type A -exact api.example.com 198.51.100.200",
		"distance.txt":           "explain" + conf + "-view public -type AAAA -resolver 192.0.2.53 api.example.com 2001:db8:8000::1",
		"special-but-ruled.txt":  "explain" + conf + "-view public -type A api.example.com 10.9.1.1",
		"special-ignored.txt":    "explain" + conf + "-view public -type A -resolver 192.0.2.130 api.example.com 192.168.0.0/24",
		"embedded.txt":           "explain" + conf + "-view public -type A -resolver 192.0.2.53 api.example.com 2002:c633:6482::/48",
		"filled.txt":             "explain" + conf + "-view public -type A api.example.com 198.52.0.1",
		"no-client-subnet.txt":   "explain" + conf + "-view public -type A -resolver 2001:db8:1::5 api.example.com -",
		"source-zero.txt":        "explain" + conf + "-view public -type A -resolver 192.0.2.53 api.example.com 0.0.0.0/0",
		"not-believed.txt":       "explain" + conf + "-type A strict.example.net 127.1.0.9",
		"last-resort.txt":        "explain" + conf + "-view public -type A down.example.com 127.3.0.1",
		"failed.txt":             "explain" + conf + "-type A closed.example.net 127.3.0.1",
		"refused.txt":            "explain" + conf + "-type A refused.example.net 127.3.0.1 -resolver 203.0.113.1",
		"missing-database.txt":   "explain" + conf + "-type A other.example.net 127.3.0.1",
		"balanced.txt":           "explain" + conf + "www.example.org 192.0.2.1",
		"nodata.txt":             "explain" + conf + "-view public whoami.example.com 192.0.2.1",
		"nxdomain.txt":           "explain" + conf + "-view public apo.example.com 192.0.2.1",
		"fallthrough.txt":        "explain" + conf + "mail.example.org 192.0.2.1",
		"fallthrough-exists.txt": "explain" + conf + "b.example.org 192.0.2.1",
		"views.json":             "explain" + conf + "-json -type A api.example.com 127.1.0.9",
		"capped.json":            "explain" + conf + "-json -view public -type A api.example.com 198.51.100.200",
		"distance-and-both.json": "explain" + conf + "-json -view public -resolver 192.0.2.53 api.example.com 198.51.100.130",
		"balanced.json":          "explain" + conf + "-json -type A www.example.org 192.0.2.1",
		"not-steered.json":       "explain" + conf + "-json -view public apo.example.com 192.0.2.1",
		"last-resort.json":       "explain" + conf + "-json -view public -type A down.example.com 127.3.0.1",
		"no-client-subnet.json":  "explain" + conf + "-json -type A -resolver 127.1.0.9 strict.example.net",
		"help.txt":               "help",
		"help-check.txt":         "check -help",
		"help-explain.txt":       "explain -h",
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, line)
			if code != exitOK || stderr != "" {
				t.Fatalf("exit code %d, errors: %s", code, stderr)
			}
			golden(t, name, stdout)
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		want string // in the errors
	}{
		"nothing":          {"", exitUsage, "Usage:"},
		"unknown command":  {"explian x", exitUsage, `did you mean "explain"?`},
		"unknown flag":     {"check -config x", exitUsage, "See gslbctl check -help."},
		"extra word":       {"check testdata/Corefile", exitUsage, "named with -conf"},
		"version extra":    {"version 2", exitUsage, `unexpected "2"`},
		"no name":          {"explain", exitUsage, "expected NAME"},
		"three words":      {"explain a b c", exitUsage, "expected NAME"},
		"no client":        {"explain api.example.com", exitUsage, "neither CLIENT nor -resolver"},
		"bad client":       {"explain api.example.com 1.2.3", exitUsage, "CLIENT 1.2.3: expected an address, or a prefix"},
		"client with zone": {"explain api.example.com fe80::1%eth0", exitUsage, "expected an address"},
		"bad resolver":     {"explain -resolver x api.example.com", exitUsage, "-resolver x: expected an IP address"},
		"bad type":         {"explain -type MX api.example.com 1.2.3.4", exitUsage, "expected A or AAAA"},
		"no file":          {"check -conf testdata/none", exitError, "testdata/none: no such file"},
		"no gslb":          {"check -conf testdata/bad/none.cf", exitError, "testdata/bad/none.cf: no server block has a gslb block"},
		"syntax":           {"check -conf testdata/bad/brace.cf", exitError, "testdata/bad/brace.cf:3"},
		"bad key":          {"check -conf testdata/bad/key.cf", exitError, "not a valid domain name"},
		"a word":           {"check -conf testdata/bad/word.cf", exitError, `plugin/gslb: testdata/bad/word.cf:3: unknown word "hots"`},
		"a file":           {"check -conf testdata/bad/file.cf", exitError, "plugin/gslb: testdata/bad/file.cf:3: geoip city: "},
		"a neighbour":      {"check -conf testdata/bad/cache.cf", exitError, "plugin/gslb: testdata/bad/cache.cf:3: gslb without zones"},
		"explain bad":      {"explain -conf testdata/bad/word.cf api.example.com 1.2.3.4", exitError, "unknown word"},
		"unknown view":     {"explain -conf testdata/Corefile -view pubic api.example.com 1.2.3.4", exitError, `no view "pubic"; did you mean "public"?`},
		"foreign name":     {"explain -conf testdata/Corefile www.notexample.com 1.2.3.4", exitError, "in no zone of a gslb block"},
		"foreign in view":  {"explain -conf testdata/Corefile -view office www.example.org 1.2.3.4", exitError, "in view office"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, c.line)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("got %d %q %q, want %d and %q", code, stdout, stderr, c.code, c.want)
			}
		})
	}
}

// TestCheckGoesOn holds that one bad block doesn't hide what the others are.
func TestCheckGoesOn(t *testing.T) {
	code, stdout, stderr := call(t, "check -conf testdata/bad/two.cf")
	if code != exitError || !strings.Contains(stderr, "two.cf:3") || !strings.Contains(stdout, "two.cf:7: gslb example.org.") {
		t.Errorf("got %d\n%s\n%s", code, stdout, stderr)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := call(t, "version")
	if code != exitOK || !strings.HasPrefix(stdout, "gslbctl ") || !strings.Contains(stdout, "hash version") {
		t.Errorf("got %d %q", code, stdout)
	}
}

// TestServing holds which server blocks can get a query.
func TestServing(t *testing.T) {
	for name, want := range map[string]string{
		"api.example.com.":    "5 9 22", // with its view, without, and on the other port
		"x.eu.example.com.":   "13 22",  // on each port the longest key
		"x.us.example.com.":   "5 9 22", // its own block has a view, so it may pass the query on
		"x.asia.example.com.": "22",     // its own block has no gslb
	} {
		blocks, err := readCorefile("testdata/serving.cf")
		if err != nil {
			t.Fatal(err)
		}
		req := request{name: name}
		serving, err := req.serving("", blocks)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range serving {
			_, line, _ := strings.Cut(s.tokens[0].Pos.String(), ":")
			got = append(got, line)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
