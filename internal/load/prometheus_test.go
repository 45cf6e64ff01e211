package load

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnswer(t *testing.T) {
	vector := func(samples string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[` + samples + `]}}`
	}
	const one = `{"metric":{"__name__":"up"},"value":[1772366400.781,"42.5"]}`
	for _, tc := range []struct{ body, want string }{
		{vector(one), "42.5 at 1772366400781"},
		{`{"status":"success","data":{"resultType":"scalar","result":[1772366400,"7"]},"warnings":["w"]}`, "7 at 1772366400000"},
		{vector(`{"value":[1,"NaN"]}`), "NaN at 1000"},
		{vector(""), "the query gives no sample"},
		{vector(one + "," + one), "the query gives 2 samples, expected one: aggregate them"},
		{`{"status":"success","data":{"resultType":"matrix","result":[]}}`, `the query gives a "matrix"`},
		{`{"status":"success","data":{"resultType":"string","result":[1,"1"]}}`, `the query gives a "string"`},
		{`{"status":"error","errorType":"bad_data","error":"invalid parameter"}`, "the server refuses the query: bad_data: invalid parameter"},
		{`{"status":"other"}`, `the answer has status "other"`},
		{`{}`, `the answer has status ""`},
		{`<html>`, "the answer is not that of a Prometheus server"},
		{``, "the answer is not that of a Prometheus server"},
		{vector(one) + "{}", "the answer is not that of a Prometheus server"},
		{vector(`{"histogram":[1,{}]}`), "the sample can't be read"},
		{vector(`{"value":[1,2]}`), "the sample can't be read"},
		{vector(`{"value":["1","2"]}`), "the sample can't be read"},
		{vector(`{"value":[1]}`), "the sample can't be read"},
		{vector(`{"value":[1,"2",3]}`), "the sample can't be read"},
		{vector(`1`), "the answer's vector can't be read"},
		{vector(`{"value":[-1,"2"]}`), "the sample is of -1"},
		{vector(`{"value":[1e300,"2"]}`), "the sample is of 1e+300"},
		{vector(`{"value":[1,"x"]}`), `"x" is not a number`},
	} {
		m, err := parseAnswer([]byte(tc.body))
		got := fmt.Sprint(m.value, " at ", m.at.UnixMilli())
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %s, want %s", tc.body, got, tc.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"2"]}]}}`))
	f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1.5,"NaN"]}}`))
	f.Add([]byte(`{"status":"error","errorType":"timeout","error":"query timed out"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := parseAnswer(body)
		if err == nil && (m.at.IsZero() || m.at.Unix() < 0 || m.at.Unix() > maxSeconds) {
			t.Errorf("%v", m)
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
