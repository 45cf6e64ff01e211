package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/control/controltest"
)

const testToken = "0123456789abcdef0123"

// pretended is a server with a pretended plugin, on a unix socket.
type pretended struct {
	backend *controltest.Backend
	store   *control.Store
	socket  string // as -control wants it
}

func pretend(t *testing.T) *pretended {
	t.Helper()
	return pretendIn(t, t.TempDir(), nil)
}

// pretendIn starts one that keeps its state in a directory; lost is what it says of that.
func pretendIn(t *testing.T, dir string, lost error) *pretended {
	t.Helper()
	p := &pretended{backend: controltest.New(), socket: "unix:" + filepath.Join(dir, "s")}
	p.backend.Now = func() time.Time { return time.Date(2026, 5, 1, 22, 0, 0, 0, time.UTC) }
	var err error
	p.store, err = control.Open(control.StoreOptions{Dir: dir, Backend: p.backend, Now: time.Now, Logf: t.Logf})
	if !errors.Is(err, lost) {
		t.Fatal(err)
	}
	tokens, err := control.OpenTokens(tokenFile(t, "alice "+testToken), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := control.Listen("unix", filepath.Join(dir, "s"), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := control.New(control.Options{Store: p.store, Tokens: tokens, Now: time.Now, Logf: t.Logf}).HTTP()
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		p.store.Close()
	})
	return p
}

