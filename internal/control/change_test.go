package control

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 22, 0, 0, 0, time.UTC)

func TestCheckChange(t *testing.T) {
	for _, c := range []struct{ in, want string }{ // want: the canonical JSON, or a part of the error after !
		{`{"lever":"drain","region":"eu","why":"fire","never":true}`, `{"lever":"drain","region":"eu","value":"on","why":"fire","never":true}`},
		{`{"lever":"drain","region":"eu","value":false,"why":"fire","never":true}`, `{"lever":"drain","region":"eu","value":"off","why":"fire","never":true}`},
		{`{"lever":"drain","endpoint":"::ffff:192.0.2.1","value":"ON","why":" disk ","for":"90m"}`, `{"lever":"drain","endpoint":"192.0.2.1","value":"on","why":"disk","until":"2026-05-01T23:30:00Z"}`},
		{`{"lever":"dial","region":"eu","host":"API.example.com","value":12.50,"why":"soak","until":"2026-05-02T00:00:00+02:00"}`, `!until: 2026-05-01T22:00:00Z is over`},
		{`{"lever":"dial","region":"eu","host":"API.example.com","value":12.50,"why":"soak","until":"2026-05-02T00:00:01+02:00"}`,
			`{"lever":"dial","region":"eu","host":"api.example.com.","value":"12.5%","why":"soak","until":"2026-05-01T22:00:01Z"}`},
		{`{"lever":"share","region":"eu","value":"5%","area":"ca","why":"soak","never":true}`, `{"lever":"share","region":"eu","value":"5%","area":"ca","why":"soak","never":true}`},
		{`{"lever":"share","region":"eu","value":"off","why":"soak"}`, `{"lever":"share","region":"eu","value":"off","why":"soak"}`},
		{`{"lever":"trickle","region":"eu","value":50,"why":"soak"}`, `{"lever":"trickle","region":"eu","value":"50%","why":"soak"}`},
		{`{"lever":"weight","endpoint":"2001:db8::1","value":10000,"why":"new box"}`, `{"lever":"weight","endpoint":"2001:db8::1","value":"10000","why":"new box"}`},
		{`{"lever":"force","endpoint":"192.0.2.1","value":"Down","why":"new box"}`, `{"lever":"force","endpoint":"192.0.2.1","value":"down","why":"new box"}`},
		{`{"cancel":"17","why":"done"}`, `{"cancel":"17","why":"done"}`},

		{`{"lever":"drain","region":"eu"}`, `!why: missing`},
		{`{"lever":"drain","region":"eu","why":"x"}`, `!why: 1 characters`},
		{`{"lever":"drain","region":"eu","why":"` + strings.Repeat("x", 501) + `"}`, `!why: 501 characters`},
		{`{"lever":"drain","region":"eu","why":"a\nb c"}`, `!why: it holds characters that can't be printed`},
		{`{"lever":"drain","region":"eu","why":"a\u202eb c"}`, `!why: it holds characters that can't be printed`},
		{`{"lever":"drian","region":"eu","why":"fire"}`, `!lever: "drian" is none`},
		{`{"lever":"drain","why":"fire"}`, `!region: missing: nothing to drain`},
		{`{"lever":"dial","why":"fire","endpoint":"192.0.2.1"}`, `!region: missing`},
		{`{"lever":"dial","region":"eu","why":"fire","endpoint":"192.0.2.1","value":1}`, `!endpoint: dial is of a region`},
		{`{"lever":"weight","region":"eu","why":"fire","value":1}`, `!endpoint: missing`},
		{`{"lever":"force","host":"a.example","why":"fire","value":"up"}`, `!endpoint: missing`},
		{`{"lever":"drain","region":"EU","why":"fire"}`, `!region: "EU" is none`},
		{`{"lever":"drain","region":"eu","host":"a b","why":"fire"}`, `!host: "a b." is none`},
		{`{"lever":"drain","region":"eu","host":".","why":"fire"}`, `!host: "." is none`},
		{`{"lever":"drain","endpoint":"fe80::1%eth0","why":"fire"}`, `!endpoint: fe80::1%eth0 has one`},
		{`{"lever":"dial","region":"eu","why":"fire","value":101}`, `!value: dial is set to "101", expected 0..100 %`},
		{`{"lever":"dial","region":"eu","why":"fire","value":-1}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire","value":"NaN"}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire","value":"+5"}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire","value":1e2}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire","value":0.001}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire","value":"."}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire","value":"5."}`, `!value`},
		{`{"lever":"dial","region":"eu","why":"fire"}`, `!value`},
		{`{"lever":"trickle","region":"eu","why":"fire","value":50.01}`, `!value: trickle is set to "50.01", expected 0..50 %`},
		{`{"lever":"weight","endpoint":"192.0.2.1","why":"fire","value":10001}`, `!value`},
		{`{"lever":"weight","endpoint":"192.0.2.1","why":"fire","value":1.5}`, `!value`},
		{`{"lever":"weight","endpoint":"192.0.2.1","why":"fire","value":"-0"}`, `!value`},
		{`{"lever":"weight","endpoint":"192.0.2.1","why":"fire"}`, `!value`},
		{`{"lever":"force","endpoint":"192.0.2.1","why":"fire","value":true}`, `!value`},
		{`{"lever":"drain","region":"eu","why":"fire","value":50}`, `!value`},
		{`{"lever":"share","region":"eu","value":"off","area":"ca","why":"soak"}`, `!area`},
		{`{"lever":"dial","region":"eu","value":"5%","area":"ca","why":"soak"}`, `!area`},
		{`{"lever":"drain","region":"eu","why":"fire","never":true,"for":"1h"}`, `!until: 2 of them`},
		{`{"lever":"drain","region":"eu","why":"fire","for":"1"}`, `!for: "1" is none`},
		{`{"lever":"drain","region":"eu","why":"fire","for":"-1h"}`, `!for: "-1h" is none`},
		{`{"lever":"drain","region":"eu","why":"fire","for":"9000h"}`, `!for: "9000h" is none`},
		{`{"lever":"drain","region":"eu","why":"fire","until":"2036-05-01T22:00:00Z"}`, `!until: 2036-05-01T22:00:00Z is too far away`},
		{`{"cancel":"17","why":"done","for":"1h"}`, `!cancel`},
		{`{"cancel":"17","why":"done","lever":"drain"}`, `!cancel`},
		{`{"cancel":"17"}`, `!why`},
	} {
		var change Change
		if err := json.Unmarshal([]byte(c.in), &change); err != nil {
			t.Fatalf("%s: %v", c.in, err)
		}
		checked, wrong := change.check(now)
		if part, fails := strings.CutPrefix(c.want, "!"); fails {
			if wrong == nil || !strings.Contains(wrong.Error(), part) {
				t.Errorf("%s: %v, expected %s", c.in, wrong, part)
			}
			continue
		}
		got, err := json.Marshal(checked)
		if wrong != nil || err != nil || string(got) != c.want {
			t.Errorf("%s:\n%s %v, expected\n%s", c.in, got, wrong, c.want)
		}
		if again, wrong := checked.check(now); wrong != nil || again != checked {
			t.Errorf("%s: checked again it is %+v, %v", c.in, again, wrong)
		}
	}
}

