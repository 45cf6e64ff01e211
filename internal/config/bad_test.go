package config_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestBad parses one small Corefile per load error. Its first line says what
// the error must hold: its line and a part of its text.
func TestBad(t *testing.T) {
	t.Setenv("GSLB_NEWLINE", "City.mmdb\n")
	t.Setenv("GSLB_BRACE", "}")
	files, _ := filepath.Glob("testdata/bad/*.cf")
	if len(files) == 0 {
		t.Fatal("no bad configurations")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := read(t, file)
			first, _, _ := strings.Cut(text, "\n")
			want, ok := strings.CutPrefix(first, "# want: ")
			line, want, found := strings.Cut(want, ": ")
			if !ok || !found {
				t.Fatalf("the first line is %q", first)
			}
			list := lex(t, file, text)
			b, err := list[len(list)-1].parse()
			if err == nil {
				t.Fatalf("no error, and a block of %d hosts; want %q", len(b.Hosts), want)
			}
			place := file + ":" + line + ": "
			if got, found := strings.CutPrefix(err.Error(), place); !found || !strings.Contains(got, want) {
				t.Errorf("got  %v\nwant %s… %s", err, place, want)
			}
		})
	}
}