func tokenFile(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("# mine\n"+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// times are those of the clock, and versions.
var times = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ|00000000000000aa\.\w+\.\d+`)

// ask runs gslbctl against the server; ~ in the line is a space in an argument.
func (p *pretended) ask(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("GSLBCTL_CONTROL", p.socket)
	t.Setenv("GSLBCTL_TOKEN_FILE", tokenFile(t, testToken))
	var out, errs strings.Builder
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "~", " ")
	}
	code = run(args, &out, &errs)
	clean := func(s string) string {
		return times.ReplaceAllString(strings.ReplaceAll(s, p.socket, "unix:SOCKET"), "TIME")
	}
	return code, clean(out.String()), clean(errs.String())
}

// TestControlNight follows one night at the command line.
func TestControlNight(t *testing.T) {
	p := pretend(t)
	var night strings.Builder
	for _, step := range []struct {
		line string
		code int
	}{
		{"status", exitOK},
		{"whatif drain us", exitOK},
		{"drain us -why power~works -for 2h", exitOK},
		{"whatif drain eu", exitOK},
		{"drain eu -why wrong~one -for 2h", exitError},
		{"dial us 25 -host api.example.com -why slowly -never", exitOK},
		{"share us 5% -area ca -why soak -never -quiet", exitOK},
		{"weight 192.0.2.1 7 -why new~box -never -quiet", exitOK},
		{"force 192.0.2.2 down -region us -why smoke -never -quiet", exitOK},
		{"undrain ap -why needed", exitError},
		{"undrain ap -why needed -until 2100-01-01T00:00:00Z", exitError},
		{"undrain us -why works~again", exitOK},
		{"overrides", exitOK},
		{"whatif cancel 2", exitOK},
		{"cancel 2 -why done -quiet", exitOK},
		{"return 192.0.2.1 web -why disk~replaced", exitOK},
		{"return 192.0.2.1 db -why disk~replaced", exitError},
		{"drain eu -why the~end -never -force -quiet", exitOK},
		{"drain us -why the~end -never -force", exitOK},
		{"status", exitOK},
		{"audit -limit 3", exitOK},
	} {
		code, stdout, stderr := p.ask(t, step.line)
		if code != step.code || (code == exitOK) != (stderr == "") {
			t.Errorf("%s: exit code %d, expected %d\n%s", step.line, code, step.code, stderr)
		}
		night.WriteString("$ gslbctl " + step.line + "\n" + stdout + stderr)
	}
	golden(t, "control-night.txt", night.String())
	if got := p.backend.Returned(); len(got) != 1 || got[0] != "192.0.2.1 web" {
		t.Errorf("back are %q", got)
	}
}

func TestControlExplain(t *testing.T) {
	p := pretend(t)
	code, stdout, stderr := p.ask(t, "explain -control "+p.socket+" -type A api.example.com 198.51.100.77")
	if code != exitOK || !strings.Contains(stdout, "192.0.2.1  ttl 30  from eu") || !strings.Contains(stdout, "198.51.100.0/24") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := p.ask(t, "explain -control "+p.socket+" x.example.com 198.51.100.77"); code != exitError || !strings.Contains(stderr, "no host") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, stdout, stderr := p.ask(t, "explain -control "+p.socket+" -view inside api.example.com 198.51.100.77"); code != exitOK || !strings.Contains(stdout, "view inside") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := p.ask(t, "explain -control "+p.socket+" -view outside api.example.com 198.51.100.77"); code != exitError || !strings.Contains(stderr, `no view "outside"`) {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestControlLost holds that overrides that were lost are told of where they are listed.
func TestControlLost(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "overrides.json"), []byte("gar bage"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pretendIn(t, dir, control.ErrSetAside)
	for _, command := range []string{"overrides", "status"} {
		code, stdout, stderr := p.ask(t, command)
		if code != exitOK || !strings.Contains(stdout, "WARNING         the overrides made before are lost: "+filepath.Join(dir, "overrides.json")) {
			t.Errorf("%s: %d\n%s%s", command, code, stdout, stderr)
		}
	}
}

// TestReportTexts holds the words for what the pretended plugin never does.
func TestReportTexts(t *testing.T) {
	half := 50.0
	hosts := []control.HostReport{{Host: "api.example.com.", View: "inside", MovedBlocks: 40, MovedDemand: &half}}
	for i := range 6 {
		hosts = append(hosts, control.HostReport{Host: fmt.Sprintf("h%d.example.com.", i), MovedBlocks: 10})
	}
	report := control.Report{
		MovedBlocks: 7.25, Kind: "IPv4 resolvers asking for A", Hosts: hosts,
		MovedSpace: &half, SpaceKind: "IPv4 clients asking for AAAA",
		Kinds:   []control.KindReport{{Kind: "IPv4 clients asking for A", Blocks: 60, MovedBlocks: 7}, {Kind: "IPv4 resolvers asking for A", Blocks: 40, MovedBlocks: 7.25}},
		Flows:   []control.Flow{{To: "eu", Blocks: 5}},
		Regions: []control.RegionReport{{Name: "eu"}, {}}, DeficitBefore: 20.002304549870498, DeficitAfter: 36000,
		Stranded: []control.Stranded{{Host: "api.example.com.", View: "inside", List: []string{"eu"}, Blocks: 5, Why: "all are drained"}},
	}
	named := func(host string) []control.Applied {
		return []control.Applied{{Cancelled: &control.Override{Object: control.Object{Host: host}}}}
	}
	for name, result := range map[string]control.Result{
		"of all": {Report: report}, "of one": {Report: report, Applied: named("api.example.com.")}, "of another": {Report: report, Applied: named("www.example.com.")},
	} {
		var out strings.Builder
		printReport(&out, &result)
		for text, in := range map[string]bool{
			"  blocks          are those of IPv4 resolvers asking for A, of all hosts; others move alike\n":  true,
			"                  50.0 % of the address space of IPv4 clients asking for AAAA\n":                true,
			"  of host         api.example.com in view inside  40.0 % of its blocks, 50.0 % of its demand\n": name != "of another",
			"  of host         h0.example.com  10.0 % of its blocks\n":                                       name == "of all",
			"and of 2 more hosts":                          name == "of all",
			"  of host         www.example.com  nothing\n": name == "of another",
			"                  (last resort) -> eu  5.0 % of blocks\n                  those of (last resort) had no region before, which doesn't count as a move\n": true,
			"    (last resort)  0.0 %\n":                                        true,
			"  DEFICIT         36000, was 20: demand that no region can take\n": true,
			"  NO REGION LEFT  api.example.com in view inside, 5.0":             true,
		} {
			if strings.Contains(out.String(), text) != in {
				t.Errorf("%s: %q is there: %v\n%s", name, text, !in, out.String())
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 20.002304549870498: "20", 15.72870070012236: "15.73", 36000: "36000", 123456.7: "123457", 0.0123456: "0.01235",
		99.996: "100", 0.00001234567: "1.235e-05", 1e300: "1e+300", 1234.5: "1234",
	} {
		if got := number(&v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
	if got := number(nil); got != "-" {
		t.Errorf("none is %s", got)
	}
}

// TestControlSeveral holds that a command goes to every server, and fails if one
// of them does.
func TestControlSeveral(t *testing.T) {
	a, b := pretend(t), pretend(t)
	to := " -control " + a.socket + " -control " + b.socket
	if code, stdout, stderr := a.ask(t, "drain us -why fire -for 1h"+to); code != exitOK || strings.Count(stdout, "done") != 2 || !strings.Contains(stdout, b.socket+"\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if a.backend.Current().Len() != 1 || b.backend.Current().Len() != 1 {
		t.Error("it isn't done on both")
	}
	b.backend.FailWith(func(string) error { return errors.New("no memory") })
	code, stdout, stderr := a.ask(t, "dial eu 7 -why fire -for 1h -json"+to+" -control unix:/nowhere/s")
	if code != exitError || stderr != "" {
		t.Errorf("%d %s", code, stderr)
	}
	var all []outcome
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all) != 3 || all[0].Error != "" || all[0].Reply == nil ||
		all[1].Failure == nil || all[1].Failure.Code != "internal" || all[2].Error == "" || all[2].Reply != nil {
		t.Errorf("%v\n%s", err, stdout)
	}
	if a.backend.Current().Len() != 2 {
		t.Error("it isn't done where it can be")
	}
}

func TestControlMisuse(t *testing.T) {
	p := pretend(t)
	open := tokenFile(t, testToken)
	os.Chmod(open, 0o644)
	wrong, none := tokenFile(t, testToken+"x"), tokenFile(t, "# none")
	for line, want := range map[string]string{
		"drain":                            "0 arguments of drain: expected REGION or ADDRESS",
		"dial eu":                          "1 arguments of dial: expected REGION and PERCENT",
		"weight eu 7":                      `"eu" is no address of an endpoint`,
		"drain eu -region us":              "expected one region",
		"drain eu -until tomorrow":         "expected a time like",
		"whatif":                           "as in: gslbctl whatif drain eu",
		"whatif drian eu":                  `did you mean "drain"?`,
		"whatif status":                    `"status" changes nothing`,
		"status eu":                        `unexpected "eu"`,
		"return 192.0.2.1":                 "expected ADDRESS and CHECK",
		"status -control http://192.0.2.1": "a token doesn't go over a network in the clear",
		"status -control localhost:8053":   "expected unix:/PATH",
		"status -control https://a/b":      "expected unix:/PATH",
		"status -token-file " + open:       "only its owner may read",
		"status -token-file " + none:       "it holds no token",
		"status -token-file /nowhere":      "no such file",
		"status -cert x":                   "-cert and -key belong together",
		"status -ca " + open:               "no certificate in PEM",
		"drain eu -nonsense":               "flag provided but not defined",
	} {
		code, stdout, stderr := p.ask(t, line)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d\n%s%s", line, code, stdout, stderr)
		}
	}
	for line, want := range map[string]string{
		"status -token-file " + wrong:         "the server doesn't take the token",
		"status -control unix:/nowhere/s":     "no such file",
		"drain mars -why fire -for 1h":        "no region",
		"drain us -for 1h":                    "say why",
		"drain us -why fire":                  "expected until, for or never",
		"audit -limit 0":                      "expected 1..1000",
		"dial us 1000 -why fire -for 1h":      "0..100 %",
		"drain us -why fire -for 1h -host x.": "no host",
	} {
		code, _, stderr := p.ask(t, line)
		if code != exitError || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d\n%s", line, code, stderr)
		}
	}
	t.Setenv("GSLBCTL_CONTROL", "")
	t.Setenv("GSLBCTL_TOKEN_FILE", "")
	var out, errs strings.Builder
	if code := run([]string{"status"}, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "set GSLBCTL_CONTROL") {
		t.Errorf("%d %s", code, errs.String())
	}
	errs.Reset()
	if code := run([]string{"status", "-control", p.socket}, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "set GSLBCTL_TOKEN_FILE") {
		t.Errorf("%d %s", code, errs.String())
	}
}

// TestControlStale holds that a change isn't made on another state than the one
// that was foretold.
func TestControlStale(t *testing.T) {
	p := pretend(t)
	first := true
	p.backend.FailWith(func(method string) error {
		if method == "WhatIf" && first {
			first = false
			defer p.backend.Reload("00000000000000bb") // after the version was read
		}
		return nil
	})
	code, _, stderr := p.ask(t, "drain us -why fire -for 1h")
	if code != exitError || !strings.Contains(stderr, "no longer current") || !strings.Contains(stderr, "look again") {
		t.Errorf("%d %s", code, stderr)
	}
	if p.store.Overrides().Len() != 0 {
		t.Error("it is done all the same")
	}
}

// TestControlQuiet holds that a change that nothing was foretold of asks for nothing else, and
// is made on whatever holds.
func TestControlQuiet(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	p := &pretended{socket: server.URL}
	if code, _, stderr := p.ask(t, "drain us -why fire -for 1h -quiet"); code != exitOK {
		t.Errorf("%d %s", code, stderr)
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "POST /v1/changes {") || strings.Contains(asked[0], "version") {
		t.Errorf("asked %q", asked)
	}
}

// TestControlUnanswered holds that somebody who gets no answer is told whether what was asked
// for may have been done.
func TestControlUnanswered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	p := &pretended{socket: server.URL}
	const look = `look with "gslbctl audit" whether it was done`
	for line, doubt := range map[string]bool{
		"drain us -why fire -for 1h -quiet": true,
		"whatif drain us":                   false,
		"status":                            false,
	} {
		if code, _, stderr := p.ask(t, line); code != exitError || strings.Contains(stderr, look) != doubt {
			t.Errorf("%s: %d %s", line, code, stderr)
		}
	}
	server.Close() // nobody is asked
	if code, _, stderr := p.ask(t, "drain us -why fire -for 1h -quiet"); code != exitError || strings.Contains(stderr, look) {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestControlDocs holds that the example in docs/control.md is what the command prints, and that
// the change by curl can be made.
func TestControlDocs(t *testing.T) {
	p := pretend(t)
	const file, begin, end = "../../docs/control.md", "<!-- example -->\n```\n$ gslbctl drain us -why \"power works\" -for 2h\n", "```\n<!-- end -->\n"
	code, example, stderr := p.ask(t, "drain us -why power~works -for 2h")
	page, err := os.ReadFile(file)
	if err != nil || code != exitOK {
		t.Fatal(err, stderr)
	}
	_, rest, ok := strings.Cut(string(page), begin)
	written, _, closed := strings.Cut(rest, end)
	if !ok || !closed || times.ReplaceAllString(written, "TIME") != example {
		t.Errorf("the example in %s is not what the command prints:\n%s", file, example)
	}
	_, rest, ok = strings.Cut(string(page), "-d '")
	body, _, closed := strings.Cut(rest, "'")
	var r control.Request
	if err := json.Unmarshal([]byte(body), &r); err != nil || !ok || !closed {
		t.Fatalf("the body for curl: %v\n%s", err, body)
	}
	if _, err := p.store.Do(t.Context(), control.Author{Name: "alice"}, &r); err != nil {
		t.Errorf("the change by curl: %v", err)
	}
}
