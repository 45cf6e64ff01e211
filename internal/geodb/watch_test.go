package geodb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
)

const every = 10 * time.Second

// scene is a directory with a running watcher and the news it gave.
type scene struct {
	t    *testing.T
	dir  string
	mu   sync.Mutex
	news []string
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

// write puts content into a file in place, with a modification time that
// differs from write to write.
func (s *scene) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(s.path(name), time.Time{}, time.Now()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// polls lets n polls pass and compares the news with what is wanted.
func (s *scene) polls(n int, want string) {
	s.t.Helper()
	time.Sleep(time.Duration(n) * every) // the bubble's time
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.news, " "); got != want {
		s.t.Errorf("news %q, want %q", got, want)
	}
	s.news = nil
}

// watch runs play beside a watcher of the files, of which loaded ones are in
// use with the given content.
func watch(t *testing.T, loaded map[string]string, names []string, prepare, play func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, dir: t.TempDir()}
		prepare(s)
		var files []File
		for _, name := range names {
			content, ok := loaded[name]
			files = append(files, File{Path: s.path(name), Hash: xxhash.Sum64String(content), Loaded: ok})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go NewWatcher(every, files...).Run(ctx, func(changes []Change) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, c := range changes {
				state := "changed"
				if errors.Is(c.Err, fs.ErrNotExist) {
					state = "gone"
				} else if c.Err != nil {
					state = "error"
				}
				s.news = append(s.news, fmt.Sprintf("%s:%s", filepath.Base(c.Path), state))
			}
		})
		time.Sleep(every / 2) // to look between polls
		play(s)
	})
}

func TestWatch(t *testing.T) {
	one := []string{"a"}
	old := map[string]string{"a": "old"}
	written := func(s *scene) { s.write("a", "old") }
	for _, test := range []struct {
		name          string
		loaded        map[string]string
		files         []string
		prepare, play func(s *scene)
	}{
		{"no change", old, one, written, func(s *scene) { s.polls(5, "") }},
		{"changed between load and watch", old, one, func(s *scene) { s.write("a", "new") }, func(s *scene) {
			s.polls(1, "a:changed")
			s.polls(5, "")
		}},
		{"written in place, same size", old, one, written, func(s *scene) {
			s.polls(3, "")
			s.write("a", "new")
			s.polls(1, "")
			s.polls(1, "a:changed")
			s.polls(5, "")
		}},
		{"touched", old, one, written, func(s *scene) {
			s.polls(3, "")
			s.write("a", "old")
			s.polls(5, "")
		}},
		{"still being written", old, one, written, func(s *scene) {
			s.polls(3, "")
			for i := range 4 {
				s.write("a", strings.Repeat("new", i+1))
				s.polls(1, "")
			}
			s.polls(1, "a:changed")
		}},
		{"renamed over, same size and time", old, one, written, func(s *scene) {
			s.polls(3, "")
			info, err := os.Stat(s.path("a"))
			s.must(err)
			s.write("b", "new")
			s.must(os.Chtimes(s.path("b"), time.Time{}, info.ModTime()))
			s.must(os.Rename(s.path("b"), s.path("a")))
			s.polls(2, "a:changed")
		}},
		{"symbolic link to a directory switched", map[string]string{"data/a": "old"}, []string{"data/a"}, func(s *scene) {
			for _, v := range []string{"v1", "v2"} {
				s.must(os.Mkdir(s.path(v), 0o700))
			}
			s.write("v1/a", "old")
			s.write("v2/a", "new")
			s.must(os.Symlink("v1", s.path("data")))
		}, func(s *scene) {
			s.polls(3, "")
			s.must(os.Symlink("v2", s.path("next")))
			s.must(os.Rename(s.path("next"), s.path("data")))
			s.polls(2, "a:changed")
		}},
		{"gone and back", old, one, written, func(s *scene) {
			s.polls(3, "")
			s.must(os.Remove(s.path("a")))
			s.polls(1, "a:gone")
			s.polls(3, "")
			s.write("a", "old")
			s.polls(1, "")
			s.polls(1, "a:changed")
			s.polls(3, "")
		}},
		{"gone before the watch", old, one, func(*scene) {}, func(s *scene) { s.polls(1, "a:gone") }},
		{"not a file any more", old, one, written, func(s *scene) {
			s.polls(3, "")
			s.must(os.Remove(s.path("a")))
			s.must(os.Mkdir(s.path("a"), 0o700))
			s.polls(3, "a:error")
		}},
		{"optional file appears", nil, one, func(*scene) {}, func(s *scene) {
			s.polls(4, "")
			s.write("a", "")
			s.polls(1, "")
			s.polls(1, "a:changed")
		}},
		{"two files at once", map[string]string{"a": "old", "b": "old"}, []string{"a", "b"}, func(s *scene) {
			s.write("a", "old")
			s.write("b", "old")
		}, func(s *scene) {
			s.polls(3, "")
			s.write("b", "new")
			s.must(os.Remove(s.path("a")))
			s.polls(2, "a:gone b:changed")
		}},
	} {
		t.Run(test.name, func(t *testing.T) { watch(t, test.loaded, test.files, test.prepare, test.play) })
	}
}

// TestWatchLoad: the hashes that loading gives are the watcher's.
func TestWatchLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mustOpen(t, "ipv4only.mmdb", Country)
		nets := filepath.Join(t.TempDir(), "nets")
		if err := os.WriteFile(nets, []byte("192.0.2.0/24\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, hash, err := ReadPrefixes(nets, NoWords)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*every)
		defer cancel()
		NewWatcher(every, File{Path: db.Info().Path, Hash: db.Info().Hash, Loaded: true}, File{Path: nets, Hash: hash, Loaded: true}).Run(ctx, func(changes []Change) {
			t.Errorf("news %v of unchanged files", changes)
		})
		if ctx.Err() == nil {
			t.Error("Run returned before its context was done")
		}
	})
}

// TestWatchDated: of a file whose date counts, the same content with another date is
// news, each date once; of others it is not.
func TestWatchDated(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, dir: dir}
		s.write("dated", "x")
		s.write("plain", "x")
		began := time.Now().Truncate(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		w := NewWatcher(every, File{Path: s.path("dated"), Hash: xxhash.Sum64String("x"), Loaded: true, Dated: began},
			File{Path: s.path("plain"), Hash: xxhash.Sum64String("x"), Loaded: true})
		done.Go(func() {
			w.Run(ctx, func(changes []Change) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, c := range changes {
					s.news = append(s.news, fmt.Sprintf("%s:%v", filepath.Base(c.Path), c.Err))
				}
			})
		})
		time.Sleep(every / 2) // to write and look between polls
		s.polls(5, "")
		s.write("dated", "x")
		s.write("plain", "x")
		s.polls(5, "dated:<nil>")
		s.write("dated", "y")
		s.polls(5, "dated:<nil>")
		s.write("dated", "y")
		s.polls(5, "dated:<nil>")
		s.polls(5, "")
		cancel()
		done.Wait()
	})
}
