package load

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	const url = "http://10.0.0.1:9100/load"
	for _, tc := range []struct {
		source Source
		want   string // empty: valid
	}{
		{Source{Kind: JSON, URL: url, Path: ".a"}, ""},
		{Source{Kind: Metric, URL: "https://[::1]/", Metric: `a{b="c"}`}, ""},
		{Source{Kind: Prometheus, URL: url, Query: "1"}, ""},
		{Source{Kind: File, File: "/run/load"}, ""},
		{Source{Kind: JSON, URL: url, Path: "a"}, "json path"},
		{Source{Kind: JSON, URL: url}, "json path"},
		{Source{Kind: JSON, URL: "ftp://u:secret@a/", Path: "."}, "URL: expected one such as"},
		{Source{Kind: JSON, URL: "http://u:secret@%zz/", Path: "."}, "URL: expected one such as"},
		{Source{Kind: JSON, URL: "http:///x", Path: "."}, "URL: expected one such as"},
		{Source{Kind: JSON, URL: "10.0.0.1:80", Path: "."}, "URL: expected one such as"},
		{Source{Kind: JSON, URL: url + "#a", Path: "."}, "URL: nothing is asked for by what follows #"},
		{Source{Kind: Metric, URL: url}, "expected a name"},
		{Source{Kind: Prometheus, URL: url}, "query is empty"},
		{Source{Kind: Prometheus, URL: "x", Query: "1"}, "URL"},
		{Source{Kind: File}, "expected the path of a file"},
		{Source{Kind: "header"}, "expected json, metric, prometheus or file"},
	} {
		tc.source.Every = 15 * time.Second
		err := tc.source.Validate()
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%+v: %v, want %s", tc.source, err, tc.want)
		}
	}
	for _, every := range []time.Duration{0, MinEvery - 1, MaxEvery + 1, -time.Second} {
		s := Source{Kind: File, File: "f", Every: every}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "expected 1s to 5m0s") {
			t.Errorf("%v: %v", every, err)
		}
	}
}

func TestSourceString(t *testing.T) {
	const url = "https://user:secret@a.test:8443/x?token=secret"
	for _, tc := range []struct {
		source Source
		want   string
	}{
		{Source{Kind: JSON, URL: url, Path: ".a"}, "https://a.test:8443/x json .a"},
		{Source{Kind: Metric, URL: url, Metric: "m"}, "https://a.test:8443/x metric m"},
		{Source{Kind: Prometheus, URL: url, Query: "up"}, "https://a.test:8443/x query up"},
		{Source{Kind: File, File: "/run/load"}, "file /run/load"},
		{Source{Kind: JSON, URL: "http://secret:%zz@", Path: ".a"}, "a page json .a"},
	} {
		if got := tc.source.String(); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

func TestReadable(t *testing.T) {
	s := Source{URL: "http://u:pass%20word@a/?token=long-token&n=1"}
	for text, want := range map[string]string{
		"a pass word b":          "a [hidden] b",
		"a pass+word b":          "a [hidden] b",
		"it says long-token":     "it says [hidden]",
		"?token=long-token&n=1.": "?[hidden].",
		"1 n":                    "1 n",
		"line\nnext\ttab\x1b[0m": "line next tab[0m",
		strings.Repeat("ü", 200): strings.Repeat("ü", 126) + "…",
	} {
		if got := s.readable(errorText(text)).Error(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
