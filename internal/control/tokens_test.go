package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const secret = "0123456789abcdef0123" // of the least length

func TestParseTokens(t *testing.T) {
	good := "# who may do what\n\nalice " + secret + "\nbob " + secret + "b read # looks only\r\ncarol " + secret + "c until 2026-06-01T00:00:00Z read\nalice " + secret + "d"
	all, err := parseTokens([]byte(good))
	if err != nil || len(all) != 4 || all[0].Name != "alice" || all[0].Read || !all[1].Read || !all[2].Read || all[2].Until.IsZero() ||
		all[0].hash != sha256.Sum256([]byte(secret)) {
		t.Errorf("it is %+v, %v", all, err)
	}
	for in, want := range map[string]string{
		"":                                    "holds no token",
		"# alice " + secret:                   "holds no token",
		"alice":                               "line 1: one word",
		"\nal/ice " + secret:                  "line 2: the name",
		"alice " + secret[1:]:                 "has 19 characters",
		"alice " + secret + "ä":               "printable ASCII",
		"alice " + secret + " write":          "neither read nor until",
		"alice " + secret + " read read":      "neither read nor until",
		"alice " + secret + " until":          "neither read nor until",
		"alice " + secret + " until tomorrow": "no time",
		"alice " + secret + "\nbob " + secret: "line 2: the token of line 1 again",
		"alice " + strings.Repeat("x", 513):   "has 513 characters",
		strings.Repeat("alice "+secret+" read\n", 1)[:15] + "\n": "has 9 characters",
	} {
		_, err := parseTokens([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %s", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret[:10]) {
			t.Errorf("%q: the error tells the secret: %v", in, err)
		}
	}
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	stamp := now
	write := func(text string, mode os.FileMode) {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, mode)
		stamp = stamp.Add(time.Second)
		os.Chtimes(path, stamp, stamp)
	}
	clock := now
	write("alice "+secret+"a\nbob "+secret+"b read until 2026-05-01T23:00:00Z", 0o600)
	tokens, err := OpenTokens(path, func() time.Time { return clock })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(presented, name string) {
		t.Helper()
		found, ok, err := tokens.Find(presented)
		if err != nil || ok != (name != "") || ok && found.Name != name {
			t.Errorf("%q is of %+v %v %v, expected %q", presented, found, ok, err, name)
		}
	}
	expect(secret+"a", "alice")
	expect(secret+"b", "bob")
	for _, wrong := range []string{"", secret, secret + "A", secret + "aa", " " + secret + "a"} {
		expect(wrong, "")
	}
	clock = clock.Add(time.Hour)
	expect(secret+"b", "") // expired
	expect(secret+"a", "alice")

	write("carol "+secret+"c", 0o600)
	expect(secret+"a", "")
	expect(secret+"c", "carol")

	for name, bad := range map[string]func(){
		"0640":   func() { write("carol "+secret+"c", 0o640) },
		"0604":   func() { write("carol "+secret+"c", 0o604) },
		"broken": func() { write("carol", 0o600) },
		"large":  func() { write("carol "+secret+"c\n"+strings.Repeat("#\n", 32<<10), 0o600) },
		"gone":   func() { os.Remove(path) },
		"directory": func() {
			os.Remove(path)
			os.Mkdir(path, 0o700)
		},
	} {
		bad()
		if _, ok, err := tokens.Find(secret + "c"); ok || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		if _, err := OpenTokens(path, func() time.Time { return clock }); err == nil {
			t.Errorf("%s: no error at the start", name)
		}
		os.Remove(path)
		write("carol "+secret+"c", 0o600)
		expect(secret+"c", "carol")
	}
	os.Chmod(path, 0o644) // the very same file, now readable for others
	if _, ok, err := tokens.Find(secret + "c"); ok || err == nil {
		t.Error("a file that others can read now is in use")
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("alice " + secret + " read until 2026-06-01T00:00:00Z # yes\nbob " + secret + "b")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseTokens([]byte(text))
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%d tokens, %v", len(all), err)
		}
		seen := map[[sha256.Size]byte]bool{}
		for _, token := range all {
			if !tokenName.MatchString(token.Name) || seen[token.hash] || token.hash == sha256.Sum256(nil) {
				t.Fatalf("%+v", token)
			}
			seen[token.hash] = true
		}
	})
}

func FuzzOverrides(f *testing.F) {
	s := &Overrides{next: 7, revision: 3, epoch: 5}
	s = s.clone()
	s.put(Override{Lever: Drain, Object: Object{Region: "eu"}, Value: "on", By: "alice", Why: "fire", Made: now, Never: true})
	s.put(Override{Lever: Share, Object: Object{Region: "eu", Host: "a.example."}, Value: "5%", Area: "ca", By: "alice", Why: "fire", Made: now, Until: now.Add(time.Hour)})
	data, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	if again, err := decodeOverrides(data); err != nil || again.Len() != 2 || again.next != 9 {
		f.Fatalf("it reads %+v, %v", again, err)
	}
	body := string(data[strings.Index(string(data), `"overrides"`)+len(`"overrides": `) : len(data)-2])
	f.Add(body)
	f.Add(strings.Replace(body, `"id": "8"`, `"id": "7"`, 1))
	f.Add(strings.Replace(body, `"5%"`, `"5.0%"`, 1))
	f.Add(strings.Replace(body, `"never": true`, `"never": false`, 1))
	f.Fuzz(func(t *testing.T, body string) { // with a right checksum: the rest must be judged, too
		data := `{"format":1,"sha256":"` + sum(compacted(body)) + `","overrides":` + body + `}`
		read, err := decodeOverrides([]byte(data))
		if err != nil {
			return
		}
		again, err := read.encode()
		if err != nil {
			t.Fatal(err)
		}
		same, err := decodeOverrides(again)
		if err != nil || same.Len() != read.Len() || same.version("x") != read.version("x") {
			t.Fatalf("written and read again it is %+v, %v", same, err)
		}
	})
}

func compacted(text string) []byte {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return []byte(text)
	}
	return out.Bytes()
}
