package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// drawn is a picture as it was read back.
type drawn struct {
	Lines []struct {
		Points string `xml:"points,attr"`
		Stroke string `xml:"stroke,attr"`
	} `xml:"polyline"`
	Rules []struct {
		Y    float64 `xml:"y1,attr"`
		Dash string  `xml:"stroke-dasharray,attr"`
	} `xml:"line"`
	Texts []struct {
		Text  string `xml:",chardata"`
		Names []struct {
			Name string `xml:",chardata"`
			Fill string `xml:"fill,attr"`
		} `xml:"tspan"`
	} `xml:"text"`
}

func draw(t *testing.T, p Picture) (d drawn) {
	t.Helper()
	var out strings.Builder
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return d
}

// points of a line, as pixels.
func points(t *testing.T, text string) (list []Point) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		x, y, _ := strings.Cut(word, ",")
		var p Point
		var bad [2]error
		p.X, bad[0] = strconv.ParseFloat(x, 64)
		p.Y, bad[1] = strconv.ParseFloat(y, 64)
		if err := errors.Join(bad[:]...); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func TestCurvesLieOnTheirAxes(t *testing.T) {
	d := draw(t, Picture{Title: "a <b> & c", Panels: []Panel{
		{X: Axis{Max: 60, Name: "minutes"}, Y: Axis{Max: 200, Unit: "%"}, Limit: 100, Curves: []Curve{
			{"one", []Point{{0, 0}, {30, 100}, {60, 200}}}, {"<two>", []Point{{-5, -5}, {90, 1000}}},
		}},
		{Title: "other", X: Axis{Max: 1}, Y: Axis{Max: 1}, Curves: []Curve{{"three", []Point{{0, 1}, {1, 0}}}}},
	}})
	if len(d.Lines) != 3 {
		t.Fatalf("%d lines", len(d.Lines))
	}
	const wide = 400 // of each of two panels
	begin, end := float64(left), float64(left+wide)
	for i, want := range [][]Point{
		{{begin, floor}, {(begin + end) / 2, (floor + top) / 2}, {end, top}},
		{{begin, floor}, {end, top}}, // what is beyond the axes is at their ends
		{{end + between, top}, {width - right, floor}},
	} {
		got := points(t, d.Lines[i].Points)
		if len(got) != len(want) {
			t.Fatalf("line %d: %v", i, got)
		}
		for j := range want {
			if math.Abs(got[j].X-want[j].X) > 0.06 || math.Abs(got[j].Y-want[j].Y) > 0.06 {
				t.Errorf("line %d: point %d is %v, expected %v", i, j, got[j], want[j])
			}
		}
	}
	dashed := 0
	for _, r := range d.Rules {
		if r.Dash != "" {
			dashed++
			if r.Y != (floor+top)/2 {
				t.Errorf("the limit is at %g", r.Y)
			}
		}
	}
	if dashed != 1 {
		t.Errorf("%d dashed lines, expected the limit of the first panel", dashed)
	}
}

func TestNamesAreInTheColoursOfTheirCurves(t *testing.T) {
	names := []string{"a", "b<", "c", "d", "e", "f", "g"} // one more than colours
	p := Panel{Title: "panel", X: Axis{Max: 90, Name: "seconds"}, Y: Axis{Max: 100, Unit: "%"}}
	for _, n := range names {
		p.Curves = append(p.Curves, Curve{n, []Point{{1, 1}}})
	}
	d := draw(t, Picture{Title: "picture", Panels: []Panel{p}})
	found, texts := 0, ""
	for _, text := range d.Texts {
		texts += text.Text + "\n"
		for i, n := range text.Names {
			found++
			if n.Name != names[i] || n.Fill != d.Lines[i].Stroke || n.Fill == "" {
				t.Errorf("name %d is %s in %s, its curve in %s", i, n.Name, n.Fill, d.Lines[i].Stroke)
			}
		}
	}
	if found != len(names) {
		t.Errorf("%d names", found)
	}
	for _, want := range []string{"picture\n", "panel\n", "seconds\n", "\n80%\n", "\n80\n"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no %q in %q", want, texts)
		}
	}
}

func TestMarksAreRoundAndFew(t *testing.T) {
	for end := 1e-3; end < 1e8; end *= 1.013 {
		list := marks(end)
		step, last := list[1], list[len(list)-1]
		digits := step / math.Pow(10, math.Floor(math.Log10(step*(1+1e-9))))
		if len(list) < 4 || len(list) > 9 || list[0] != 0 || last > end*(1+1e-9) || last+step < end || math.Abs(digits-math.Round(digits)) > 1e-9 {
			t.Fatalf("up to %g: %v", end, list)
		}
	}
}

func TestAxesNeedALength(t *testing.T) {
	for _, end := range []float64{0, -1, math.Inf(1), math.NaN()} {
		for _, p := range []Panel{{X: Axis{Max: end}, Y: Axis{Max: 1}}, {X: Axis{Max: 1}, Y: Axis{Max: end}}} {
			if err := (&Picture{Title: "t", Panels: []Panel{p}}).Write(io.Discard); err == nil || !strings.Contains(err.Error(), "above 0") {
				t.Errorf("an axis up to %g: %v", end, err)
			}
		}
	}
}
