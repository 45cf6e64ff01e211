package beacon

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

//go:embed beacon.js
var scriptText []byte

//go:embed demo.html
var demoPage []byte

// placeholder is where the script has its configuration.
var placeholder = []byte("/* configuration */")

// settings are the script's configuration, as it reads them.
type settings struct {
	Sample     float64   `json:"sample"`
	Pick       int       `json:"pick"`
	Candidates []setting `json:"candidates"`
	Reports    []string  `json:"reports"`
}

type setting struct {
	Region string `json:"region"`
	URL    string `json:"url"`
}

// script is the script with its configuration; nil if no candidate has a URL.
func (o *Options) script() ([]byte, error) {
	s := settings{Sample: o.Sample, Pick: o.Pick, Reports: o.Reports}
	for _, c := range o.Candidates {
		if c.URL == "" {
			continue
		}
		base := strings.TrimSuffix(c.URL, "/")
		s.Candidates = append(s.Candidates, setting{c.Region, base + "/probe"})
		if len(o.Reports) == 0 {
			s.Reports = append(s.Reports, base+"/report")
		}
	}
	if len(s.Candidates) == 0 {
		return nil, nil
	}
	text, err := json.MarshalIndent(s, "", "  ") // it escapes what could end a script
	if err != nil {
		return nil, err
	}
	return bytes.Replace(scriptText, placeholder, text, 1), nil
}

// regionForm is what the Corefile takes for the name of a region.
var regionForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func checkCandidates(candidates []Candidate) error {
	if n := len(candidates); n == 0 || n > MaxCandidates {
		return fmt.Errorf("%d regions: expected 1 to %d", n, MaxCandidates)
	}
	seen := make(map[string]bool)
	for _, c := range candidates {
		if !regionForm.MatchString(c.Region) {
			return fmt.Errorf("region %q: expected a lower case letter, then at most 62 of a-z, 0-9 and -", c.Region)
		}
		if seen[c.Region] {
			return fmt.Errorf("region %q is there twice", c.Region)
		}
		seen[c.Region] = true
		if c.URL == "" {
			continue
		}
		if err := checkURL(c.URL); err != nil {
			return fmt.Errorf("region %s: %w", c.Region, err)
		}
	}
	return nil
}

func checkReports(reports []string) error {
	if len(reports) > MaxCandidates {
		return fmt.Errorf("%d addresses to report to: expected at most %d", len(reports), MaxCandidates)
	}
	for _, r := range reports {
		if err := checkURL(r); err != nil {
			return fmt.Errorf("report to %w", err)
		}
	}
	return nil
}

// checkURL wants an address that a browser can ask and that has no query: the
// script adds its own.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		err = errors.Unwrap(err)
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		err = errors.New("no host, or neither http nor https")
	case u.User != nil || strings.ContainsAny(s, "?#"):
		err = errors.New("a user, a query or a fragment can't be part of it")
	}
	if err != nil {
		return fmt.Errorf("%q: expected a URL such as https://eu.example.com: %w", s, err)
	}
	return nil
}
