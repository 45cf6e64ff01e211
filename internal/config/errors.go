package config

import (
	"fmt"
	"strings"
)

// Error is a mistake in a gslb block and the place it was written at.
type Error struct {
	Pos
	Text string
	word string // the word found fault with; empty: none in particular
}

// Error gives "file:line: text".
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Text }

// errorf finds fault with what is written at p.
func (p Pos) errorf(format string, args ...any) *Error {
	return &Error{Pos: p, Text: fmt.Sprintf(format, args...)}
}

// errorf finds fault with the word t.
func (t Token) errorf(format string, args ...any) *Error {
	return &Error{Pos: t.Pos, Text: fmt.Sprintf(format, args...), word: t.Text}
}

// DidYouMean gives the known word that word is most likely a slip of, as a
// clause to end an error with; empty if none is near.
func DidYouMean(word string, known []string) string {
	best, limit := "", 3
	if len(word) < 4 {
		limit = 2 // two edits would make any short word of any other
	}
	for _, k := range known {
		if d := distance(word, k); d < limit {
			best, limit = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the letters to insert, drop, replace or swap with their
// neighbour to make a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// oneOf lists words for an error.
func oneOf(words []string) string { return strings.Join(words, ", ") }

// firstTwice gives the second of two equal words and the place of the first.
func firstTwice(words []Token) (again Token, first Pos, found bool) {
	seen := make(map[string]Pos, len(words))
	for _, t := range words {
		if first, ok := seen[t.Text]; ok {
			return t, first, true
		}
		seen[t.Text] = t.Pos
	}
	return Token{}, Pos{}, false
}
