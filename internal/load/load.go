// Package load reads the numbers that say how loaded a region or pool is: from
// pages, Prometheus servers, files, and headers of the answers to health checks.
// Each comes with its age, and a source that fails keeps the last it gave: what
// to make of an old number is not decided here.
package load

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/probe"
)

// Kind is where a number is read and in what form.
type Kind string

// The kinds of sources that are asked. Headers aren't: see Pushed.
const (
	JSON       Kind = "json"       // a page that is JSON
	Metric     Kind = "metric"     // a page in the Prometheus text format, version 0.0.4
	Prometheus Kind = "prometheus" // an instant query of a Prometheus server
	File       Kind = "file"       // a file that holds a number and nothing else
)

// The times between two readings of a Source.
const (
	MinEvery = time.Second
	MaxEvery = 5 * time.Minute
	// maxTimeout is how long a reading may take, and no longer than Every.
	maxTimeout = 5 * time.Second
)

// Source is where a number is read, and how often. Sources are compared with ==:
// equal ones are read once for all.
type Source struct {
	Kind Kind
	// URL is a page's, or that of a Prometheus server: "/api/v1/query" is appended
	// to its path. It may hold a user and a password, which are never shown, nor
	// is its query.
	URL    string
	Path   string // JSON: the way to the number, such as .pools[0].busy
	Metric string // Metric: its name, or name{label="value",…}; series that match are summed
	Query  string // Prometheus: PromQL that gives one number
	File   string // File: its path
	// Score: numbers are a score, and those above 1 are errors.
	Score bool
	Every time.Duration // MinEvery..MaxEvery
}

// String names the source for people, without what may be secret.
func (s Source) String() string {
	shown := "a page"
	if u, err := url.Parse(s.URL); err == nil {
		shown = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	switch s.Kind {
	case JSON:
		return shown + " json " + s.Path
	case Metric:
		return shown + " metric " + s.Metric
	case Prometheus:
		return shown + " query " + s.Query
	}
	return string(s.Kind) + " " + s.File
}

// Validate tells what of a source can never work: a URL, JSON path, or metric's
// name that can't be read, or times out of range. Whether anything answers there
// is found out by a Poller alone.
func (s Source) Validate() error {
	if s.Every < MinEvery || s.Every > MaxEvery {
		return fmt.Errorf("every %s: expected %s to %s", s.Every, MinEvery, MaxEvery)
	}
	_, err := s.reader(Options{})
	return err
}

// timeout is how long one reading may take.
func (s Source) timeout() time.Duration { return min(s.Every, maxTimeout) }

// secrets are the parts of the URL that errors must not show: peers may quote
// them.
func (s Source) secrets() (all []string) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		all = append(all, password, url.QueryEscape(password))
	}
	if u.RawQuery != "" {
		all = append(all, u.RawQuery)
	}
	for _, values := range u.Query() {
		all = append(all, values...)
	}
	return all
}

// pageURL reads an address that is asked by HTTP. The error does not quote it:
// it may hold a password.
func pageURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("URL: expected one such as http://10.0.0.1:9100/load")
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("URL: nothing is asked for by what follows #, leave it out")
	}
	return u, nil
}

// reader makes the function that reads the source.
func (s Source) reader(o Options) (reader, error) {
	switch s.Kind {
	case JSON:
		path, err := probe.ParseJSONPath(s.Path)
		if err != nil {
			return nil, err
		}
		return s.page(o, "application/json", func(body []byte) (measure, error) {
			value, err := path.Number(body)
			return measure{value: value}, err
		})
	case Metric:
		chosen, err := parseSelector(s.Metric)
		if err != nil {
			return nil, err
		}
		return s.page(o, "text/plain;version=0.0.4", chosen.sum)
	case Prometheus:
		return s.prometheus(o)
	case File:
		if s.File == "" || strings.ContainsRune(s.File, 0) {
			return nil, fmt.Errorf("file %q: expected the path of a file", s.File)
		}
		return fileReader(s.File), nil
	}
	return nil, fmt.Errorf("load by %q, expected json, metric, prometheus or file", s.Kind)
}
