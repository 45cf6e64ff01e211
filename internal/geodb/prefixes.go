package geodb

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// maxLine bounds a line of a prefix file, in bytes.
const maxLine = 4096

// Words says what may follow the prefix on a line of a prefix file.
type Words bool

// The forms of prefix files.
const (
	NoWords   Words = false // nothing
	WithWords Words = true  // at least one word
)

// PrefixLine is one line of a prefix file.
type PrefixLine struct {
	Prefix netip.Prefix
	Words  []string // shared between lines with the same words, not to be changed
	Line   int      // from 1
}

// ReadPrefixes reads a text file of lines "PREFIX [WORD…]", in the order
// written, and the xxhash of its content. A bare address is a prefix of its
// own; "#" starts a comment. An error names the file, the line and the remedy.
func ReadPrefixes(path string, words Words) (lines []PrefixLine, hash uint64, err error) {
	if _, err := statRegular(path); err != nil {
		return nil, 0, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	lines, err = ParsePrefixes(path, data, words)
	return lines, xxhash.Sum64(data), err
}

// ParsePrefixes is ReadPrefixes for a file's content; name stands for its path
// in errors.
func ParsePrefixes(name string, data []byte, words Words) ([]PrefixLine, error) {
	size := bytes.Count(data, []byte("\n")) + 1
	lines := make([]PrefixLine, 0, size)
	written := make(map[netip.Prefix]int, size)
	shared := map[string][]string{}
	for number := 1; len(data) > 0; number++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		parsed, err := parsePrefixLine(line, words, shared)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		if !parsed.Prefix.IsValid() {
			continue
		}
		if first, ok := written[parsed.Prefix]; ok {
			return nil, fmt.Errorf("%s:%d: %s is already on line %d: remove one of them", name, number, parsed.Prefix, first)
		}
		written[parsed.Prefix] = number
		parsed.Line = number
		lines = append(lines, parsed)
	}
	return lines, nil
}

// parsePrefixLine gives the zero PrefixLine for a line without a prefix.
func parsePrefixLine(line []byte, words Words, shared map[string][]string) (PrefixLine, error) {
	if len(line) > maxLine {
		return PrefixLine{}, fmt.Errorf("line of %d bytes, expected at most %d: is this a file of prefixes?", len(line), maxLine)
	}
	line, _, _ = bytes.Cut(line, []byte("#"))
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return PrefixLine{}, nil
	}
	word, rest := line, []byte(nil)
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		word, rest = line[:i], bytes.TrimSpace(line[i:])
	}
	prefix, err := parsePrefix(string(word))
	switch {
	case err != nil:
		return PrefixLine{}, err
	case words == NoWords && len(rest) > 0:
		return PrefixLine{}, fmt.Errorf("expected a prefix alone, found %q after %s: one prefix per line", rest, prefix)
	case words == WithWords && len(rest) == 0:
		return PrefixLine{}, fmt.Errorf("expected \"PREFIX REGION…\", found %s alone: write a region after it", prefix)
	}
	if _, ok := shared[string(rest)]; !ok {
		shared[string(rest)] = strings.Fields(string(rest))
	}
	return PrefixLine{Prefix: prefix, Words: shared[string(rest)]}, nil
}

// parsePrefix reads a prefix or an address.
func parsePrefix(word string) (netip.Prefix, error) {
	var prefix netip.Prefix
	if strings.Contains(word, "/") {
		prefix, _ = netip.ParsePrefix(word)
	} else if addr, _ := netip.ParseAddr(word); addr.Zone() == "" {
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	switch {
	case !prefix.IsValid():
		return netip.Prefix{}, fmt.Errorf("expected an address or a prefix such as 192.0.2.0/24 or 2001:db8::/32, found %q", word)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, errors.New("expected IPv4 in its own form, found the IPv6-mapped " + word)
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has bits set past its length: write %s", prefix, prefix.Masked())
	}
	return prefix, nil
}
