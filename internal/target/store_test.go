package target

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
)

// TestRestart has a process take over from another while no resolver answers.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.tell("lb.test. 60 A 192.0.2.1", "lb.test. 60 AAAA 2001:db8::1", "other.test. 60 A 192.0.2.2")
		first := n.resolver(nil)
		acquire(t, first, "lb.test")
		acquire(t, first, "other.test")
		acquire(t, first, "none.test")
		after(time.Second)
		first.Close()
		data, err := Encode(first.Saved())
		if err != nil {
			t.Fatal(err)
		}
		n.say(func(string, message) []message { return nil })
		after(30 * time.Minute)
		saved, err := Decode(data, time.Now(), time.Hour)
		if err != nil || len(saved) != 2 {
			t.Fatalf("%v %v", saved, err)
		}
		second := n.resolver(func(o *Options) { o.Saved = saved })
		defer second.Close()
		target := acquire(t, second, "lb.test")
		for range 2 {
			if got := uses(target, time.Hour); got != "192.0.2.1 2001:db8::1" || !target.State().V4.Failing {
				t.Errorf("%s, %+v", got, target.State())
			}
			after(20 * time.Second)
		}
		if got := uses(target, time.Minute); got != "" {
			t.Errorf("%s although it is too old", got)
		}
		after(30 * time.Minute)
		if got := uses(target, time.Hour); got != "" {
			t.Errorf("%s after keep: its age counts from before the restart", got)
		}
		// What was not asked for is still there for the next.
		if all := second.Saved(); len(all) != 2 {
			t.Errorf("%v", all)
		}
		target.Release("user")
		if all := second.Saved(); len(all) != 1 {
			t.Errorf("%v: what was released is forgotten", all)
		}
		if saved, err := Decode(data, time.Now(), time.Hour); err != nil || len(saved) != 0 {
			t.Errorf("%v %v: too old", saved, err)
		}
	})
}

func TestSavedByAClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.say(func(string, message) []message { return nil })
		f := Family{Addrs: addrs("192.0.2.", 1, 1), At: time.Now().Add(1000 * time.Hour), TTL: time.Minute}
		r := n.resolver(func(o *Options) { o.Saved = map[string]Saved{"lb.test. " + strings.Join(servers, " "): {V4: f}} })
		defer r.Close()
		target := acquire(t, r, "lb.test")
		after(time.Hour - 1)
		before := uses(target, time.Hour)
		after(1)
		if got := uses(target, time.Hour); before != "192.0.2.1" || got != "" {
			t.Errorf("%s then %s", before, got)
		}
	})
}

func sample(n int) map[string]Saved {
	all := map[string]Saved{}
	for i := range n {
		at := noon.Add(time.Duration(i) * time.Second)
		all[fmt.Sprintf("lb-%d.test. 192.0.2.53:53", i)] = Saved{
			V4: Family{Addrs: addrs("192.0.2.", 1, 2), At: at, TTL: time.Minute},
			V6: Family{Addrs: addrs("2001:db8::", 1, 1), At: at.Add(-time.Hour), TTL: time.Hour},
		}
	}
	return all
}

func TestStore(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		all := sample(n)
		data, err := Encode(all)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(data, noon, time.Hour)
		if err != nil || !reflect.DeepEqual(back, all) {
			t.Errorf("%d: %v %v", n, back, err)
		}
		for i := range data { // any byte that is another one is found
			bad := bytes.Clone(data)
			bad[i] ^= 1
			if _, err := Decode(bad, noon, time.Hour); err == nil {
				t.Errorf("byte %d changed, and no error", i)
			}
		}
		if _, err := Decode(data[:len(data)-1], noon, time.Hour); err == nil {
			t.Error("cut off, and no error")
		}
	}
	data, err := Encode(sample(maxStored + 1))
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data, noon, time.Hour)
	want := sample(maxStored + 1)
	delete(want, "lb-0.test. 192.0.2.53:53")
	if err != nil || !maps.EqualFunc(back, want, func(a, b Saved) bool { return a.V4.At.Equal(b.V4.At) }) {
		t.Errorf("%d are kept, %v: expected the newest %d", len(back), err, maxStored)
	}
	if back, err := Decode(data, noon.Add(2*time.Hour), time.Hour); err != nil || len(back) != maxStored-3599 {
		t.Errorf("%d are young, %v", len(back), err)
	}
}

// sealed puts the head of a file before lines.
func sealed(lines string) []byte {
	return fmt.Appendf(nil, "%s%016x\n%s", storeFormat, xxhash.Sum64String(lines), lines)
}

func TestStoreRefuses(t *testing.T) {
	record := func(key, addrs, at, ttl string) string {
		return fmt.Sprintf(`{"key":%q,"v4":{"addrs":[%s],"at":%q,"ttl":%s},"v6":{"addrs":null,"at":"0001-01-01T00:00:00Z","ttl":0}}`+"\n", key, addrs, at, ttl)
	}
	const at, one = "2026-03-01T12:00:00Z", `"192.0.2.1"`
	if all, err := Decode(sealed(record("k", one, at, "60000000000")), noon, time.Hour); err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	for _, tc := range []struct{ lines, want string }{
		{"{", "record 1"},
		{"[]", "record 1"},
		{record("k", one, at, "60000000000") + `{"other":1}`, "record 2"},
		{record("", one, at, "0"), "expected a key"},
		{record("k", one, "0001-01-01T00:00:00Z", "0"), "when they were confirmed"},
		{record("k", one, at, "-1"), "a TTL up to"},
		{record("k", one, at, "4000000000000"), "a TTL up to"},
		{record("k", `"192.0.2.2","192.0.2.1"`, at, "0"), "sorted addresses"},
		{record("k", one+","+one, at, "0"), "sorted addresses"},
		{record("k", `"2001:db8::1"`, at, "0"), "is no address to use"},
		{record("k", `"0.0.0.0"`, at, "0"), "is no address to use"},
		{record("k", `""`, at, "0"), "is no address to use"},
		{record("k", `"x"`, at, "0"), "record 1"},
	} {
		if _, err := Decode(sealed(tc.lines), noon, time.Hour); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.lines, err, tc.want)
		}
	}
	for _, head := range []string{"", "gslb-targets 2 0\n", "gslb-targets 1 x\n", "gslb-targets 1 0000000000000001\n"} {
		if _, err := Decode([]byte(head), noon, time.Hour); err == nil {
			t.Errorf("%q: no error", head)
		}
	}
}

func FuzzStore(f *testing.F) {
	for _, n := range []int{0, 1, 2} {
		data, err := Encode(sample(n))
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(data, []byte("\n"))
		f.Add(string(body))
	}
	f.Fuzz(func(t *testing.T, lines string) {
		all, err := Decode(sealed(lines), noon, 1000*time.Hour)
		if err != nil {
			return
		}
		data, err := Encode(all)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(data, noon, 1000*time.Hour)
		if err != nil || len(back) != len(all) {
			t.Errorf("%v: %v", all, err)
		}
	})
}
