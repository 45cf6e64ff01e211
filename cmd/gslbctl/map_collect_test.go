package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// journal is what a command that goes on says.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // there is more
}

func newJournal() *journal { return &journal{more: make(chan struct{}, 1)} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case j.more <- struct{}{}:
	default:
	}
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

var collectingAt = regexp.MustCompile(`collecting at (http://\S+)\n`)

// address waits for a collector to say where it listens. Ended is the end of it.
func (j *journal) address(t *testing.T, ended <-chan int) string {
	t.Helper()
	for {
		if m := collectingAt.FindStringSubmatch(j.String()); m != nil {
			return m[1]
		}
		select {
		case <-j.more:
		case code := <-ended:
			t.Fatalf("it ended with %d: %s", code, j)
		}
	}
}

// collect starts "map collect" on a free port. What it returns ends it, by what the
// command does at a signal.
func collect(t *testing.T, stopTime time.Duration, args ...string) (address string, end func() (log string)) {
	t.Helper()
	j, ended := newJournal(), make(chan int, 1)
	flags := newFlags("map collect", "", io.Discard, j)
	f := newCollectFlags(flags)
	if rest, code := parseFlags(flags, append(args, "-listen", "127.0.0.1:0")); rest == nil {
		t.Fatal(code, j)
	}
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	f.stopTime = stopTime
	stop, cancel := context.WithCancel(context.Background())
	go func() {
		code := exitOK
		if err := f.serve(stop, log.New(j, "", 0)); err != nil {
			code = fail(j, err)
		}
		ended <- code
	}()
	t.Cleanup(cancel)
	return j.address(t, ended), func() string {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("exit code %d: %s", code, j)
		}
		return j.String()
	}
}

// TestMapCollectSignal holds that the whole command, ended by SIGTERM, leaves finished
// files that map build reads.
func TestMapCollectSignal(t *testing.T) {
	dir := t.TempDir()
	j, ended := newJournal(), make(chan int, 1)
	go func() {
		ended <- run(strings.Fields("map collect -listen 127.0.0.1:0 -regions eu,us -trust-forwarded 127.0.0.1,::1 -dir "+dir), io.Discard, j)
	}()
	address := j.address(t, ended)
	const report = `{"v":1,"entries":[{"region":"us","ok":true,"rtt_ms":20.5,"timing":"resource"},{"region":"eu","ok":false}]}`
	for range 10 {
		r, err := http.NewRequest(http.MethodPost, address+"/report", strings.NewReader(report))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("X-Forwarded-For", "192.0.2.77")
		reply, err := http.DefaultClient.Do(r)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatal(reply, err)
		}
		reply.Body.Close()
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != exitOK || !strings.Contains(j.String(), "all is written") {
		t.Fatalf("exit code %d: %s", code, j)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || bytes.Contains(text, []byte("192.0.2.77")) || bytes.Count(text, []byte("192.0.2.0/24")) != 20 {
		t.Errorf("%v\n%s", err, text)
	}
	code, stdout, stderr := call(t, "map build -regions eu,us -o "+filepath.Join(dir, "map.txt")+" "+files[0])
	if code != exitOK || !strings.Contains(stdout, "lines 20, bad 0") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestMapCollectMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		want string
	}{
		"no directory":  {"", exitUsage, "expected -dir"},
		"no regions":    {"-dir .", exitUsage, "expected -regions"},
		"argument":      {"-dir . -regions eu x", exitUsage, `unexpected "x"`},
		"empty URL":     {"-dir . -regions eu=", exitUsage, "expected NAME=URL or NAME"},
		"sample":        {"-dir . -regions eu=https://eu.example.com -sample 2 -listen 127.0.0.1:0", exitError, "measure is 2: expected more than 0, at most 1"},
		"zero":          {"-dir . -regions eu -sample 0", exitUsage, "expected more than 0"},
		"host bits":     {"-dir . -regions eu -trust-forwarded 10.0.0.1/8", exitUsage, "expected an address, or a prefix"},
		"no proxy":      {"-dir . -regions eu -trust-forwarded proxy", exitUsage, "expected an address, or a prefix"},
		"bad region":    {"-dir . -regions EU -listen 127.0.0.1:0", exitError, `region "EU": expected a lower case letter`},
		"no such place": {"-dir testdata/none -regions eu -listen 127.0.0.1:0", exitError, "there is no such directory: create it"},
		"bad address":   {"-dir . -regions eu -listen nowhere", exitError, "-listen: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := call(t, "map collect "+c.line)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, expected %d with %s: %s", code, c.code, c.want, stderr)
			}
		})
	}
}

// TestMapCollectSlow holds that a request that doesn't end doesn't keep the collector
// from ending.
func TestMapCollectSlow(t *testing.T) {
	address, end := collect(t, time.Millisecond, "-dir", t.TempDir(), "-regions", "eu")
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const head = "POST /report HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	// It says so once it waits for the rest.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatal(line, err)
	}
	if log := end(); !strings.Contains(log, "all is written") {
		t.Error(log)
	}
}
