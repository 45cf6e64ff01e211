package config

import "strings"

// reader hands out the statements of a block. A statement is the words of one
// line up to a brace; an opening brace at its end starts its own block.
type reader struct {
	tokens []Token
	at     int // the next token
}

// statement is one statement without its block.
type statement struct {
	Token           // the word that it starts with
	args    []Token // the words after it
	opened  bool    // a block follows; its word's read function takes it
	brace   Pos     // of the opening brace
	r       *reader
	context []word     // the words that could have stood here
	parent  *statement // whose block it stands in; nil: none
}

// blockUse says whether a word has a block.
type blockUse int

const (
	noBlock  blockUse = iota
	quotable          // it has none, and its values may be quoted text
	mayBlock
	mustBlock
)

// many is the max of a word that takes any number of values.
const many = 1 << 30

// word is a word that a statement can start with.
type word struct {
	name     string
	form     string // its values, for errors
	min, max int    // number of values
	block    blockUse
	read     func(*statement) error
}

// names lists the words that can be used.
func names(words []word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.name
	}
	return list
}

func find(words []word, name string) (word, bool) {
	for _, w := range words {
		if w.name == name {
			return w, true
		}
	}
	return word{}, false
}

// onLine reports whether the next token is on the line of the one before.
// A line break inside a token, which only quotes or an environment variable
// can bring, counts as the lexer counts it.
func (r *reader) onLine() bool {
	if r.at == 0 || r.at >= len(r.tokens) {
		return false
	}
	before, next := r.tokens[r.at-1], r.tokens[r.at]
	return before.File == next.File && before.Line+strings.Count(before.Text, "\n") == next.Line
}

// statement reads the next statement up to its block, if it has one.
func (r *reader) statement() *statement {
	s := &statement{Token: r.tokens[r.at], r: r}
	r.at++
	for r.onLine() {
		t := r.tokens[r.at]
		if t.Text == "}" {
			break
		}
		r.at++
		if t.Text == "{" {
			s.opened, s.brace = true, t.Pos
			break
		}
		s.args = append(s.args, t)
	}
	return s
}

// block reads the statements of the block of s, closing brace included.
func (s *statement) block(words ...word) error {
	r := s.r
	for r.at < len(r.tokens) {
		if r.tokens[r.at].Text == "}" {
			r.at++
			return nil
		}
		sub := r.statement()
		sub.context, sub.parent = words, s
		if err := sub.run(); err != nil {
			return err
		}
		if err := r.lineEnd(sub); err != nil {
			return err
		}
	}
	return s.brace.errorf("the block of %q is never closed: a } is missing", s.Text)
}

// run reads one statement with the word that it starts with.
func (s *statement) run() error {
	if err := s.Token.check(); err != nil {
		return err
	}
	w, known := find(s.context, s.Text)
	if !known {
		return s.unknown()
	}
	check := Token.check
	if w.block == quotable {
		check = Token.checkText
	}
	for _, t := range s.args {
		if err := check(t); err != nil {
			return err
		}
	}
	if err := s.fits(w); err != nil {
		return s.hint(err)
	}
	return s.hint(w.read(s))
}

// lineEnd holds that nothing but a closing brace follows s on its last line.
func (r *reader) lineEnd(s *statement) error {
	if !r.onLine() || r.tokens[r.at].Text == "}" {
		return nil
	}
	t := r.tokens[r.at]
	if t.Text == s.Text {
		return t.errorf("another %q on the same line: one statement per line (a snippet of one line, imported twice in a row, becomes one line)", t.Text)
	}
	return t.errorf("unexpected %q after the closing brace: one statement per line", t.Text)
}

// fits checks the number of values and whether a block is there.
func (s *statement) fits(w word) error {
	form := strings.TrimSpace(w.name + " " + w.form)
	switch {
	case len(s.args) < w.min:
		return s.errorf("too few values for %q: expected `%s`", s.Text, form)
	case len(s.args) > w.max:
		return s.args[w.max].errorf("too many values for %q: expected `%s`, and one statement per line", s.Text, form)
	case s.opened && w.block < mayBlock:
		return s.brace.errorf("%q has no block: expected `%s`", s.Text, form)
	case !s.opened && w.block == mustBlock:
		return s.errorf("%q needs a block, opened on the same line: expected `%s`", s.Text, form)
	}
	return nil
}

// repeats reports whether the statement is a shorter one said several times.
func (s *statement) repeats() bool {
	all := append([]Token{s.Token}, s.args...)
	for n := 2; n <= len(all)/2; n++ {
		if len(all)%n != 0 {
			continue
		}
		i := n
		for i < len(all) && all[i].Text == all[i-n].Text {
			i++
		}
		if i == len(all) {
			return true
		}
	}
	return false
}

// hint adds advice to an error if the statement looks like several.
func (s *statement) hint(err error) error {
	if err != nil && s.repeats() {
		return s.errorf("%q is repeated on one line: a snippet of one line, imported twice in a row, becomes one statement", s.Text)
	}
	e, ok := err.(*Error)
	if !ok || e.word == "" || e.word == s.Text || e.Pos != s.Pos {
		return err
	}
	if _, known := find(s.context, e.word); known {
		e.Text += "; one statement per line"
	}
	return e
}

// unknown is the error about a word that no statement here starts with.
func (s *statement) unknown() error {
	switch s.Text {
	case "{":
		return s.errorf("unexpected { at the start of a line: it belongs at the end of the line before")
	case "import":
		return s.errorf("an import was not expanded: a snippet as the first statement of another snippet is left alone; put another statement before it")
	}
	known := names(s.context)
	hint := DidYouMean(s.Text, known)
	if s.fitsOutside() {
		hint = "; or is a } missing before it?"
	}
	return s.errorf("unknown word %q: expected one of %s%s", s.Text, oneOf(known), hint)
}

// fitsOutside reports whether the word could start a statement of an enclosing
// block.
func (s *statement) fitsOutside() bool {
	for outer := s.parent; outer != nil; outer = outer.parent {
		if _, known := find(outer.context, s.Text); known {
			return true
		}
	}
	return false
}

// checkText refuses text that the lexer can only have made by mistake.
func (t Token) checkText() error {
	switch {
	case t.Text == "":
		return t.errorf("an empty word: is an environment variable, written {$NAME}, not set?")
	case strings.ContainsAny(t.Text, "\r\n"):
		return t.errorf("%q has a line break in it: does an environment variable end in one, or is a quote not closed?", shown(t.Text))
	}
	return nil
}

// check refuses words that the lexer can only have made by mistake.
func (t Token) check() error {
	if err := t.checkText(); err != nil {
		return err
	}
	switch {
	case t.Text == "{":
		return nil // its place is judged by who meets it
	case strings.ContainsAny(t.Text, " \t"):
		return t.errorf("%q has a blank in it: write each word by itself and without quotes", shown(t.Text))
	case strings.Contains(t.Text, "{}"):
		return t.errorf("%q: leave an empty block out", shown(t.Text))
	case strings.Contains(t.Text, "{"):
		return t.errorf("%q: a { needs a blank on both sides", shown(t.Text))
	case strings.Contains(t.Text, "}"):
		return t.errorf("%q: a } needs a blank on both sides", shown(t.Text))
	}
	return nil
}
