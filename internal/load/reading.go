package load

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Reading is what is known of a signal: the last number it gave, and what went
// wrong since.
type Reading struct {
	Value float64 // finite and not negative; of a score at most 1
	// At is when Value was measured, if the source says, else when it was read;
	// never later than that. Zero: there never was one.
	At       time.Time
	Err      error // what is wrong with all that came since; nil: nothing is
	Failures int   // how often in a row
}

// OK tells whether there ever was a number.
func (r Reading) OK() bool { return !r.At.IsZero() }

// Age is how old the number is, 0 or more. Without one it is not ok.
func (r Reading) Age(now time.Time) (age time.Duration, ok bool) {
	if !r.OK() {
		return 0, false
	}
	return max(0, now.Sub(r.At)), true
}

// measure is a number as it was read, not yet judged.
type measure struct {
	value float64
	at    time.Time // zero: the source doesn't say
}

// cell holds a Reading that one goroutine writes and any number read.
type cell struct{ now atomic.Pointer[Reading] }

// Reading gives what is known now. It may be called by any number of goroutines.
func (c *cell) Reading() Reading {
	if r := c.now.Load(); r != nil {
		return *r
	}
	return Reading{}
}

// take makes a reading of what came at a time.
func (c *cell) take(m measure, err error, score bool, received time.Time) {
	if err == nil {
		err = judge(m.value, score)
	}
	r := c.Reading()
	if err != nil {
		r.Err, r.Failures = err, r.Failures+1
	} else {
		// A clock ahead of ours must not make a number that never changes look fresh.
		if m.at.IsZero() || m.at.After(received) {
			m.at = received
		}
		r = Reading{Value: m.value + 0, At: m.at} // +0: -0 is 0
	}
	c.now.Store(&r)
}

// judge refuses numbers that are no load.
func judge(v float64, score bool) error {
	switch {
	case math.IsNaN(v):
		return errors.New("the value is NaN, expected a number")
	case math.IsInf(v, 0):
		return errors.New("the value is infinite, expected a finite number")
	case v < 0:
		return fmt.Errorf("the value is %g, expected none below 0", v)
	case score && v > 1:
		return fmt.Errorf("the value is %g, expected a score of 0 to 1", v)
	}
	return nil
}

// maxNumber is the longest text that is taken for a number, in bytes.
const maxNumber = 64

// parseNumber reads a number in decimal, with or without a fraction or exponent,
// or one of the words that Prometheus has for those that aren't finite.
func parseNumber(text string) (float64, error) {
	const others = "+-.eE0123456789"
	switch text {
	case "NaN", "Inf", "+Inf", "-Inf":
		return strconv.ParseFloat(text, 64)
	}
	if text == "" {
		return 0, errors.New("there is nothing, expected a number")
	}
	if len(text) > maxNumber || strings.Trim(text, others) != "" {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	v, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%.40q is beyond all numbers that can be read", text)
	}
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return v, nil
}

// Pushed is a signal that isn't asked for but told: a header of the answers to a
// health check. The zero value is one that was never told anything. Offer must
// not be called by two goroutines at once, Reading may be by any number.
type Pushed struct {
	cell
	Score bool // numbers are a score; those above 1 are errors. Not to be changed once in use
}

// Offer takes in the value of a header and when it came. What is no number in
// decimal counts as a failure: the last that was one stays.
func (p *Pushed) Offer(value string, at time.Time) {
	v, err := parseNumber(strings.Trim(value, " \t"))
	p.take(measure{value: v}, err, p.Score, at)
}