func TestValues(t *testing.T) {
	for v, want := range map[Value]float64{"0%": 0, "12.5%": 12.5, "99.99%": 99.99, "100%": 100} {
		if got, ok := v.Percent(); got != want || !ok {
			t.Errorf("%s is %v, %v", v, got, ok)
		}
	}
	if _, ok := Value("off").Percent(); ok {
		t.Error("off is a percentage")
	}
	if Value("17").Weight() != 17 || !Value("on").On() || Value("off").On() || !Value("up").Up() || Value("down").Up() {
		t.Error("words are misread")
	}
}

func TestRequestList(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, `!nothing to do`},
		{`{"why":"fire","never":true,"version":"x"}`, `!nothing to do`},
		{`{"changes":[]}`, `!nothing to do`},
		{`{"lever":"drain","changes":[{"cancel":"1"}]}`, `!both a change and a list`},
		{`{"changes":[` + strings.Repeat(`{"cancel":"1"},`, 100) + `{"cancel":"1"}]}`, `!101 are too many`},
		{`{"why":"fire","for":"1h","changes":[{"lever":"drain","region":"eu"},{"cancel":"1"},{"lever":"drain","region":"us","why":"ice","never":true}]}`,
			`[{"lever":"drain","region":"eu","why":"fire","for":"1h"},{"cancel":"1","why":"fire"},{"lever":"drain","region":"us","why":"ice","never":true}]`},
	} {
		var r Request
		if err := json.Unmarshal([]byte(c.in), &r); err != nil {
			t.Fatal(err)
		}
		list, wrong := r.list()
		if part, fails := strings.CutPrefix(c.want, "!"); fails {
			if wrong == nil || !strings.Contains(wrong.Error(), part) {
				t.Errorf("%s: %v, expected %s", c.in, wrong, part)
			}
			continue
		}
		if got, err := json.Marshal(list); wrong != nil || err != nil || string(got) != c.want {
			t.Errorf("%s:\n%s %v, expected\n%s", c.in, got, wrong, c.want)
		}
	}
}
