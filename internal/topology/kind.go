package topology

// Kind is a kind of knowledge that can decide a client's list, by its
// precedence: a greater kind beats a lesser.
type Kind uint8

// The kinds, lowest precedence first. A rule is of the kind of its first
// alternative.
const (
	OrderWritten Kind = iota // of the regions
	Rest                     // what was written for clients that no rule matches
	Fill                     // the list of the sibling network
	Distance                 // of the regions from the client
	Continent
	Country
	Subdivision
	ASN
	Latency // a map of what users measured
	Prefix
)

// Kinds is the number of kinds.
const Kinds = int(Prefix) + 1

// String names the kind in a form fit for labels.
func (k Kind) String() string {
	return [Kinds]string{
		"order_written", "rest", "fill", "distance", "continent", "country", "subdivision", "asn", "latency", "prefix",
	}[k]
}

// A block's value while compiling is a number, and in the lowest bits a kind:
// what decided is told, but never holds blocks apart.
const (
	kindBits = 4
	kindMask = 1<<kindBits - 1
)

func withKind(number uint32, k Kind) uint32 { return number<<kindBits | uint32(k) }
func kindOf(val uint32) Kind                { return Kind(val & kindMask) }
