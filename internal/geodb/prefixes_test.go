package geodb

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func TestReadPrefixes(t *testing.T) {
	const text = "# offices\n\n192.0.2.0/24 eu  us\t# near\r\n  2001:db8::/32\tus\n192.0.2.9 eu us\n2001:db8::1 ap#x\n0.0.0.0/0 rest"
	path := filepath.Join(t.TempDir(), "nets")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, hash, err := ReadPrefixes(path, WithWords)
	want := []PrefixLine{
		{netip.MustParsePrefix("192.0.2.0/24"), []string{"eu", "us"}, 3},
		{netip.MustParsePrefix("2001:db8::/32"), []string{"us"}, 4},
		{netip.MustParsePrefix("192.0.2.9/32"), []string{"eu", "us"}, 5},
		{netip.MustParsePrefix("2001:db8::1/128"), []string{"ap"}, 6},
		{netip.MustParsePrefix("0.0.0.0/0"), []string{"rest"}, 7},
	}
	if err != nil || hash != xxhash.Sum64String(text) || !reflect.DeepEqual(lines, want) {
		t.Errorf("ReadPrefixes = %v, %d, %v", lines, hash, err)
	}
	if _, _, err := ReadPrefixes(path+"-missing", WithWords); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err := ReadPrefixes(filepath.Dir(path), WithWords); err == nil {
		t.Error("a directory was read")
	}
}

func TestPrefixErrors(t *testing.T) {
	for _, test := range []struct {
		name, text string
		words      Words
		want       string // "" none
	}{
		{"prefixes alone", "192.0.2.0/24\n10.0.0.1\n", NoWords, ""},
		{"nothing", "", NoWords, ""},
		{"comments alone", "#\n\n # x\n", WithWords, ""},
		{"word too many", "\n192.0.2.0/24 eu", NoWords, `nets:2: expected a prefix alone, found "eu" after 192.0.2.0/24`},
		{"no word", "192.0.2.0/24 # eu", WithWords, `nets:1: expected "PREFIX REGION…", found 192.0.2.0/24 alone`},
		{"host bits", "#\n192.0.2.7/24", NoWords, "nets:2: 192.0.2.7/24 has bits set past its length: write 192.0.2.0/24"},
		{"host bits of IPv6", "2001:db8::1/64", NoWords, "write 2001:db8::/64"},
		{"twice", "192.0.2.1\n10.0.0.0/8\n192.0.2.1/32", NoWords, "nets:3: 192.0.2.1/32 is already on line 1"},
		{"twice in IPv6", "2001:db8::/32 a\n2001:0DB8::/32 b", WithWords, "nets:2: 2001:db8::/32 is already on line 1"},
		{"name", "example.com", NoWords, `nets:1: expected an address or a prefix such as 192.0.2.0/24 or 2001:db8::/32, found "example.com"`},
		{"too long a prefix", "192.0.2.0/33", NoWords, `found "192.0.2.0/33"`},
		{"range", "192.0.2.0-192.0.2.9", NoWords, `found "192.0.2.0-192.0.2.9"`},
		{"mapped", "::ffff:192.0.2.0/120", NoWords, "expected IPv4 in its own form"},
		{"mapped address", "::ffff:192.0.2.0", NoWords, "expected IPv4 in its own form"},
		{"interface", "fe80::1%eth0", NoWords, `found "fe80::1%eth0"`},
		{"byte order mark", "\ufeff192.0.2.0/24", NoWords, `found "\ufeff192.0.2.0/24"`},
		{"long line", "192.0.2.0/24 " + strings.Repeat("x", maxLine), WithWords, "nets:1: line of 4109 bytes, expected at most 4096"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParsePrefixes("nets", []byte(test.text), test.words)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestPrefixesRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	var want []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for range 5000 {
		var a [16]byte
		for i := range a {
			a[i] = byte(random.Uint32())
		}
		addr := netip.AddrFrom16(a)
		if random.IntN(2) == 0 {
			addr = netip.AddrFrom4([4]byte(a[:4]))
		}
		p := netip.PrefixFrom(addr, random.IntN(addr.BitLen()+1)).Masked()
		if !seen[p] {
			seen[p] = true
			want = append(want, p)
			fmt.Fprintf(&text, "%s r%d\n", p, random.IntN(3))
		}
	}
	lines, err := ParsePrefixes("nets", []byte(text.String()), WithWords)
	if err != nil || len(lines) != len(want) {
		t.Fatalf("%d lines of %d, %v", len(lines), len(want), err)
	}
	for i, line := range lines {
		if line.Prefix != want[i] || line.Line != i+1 || len(line.Words) != 1 {
			t.Fatalf("line %d is %v, want %s", i+1, line, want[i])
		}
	}
}

func FuzzPrefixes(f *testing.F) {
	for _, seed := range []string{"192.0.2.0/24 eu\n", "2001:db8::1#\n\n::/0", "::ffff:1.2.3.4", "1.2.3.4/\r\n", "fe80::%1 a"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, words bool) {
		lines, err := ParsePrefixes("fuzz", data, Words(words))
		if err != nil && !strings.HasPrefix(err.Error(), "fuzz:") {
			t.Errorf("error %q doesn't name the file", err)
		}
		for _, line := range lines {
			if p := line.Prefix; !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Zone() != "" || line.Line < 1 {
				t.Errorf("line %+v", line)
			}
			if (len(line.Words) > 0) != words {
				t.Errorf("line %+v with words %t", line, words)
			}
		}
	})
}
