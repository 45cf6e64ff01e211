package control

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// needy is a backend that some overrides must not be taken from.
type needy struct {
	plainBackend
	mu     sync.Mutex
	needs  []string // their IDs
	judged int
}

// need sets which it needs.
func (b *needy) need(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.needs = ids
}

// asked is how often it was asked since the last time.
func (b *needy) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.judged
	b.judged = 0
	return n
}

func (b *needy) WhatIf(_ context.Context, next *Overrides) (Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judged++
	for _, id := range b.needs {
		if next.Find(id) == nil {
			return Report{Refusals: []Refusal{{Guard: "usable", Reason: "nobody is left"}}}, nil
		}
	}
	return Report{}, nil
}

// TestPostponedInTurn holds that what is postponed costs two judgements in ten seconds however
// much it is, that what else expires ends in time, and that all of it ends once it may.
func TestPostponedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &needy{}
		s, err := Open(StoreOptions{Dir: t.TempDir(), Backend: b, Now: time.Now, Logf: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ask := func(region, wait string) string {
			t.Helper()
			r := &Request{Change: Change{Lever: Drain, Object: Object{Region: region}, Value: "on", Terms: Terms{Why: "needed", For: wait}}}
			result, err := s.Do(t.Context(), Author{Name: "alice"}, r)
			if err != nil {
				t.Fatal(err)
			}
			return result.Applied[0].Override.ID
		}
		var needed []string
		for i := range 8 {
			needed = append(needed, ask(fmt.Sprintf("r%d", i), "1h"))
		}
		other := ask("other", "1h0m13s")
		b.need(needed...)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		defer func() { stop(); <-done }()
		left := func(d time.Duration, what string, most, want int) {
			t.Helper()
			b.asked()
			time.Sleep(d)
			synctest.Wait()
			if n, asked := s.Overrides().Len(), b.asked(); n != want || asked > most {
				t.Errorf("%s: %d overrides, want %d; judged %d times, want %d at most", what, n, want, asked, most)
			}
		}
		left(time.Hour+time.Second, "their time is over", 9, 9)
		left(10*time.Second, "in turn", 2, 9)
		if s.Overrides().Find(other) == nil {
			t.Error("the other has ended before its time")
		}
		left(2*time.Second, "the other expires", 3, 8)
		left(10*time.Second, "in turn again", 2, 8)
		b.need(needed[6:]...)
		left(80*time.Second, "some may end", 16, 2)
		b.need()
		left(10*time.Second, "all may end", 2, 0)
	})
}
