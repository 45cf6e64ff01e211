package latency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Format is a form of map files.
type Format string

// The forms that can be read. The first two can be written.
const (
	MMDB          Format = "mmdb"          // a MaxMind DB file
	Text          Format = "text"          // for people and diffs
	Nets          Format = "gdnsd-nets"    // a nets file of gdnsd: orders only
	CoverageZones Format = "coverage-zone" // coverage zones of Apache Traffic Control: one region each
)

// Read reads a map file in any form, which it knows by the content. Of a file that
// doesn't say when it was built, that is the time of its last change.
// An error names the file and says what to do; a missing file can be told by fs.ErrNotExist.
func Read(path string) (*Map, Format, error) {
	data, changed, err := ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	m, format, err := ReadBytes(path, data)
	if err == nil && m.Built.IsZero() {
		m.Built = changed
	}
	return m, format, err
}

// ReadFile gives the content of a map file, for ReadBytes, and when it was last
// changed, in whole seconds, UTC. What is no regular file, or larger than
// MaxFileSize, is an error.
func ReadFile(path string) (data []byte, changed time.Time, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, changed, err
	case !info.Mode().IsRegular():
		return nil, changed, fmt.Errorf("%s: expected a regular file, this is %s", path, info.Mode())
	case info.Size() > MaxFileSize:
		return nil, changed, tooLarge(path, info.Size())
	}
	data, err = os.ReadFile(path)
	return data, info.ModTime().UTC().Truncate(time.Second), err
}

func tooLarge(name string, size int64) error {
	return fmt.Errorf("%s: %d bytes is more than the most that is read, %d", name, size, MaxFileSize)
}

// ReadBytes is Read for a file's content; name stands for its path in errors.
// The map doesn't keep data.
func ReadBytes(name string, data []byte) (m *Map, format Format, err error) {
	if len(data) > MaxFileSize {
		return nil, "", tooLarge(name, int64(len(data)))
	}
	format = sniff(data)
	switch format {
	case MMDB:
		m, err = readMMDB(name, data)
	case Text:
		m, err = ReadText(name, bytes.NewReader(data))
	case Nets:
		m, err = readNets(name, data)
	case CoverageZones:
		m, err = readZones(name, data)
	default:
		err = fmt.Errorf("%s: not a steering map: expected a MaxMind DB file of type %q, a text that begins with %q, "+
			"a nets file of gdnsd (\"PREFIX => [REGION, …]\"), or coverage zones in JSON", name, databaseType, magic)
	}
	return m, format, err
}

// sniff tells the form of a file by its content; "" if it is none.
func sniff(data []byte) Format {
	const tail = 128 << 10 // where the metadata of a MaxMind DB file is
	if bytes.Contains(data[max(0, len(data)-tail):], []byte(metadataMarker)) {
		return MMDB
	}
	const front = 64 << 10 // the comments that may stand first
	rest := data[:min(len(data), front)]
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		switch {
		case len(line) == 0 || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '{':
			return CoverageZones
		case bytes.HasPrefix(line, []byte(magic)):
			return Text
		case bytes.Contains(line, []byte("=>")):
			return Nets
		}
		return ""
	}
	return ""
}

// FormatOf is the form to write to a file, by the end of its name.
func FormatOf(path string) (Format, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".mmdb":
		return MMDB, nil
	case ".txt":
		return Text, nil
	}
	return "", fmt.Errorf("%s: expected a name that ends in .mmdb or .txt, to know what to write", path)
}

// Write writes a map in one of the forms that can be written.
func Write(w io.Writer, m *Map, format Format) error {
	switch format {
	case MMDB:
		return WriteMMDB(w, m)
	case Text:
		return WriteText(w, m)
	}
	return fmt.Errorf("can't write maps as %q: expected %s or %s", format, MMDB, Text)
}

// ParsePrefix reads a prefix, or an address as a prefix of its own.
func ParsePrefix(word string) (netip.Prefix, error) {
	var p netip.Prefix
	if strings.Contains(word, "/") {
		p, _ = netip.ParsePrefix(word)
	} else if a, _ := netip.ParseAddr(word); a.Zone() == "" && a.IsValid() {
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if !p.IsValid() {
		return p, fmt.Errorf("expected an address or a prefix such as 192.0.2.0/24 or 2001:db8::/32, found %q", word)
	}
	if err := validPrefix(p); err != nil {
		return p, fmt.Errorf("%s: %w", word, err)
	}
	return p, nil
}

// lineError is an error at a line of a file.
func lineError(name string, line int, err error) error {
	return fmt.Errorf("%s:%d: %w", name, line, err)
}

// names gives the regions of a map their indexes, in the order they come up.
type names struct {
	list  []string
	index map[string]uint8
}

func (n *names) of(name string) (uint8, error) {
	if i, ok := n.index[name]; ok {
		return i, nil
	}
	switch {
	case !validName(name):
		return 0, fmt.Errorf("%q can't name a region: expected a lower case letter, then at most %d of a-z, 0-9 and -", name, maxName-1)
	case len(n.list) == MaxRegions:
		return 0, fmt.Errorf("region %s is one more than the %d that a map can have", name, MaxRegions)
	case n.index == nil:
		n.index = map[string]uint8{}
	}
	i := uint8(len(n.list))
	n.list = append(n.list, name)
	n.index[name] = i
	return i, nil
}

var errEmptyOrder = errors.New("expected at least one region: leave out prefixes that the map has nothing to say of")
