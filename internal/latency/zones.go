package latency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// zonesKey is what coverage zones are under.
const zonesKey = "coverageZones"

// zoneGroup is the clients of one cache group, which is one region to us.
type zoneGroup struct {
	name     string
	Network  []string `json:"network"`
	Network6 []string `json:"network6"`
}

// readZones reads coverage zones of Apache Traffic Control: for each cache group the
// networks whose clients it serves. The group is the one region of their order; the
// most specific network counts. Coordinates and what else there may be is left alone.
func readZones(name string, data []byte) (*Map, error) {
	groups, line, err := parseZones(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, lineError(name, line, err)
	}
	m, err := zonesMap(groups)
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// parseZones reads the groups, and tells the line of an error.
func parseZones(data []byte) (groups []zoneGroup, line int, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	defer func() {
		at := min(d.InputOffset(), int64(len(data)))
		line = 1 + bytes.Count(data[:at], []byte("\n"))
	}()
	found := false
	err = object(d, func(key string) error {
		if key != zonesKey {
			var skipped json.RawMessage
			return d.Decode(&skipped)
		}
		if found {
			return fmt.Errorf("%q is there twice", zonesKey)
		}
		found = true
		return object(d, func(name string) error {
			g := zoneGroup{name: name}
			if slices.ContainsFunc(groups, func(g zoneGroup) bool { return g.name == name }) {
				return fmt.Errorf("group %q is there twice: put its networks together", name)
			}
			err := d.Decode(&g)
			if len(groups) == MaxRegions {
				return fmt.Errorf("group %q is one more than the %d regions that a map can have", name, MaxRegions)
			}
			groups = append(groups, g)
			return err
		})
	})
	if err == nil {
		if t, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("unexpected %v after the zones", t)
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("the JSON ends too early: copy the whole file")
	}
	if err == nil && !found {
		err = fmt.Errorf("expected %q, with networks by cache group", zonesKey)
	}
	return groups, 0, err
}

// object reads a JSON object, leaving each value to a function that gets its key.
func object(d *json.Decoder, value func(key string) error) error {
	t, err := d.Token()
	if err == nil && t != json.Delim('{') {
		err = fmt.Errorf("expected an object, found %v", t)
	}
	if err != nil {
		return err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		if err := value(fmt.Sprint(t)); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// zonesMap makes the map of groups, regions in order of name.
func zonesMap(groups []zoneGroup) (*Map, error) {
	slices.SortFunc(groups, func(a, b zoneGroup) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	var regions names
	var orders orderList
	var rules []rule
	for _, g := range groups {
		region, err := regions.of(g.name)
		if err != nil {
			return nil, fmt.Errorf("group %w", err)
		}
		order, err := orders.of([]uint8{region})
		if err != nil {
			return nil, err
		}
		for _, word := range slices.Concat(g.Network, g.Network6) {
			p, err := ParsePrefix(word)
			if err != nil {
				return nil, fmt.Errorf("group %s: %w", g.name, err)
			}
			if len(rules) == MaxEntries {
				return nil, errTooMany
			}
			rules = append(rules, rule{prefix: p, order: order})
		}
	}
	clients, err := flatten(rules, orders.list, func(a, b rule) error {
		return fmt.Errorf("%s is in the groups %s and %s: keep it in one of them", a.prefix, groups[a.order].name, groups[b.order].name)
	})
	return &Map{Regions: regions.list, Clients: clients}, err
}
