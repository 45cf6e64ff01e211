package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Lever is what an override moves.
type Lever string

// The levers.
const (
	Drain   Lever = "drain"   // on, off: takes a region, a pool or an endpoint out of service
	Dial    Lever = "dial"    // 0..100 %: the part of what would come that a region or pool takes
	Weight  Lever = "weight"  // 0..10000: of an endpoint
	Share   Lever = "share"   // 0..100 % or off: the absolute part that a region or pool gets
	Trickle Lever = "trickle" // 0..50 %: the part that the next candidate gets instead
	Force   Lever = "force"   // up, down: an endpoint, whatever its checks say
)

// Levers are all of them.
var Levers = []Lever{Drain, Dial, Weight, Share, Trickle, Force}

const maxWeight = 10000

// Object is what a lever is on: a region (of every host), a pool (a region of
// one host), or an endpoint (in every pool that has its address, or only in those
// of a host, or a region, or both).
type Object struct {
	Region   string     `json:"region,omitempty"`
	Host     string     `json:"host,omitempty"` // lower case, with final dot
	Endpoint netip.Addr `json:"endpoint,omitzero"`
}

// String names the object for people.
func (o Object) String() string {
	var words []string
	if o.Endpoint.IsValid() {
		words = append(words, "endpoint "+o.Endpoint.String())
	}
	if o.Host != "" {
		words = append(words, "host "+strings.TrimSuffix(o.Host, "."))
	}
	if o.Region != "" {
		words = append(words, "region "+o.Region)
	}
	return strings.Join(words, " in ")
}

// check tells whether a lever can be on an object.
func (l Lever) check(o Object) *Invalid {
	switch onEndpoint := l == Weight || l == Force; {
	case onEndpoint && !o.Endpoint.IsValid():
		return invalid("endpoint", "the address of an endpoint", "missing: %s is of an endpoint", l)
	case l == Drain && o.Region == "" && !o.Endpoint.IsValid():
		return invalid("region", "a region, or an endpoint's address", "missing: nothing to drain")
	case !onEndpoint && l != Drain && o.Region == "":
		return invalid("region", "the name of a region", "missing: %s is of a region", l)
	case !onEndpoint && l != Drain && o.Endpoint.IsValid():
		return invalid("endpoint", "none", "%s is of a region or of a host's pool there, not of an endpoint", l)
	}
	return nil
}

// Value is what a lever is set to, in its canonical form: "on" or "off" for
// drain, "25%" for dial, share and trickle, "off" for share, "5" for weight, "up"
// or "down" for force. In JSON a number or a boolean is taken, too.
type Value string

// UnmarshalJSON takes a string, a number or a boolean as it stands.
func (v *Value) UnmarshalJSON(data []byte) error {
	switch data = bytes.TrimSpace(data); {
	case len(data) > 0 && data[0] == '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*v = Value(s)
	case string(data) == "null" || len(data) > 0 && (data[0] == '{' || data[0] == '['):
		return fmt.Errorf("value: %.20s is no text, number or boolean", data)
	default:
		*v = Value(data)
	}
	return nil
}

// On tells whether a value of drain drains.
func (v Value) On() bool { return v == "on" }

// Up tells whether a value of force forces up.
func (v Value) Up() bool { return v == "up" }

// Percent is the number of a value of dial, share or trickle, 0..100; false for
// "off".
func (v Value) Percent() (percent float64, ok bool) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(string(v), "%"), 64)
	return percent, err == nil
}

// Weight is the number of a value of weight, 0..10000.
func (v Value) Weight() int {
	n, _ := strconv.Atoi(string(v))
	return n
}

// canonical reads a value as an operator wrote it.
func (l Lever) canonical(v Value) (Value, *Invalid) {
	word := strings.ToLower(strings.TrimSpace(string(v)))
	expected := ""
	switch l {
	case Drain:
		switch word {
		case "on", "true", "":
			return "on", nil
		case "off", "false":
			return "off", nil
		}
		expected = "on or off"
	case Force:
		if word == "up" || word == "down" {
			return Value(word), nil
		}
		expected = "up or down"
	case Weight:
		if n, err := strconv.ParseUint(word, 10, 16); err == nil && n <= maxWeight && word[0] != '+' {
			return Value(strconv.FormatUint(n, 10)), nil
		}
		expected = "a whole number 0..10000"
	case Share:
		if word == "off" || word == "false" {
			return "off", nil
		}
		fallthrough
	default:
		limit := 100
		if l == Trickle {
			limit = 50
		}
		if hundredths, ok := parseHundredths(strings.TrimSuffix(word, "%")); ok && hundredths <= limit*100 {
			return Value(strconv.FormatFloat(float64(hundredths)/100, 'f', -1, 64) + "%"), nil
		}
		expected = fmt.Sprintf("0..%d %% with at most two decimals", limit)
		if l == Share {
			expected += ", or off"
		}
	}
	return "", invalid("value", expected, "%s is set to %.40q", l, string(v))
}

// parseHundredths reads "12", "12.5" or "12.34" as hundredths, exactly; at most
// three digits before the point.
func parseHundredths(s string) (int, bool) {
	whole, decimals, point := strings.Cut(s, ".")
	if len(whole) == 0 || len(whole) > 3 || point && len(decimals) == 0 || len(decimals) > 2 {
		return 0, false
	}
	n := 0
	for _, c := range whole + (decimals + "00")[:2] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// takesBack tells whether a value is what a lever is at when nobody has moved it.
func (l Lever) takesBack(v Value) bool {
	switch l {
	case Drain, Share:
		return v == "off"
	case Dial:
		return v == "100%"
	case Trickle:
		return v == "0%"
	}
	return false
}
