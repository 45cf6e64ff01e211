package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Active reports whether the time t is within w. An instant at which w begins
// is, one at which it ends is not.
func (w When) Active(t time.Time) bool {
	if w.Daily != nil {
		return w.Daily.active(t)
	}
	return !t.Before(w.From) && (w.Until.IsZero() || t.Before(w.Until))
}

// Next gives the first instant after t at which w begins or ends; the zero time
// if there is none.
func (w When) Next(t time.Time) time.Time {
	switch {
	case w.Daily != nil:
		return w.Daily.next(t)
	case w.From.After(t):
		return w.From
	case w.Until.After(t):
		return w.Until
	}
	return time.Time{}
}

// String gives w in the words of the Corefile, times in UTC; empty if always.
func (w When) String() string {
	if w.Daily != nil {
		return w.Daily.String()
	}
	var words []string
	if !w.From.IsZero() {
		words = append(words, "from "+w.From.UTC().Format(time.RFC3339))
	}
	if !w.Until.IsZero() {
		words = append(words, "until "+w.Until.UTC().Format(time.RFC3339))
	}
	return strings.Join(words, " ")
}

// closed reports whether w ends, once or every day.
func (w When) closed() bool { return w.Daily != nil || !w.Until.IsZero() }

// overlaps reports whether two closed windows have an instant in common.
func (w When) overlaps(other When) bool {
	switch {
	case w.Daily != nil && other.Daily != nil:
		return w.Daily.overlaps(other.Daily)
	case w.Daily != nil:
		return other.overlaps(w)
	case other.Daily == nil:
		return w.From.Before(other.Until) && other.From.Before(w.Until)
	}
	// A window without a beginning has held many a day.
	return w.From.IsZero() || other.Active(w.From) || other.Next(w.From).Before(w.Until)
}

// length is how long one window lasts.
func (d *Daily) length() time.Duration {
	if d.End > d.Start {
		return d.End - d.Start
	}
	return d.End - d.Start + day
}

// on reports whether a window starts on a day.
func (d *Daily) on(weekday time.Weekday) bool { return d.Days == [7]bool{} || d.Days[weekday] }

// midnight is the beginning of the local day of t. Its clock shows local time.
func (d *Daily) midnight(t time.Time) time.Time { return t.UTC().Add(d.Offset).Truncate(day) }

func (d *Daily) active(t time.Time) bool {
	midnight := d.midnight(t)
	clock := t.UTC().Add(d.Offset).Sub(midnight)
	today, yesterday := midnight.Weekday(), midnight.Add(-day).Weekday()
	end := d.Start + d.length() // beyond 24h where it crosses midnight
	return d.on(today) && clock >= d.Start && clock < end || d.on(yesterday) && clock+day < end
}

// next looks a week and a day ahead: what doesn't change until then never does.
func (d *Daily) next(t time.Time) time.Time {
	is, midnight := d.active(t), d.midnight(t)
	var edges []time.Time
	for i := range 10 {
		local := midnight.Add(time.Duration(i-1)*day + d.Start)
		if d.on(local.Weekday()) {
			begins := local.Add(-d.Offset)
			edges = append(edges, begins, begins.Add(d.length()))
		}
	}
	slices.SortFunc(edges, time.Time.Compare)
	for _, e := range edges {
		if e.After(t) && d.active(e) != is {
			return e
		}
	}
	return time.Time{}
}

// overlaps lays the windows of both on one week in UTC.
func (d *Daily) overlaps(other *Daily) bool {
	ahead := func(a, b time.Duration) time.Duration { return ((b-a)%week + week) % week }
	for i := range time.Weekday(7) {
		for j := range time.Weekday(7) {
			a := time.Duration(i)*day + d.Start - d.Offset
			b := time.Duration(j)*day + other.Start - other.Offset
			if d.on(i) && other.on(j) && (ahead(a, b) < d.length() || ahead(b, a) < other.length()) {
				return true
			}
		}
	}
	return false
}

// String gives d in the words of the Corefile.
func (d *Daily) String() string {
	clock := func(t time.Duration) string { return fmt.Sprintf("%02d:%02d", t/time.Hour, t/time.Minute%60) }
	text := "daily " + clock(d.Start) + "-" + clock(d.End) + " "
	switch {
	case d.Offset == 0:
		text += "Z"
	case d.Offset < 0:
		text += "-" + clock(-d.Offset)
	default:
		text += "+" + clock(d.Offset)
	}
	for i, is := range d.Days {
		if is {
			text += " " + time.Weekday(i).String()[:3]
		}
	}
	return text
}

