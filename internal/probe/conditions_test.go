package probe

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// FuzzConditions holds that whatever is written and whatever is answered, there
// is either an error at load or a finding fit for a log.
func FuzzConditions(f *testing.F) {
	for _, kind := range []check.ConditionKind{check.Status, check.BodyText, check.BodyMatch, check.JSON, check.HeaderField, check.RCode, check.Address, ""} {
		f.Add(string(kind), "ok", ".a", "==", "1", 200, []byte(`{"a":1}`))
		f.Add(string(kind), "(", "X-A", "<", "x", 999, []byte("\xff\x00"))
	}
	kinds := []check.Kind{check.HTTP, check.TCP, check.DNS, check.Exec, check.GRPC}
	f.Fuzz(func(t *testing.T, kind, text, field, op, value string, status int, body []byte) {
		written := check.Condition{
			Kind: check.ConditionKind(kind), Text: text, Field: field, Op: op, Value: value,
			Ranges: [][2]int{{status, status}}, Addresses: []netip.Addr{{}},
		}
		o := &outcome{status: status, header: http.Header{"X-A": {text}}, body: body}
		for _, k := range kinds {
			for _, c := range []*check.Check{
				define(k, expect(written)), define(k, full(written)),
			} {
				j, err := newJudge(c, "", nil, nil)
				if err != nil {
					continue
				}
				r := (&attempt{}).result(t.Context(), j.of(o))
				var f *finding
				if r.Status != Pass && !errors.As(j.of(o), &f) || len(r.Reason) > MaxReason ||
					!utf8.ValidString(r.Reason) || strings.ContainsAny(r.Reason, "\x00\n\r\x1b") {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}
