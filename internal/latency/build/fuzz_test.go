package build

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// fuzzOptions take little memory, so that runs are written, too.
func fuzzOptions() Options {
	return Options{Memory: MinMemory, Workers: 2, MaxBad: 1, MinSamples: 4, ResolverSamples: 4, Geography: to(eu, us, ap), Force: true}
}

// FuzzInput has any input either be an error or make a map that can be published.
func FuzzInput(f *testing.F) {
	f.Add([]byte("time,client,region,rtt_ms,ok\n2026-11-02,192.0.2.1,eu,5,true\n"))
	f.Add([]byte(`{"time":1793577600,"client":"2001:db8::1","region":"us","rtt_ms":7.5,"resolver":"9.9.9.9"}`))
	f.Add([]byte("day,prefix,region,n,failed,p75,sketch\n2026-11-02,192.0.2.0/24,eu,5,1,20,\n2026-11-01,192.0.2.0/24,us,5,0,,10:2 90:3\n"))
	var sketches bytes.Buffer
	b := newBeacons(1)
	b.many(600, "192.0.2.0/24", "eu", 0)
	b.many(30, "192.0.2.0/24", "us", 0)
	mapOf(f, Options{Sketches: &sketches}, b)
	f.Add(sketches.Bytes())
	z, _, err := decompress(bytes.NewReader(sketches.Bytes()))
	if err != nil {
		f.Fatal(err)
	}
	var plain bytes.Buffer
	plain.ReadFrom(z)
	f.Add(plain.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		o := fuzzOptions()
		o.Regions, o.Now, o.TempDir = regions, noon, t.TempDir()
		b, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.Add("in", bytes.NewReader(data)) != nil {
			return
		}
		r, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Map.Validate(noon); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzJSON compares the scanner with encoding/json on what that accepts.
func FuzzJSON(f *testing.F) {
	f.Add(`{"time":1,"client":"a\u0041\"","region":null,"rtt_ms":-1.5e3,"ok":true,"x":[{"y":"]"}]}`)
	f.Add(`{}`)
	f.Add(`{"time\`)
	f.Add(`{"n":"5" , "failed" : 0}`)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") || len(line) > maxLine || !utf8.ValidString(line) {
			return
		}
		var r row
		err := (&jsonScanner{}).scan([]byte(line), &r)
		var fields map[string]json.RawMessage
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if json.Unmarshal([]byte(line), &fields) != nil || fields == nil {
			return // the scanner may be more lenient
		}
		names := make(map[field]bool)
		for name, raw := range fields {
			known, ok := fieldNames[name]
			if !ok {
				continue
			}
			if names[known] || strings.Count(line, strconv.Quote(name)) != 1 {
				return // twice: an error here, not there
			}
			names[known] = true
			var value any
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			if d.Decode(&value) != nil {
				return
			}
			want := ""
			switch v := value.(type) {
			case string:
				want = v
			case json.Number, bool:
				want = fmt.Sprint(v)
			}
			if err == nil && string(r[known]) != want {
				t.Errorf("%s: %s is %q, want %q", line, name, r[known], want)
			}
		}
		if err != nil && !strings.Contains(line, "[[[[") && !strings.Contains(line, `\`) && strings.Count(line, "{")+strings.Count(line, "[") < maxNesting {
			t.Errorf("%s: %v", line, err)
		}
	})
}

// FuzzTime compares times with those of the time package.
func FuzzTime(f *testing.F) {
	f.Add("2026-11-02T10:11:12Z")
	f.Add("2026-11-02t10:11:12Z")
	f.Add("2024-02-29T23:59:59.999+05:30")
	f.Add("1793577600.25")
	f.Add("2026-11-02")
	f.Add("0000-01-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		unix, ok := parseTime([]byte(s))
		if at, err := time.Parse(time.RFC3339, s); err == nil && (!ok || unix != at.Unix()) {
			t.Errorf("%s is %d, %v, want %d", s, unix, ok, at.Unix())
		} else if ok && err != nil {
			if _, err := time.Parse(time.DateOnly, s); err != nil {
				if x, err := strconv.ParseFloat(s, 64); err != nil || int64(x) != unix {
					t.Errorf("%s is %d", s, unix)
				}
			}
		}
	})
}

// FuzzCell holds that what a cell is decoded from is what it is encoded to.
func FuzzCell(f *testing.F) {
	c := cell{key: 5 << 40, region: 2, day: 77, failed: 3, points: []point{{1, 2}, {500, 1}}}
	f.Add(c.encode(nil))
	f.Fuzz(func(t *testing.T, code []byte) {
		var c, d cell
		rest, err := c.decode(code)
		if err != nil {
			return
		}
		again := c.encode(nil)
		if _, err := d.decode(again); err != nil || compareCells(&c, &d) != 0 || len(again) > len(code)-len(rest) || uint64(len(again)) > maxCode {
			t.Errorf("%x became %x: %v", code, again, err)
		}
	})
}

// TestDamagedSketches holds that a file that is cut or changed anywhere is refused.
func TestDamagedSketches(t *testing.T) {
	var file bytes.Buffer
	b := newBeacons(1)
	b.many(600, "192.0.2.0/24", "eu", 0)
	mapOf(t, Options{Sketches: &file}, b)
	z, _, err := decompress(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	plain.ReadFrom(bufio.NewReader(z))
	for i := range plain.Len() {
		if b := builderFor(t, Options{}); b.Add("in", bytes.NewReader(plain.Bytes()[:i])) == nil && i >= len(sketchMagic) {
			t.Errorf("the first %d of %d bytes were taken for all", i, plain.Len())
		}
	}
	good := builderFor(t, Options{}, bytes.NewReader(file.Bytes()))
	for i := range file.Len() {
		damaged := bytes.Clone(file.Bytes())
		damaged[i] ^= 0x10
		b := builderFor(t, Options{})
		if b.Add("in", bytes.NewReader(damaged)) == nil && !bytes.Equal(b.workers[0].cells.code, good.workers[0].cells.code) {
			t.Errorf("a change of byte %d went unnoticed", i)
		}
	}
}
