package guard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved is a plan's memory, after it was on disk.
func saved(t testing.TB, text string) *Memory {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new")
	m := Remember(build(t, text))
	m.Server, m.View = "dns://:53", "inside"
	if err := SaveMemories(dir, []*Memory{m}); err != nil {
		t.Fatal(err)
	}
	list, err := LoadMemories(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if m := list[0]; m.Server != "dns://:53" || m.View != "inside" || strings.Join(m.Zones, " ") != "example.com." {
		t.Errorf("it is that of %q %q %q", m.Server, m.View, m.Zones)
	}
	return list[0]
}

// TestMemory holds plans against what is remembered of those before.
func TestMemory(t *testing.T) {
	for _, tc := range []struct{ name, before, after, want string }{
		{"the same", base, base, ""},
		{"levers don't count", base, changed("region eu us ap", "region us ap\nregion eu {\ndrain\n}"), ""},
		{"the most moves", base, changed("order eu us ap", "order us eu ap"), "max_move"},
		{"as much may", base, changed("order eu us ap", "order us eu ap") + "guard max_move 100%", ""},
		{"stranded behind a fence", base, changed(down("192.0.2.3")...), "usable"},
		{"as it was", changed(down("192.0.2.3")...), changed(down("192.0.2.3")...), ""},
		{"as it was, and another as well", changed(down("192.0.2.3")...), changed(append(down("192.0.2.3"), "203.0.113.0/24", "203.0.112.0/23")...), "usable"},
		{"fewer in use", base, changed(down("192.0.2.2")...) + "guard require 2 of eu us\nguard max_move 100%", "require"},
		{"as few as before", changed(down("192.0.2.2")...), changed(down("192.0.2.2")...) + "guard require 2 of eu us", ""},
		{"a new host", base, base + "host new.example.com {\npool ap 192.0.2.9\norder ap\n}\n", ""},
		{"a new host that nobody can use", base, base + "host new.example.com {\npool ap {\nendpoint 192.0.2.9 drain\n}\norder ap\n}\n", "usable"},
		{"the host by another first name", base, changed("host api.example.com", "host new.example.com api.example.com", "order eu us ap", "order us eu ap"), "max_move"},
		{"a family more", base, changed("192.0.2.1", "192.0.2.1 2001:db8::1", "192.0.2.2", "192.0.2.2 2001:db8::2", "192.0.2.3", "192.0.2.3 2001:db8::3"), ""},
		{"a split", changed("order eu us ap", "split eu 1 us 1"), changed("order eu us ap", "split eu 1 us 3 ap 4"), ""},
		{"a few large blocks", base + halves("order eu us ap"), base + halves("order us eu ap"), "max_move"},
		{"ecs off", base, base + "ecs off", "max_move"},
		{"ecs on", base + "ecs off", base, "max_move"},
		{"ecs from others", base + from("192.0.2.0/24"), base + from("198.51.100.0/24"), "max_move"},
		{"ecs from one more", base + from("192.0.2.0/24"), base + from("192.0.2.0/24 198.51.100.0/24"), ""},
		{"a split, more", changed("order eu us ap", "split eu 7 us 1"), changed("order eu us ap", "split eu 1 us 7"), "max_move"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := build(t, tc.after)
			var got []string
			for _, r := range saved(t, tc.before).Refusals(&p.Block.Guard, p) {
				got = append(got, r.Guard)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("refused by %v; want %s", got, tc.want)
			}
		})
	}
}

// A memory of the whole world is small, as hosts that decide alike share it.
func TestMemoryIsSmall(t *testing.T) {
	dir := t.TempDir()
	if err := SaveMemories(dir, []*Memory{Remember(build(t, big("")))}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, MemoryFile)); err != nil || info.Size() > 100<<10 {
		t.Errorf("%v, %v", info.Size(), err)
	}
}

func pack(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBadMemory reads files that can't be used: what is wrong is said, with the path.
func TestBadMemory(t *testing.T) {
	good, err := json.Marshal(memories{memoryVersion, []*Memory{Remember(build(t, base))}})
	if err != nil {
		t.Fatal(err)
	}
	whole := pack(t, string(good))
	edit := func(words ...string) []byte {
		text := strings.NewReplacer(words...).Replace(string(good))
		if text == string(good) {
			t.Fatalf("%q is not in it", words)
		}
		return pack(t, text)
	}
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty":                    {nil, "EOF"},
		"not packed":               {good, "gzip: invalid header"},
		"cut":                      {whole[:len(whole)/2], "unexpected EOF"},
		"another version":          {edit(`"version":3`, `"version":4`), "version 4 of the format; expected 3"},
		"no JSON":                  {pack(t, "{"), "unexpected end of JSON"},
		"another type":             {edit(`"hosts":[`, `"hosts":[7,`), "cannot unmarshal"},
		"no samples":               {edit(`"samples":0`, `"samples":9`), "block 0 is damaged"},
		"no flows":                 {edit(`"flows":0`, `"flows":-1`), "block 0 is damaged"},
		"no region":                {edit(`"r":[0]`, `"r":[99]`), "block 0 is damaged"},
		"too great a part":         {edit(`"p":[1]`, `"p":[1e300]`), "block 0 is damaged"},
		"a part too few":           {edit(`"p":[1]`, `"p":[]`), "block 0 is damaged"},
		"no group":                 {edit(`"group":1`, `"group":4`), "block 0 is damaged"},
		"no family":                {edit(`"family":0`, `"family":2`), "block 0 is damaged"},
		"no list":                  {edit(`"l":0`, `"l":77`), "block 0 is damaged"},
		"no use":                   {edit(`"use":[0`, `"use":[-5`), "block 0 is damaged"},
		"no block":                 {edit(`"blocks":[{`, `"blocks":[null,{`), "block 0 is damaged"},
		"huge when it is unpacked": {pack(t, strings.Repeat(" ", maxUnpacked+1)), "more than 33554432 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, MemoryFile)
			if err := os.WriteFile(path, tc.data, 0o600); err != nil {
				t.Fatal(err)
			}
			list, err := LoadMemories(dir)
			if err == nil || list != nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v; want %q", list, err, tc.want)
			}
		})
	}
	if list, err := LoadMemories(filepath.Join(t.TempDir(), "none")); list != nil || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := LoadMemories("/dev/null"); err == nil {
		t.Error("a file is no directory")
	}
}

// FuzzMemory holds that whatever is read can be compared with. What it starts from is
// short, and not packed: the fuzzer spends its time on making finds shorter.
func FuzzMemory(f *testing.F) {
	p := build(f, base)
	m := Remember(p)
	for _, list := range m.Samples {
		for i := range list {
			n := min(1, len(list[i].Blocks))
			list[i].Blocks, list[i].Lists = list[i].Blocks[:n], list[i].Lists[:n]
		}
	}
	good, err := json.Marshal(memories{memoryVersion, []*Memory{m}})
	if err != nil {
		f.Fatal(err)
	}
	if list, err := parseMemories(good); err != nil || len(list) != 1 {
		f.Fatalf("%s: %v", good, err)
	}
	f.Add(good)
	for _, text := range []string{`[{"hosts":[{"names":["api.example.com."]}],"samples":[[{"blocks":[""]}]],"flows":[{}]}]`, `[{"hosts":[{"names":["api.example.com."]}],"samples":[[]],"flows":[{}]}]`, `[null]`} {
		f.Add(fmt.Appendf(nil, `{"version":%d,"blocks":%s}`, memoryVersion, text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseMemories(data)
		if err != nil {
			return
		}
		for _, m := range list {
			m.Refusals(&p.Block.Guard, p)
			m.Names()
		}
	})
}
