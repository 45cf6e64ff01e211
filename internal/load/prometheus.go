package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
)

// prometheus asks for an instant query by the HTTP API (version 1). The time of
// the sample is when the query was evaluated: a series that stopped is still
// given for as long as the server looks back, 5 minutes unless it is told.
func (s Source) prometheus(o Options) (reader, error) {
	u, err := pageURL(s.URL)
	if err != nil {
		return nil, err
	}
	if s.Query == "" {
		return nil, errors.New("query is empty, expected PromQL that gives one number, such as sum(requests_running)")
	}
	u = u.JoinPath("api/v1/query")
	q := u.Query()
	q.Set("query", s.Query)
	u.RawQuery = q.Encode()
	get := s.getter(o, u, "application/json")
	return func(ctx context.Context) (measure, error) {
		body, status, err := get(ctx)
		if err != nil {
			return measure{}, err
		}
		m, err := parseAnswer(body)
		var refused *refusal
		if status != http.StatusOK && !errors.As(err, &refused) {
			return measure{}, wrongStatus(status)
		}
		return m, err
	}, nil
}

// answer is that of the query API.
type answer struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// refusal is an error that the server itself tells.
type refusal struct{ kind, text string }

func (r *refusal) Error() string {
	return fmt.Sprintf("the server refuses the query: %.40s: %.160s", r.kind, r.text)
}

// parseAnswer takes the one number out of an answer.
func parseAnswer(body []byte) (measure, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return measure{}, errors.New("the answer is not that of a Prometheus server: expected JSON with status and data")
	}
	switch {
	case a.Status == "error":
		return measure{}, &refusal{a.ErrorType, a.Error}
	case a.Status != "success":
		return measure{}, fmt.Errorf("the answer has status %.40q, expected success or error", a.Status)
	case a.Data.ResultType == "scalar":
		return parseSample(a.Data.Result)
	case a.Data.ResultType != "vector":
		return measure{}, fmt.Errorf("the query gives a %.40q, expected one number: a scalar or a vector", a.Data.ResultType)
	}
	var vector []struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(a.Data.Result, &vector); err != nil {
		return measure{}, errors.New("the answer's vector can't be read")
	}
	switch len(vector) {
	case 0:
		return measure{}, errors.New("the query gives no sample: check names and labels, and that what it asks for is scraped")
	case 1:
		return parseSample(vector[0].Value)
	}
	return measure{}, fmt.Errorf("the query gives %d samples, expected one: aggregate them, with sum() for example", len(vector))
}

// maxSeconds is the latest time a sample can have, in the year 5138.
const maxSeconds = 1e11

// parseSample reads [seconds since 1970, "value"].
func parseSample(raw json.RawMessage) (measure, error) {
	var (
		pair    []json.RawMessage
		seconds float64
		text    string
	)
	if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &seconds) != nil || json.Unmarshal(pair[1], &text) != nil {
		return measure{}, errors.New("the sample can't be read, expected a time and a value in quotes (native histograms are none)")
	}
	if !(seconds > 0 && seconds < maxSeconds) {
		return measure{}, fmt.Errorf("the sample is of %g, expected seconds since 1970", seconds)
	}
	value, err := parseNumber(text)
	return measure{value, time.UnixMilli(int64(math.Round(seconds * 1000)))}, err
}
