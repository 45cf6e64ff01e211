package latency

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// magic is the first word of a map as text.
const magic = "gslb-latency"

// Words that begin a line of the header, or a section.
const (
	wordBuilt     = "built"
	wordFrom      = "from"
	wordUntil     = "until"
	wordDemand    = "demand"
	wordRegions   = "regions"
	wordRollback  = "rollback"
	wordClients   = "clients"
	wordResolvers = "resolvers"
)

// WriteText writes a map as text, line by line. The same map gives the same bytes, and
// ReadText gives the same map.
func WriteText(w io.Writer, m *Map) error {
	if err := m.validate(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(out, "%s %d\n", magic, FormatVersion)
	for _, t := range []struct {
		word string
		time time.Time
	}{{wordBuilt, m.Built}, {wordFrom, m.From}, {wordUntil, m.Until}} {
		if !t.time.IsZero() {
			fmt.Fprintf(out, "%s %s\n", t.word, stamp(t.time))
		}
	}
	if m.Demand != [2]uint64{} {
		fmt.Fprintf(out, "%s %d %d\n", wordDemand, m.Demand[0], m.Demand[1])
	}
	if r := m.Rollback; r != nil {
		fmt.Fprintf(out, "%s %s %q %q\n", wordRollback, stamp(r.At), r.By, r.Why)
	}
	if len(m.Regions) > 0 {
		out.WriteString(wordRegions)
		for _, name := range m.Regions {
			out.WriteString(" " + name)
		}
		out.WriteByte('\n')
	}
	var line []byte
	for side, entries := range m.sides() {
		if len(entries) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", [...]string{wordClients, wordResolvers}[side])
		for i := range entries {
			line = append(entries[i].AppendText(line[:0], m.Regions), '\n')
			out.Write(line)
		}
	}
	return out.Flush() // which has the error of every write
}

// AppendText appends an entry as a line of a map as text, without its end: the
// prefix, then for every region its name, p75 in milliseconds, samples, and the
// failed part in percent unless it is 0.
func (e *Entry) AppendText(b []byte, regions []string) []byte {
	b = e.Prefix.AppendTo(b)
	for i, r := range e.Order {
		b = append(append(b, ' '), regions[r]...)
		if e.Cells == nil {
			continue
		}
		c := &e.Cells[i]
		b = strconv.AppendFloat(append(b, ':'), float64(c.P75), 'f', -1, 32)
		b = strconv.AppendUint(append(b, '/'), uint64(c.Samples), 10)
		if c.Failed != 0 {
			b = append(appendPercent(append(b, '/'), c.Failed), '%')
		}
	}
	return b
}

// appendPercent appends a part as percent, in the fewest digits that percent
// reads as the same part.
func appendPercent(b []byte, part float32) []byte {
	for digits := 1; ; digits++ {
		text := strconv.AppendFloat(b, float64(part)*100, 'g', digits, 64)
		if got, err := percent(string(text[len(b):])); digits == 17 || err == nil && got == part {
			return text
		}
	}
}

// percent reads what appendPercent writes, without the sign.
func percent(s string) (float32, error) {
	f, err := decimal(s, 64)
	return float32(f / 100), err
}

// decimal reads a number of ordinary form.
func decimal(s string, bits int) (float64, error) {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && c != '.' && c != 'e' && c != '-' && c != '+' {
			return 0, strconv.ErrSyntax
		}
	}
	return strconv.ParseFloat(s, bits)
}