var (
	momentForm = regexp.MustCompile(`^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})$`)
	windowForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])$`)
	zoneForm   = regexp.MustCompile(`^([+-])(0[0-9]|1[0-4]):([0-5][0-9])$`)
)

const (
	whenForm = "[from TIME] [until TIME]|daily HH:MM-HH:MM ZONE [DAY…]"
	twoForms = "`from TIME`, `until TIME`, both in this order, or `daily HH:MM-HH:MM ZONE [DAY…]`"
)

// when reads the schedule at the end of a lever; no words are always.
func when(args []Token) (w When, err error) {
	if len(args) > 0 && args[0].Text == "daily" {
		w.Daily, err = daily(args[0], args[1:])
		return w, err
	}
	for len(args) > 0 {
		t := args[0]
		var at *time.Time
		switch {
		case t.Text == "from" && w == When{}:
			at = &w.From
		case t.Text == "until" && w.Until.IsZero():
			at = &w.Until
		default:
			return w, t.errorf("unexpected %q: expected %s", t.Text, twoForms)
		}
		if len(args) == 1 {
			return w, t.errorf("%q without a time: expected one with its zone, like 2026-12-01T22:00:00Z", t.Text)
		}
		if *at, err = moment(args[1]); err != nil {
			return w, err
		}
		if !w.Until.IsZero() && !w.From.Before(w.Until) {
			return w, args[1].errorf("%q: the time ends before it begins", args[1].Text)
		}
		args = args[2:]
	}
	return w, nil
}

// moment reads a time of RFC 3339 in whole seconds and of the years 2000 to
// 2199, and gives it in UTC.
func moment(t Token) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, t.Text)
	if err != nil || !momentForm.MatchString(t.Text) {
		return at, t.errorf("%q: expected a time as in RFC 3339, in whole seconds and with its zone, like 2026-12-01T22:00:00Z or 2026-12-01T23:00:00+01:00", t.Text)
	}
	return at.UTC(), nil
}

// daily reads what follows the word.
func daily(word Token, args []Token) (*Daily, error) {
	if len(args) < 2 {
		return nil, word.errorf("expected `daily HH:MM-HH:MM ZONE [DAY…]`, like `daily 22:00-06:00 Z` or `daily 09:00-17:00 +01:00 Sat Sun`")
	}
	m := windowForm.FindStringSubmatch(args[0].Text)
	if m == nil || m[3] == "24" && m[4] != "00" {
		return nil, args[0].errorf("%q: expected a window of each day, like 22:00-06:00, from 00:00 to 24:00, and its zone as the next word", args[0].Text)
	}
	d := &Daily{Start: clock(m[1], m[2]), End: clock(m[3], m[4])}
	if d.Start == d.End {
		return nil, args[0].errorf("%q: the window ends when it begins; a whole day is 00:00-24:00", args[0].Text)
	}
	if err := d.zone(args[1]); err != nil {
		return nil, err
	}
	if err := d.days(args[2:]); err != nil {
		return nil, err
	}
	if d.length() == day && d.Days == [7]bool{} {
		return nil, args[0].errorf("%q of every day is always: leave the window out, or name days", args[0].Text)
	}
	return d, nil
}

// clock reads digits that a form has approved.
func clock(hours, minutes string) time.Duration {
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
}

// zone reads an offset; those in use are within 14 hours.
func (d *Daily) zone(t Token) error {
	m := zoneForm.FindStringSubmatch(t.Text)
	switch {
	case m != nil && clock(m[2], m[3]) <= 14*time.Hour:
		d.Offset = clock(m[2], m[3])
		if m[1] == "-" {
			d.Offset = -d.Offset
		}
	case t.Text != "Z":
		return t.errorf("%q is no zone: expected Z, or an offset from UTC like +01:00 (it doesn't follow daylight saving time)", t.Text)
	}
	return nil
}

// days reads names of days. All seven are as good as none.
func (d *Daily) days(args []Token) error {
	var names []string
	for i := range time.Weekday(7) {
		names = append(names, i.String()[:3])
	}
	for _, t := range args {
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, t.Text) })
		switch {
		case i < 0:
			return t.errorf("%q is no day: expected some of %s, each as a word", t.Text, oneOf(names))
		case d.Days[i]:
			return t.errorf("day %s is written twice", names[i])
		}
		d.Days[i] = true
	}
	if len(args) == 7 {
		d.Days = [7]bool{}
	}
	return nil
}
