package geodb

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
)

// File is a file to watch, with what is in use of it.
type File struct {
	Path   string
	Hash   uint64 // xxhash of the content in use
	Loaded bool   // false: nothing is in use, such as of an optional file that is missing
	// Dated is when the content in use was last changed, in whole seconds, of a file
	// whose date counts: then it is news when the same content is written anew. Zero:
	// the date says nothing.
	Dated time.Time
}

// Change is news of a watched file. Without Err its content differs from what
// was last loaded or told, or it can be read again after an Err, or a Dated file was
// written anew. With Err it
// can't be read or is gone, and what is in use of it should stay in use.
type Change struct {
	Path string
	Err  error
}

// Watcher polls files for changes. It sees renames over a file, switched
// symbolic links and writes in place, and waits with a file until two polls in
// a row saw it the same, so that one still being written isn't loaded torn.
type Watcher struct {
	every time.Duration
	files []*watched
}

// watched is the state of one file between polls.
type watched struct {
	path    string
	hash    uint64      // of the content last loaded or told
	known   bool        // there is such content
	dated   time.Time   // as in File, for the content last loaded or told
	failing bool        // the last news was an error, or there was no file to begin with
	polled  os.FileInfo // at the last poll; nil: it failed
	read    os.FileInfo // when the content was last hashed; nil: never
}

// NewWatcher watches files, polling at the given interval (above 0). A change
// between loading a file and Run is found by its hash.
func NewWatcher(every time.Duration, files ...File) *Watcher {
	w := &Watcher{every: every}
	for _, f := range files {
		w.files = append(w.files, &watched{path: f.Path, hash: f.Hash, known: f.Loaded, dated: f.Dated, failing: !f.Loaded})
	}
	return w
}

// Run polls until ctx is done. It calls changed, from its own goroutine and
// never twice at once, with all the news of one poll: each change and each
// error once. A content that the caller couldn't use isn't told again until
// the file changes. Run may be called once.
func (w *Watcher) Run(ctx context.Context, changed func([]Change)) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		var news []Change
		for _, f := range w.files {
			if is, err := f.poll(); is {
				news = append(news, Change{Path: f.path, Err: err})
			}
		}
		if len(news) > 0 {
			changed(news)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// poll looks at the file and tells whether there is news of it.
func (f *watched) poll() (news bool, err error) {
	info, err := statRegular(f.path)
	if err != nil {
		return f.fail(err)
	}
	settled := sameFile(info, f.polled)
	f.polled = info
	if !settled || sameFile(info, f.read) && !f.failing {
		return false, nil
	}
	hash, err := HashFile(f.path)
	if err != nil {
		return f.fail(err)
	}
	redated := f.redated(info)
	news = f.failing || !f.known || hash != f.hash || redated
	f.read, f.hash, f.known, f.failing = info, hash, true, false
	return news, nil
}

// redated notes the date of a file whose date counts, and tells whether it is another.
func (f *watched) redated(info os.FileInfo) bool {
	changed := info.ModTime().Truncate(time.Second)
	if f.dated.IsZero() || f.dated.Equal(changed) {
		return false
	}
	f.dated = changed
	return true
}

// fail makes the first error of a row news.
func (f *watched) fail(err error) (news bool, _ error) {
	news = !f.failing
	f.failing, f.polled = true, nil
	return news, err
}

// sameFile tells whether a path led to the same, unwritten file twice.
func sameFile(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// HashFile gives the xxhash of a file's content.
func HashFile(path string) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	digest := xxhash.New()
	_, err = io.Copy(digest, file)
	return digest.Sum64(), err
}
