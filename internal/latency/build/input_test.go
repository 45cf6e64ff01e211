package build

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

// recordsOf gives what a builder holds in memory, in order.
func recordsOf(b *Builder) (all []record) {
	for _, w := range b.workers {
		all = append(all, w.records...)
	}
	slices.SortFunc(all, record.compare)
	return all
}

// TestForms holds that the same measurements are the same in all forms, by their
// content and in small reads.
func TestForms(t *testing.T) {
	csv := "\ufeffRegion,\"rtt_ms\",browser,client,time,ok,resolver\r\n" +
		"eu,12.34,\"a, \"\"b\"\"\",192.0.2.77,1793577600,true,203.0.113.9\r\n\r\n" +
		"us, 7 ,x,\"2001:db8:1:2345::1\",2026-11-02T12:00:00Z,1,\n" +
		"ap,,,::ffff:192.0.2.0/120,2026-11-02T13:00:00.5+01:00,false,"
	ndjson := `{"region":"eu","rtt_ms":12.34,"more":{"a":[1,"}",null,{}]},"client":"192.0.2.77","time":1793577600,"ok":true,"resolver":"203.0.113.9"}
 { "client" : "2001:db8:1:2345::1", "region":"us","rtt_ms":"7","time":"2026-11-02T12:00:00Z","resolver":null}

{"time":"2026-11-02T13:00:00.5+01:00","client":"\u003a:ffff:192.0.2.0/120","region":"ap","ok":false,"rtt_ms":null}` + "\n"
	var want []record
	compressed := map[string]func(io.Writer) io.WriteCloser{
		"plain": func(w io.Writer) io.WriteCloser { return nopCloser{w} },
		"gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"zstd":  func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	}
	for name, writer := range compressed {
		for _, text := range []string{csv, ndjson} {
			var file bytes.Buffer
			w := writer(&file)
			io.WriteString(w, text)
			w.Close()
			b := builderFor(t, Options{Workers: 2}, iotest.OneByteReader(&file))
			got := recordsOf(b)
			if want == nil {
				want = got
			}
			if n := b.bad.faults(); n > 0 || len(got) != 4 || !slices.Equal(got, want) {
				t.Errorf("%s of %.10q: %d bad lines, %v, records %v, want %v", name, text, n, b.bad.first, got, want)
			}
		}
	}
	var prefixes []string
	for _, r := range want {
		prefixes = append(prefixes, fmt.Sprint(r.key.kind(), " ", r.key.prefix((&Options{Longest4: 24, Longest6: 56}).longest(r.key)), " ", regions[r.region()], " ", r.units(), " ", r.failed()))
	}
	if want := []string{
		"clients 192.0.2.0/24 eu 1234 false", "clients 192.0.2.0/24 ap 0 true",
		"clients 2001:db8:1:2300::/56 us 700 false", "resolvers 203.0.113.0/24 eu 1234 false",
	}; !slices.Equal(prefixes, want) {
		t.Errorf("records are %q, want %q", prefixes, want)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// TestBadLines holds what is wrong with lines, that they are counted by reason, and that
// the first are named.
func TestBadLines(t *testing.T) {
	head := "time,client,region,rtt_ms,ok,resolver,n,failed,p75,sketch\n"
	good := "2026-11-02,192.0.2.0/24,eu,5,,,,,,\n"
	for line, want := range map[string]error{
		"1793750401,192.0.2.1,eu,5,,,,,,":                       errFuture,
		"2026-10-26T23:59:59Z,192.0.2.1,eu,5,,,,,,":             errBefore,
		"yesterday,192.0.2.1,eu,5,,,,,,":                        errTime,
		"2026-02-30T00:00:00Z,192.0.2.1,eu,5,,,,,,":             errTime,
		",192.0.2.1,eu,5,,,,,,":                                 errTime,
		"2026-11-02,192.0.2.256,eu,5,,,,,,":                     errClient,
		"2026-11-02,192.0.2.0/16,eu,5,,,,,,":                    errClient,
		"2026-11-02,2001:db8::/48,eu,5,,,,,,":                   errClient,
		"2026-11-02,fe80::1%eth0,eu,5,,,,,,":                    errClient,
		"2026-11-02,,eu,5,,,,,,":                                errClient,
		"2026-11-02,192.0.2.1,eu,5,,nobody,,,,":                 errResolver,
		"2026-11-02,192.0.2.1,atlantis,5,,,,,,":                 errRegion,
		"2026-11-02,192.0.2.1,eu,0,,,,,,":                       errRTT,
		"2026-11-02,192.0.2.1,eu,-1,,,,,,":                      errRTT,
		"2026-11-02,192.0.2.1,eu,60000.1,,,,,,":                 errRTT,
		"2026-11-02,192.0.2.1,eu,NaN,,,,,,":                     errRTT,
		"2026-11-02,192.0.2.1,eu,1e99,,,,,,":                    errRTT,
		"2026-11-02,192.0.2.1,eu,5,maybe,,,,,":                  errOK,
		"2026-11-02,192.0.2.1,eu,,,,,,,":                        errNoData,
		"2026-11-02,192.0.2.0/24,eu,,,,5,,,":                    errNoData,
		"2026-11-02,192.0.2.0/24,eu,,,,0,0,,":                   errCount,
		"2026-11-02,192.0.2.0/24,eu,,,,5,-1,3,":                 errCount,
		"2026-11-02,192.0.2.0/24,eu,,,,9999999999999,0,3,":      errCount,
		"2026-11-02,192.0.2.0/24,eu,,,,5,0,0,":                  errP75,
		"2026-11-02,192.0.2.0/24,eu,,,,5,0,,100:2 99:3":         errSketch,
		"2026-11-02,192.0.2.0/24,eu,,,,5,0,,100:2 101:4":        errSketch,
		"2026-11-02,192.0.2.0/24,eu,,,,5,0,,5000:5":             errSketch,
		"2026-11-02,192.0.2.1,eu,5":                             errColumns,
		"2026-11-02,192.0.2.1,eu,5,,,,,,,":                      errColumns,
		"2026-11-02,\"192.0.2.1,eu,5,,,,,,":                     errQuote,
		"2026-11-02," + strings.Repeat("x", maxLine) + ",,,,,,": errLong,
		"2026-11-02," + strings.Repeat("x", 3*blockSize) + ",,": errLong,
	} {
		b := builderFor(t, Options{}, strings.NewReader(head+good+line+"\n"+good))
		if b.bad.reasons[want] != 1 || len(b.bad.reasons) != 1 || len(recordsOf(b)) != 2 {
			t.Errorf("%.80q: rejected %v, kept %d, want %v", line, b.bad.rejected(), len(recordsOf(b)), want)
		}
		if notFaults[want] {
			if _, err := b.Build(); err != nil {
				t.Errorf("%.80q: %v", line, err)
			}
		} else if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "input1:3: "+want.Error()) {
			t.Errorf("%.80q: error %v, want input1:3", line, err)
		}
	}
	for line, want := range map[string]error{`{"time":1`: errJSON, `{"time":1}}`: errJSON, `{"time":1,"time":1}`: errJSON, `[]`: errJSON, `{"a":` + strings.Repeat("[", 100): errJSON} {
		b := builderFor(t, Options{}, strings.NewReader("{\"region\":\"eu\"}\n"+line))
		if b.bad.reasons[want] != 1 {
			t.Errorf("%.80q: rejected %v, want %v", line, b.bad.rejected(), want)
		}
	}
}

// TestFewBadLines holds that few bad lines don't matter, that they are counted over all
// inputs, and that those shown are the first ones.
func TestFewBadLines(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,client,region,rtt_ms\n")
	for i := range 2000 {
		if i%200 == 100 {
			text.WriteString("2026-11-02,192.0.2.1,nowhere,5\n")
		} else {
			text.WriteString("2026-11-02,192.0.2.1,eu,5\n")
		}
	}
	r := mapOf(t, Options{Workers: 3}, strings.NewReader(text.String()), strings.NewReader(text.String()+"\n")).Report
	if r.Lines != 4001 || r.Bad != 20 || len(r.FirstBad) != shownBad || r.FirstBad[0] != `input1:102: region: unknown, found "nowhere"` || r.FirstBad[4] != `input1:902: region: unknown, found "nowhere"` {
		t.Errorf("report is %+v", r)
	}
	_, err := builderFor(t, Options{MaxBad: 0.004}, strings.NewReader(text.String())).Build()
	if err == nil || !strings.HasPrefix(err.Error(), "10 of 2000 lines are bad, more than 0.4 %; the first:\ninput1:102: ") {
		t.Errorf("error is %v", err)
	}
}

// TestBadInputs holds what is wrong with whole inputs.
func TestBadInputs(t *testing.T) {
	for text, want := range map[string]string{
		"time,client,rtt_ms\n":               "in:1: no column region: ",
		"time,klient,region,rtt_ms\n":        `did you mean "klient"`,
		"\n\nclient,region,rtt_ms\n":         "in:3: no column time: ",
		"time,client,region\n":               "in:1: no column rtt_ms or n: ",
		"time,client,prefix,region,n\n":      `in:1: column 3, "prefix", is there already`,
		"\x1f\x8b\x08broken":                 "in: the compressed data ends too early",
		"\x1f\x8b\x09broken...":              "copy or make it again",
		"\x28\xb5\x2f\xfdbroken":             "in: the compressed data can't be read: ",
		"\x28\xb5\x2f\xfd":                   "in: the compressed data ends too early",
		sketchMagic + "\x18\x38":             "in: a file of sketches: ends too early",
		sketchMagic + "\x17\x38\x00\x00\x00": "written for other lengths",
		strings.Repeat("x", 1<<20):           "in:1: line: longer than",
	} {
		b := builderFor(t, Options{})
		err := b.Add("in", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
	lost := errors.New("lost")
	b := builderFor(t, Options{})
	if err := b.Add("in", io.MultiReader(strings.NewReader("time,client,region,rtt_ms\n"), iotest.ErrReader(lost))); !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
	if err := b.Add("empty", strings.NewReader("\n")); err != nil {
		t.Error(err)
	}
}

// TestSketchesCompressed holds that sketches can be compressed once more, as any input, and that
// what is cut off says so.
func TestSketchesCompressed(t *testing.T) {
	var file bytes.Buffer
	beacons := newBeacons(1)
	beacons.many(300, "192.0.2.0/24", "eu", 0)
	mapOf(t, Options{Sketches: &file}, beacons)
	for name, compress := range map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	} {
		var packed bytes.Buffer
		w := compress(&packed)
		w.Write(file.Bytes())
		w.Close()
		if b := builderFor(t, Options{}, bytes.NewReader(packed.Bytes())); b.lines != 1 {
			t.Errorf("%s: %d cells, want 1", name, b.lines)
		}
		if err := builderFor(t, Options{}).Add("in", bytes.NewReader(packed.Bytes()[:packed.Len()/2])); err == nil || !strings.Contains(err.Error(), "ends too early") {
			t.Errorf("half of it by %s: %v", name, err)
		}
	}
}

// TestSplitter holds that blocks are all lines, whole and numbered, however the input
// comes.
func TestSplitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 4 {
		var text strings.Builder
		text.WriteString("time,client,region,rtt_ms\n")
		want := map[error]int64{}
		var first int64
		for line := int64(2); line < 300; line++ {
			switch rng.IntN(20) {
			case 0:
				text.WriteString(strings.Repeat("y", maxLine+rng.IntN(2*blockSize)))
				if want[errLong]++; first == 0 {
					first = line
				}
			case 1:
				text.WriteString(strings.Repeat("z", rng.IntN(1000)+1))
				if want[errColumns]++; first == 0 {
					first = line
				}
			default:
				text.WriteString("2026-11-02,192.0.2.1,eu,5" + strings.Repeat(" ", rng.IntN(500)))
			}
			text.WriteString("\n")
		}
		b := builderFor(t, Options{Workers: 3}, iotest.HalfReader(strings.NewReader(text.String())))
		if b.lines != 298 || b.bad.reasons[errLong] != want[errLong] || b.bad.reasons[errColumns] != want[errColumns] || b.bad.first[0].line != first {
			t.Fatalf("%d lines, %v, first %v; want %v, first %d", b.lines, b.bad.reasons, b.bad.first[0], want, first)
		}
	}
}
