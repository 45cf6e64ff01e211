package gslb

import "time"

// saver writes to state directories what a beat has found due, apart from the beats: a disk
// that hangs holds up no step of the law.
type saver struct {
	work  chan []func()
	since time.Time // when it was given what it is at; zero: nothing. The registry's lock guards it
	slow  bool      // that it takes long has been said
}

// slowSaving is how long a disk may take until that is said.
const slowSaving = 30 * time.Second

// free tells whether the saver is done with what it was given; the registry's lock is
// held. While it isn't, nothing more is taken down to be saved.
func (s *saver) free(now time.Time) bool {
	switch {
	case s.since.IsZero():
		return true
	case now.Sub(s.since) >= slowSaving && !s.slow:
		s.slow = true
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
