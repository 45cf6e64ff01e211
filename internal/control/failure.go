package control

import (
	"context"
	"errors"
	"net/http"
)

// Failure is what the API answers instead.
type Failure struct {
	Error    string `json:"error"`
	Code     string `json:"code"` // for programs; it doesn't change
	Field    string `json:"field,omitempty"`
	Expected string `json:"expected,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Version is the current one, where that of the request isn't.
	Version  string    `json:"version,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"`
}

// httpError is a Failure with its status.
type httpError struct {
	status int
	Failure
}

// Error is what went wrong.
func (e *httpError) Error() string { return e.Failure.Error }

// failure makes an answer of an error.
func (s *Server) failure(err error) *httpError {
	var (
		known   *httpError
		wrong   *Invalid
		refused *Refused
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &wrong):
		status, code := http.StatusBadRequest, "invalid"
		if wrong.Missing {
			status, code = http.StatusNotFound, "not_found"
		}
		return &httpError{status, Failure{Error: wrong.Error(), Code: code, Field: wrong.Field, Expected: wrong.Expected, Hint: wrong.Hint}}
	case errors.As(err, &refused):
		return &httpError{http.StatusUnprocessableEntity, Failure{Error: err.Error(), Code: "refused", Refusals: refused.Refusals, Version: s.Store.Version(),
			Hint: "if it must be: force does it, and is written down with your reason"}}
	case errors.Is(err, ErrStale):
		return &httpError{http.StatusConflict, Failure{Error: err.Error(), Code: "stale", Version: s.Store.Version(),
			Hint: "look again, and decide again: somebody or something was faster"}}
	case errors.Is(err, ErrNotKept):
		s.Logf("control: %v", err)
		return &httpError{http.StatusServiceUnavailable, Failure{Error: err.Error(), Code: "not_kept", Hint: "nothing was changed: see to the state directory (space, permissions)"}}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &httpError{http.StatusServiceUnavailable, Failure{Error: err.Error(), Code: "timeout", Hint: "nothing was changed: try again"}}
	}
	s.Logf("control: %v", err)
	return &httpError{http.StatusInternalServerError, Failure{Error: err.Error(), Code: "internal"}}
}

func (s *Server) fail(w http.ResponseWriter, e *httpError) { s.write(w, e.status, e.Failure) }
