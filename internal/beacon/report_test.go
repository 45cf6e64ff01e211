package beacon

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
)

func TestParseReport(t *testing.T) {
	entries, err := parseReport([]byte(` {"entries":[{"timing":"clock","rtt_ms":1e1,"ok":true,"region":"eu"},{"region":"us","ok":false}],"v":1} `))
	if err != nil || len(entries) != 2 || entries[0] != (entry{"eu", true, 10, true}) || entries[1] != (entry{region: "us"}) {
		t.Fatal(entries, err)
	}
	one := func(e string) string { return `{"v":1,"entries":[` + e + `]}` }
	for body, want := range map[string]string{
		"":                      "expected {",
		"null":                  "expected {",
		"[]":                    "expected {",
		"{}":                    "expected v and entries",
		`{"v":1}`:               "expected v and entries",
		`{"v":1,"entries":[]}`:  "expected v and entries",
		`{"v":2,"entries":[]}`:  "v: expected 1",
		`{"v":"1","entries":1}`: "v: expected 1",
		`{"v":1,"entries":{}}`:  "expected [",
		`{"v":1,"v":1}`:         `"v" is there twice`,
		`{"V":1}`:               `"V": no such field`,
		`{"v":1,"id":"x"}`:      `"id": no such field`,
		good + "x":              "nothing after",
		good + good:             "nothing after",
		good[:len(good)-1]:      "expected }",
		good[:len(good)-2]:      "expected ]",
		strings.Replace(good, "eu", `eu","ua":"x`, 1): `"ua": no such field`,
		one(`{"ok":true,"rtt_ms":1}`):                 "expected region and ok",
		one(`{"region":"eu"}`):                        "expected region and ok",
		one(`{"region":"eu","ok":true}`):              "expected rtt_ms and timing if ok",
		one(`{"region":"eu","ok":true,"rtt_ms":1}`):   "expected rtt_ms and timing if ok",
		one(`{"region":"eu","ok":false,"rtt_ms":1}`):  "neither of a failure",
		one(`{"region":"eu","ok":1}`):                 "ok: unexpected",
		one(`{"region":["eu"],"ok":true}`):            "region: unexpected",
		one(`{"region":"eu","ok":true,"rtt_ms":"1"}`): "rtt_ms: unexpected",
		one(`{"region":"eu","timing":"guess"}`):       "timing: unexpected",
		one(`1`):                                      "expected {",
		one(strings.Repeat("[", 1000)):                "expected {",
		one(strings.Repeat(`{"region":"a"`, 10)):      "expected",
		one(strings.Repeat(`{"region":"eu","ok":false},`, 63) + `{"region":"eu","ok":false}`): "at most 63",
	} {
		if _, err := parseReport([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, expected %s", body, err, want)
		}
	}
}

// FuzzReport compares with encoding/json: what is taken, that takes too, and reads the
// same; and it is a line that can be read again.
func FuzzReport(f *testing.F) {
	for _, s := range []string{good, "{}", `{"v":1,"entries":[{"region":"\ud800","ok":true,"rtt_ms":1e999,"timing":"clock"}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseReport(data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("%q", err)
			}
			return
		}
		var slow struct {
			V       int `json:"v"`
			Entries []struct {
				Region string      `json:"region"`
				OK     *bool       `json:"ok"`
				RTT    json.Number `json:"rtt_ms"`
				Timing string      `json:"timing"`
			} `json:"entries"`
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&slow); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Fatal("something follows")
		}
		if slow.V != 1 || len(entries) != len(slow.Entries) || len(entries) == 0 || len(entries) > MaxCandidates {
			t.Fatal(entries, slow)
		}
		for i, e := range entries {
			s := slow.Entries[i]
			ms, _ := s.RTT.Float64()
			if e != (entry{s.Region, *s.OK, ms, s.Timing == "clock"}) || e.ok != (s.Timing != "") {
				t.Errorf("%+v is %+v", s, e)
			}
		}
	})
}

func TestJudge(t *testing.T) {
	o, _ := options(t)
	c := start(t, o)
	ok := func(region string, ms float64) entry { return entry{region: region, ok: true, ms: ms} }
	for _, x := range []struct {
		entries []entry
		want    []rejection
	}{
		{[]entry{ok("eu", 20), {region: "us"}, ok("ap", 0.01)}, []rejection{none, none, none}},
		{[]entry{ok("EU", 20), ok("", 20), ok("eu ", 20)}, []rejection{unknownRegion, unknownRegion, unknownRegion}},
		{[]entry{ok("eu", 20), {region: "eu"}}, []rejection{none, regionTwice}},
		// What was absurd doesn't count as seen.
		{[]entry{ok("eu", 0.0099), ok("eu", -1), ok("eu", 5000.1), ok("eu", math.Inf(1)), ok("eu", 5000)},
			[]rejection{absurdRTT, absurdRTT, absurdRTT, absurdRTT, none}},
	} {
		var seen [MaxCandidates]bool
		for i := range x.entries {
			if got := c.judge(&x.entries[i], &seen); got != x.want[i] {
				t.Errorf("%v: %v, expected %v", x.entries[i], rejectionNames[got], rejectionNames[x.want[i]])
			}
		}
	}
}
