package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

const page = `# HELP busy Requests running.
# TYPE busy gauge
busy{pool="web",zone="a"} 3
busy{pool="web",zone="b"} 4.5 1772366400000
busy { pool = "api" , zone = "a" , } 100 1772366399000
busy_total 7
busy_more{pool="web"} NaN
plain 12
	 tabs	13	
escaped{path="C:\\a",quote="\"}\n"} 1
{"quoted.name",pool="web"} 9
not_a{number="x"} many
broken{pool="web" 1
negative -1
infinite{le="1"} +Inf
twice{a="1",b="2"} 1
twice{b="2",a="1"} 1
valueless
timed 1 2 3
when 1 12.5
overflow{a="1"} 1e308
overflow{a="2"} 1e308
`

func TestMetric(t *testing.T) {
	for _, tc := range []struct{ name, want string }{
		{`busy`, "107.5 at 1772366399000"},
		{`busy{pool="web"}`, "7.5 at 1772366400000"},
		{`busy{pool="web",zone="a"}`, "3"},
		{`busy{pool="web",zone="a",}`, "3"},
		{`busy{missing=""}`, "107.5 at 1772366399000"},
		{`busy{}`, "107.5 at 1772366399000"},
		{`busy_total`, "7"},
		{`plain`, "12"},
		{`tabs`, "13"},
		{`escaped{path="C:\\a"}`, "1"},
		{`escaped{quote="\"}\n"}`, "1"},
		{`busy{pool="none"}`, `there is no metric busy{pool="none"} on the page`},
		{`absent`, "there is no metric absent on the page"},
		{`bus`, "there is no metric bus on the page"},
		{`busy_more`, "line 7: busy_more: the value is NaN, expected a number"},
		{`not_a`, `line 12: not_a: "many" is not a number`},
		{`broken`, `line 13: broken: expected a comma or } after label "pool", there is "1"`},
		{`negative`, "line 14: negative: the value is -1, expected none below 0"},
		{`infinite`, "line 15: infinite: the value is infinite, expected a finite number"},
		{`twice`, "line 17: twice: the same series is on the page twice"},
		{`valueless`, `line 18: valueless: expected a value, and perhaps a time, after the name and labels; there is ""`},
		{`timed`, `line 19: timed: expected a value, and perhaps a time, after the name and labels; there is "1 2 3"`},
		{`when`, `line 20: when: time "12.5": expected milliseconds since 1970`},
		{`overflow`, "+Inf"},
	} {
		s, err := parseSelector(tc.name)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		m, err := s.sum([]byte(page))
		got := fmt.Sprint(m.value)
		if !m.at.IsZero() {
			got += fmt.Sprint(" at ", m.at.UnixMilli())
		}
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	s, _ := parseSelector("cut")
	if _, err := s.sum([]byte("cut 12")); err == nil || !strings.Contains(err.Error(), "newline") {
		t.Errorf("a page that is cut off: %v", err)
	}
	if m, err := s.sum([]byte("cut 12\nother 1")); err != nil || m.value != 12 {
		t.Errorf("%v %v: a last line of something else matters", m, err)
	}
}

func TestSelector(t *testing.T) {
	for text, want := range map[string]string{
		"":               "expected a name",
		"1a":             "expected a name",
		`{a="b"}`:        "expected a name",
		"a b":            "expected { after the name",
		`a{b}`:           `expected label="value" or }`,
		`a{b=c}`:         "expected a value in quotes",
		`a{b="c"`:        "expected a comma or }",
		`a{b="c}`:        "the quotes don't end",
		`a{b="\`:         "the quotes don't end",
		`a{b="\t"}`:      `expected \\, \" or \n`,
		`a{b=~"c"}`:      "expected a value in quotes",
		`a{b!="c"}`:      `expected label="value" or }`,
		`a{b="c",b="d"}`: `label "b" is there twice`,
		`a{b="c"} 1`:     "nothing is expected after }",
		`a{:b="c"}`:      `expected label="value" or }`,
		`a{b="c" d="e"}`: "expected a comma or }",
	} {
		if _, err := parseSelector(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestMetricModel writes pages of known numbers and reads them back.
func TestMetricModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := []string{"", "a", `\`, `"`, "\n", "}", `x"y\z,`, "ü", "{", " # "}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	blank := func() string { return strings.Repeat(" ", rng.IntN(2)) }
	for range 500 {
		var b strings.Builder
		want, wantAt, wanted := 0.0, time.Time{}, values[rng.IntN(len(values))]
		found := 0
		for i := range rng.IntN(20) {
			label, v := values[rng.IntN(len(values))], float64(rng.IntN(1000))/8
			name := []string{"m", "m1", "other", "mm"}[rng.IntN(4)]
			fmt.Fprintf(&b, `%s%s{%sn="%d"%s,l%s=%s"%s"%s} %s`, name, blank(), blank(), i, blank(), blank(), blank(), escape.Replace(label), blank(),
				strconv.FormatFloat(v, 'g', -1, 64))
			at := time.Time{}
			if rng.IntN(2) == 0 {
				at = time.UnixMilli(rng.Int64N(1e13))
				fmt.Fprintf(&b, " %d", at.UnixMilli())
			}
			b.WriteString("\n")
			if name != "m" || label != wanted {
				continue
			}
			found++
			want += v
			if !at.IsZero() && (wantAt.IsZero() || at.Before(wantAt)) {
				wantAt = at
			}
		}
		s, err := parseSelector(fmt.Sprintf(`m{l="%s"}`, escape.Replace(wanted)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.sum([]byte(b.String()))
		if (err == nil) != (found > 0) || m.value != want || !m.at.Equal(wantAt) {
			t.Fatalf("%s of\n%s: got %v %v, want %v at %v", s.text, b.String(), m, err, want, wantAt)
		}
	}
}

func FuzzMetric(f *testing.F) {
	f.Add(`busy{pool="web"}`, page)
	f.Add("plain", "plain 1 2\nplain{} 3")
	f.Add(`escaped{quote="\"}\n"}`, page)
	f.Fuzz(func(t *testing.T, name, text string) {
		s, err := parseSelector(name)
		if err != nil {
			return
		}
		m, err := s.sum([]byte(text))
		if err != nil {
			if m != (measure{}) {
				t.Errorf("%v and %v", m, err)
			}
			return
		}
		if !strings.Contains(text, s.name) || math.IsNaN(m.value) || m.value < 0 {
			t.Errorf("%q: %v", s.text, m.value)
		}
		// What is on the page once more is there twice.
		if _, err := s.sum([]byte(text + "\n" + text + "\n")); err == nil {
			t.Error("series that are there twice are counted twice")
		}
	})
}
