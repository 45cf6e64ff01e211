package gslb

import (
	"maps"
	"os"
	"sync"
	"time"
)

// saver writes to state directories what a beat has found due, apart from the beats: a disk
// that hangs holds up no step of the law.
type saver struct {
	work  chan []func()
	since time.Time // when it was given what it is at; zero: nothing. The registry's lock guards it
	slow  bool      // that it takes long has been said
}

// slowSaving is how long a disk may take until that is said.
const slowSaving = 30 * time.Second

// patience is how long a reload, and the end of the process, wait for the state directory.
const patience = 5 * time.Second

// patiently does what writes to a state directory, and tells whether that was done in time:
// a disk that hangs must not hold up a reload, nor the end of the process, which ends what
// is left of it.
func patiently(do func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		log.Errorf("Writing to the state directory has taken %s and isn't done: going on without it. Expected a disk that works", patience)
		return false
	}
}

// free tells whether the saver is done with what it was given; the registry's lock is
// held. While it isn't, nothing more is taken down to be saved.
func (s *saver) free(now time.Time) bool {
	switch {
	case s.since.IsZero():
		return true
	case now.Sub(s.since) >= slowSaving && !s.slow:
		s.slow = true
		stateFailing.WithLabelValues().Set(1)
		log.Errorf("Writing to the state directory has taken %s and isn't done: expected a disk that works. Nothing more is saved until then; answers go on", slowSaving)
	}
	return false
}

// give has work done; the saver must be free, and the registry's lock held.
func (s *saver) give(work []func(), now time.Time) {
	if len(work) == 0 {
		return
	}
	s.since = now
	s.work <- work // there is room, as it is free
}

// save does what the saver is given, until there is no more to come.
func (s *steering) save() {
	for work := range s.saver.work {
		for _, do := range work {
			do()
		}
		s.registry.mu.Lock()
		if s.saver.slow {
			log.Infof("The state directory is written to again, after %s", time.Since(s.saver.since).Round(time.Second))
		}
		s.saver.since, s.saver.slow = time.Time{}, false
		s.registry.mu.Unlock()
	}
}

// writingState is held by those who write to a state directory: the instances
// and, during a reload, the schedulers of two generations share one.
var writingState sync.Mutex

// unwritable is what can't be written to a state directory, by its name and the directory, and
// when that was tried last; writingState guards it.
var unwritable = make(map[[2]string]time.Time)

// writeState writes something to a state directory. An error is said once, until it is over,
// which is said, too; and a metric is 1 meanwhile.
func writeState(dir, what string, write func() error) error {
	writingState.Lock()
	defer writingState.Unlock()
	err := os.MkdirAll(dir, 0o750) // it may have been removed
	if err == nil {
		err = write()
	}
	key := [2]string{what, dir}
	_, known := unwritable[key]
	switch {
	case err != nil && !known:
		log.Errorf("%s can't be saved: %v. It is tried again, and not said again", what, err)
	case err == nil && known:
		log.Infof("%s can be saved again", what)
	}
	now := time.Now()
	maps.DeleteFunc(unwritable, func(k [2]string, at time.Time) bool { // and what a reload has left nobody to try
		return k == key || now.Sub(at) > 3*saveAtAll
	})
	if err != nil {
		unwritable[key] = now
	}
	stateFailing.WithLabelValues().Set(oneIf(len(unwritable) > 0))
	return err
}
