package beacon

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestScript(t *testing.T) {
	o, _ := options(t)
	o.Sample = 0.25
	c := start(t, o)
	script := get(c, "/beacon.js").Body.Bytes()
	before, after, ok := bytes.Cut(scriptText, placeholder)
	if !ok || bytes.Contains(after, placeholder) || !bytes.HasPrefix(script, before) || !bytes.HasSuffix(script, after) {
		t.Fatalf("%s", script)
	}
	var s settings
	text := script[len(before) : len(script)-len(after)]
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	want := settings{0.25, 4,
		[]setting{{"eu", "https://eu.example.com/probe"}, {"us", "https://us.example.com/rum/probe"}},
		[]string{"https://eu.example.com/report", "https://us.example.com/rum/report"}}
	got, _ := json.Marshal(s)
	if expected, _ := json.Marshal(want); string(got) != string(expected) {
		t.Errorf("%s, expected %s", got, expected)
	}
	if len(scriptText) > 3<<10 {
		t.Errorf("the script has %d bytes: it is on every page", len(scriptText))
	}
}

func TestScriptOptions(t *testing.T) {
	o, _ := options(t)
	o.Reports = []string{"https://a.example/r", "https://b.example/</script>"}
	text, err := o.script()
	if err != nil || !bytes.Contains(text, []byte(`"https://a.example/r"`)) || bytes.Contains(text, []byte("</script>")) || bytes.Contains(text, []byte("eu.example.com/report")) {
		t.Errorf("%v\n%s", err, text)
	}
	o, _ = options(t)
	o.Candidates = []Candidate{{Region: "eu"}}
	if w := get(start(t, o), "/beacon.js"); w.Code != 404 || !strings.Contains(w.Body.String(), "no region has a URL") {
		t.Error(w.Code, w.Body)
	}
}

func TestOptions(t *testing.T) {
	for want, change := range map[string]func(o *Options){
		"0 regions":                  func(o *Options) { o.Candidates = nil },
		"64 regions":                 func(o *Options) { o.Candidates = make([]Candidate, 64) },
		`region "EU": expected`:      func(o *Options) { o.Candidates[0].Region = "EU" },
		`region "eu" is there twice`: func(o *Options) { o.Candidates[1].Region = "eu" },
		"region eu: \"ftp://x\": expected a URL such as https://eu.example.com: no host, or neither": func(o *Options) { o.Candidates[0].URL = "ftp://x" },
		`"https://x/?a": expected`:             func(o *Options) { o.Candidates[0].URL = "https://x/?a" },
		`"https://u@x": expected`:              func(o *Options) { o.Candidates[0].URL = "https://u@x" },
		`"https://%zz": expected`:              func(o *Options) { o.Candidates[0].URL = "https://%zz" },
		`report to "/report": expected`:        func(o *Options) { o.Reports = []string{"/report"} },
		"measure is 1.5":                       func(o *Options) { o.Sample = 1.5 },
		"measure is NaN":                       func(o *Options) { o.Sample = math.NaN() },
		"page load measures is -1":             func(o *Options) { o.Pick = -1 },
		"age of a file in seconds is 0.001":    func(o *Options) { o.Rotate = time.Millisecond },
		"size of a file in bytes is 1":         func(o *Options) { o.MaxFile = 1 },
		"size of all files in bytes is 65536:": func(o *Options) { o.MaxFile, o.MaxTotal = 1<<20, 1<<16 },
		"in a minute is 65536":                 func(o *Options) { o.PerMinute = 65536 },
		"no such file":                         func(o *Options) { o.Dir += "/none" },
		"no randomness":                        func(o *Options) { o.Random = errorReader{} },
	} {
		o, _ := options(t)
		change(&o)
		if c, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
			if c != nil {
				c.Close()
			}
		}
	}
}
