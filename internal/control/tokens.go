package control

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	maxTokenFile = 64 << 10
	maxTokens    = 1000
	minToken     = 20 // characters
	maxToken     = 512
)

// Token is one line of a token file, without its secret.
type Token struct {
	Name  string    // of who has it
	Read  bool      // it may look, but change nothing
	Until time.Time // it is of no use any more; zero: for ever
	hash  [sha256.Size]byte
}

// Tokens is a file of tokens: lines "NAME TOKEN [read] [until TIME]"; what
// follows # is a comment. The file is read again when it changes, and must not be
// readable for others than its owner. When it can't be used, no token is good: a
// mistake must not keep a token alive that was taken away. Its methods may be
// called by several goroutines.
type Tokens struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	seen os.FileInfo
	all  []Token
	err  error
}

// OpenTokens reads a token file.
func OpenTokens(path string, now func() time.Time) (*Tokens, error) {
	t := &Tokens{path: path, now: now}
	t.read()
	return t, t.err
}

// Find gives the token that was presented; false if there is none like it, or it
// has expired. It takes as long for every wrong one. The error says why the file
// can't be used.
func (t *Tokens) Find(presented string) (found Token, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read(); t.err != nil {
		return Token{}, false, t.err
	}
	hash := sha256.Sum256([]byte(presented))
	at := -1
	for i := range t.all {
		equal := subtle.ConstantTimeCompare(hash[:], t.all[i].hash[:])
		at = subtle.ConstantTimeSelect(equal, i, at)
	}
	if at < 0 {
		return Token{}, false, nil
	}
	found = t.all[at]
	return found, found.Until.IsZero() || t.now().Before(found.Until), nil
}

// read reads the file if it has changed.
func (t *Tokens) read() {
	// Opening a pipe would wait for whoever writes to it.
	info, err := os.Stat(t.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file, expected lines NAME TOKEN [read] [until TIME]", t.path)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(t.path)
	}
	if err != nil {
		t.seen, t.err = nil, fmt.Errorf("the token file: %w", err)
		return
	}
	defer f.Close()
	info, err = f.Stat()
	if err == nil && t.seen != nil && os.SameFile(info, t.seen) && info.ModTime().Equal(t.seen.ModTime()) &&
		info.Size() == t.seen.Size() && info.Mode() == t.seen.Mode() {
		return
	}
	t.seen = info
	if err == nil {
		t.all, err = readTokens(f, info)
	}
	if t.err = err; err != nil {
		t.err = fmt.Errorf("%s: %w", t.path, err)
	}
}

func readTokens(f io.Reader, info os.FileInfo) ([]Token, error) {
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("its mode is %04o: others may read it; expected 0600: chmod 600 it, and think of its tokens as known", info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTokenFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxTokenFile)
	}
	return parseTokens(data)
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// parseTokens reads the lines of a token file. No error tells a secret.
func parseTokens(data []byte) ([]Token, error) {
	var all []Token
	secrets := map[[sha256.Size]byte]int{}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		text, _, _ := strings.Cut(string(line), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		t, err := parseToken(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if first := secrets[t.hash]; first > 0 {
			return nil, fmt.Errorf("line %d: the token of line %d again: everybody needs their own", n, first)
		}
		secrets[t.hash] = n
		if all = append(all, t); len(all) > maxTokens {
			return nil, fmt.Errorf("line %d: more than %d tokens", n, maxTokens)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it holds no token, expected lines NAME TOKEN [read] [until TIME]")
	}
	return all, nil
}

func parseToken(words []string) (t Token, err error) {
	const form = "expected NAME TOKEN [read] [until TIME]"
	if len(words) < 2 {
		return t, fmt.Errorf("one word, %s", form)
	}
	t.Name = words[0]
	switch secret := words[1]; {
	case !tokenName.MatchString(t.Name):
		return t, fmt.Errorf("the name must be 1..63 letters, digits and . _ @ -, %s", form)
	case len(secret) < minToken || len(secret) > maxToken:
		return t, fmt.Errorf("the token of %s has %d characters, expected %d..%d: make one with openssl rand -hex 32", t.Name, len(secret), minToken, maxToken)
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return t, fmt.Errorf("the token of %s holds characters that can't be sent, expected printable ASCII", t.Name)
	}
	t.hash = sha256.Sum256([]byte(words[1]))
	for rest := words[2:]; len(rest) > 0; {
		switch {
		case rest[0] == "read" && !t.Read:
			t.Read, rest = true, rest[1:]
		case rest[0] == "until" && len(rest) > 1 && t.Until.IsZero():
			if t.Until, err = time.Parse(time.RFC3339, rest[1]); err != nil || t.Until.IsZero() {
				return t, fmt.Errorf("the token of %s: until %q is no time, expected one like 2030-01-31T12:00:00Z", t.Name, rest[1])
			}
			rest = rest[2:]
		default:
			return t, fmt.Errorf("the token of %s is followed by what is neither read nor until TIME, %s", t.Name, form)
		}
	}
	return t, nil
}
