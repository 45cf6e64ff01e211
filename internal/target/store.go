package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	storeFormat = "gslb-targets 1 "
	maxStored   = 10_000   // targets
	maxStore    = 64 << 20 // bytes
)

// Saved is what is kept of a target for the next process.
type Saved struct {
	V4 Family `json:"v4"`
	V6 Family `json:"v6"`
}

// Saved is what is to be kept for the next process, by target: Options.Saved of
// its Resolver. What was not acquired since the start is in it too.
func (r *Resolver) Saved() map[string]Saved {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]Saved, len(r.targets)+len(r.saved))
	maps.Copy(all, r.saved)
	for key, t := range r.targets {
		if s := t.State(); len(s.V4.Addrs)+len(s.V6.Addrs) > 0 {
			all[key] = Saved{s.V4, s.V6}
		}
	}
	return all
}

// Lookup gives what is saved of a target with these servers, as a Resolver would that
// starts with it and has asked nobody yet; nil: nothing.
func Lookup(all map[string]Saved, servers []string, name string, now time.Time) *State {
	addrs, err := parseServers(servers)
	if err != nil {
		return nil
	}
	saved, ok := all[keyOf(name, addrs)]
	if !ok {
		return nil
	}
	return saved.state(now)
}

// state is what a saved target is at a start.
func (s Saved) state(now time.Time) *State {
	st := &State{V4: s.V4, V6: s.V6}
	for _, f := range []*Family{&st.V4, &st.V6} {
		f.Failing = true
		if f.At.After(now) {
			f.At = now // a clock that was set back must not keep addresses for ever
		}
	}
	return st
}

// storedLine is a line of what Encode writes.
type storedLine struct {
	Key string `json:"key"`
	Saved
}

// Encode writes what is saved as text, for a file: a line with the format and a
// checksum, and a line of JSON for each target, of which at most 10,000 are kept,
// the newest.
func Encode(all map[string]Saved) ([]byte, error) {
	keys := slices.Sorted(maps.Keys(all))
	if len(keys) > maxStored {
		newest := func(key string) time.Time { return later(all[key].V4.At, all[key].V6.At) }
		slices.SortStableFunc(keys, func(a, b string) int { return newest(b).Compare(newest(a)) })
		keys = slices.Sorted(slices.Values(keys[:maxStored]))
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	for _, key := range keys {
		if err := encoder.Encode(storedLine{key, all[key]}); err != nil {
			return nil, fmt.Errorf("target %s: %w", key, err)
		}
	}
	head := fmt.Appendf(nil, "%s%016x\n", storeFormat, xxhash.Sum64(body.Bytes()))
	return append(head, body.Bytes()...), nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Decode reads what Encode wrote, without targets that were not confirmed for
// longer than maxAge. The error says what is wrong; nothing is read then.
func Decode(data []byte, now time.Time, maxAge time.Duration) (map[string]Saved, error) {
	if len(data) > maxStore {
		return nil, fmt.Errorf("saved targets: more than %d bytes", maxStore)
	}
	head, body, whole := bytes.Cut(data, []byte("\n"))
	sum, ok := strings.CutPrefix(string(head), storeFormat)
	if !whole || !ok {
		return nil, fmt.Errorf("saved targets: the first line is %.40q, expected %q and a checksum: it is of another version or no file of targets", head, storeFormat)
	}
	if want, err := strconv.ParseUint(sum, 16, 64); err != nil || want != xxhash.Sum64(body) {
		return nil, errors.New("saved targets: the checksum is wrong: the file is damaged")
	}
	all := map[string]Saved{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	for n := 1; ; n++ {
		var line storedLine
		err := decoder.Decode(&line)
		if err == io.EOF {
			return all, nil
		}
		if err == nil {
			err = line.problem(len(all))
		}
		if err != nil {
			return nil, fmt.Errorf("saved targets: record %d: %w", n, err)
		}
		if now.Sub(later(line.V4.At, line.V6.At)) <= maxAge {
			all[line.Key] = line.Saved
		}
	}
}

// problem tells what a record can't hold, whatever its checksum says.
func (l *storedLine) problem(before int) error {
	switch {
	case before >= maxStored:
		return fmt.Errorf("expected no more than %d", maxStored)
	case l.Key == "":
		return errors.New("expected a key")
	}
	for i, f := range []*Family{&l.V4, &l.V6} {
		sorted := slices.IsSortedFunc(f.Addrs, netip.Addr.Compare) && len(slices.Compact(slices.Clone(f.Addrs))) == len(f.Addrs)
		if len(f.Addrs) > MaxAddrs || !sorted || f.TTL < 0 || f.TTL > maxTTL || f.At.IsZero() && len(f.Addrs) > 0 {
			return fmt.Errorf("expected up to %d sorted addresses, when they were confirmed, and a TTL up to %s", MaxAddrs, maxTTL)
		}
		for _, a := range f.Addrs {
			if !a.IsValid() || a.Zone() != "" || a.Is4() != (i == 0) || unusable(a) != nil {
				return fmt.Errorf("%s is no address to use", a)
			}
		}
	}
	return nil
}
