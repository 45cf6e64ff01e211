package probe

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sampleSaved() map[string]Saved {
	return map[string]Saved{
		"00000000000000ff@192.0.2.1:443/api.example.com": {Verdict: VerdictDown, Since: noon.Add(-time.Minute), At: noon,
			Flips: []time.Time{noon.Add(-time.Hour), noon.Add(-time.Minute)}, Returned: true},
		"00000000000000ff@[2001:db8::1]:0": {Verdict: VerdictFull, Since: noon, At: noon.Add(-time.Hour)},
	}
}

func TestStoreRoundTrip(t *testing.T) {
	st := NewStore(t.TempDir())
	if all, err := st.Load(noon, time.Hour); all != nil || err != nil {
		t.Errorf("no file: %v, %v", all, err)
	}
	for range 2 {
		if err := st.Save(sampleSaved()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := st.Load(noon, time.Hour)
	if err != nil || !reflect.DeepEqual(got, sampleSaved()) {
		t.Errorf("%v, %v", got, err)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(st.path), "*"))
	if err != nil || len(names) != 1 {
		t.Errorf("files %q, %v", names, err)
	}
}

func TestStoreAge(t *testing.T) {
	st := NewStore(t.TempDir())
	if err := st.Save(sampleSaved()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		now  time.Time
		age  time.Duration
		want int
	}{
		{"all young", noon, time.Hour, 2},
		{"one old", noon, time.Hour - 1, 1},
		{"all old", noon.Add(2 * time.Hour), time.Hour, 0},
		{"clock set back a little", noon.Add(-time.Minute), time.Hour, 2},
		{"clock set back", noon.Add(-2 * time.Minute), time.Hour, 1},
	} {
		if got, err := st.Load(tt.now, tt.age); err != nil || len(got) != tt.want {
			t.Errorf("%s: %d records, %v", tt.name, len(got), err)
		}
	}
}

func TestStoreSetsAside(t *testing.T) {
	good, err := encodeSaved(sampleSaved())
	if err != nil {
		t.Fatal(err)
	}
	line := func(body string) string {
		return fmt.Sprintf("%s%016x\n%s", storeFormat, hashOf(body), body)
	}
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "of another version"},
		{"foreign", "#!/bin/sh\n", "of another version"},
		{"newer", strings.Replace(string(good), "verdicts 1", "verdicts 2", 1), "of another version"},
		{"cut", string(good[:len(good)-1]), "damaged"},
		{"a bit flipped", strings.Replace(string(good), "full", "gull", 1), "damaged"},
		{"a checksum of its own", line(`{"key":"x","verdict":"dead"}`), "record 1"},
		{"no key", line(`{"verdict":"up","at":"2026-03-01T12:00:00Z"}`), "record 1: expected a key"},
		{"no verdict", line(`{"key":"x","at":"2026-03-01T12:00:00Z"}`), "record 1: expected a key"},
		{"no time", line(`{"key":"x","verdict":"up"}`), "record 1: expected a key"},
		{"unknown field", line(`{"key":"x","verdict":"up","at":"2026-03-01T12:00:00Z","more":1}`), "record 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := NewStore(t.TempDir())
			for range 2 {
				if err := os.WriteFile(st.path, []byte(tt.data), 0o600); err != nil {
					t.Fatal(err)
				}
				all, err := st.Load(noon, time.Hour)
				if all != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), st.bad) {
					t.Errorf("%v, %v", all, err)
				}
			}
			if kept, err := os.ReadFile(st.bad); err != nil || string(kept) != tt.data {
				t.Errorf("set aside %q, %v", kept, err)
			}
			if all, err := st.Load(noon, time.Hour); all != nil || err != nil {
				t.Errorf("afterwards: %v, %v", all, err)
			}
		})
	}
}

func TestStoreTooLarge(t *testing.T) {
	st := NewStore(t.TempDir())
	if err := os.WriteFile(st.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(st.path, maxStoreSize+1); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Load(noon, time.Hour); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Error(err)
	}
	if _, err := os.Stat(st.bad); err != nil {
		t.Error(err)
	}
}

func TestStoreKeepsTheNewest(t *testing.T) {
	all := map[string]Saved{}
	for i := range maxStored + 10 {
		all[fmt.Sprint(i)] = Saved{Verdict: VerdictUp, At: noon.Add(time.Duration(i / 20))} // half of the oldest are too many
	}
	data, err := encodeSaved(all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeSaved(data)
	if err != nil || len(got) != maxStored {
		t.Errorf("%d records, %v", len(got), err)
	}
	for key, want := range map[string]bool{"9": false, "18": false, "17": true, "20": true} { // of the same age those are kept that sort first
		if _, is := got[key]; is != want {
			t.Errorf("%s is kept: %v", key, is)
		}
	}
}

func TestStoreFails(t *testing.T) {
	st := NewStore(filepath.Join(t.TempDir(), "missing"))
	if err := st.Save(nil); err == nil || !strings.Contains(err.Error(), st.path) {
		t.Error(err)
	}
}

func TestWriteAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy")
	for _, data := range []string{"first, and longer", "second", ""} {
		if err := os.WriteFile(path+".tmp", []byte("left by a crash, longer than any other"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := WriteAtomic(path, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := os.Stat(path + ".tmp"); !os.IsNotExist(err) {
			t.Errorf("temporary file: %v", err)
		}
	}
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteAtomic(taken, nil); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Stat(taken + ".tmp"); !os.IsNotExist(err) {
		t.Errorf("temporary file: %v", err)
	}
}

// FuzzStoreReader has what is read be written and read again the same.
func FuzzStoreReader(f *testing.F) {
	good, err := encodeSaved(sampleSaved())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good[strings.IndexByte(string(good), '\n')+1:]), true)
	f.Add(string(good), false)
	f.Add(storeFormat+"\n", false)
	f.Add(`{"key":"x","verdict":"up","at":"0001-01-01T00:00:01Z","flips":[null]}`, true)
	f.Fuzz(func(t *testing.T, data string, sum bool) {
		if sum { // let the fuzzer past the checksum
			data = fmt.Sprintf("%s%016x\n%s", storeFormat, hashOf(data), data)
		}
		all, err := decodeSaved([]byte(data))
		if err != nil {
			return
		}
		again, err := encodeSaved(all)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeSaved(again)
		same := func(a, b Saved) bool {
			return a.Verdict == b.Verdict && a.At.Equal(b.At) && a.Since.Equal(b.Since) && len(a.Flips) == len(b.Flips) && a.Returned == b.Returned
		}
		if err != nil || !maps.EqualFunc(all, back, same) {
			t.Fatalf("%v: %v, then %v", err, all, back)
		}
	})
}
