package control

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const auditDefault = 100 // entries

// OverrideList is the overrides in service.
type OverrideList struct {
	Version   string      `json:"version"`
	Overrides []*Override `json:"overrides"`
	// Unmatched are those that match nothing of the plan, with the reason, by ID.
	Unmatched map[string]string `json:"unmatched,omitempty"`
	// Warnings tell of overrides that were lost.
	Warnings []string `json:"warnings,omitempty"`
}

// AuditList is the end of the audit log.
type AuditList struct {
	Entries []Entry `json:"entries"` // the oldest first
}

// CancelRequest says why an override is cancelled.
type CancelRequest struct {
	Why     string `json:"why"`
	Version string `json:"version,omitempty"`
	Force   bool   `json:"force,omitempty"`
}

func (s *Server) status(r *http.Request, _ Author) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	status, err := s.Store.Status(r.Context())
	if err != nil {
		return nil, err
	}
	return orEmpty(status), nil
}

// orEmpty makes lists of what would be null.
func orEmpty(s Status) Status {
	if s.Regions == nil {
		s.Regions = []RegionStatus{}
	}
	if s.Hosts == nil {
		s.Hosts = []HostStatus{}
	}
	if s.Overrides == nil {
		s.Overrides = []*Override{}
	}
	return s
}

func (s *Server) overrides(r *http.Request, _ Author) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	set := s.Store.Overrides()
	list := OverrideList{Version: set.version(s.Store.Backend.Digest()), Overrides: set.All(), Unmatched: s.Store.Unmatched(r.Context()), Warnings: s.Store.Lost()}
	if list.Overrides == nil {
		list.Overrides = []*Override{}
	}
	return list, nil
}

func (s *Server) changes(r *http.Request, by Author) (any, error) {
	var request Request
	if err := read(r, &request); err != nil {
		return nil, err
	}
	return result(s.Store.Do(r.Context(), by, &request))
}

func (s *Server) whatIf(r *http.Request, by Author) (any, error) {
	var request Request
	if err := read(r, &request); err != nil {
		return nil, err
	}
	return result(s.Store.WhatIf(r.Context(), by, &request))
}

func (s *Server) cancel(r *http.Request, by Author) (any, error) {
	var c CancelRequest
	if err := read(r, &c); err != nil {
		return nil, err
	}
	return result(s.Store.Do(r.Context(), by, &Request{Change: Change{Cancel: r.PathValue("id"), Terms: Terms{Why: c.Why}}, Version: c.Version, Force: c.Force}))
}

// result makes lists of what would be null.
func result(r Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if r.Report.Regions == nil {
		r.Report.Regions = []RegionReport{}
	}
	if r.Report.Flows == nil {
		r.Report.Flows = []Flow{}
	}
	return r, nil
}

func (s *Server) takeBack(r *http.Request, by Author) (any, error) {
	var request ReturnRequest
	if err := read(r, &request); err != nil {
		return nil, err
	}
	return s.Store.Return(r.Context(), by, request)
}

func (s *Server) audit(r *http.Request, _ Author) (any, error) {
	q, err := query(r, "limit")
	if err != nil {
		return nil, err
	}
	limit := auditDefault
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxTail {
			return nil, invalid("limit", fmt.Sprintf("1..%d", maxTail), "%.20q is none", text)
		}
	}
	entries, err := s.Store.Audit(limit)
	if entries == nil {
		entries = []Entry{}
	}
	return AuditList{entries}, err
}

func (s *Server) explain(r *http.Request, _ Author) (any, error) {
	q, err := query(r, "host", "client", "resolver", "type", "view")
	if err != nil {
		return nil, err
	}
	question := Question{Host: q.Get("host"), Type: strings.ToUpper(q.Get("type")), View: q.Get("view")}
	if question.Host == "" || len(question.Host) > maxHost {
		return nil, invalid("host", "a host's name", "%.70q is none", question.Host)
	}
	if len(question.View) > maxHost {
		return nil, invalid("view", "a view's name, as in the Corefile", "%.70q is none", question.View)
	}
	question.Host = strings.ToLower(strings.TrimSuffix(question.Host, ".")) + "."
	if question.Type != "" && question.Type != "A" && question.Type != "AAAA" {
		return nil, invalid("type", "A or AAAA", "%.20q is neither", question.Type)
	}
	if text := q.Get("client"); text != "" {
		if question.Client, err = parseClient(text); err != nil {
			return nil, err
		}
	}
	if text := q.Get("resolver"); text != "" {
		if question.Resolver, err = netip.ParseAddr(text); err != nil || question.Resolver.Zone() != "" {
			return nil, invalid("resolver", "an address", "%.60q is none", text)
		}
	}
	if !question.Client.IsValid() && !question.Resolver.IsValid() {
		return nil, invalid("client", "client, resolver or both", "whom is the answer for?")
	}
	return s.Store.Backend.Explain(r.Context(), question)
}

// parseClient reads a prefix, or an address as a prefix of all its bits.
func parseClient(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, invalid("client", "an address, or a prefix like 198.51.100.0/24", "%.60q is none", text)
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// query wants no parameter but those known, and none twice.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("", "NAME=VALUE, with & between", "the query can't be read: %v", err)
	}
next:
	for _, name := range slices.Sorted(maps.Keys(q)) { // of several mistakes, the same is told each time
		for _, k := range known {
			if name == k && len(q[name]) == 1 {
				continue next
			}
		}
		return nil, invalid(fmt.Sprintf("%.60s", name), strings.Join(known, ", "), "no such parameter, or more than one")
	}
	return q, nil
}

// read reads the JSON body of a request.
func read(r *http.Request, into any) error {
	if _, err := query(r); err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &httpError{http.StatusUnsupportedMediaType, Failure{Error: fmt.Sprintf("the body is %.60q", r.Header.Get("Content-Type")), Code: "content_type", Expected: "Content-Type: application/json"}}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return &httpError{http.StatusRequestEntityTooLarge, Failure{Error: "the body is too large", Code: "too_large", Expected: fmt.Sprintf("at most %d bytes", maxBody)}}
		}
		return invalid("", "", "the body can't be read: %v", err)
	}
	err = decodeStrictly(body, into)
	if wrong := (*Invalid)(nil); errors.As(err, &wrong) && wrong.Expected == "" && wrong.Field != "" {
		wrong.Expected = strings.Join(fieldsOf(into), ", ")
	}
	return err
}

// fieldsOf are the fields that what a pointer points to has as JSON.
func fieldsOf(pointer any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(pointer).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
