package main

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Metrics as Prometheus sees them: each has the labels that README.md gives it,
// and moves with what it tells of.
func TestMetrics(t *testing.T) {
	listen := "127.0.0.1:" + freePort(t)
	db := copyFile(t, "testdata/ipv4only.mmdb")
	backend := newWeb(t, "127.0.0.1:"+freePort(t), nil)
	o := newOperator(t)
	loads, resolver := writeFile(t, t.TempDir(), "us", "30\n"), resolves(t, "lb.example.net 127.0.0.2 ::1")
	measured := writeFile(t, t.TempDir(), "map.mmdb", encoded(t, measuredMap(time.Now(), "us")))
	s := serve(t, `example.com:53 {
    prometheus `+listen+`
    view inside {
        expr incidr(client_ip(), '127.0.0.0/8')
    }
    gslb {
        geoip country `+db+`
        state `+o.dir+`/state
        control unix:`+o.dir+`/s token `+o.dir+`/tokens
        resolvers `+resolver.addr+`
        beacon `+backend.addr+`
        check web {
            http :80 /
            interval 1s
            timeout 1s
        }
        spread resolver
        region eu { clients continent EU }
        region us {
            clients rest
            capacity 100
            load file `+loads+` every 1s
        }
        host www.example.com {
            pool eu {
                endpoint 192.0.2.1
                endpoint 2001:db8::1 down
            }
            pool us 192.0.2.2 2001:db8::2
        }
        host gone.example.com {
            pool eu { endpoint 192.0.2.1 down }
        }
        host named.example.com {
            pool us { target lb.example.net }
        }
        host measured.example.com {
            latency `+measured+`
            pool eu 192.0.2.31
            pool us 192.0.2.32
        }
        host soaked.example.com {
            pool eu { 
                endpoint 192.0.2.41
                share 5%
            }
            pool us 192.0.2.42
        }
        host probed.example.com {
            check web
            pool us { endpoint 192.0.2.9 probe `+backend.addr+` }
        }
    }
}`)
	s.exchange(t, "soaked.example.com A")
	eventually(t, "the law has heard of the load", func() bool {
		series := scrape(t, listen)
		return series[`coredns_gslb_load{host="",region="us"}`] == 30 && series[`coredns_gslb_share_served_ratio{by="demand",host="soaked.example.com.",region="us",view="inside"}`] > 0
	})
	eventually(t, "the endpoint is probed and the verdict saved", func() bool {
		series := scrape(t, listen)
		state, there := series["coredns_gslb_state_failing"]
		return series[`coredns_gslb_probed_endpoints{verdict="up"}`] == 1 && there && state == 0
	})
	for _, q := range []string{
		"www.example.com A +subnet=198.51.100.0/24", "www.example.com A +subnet=198.51.100.0/24", "www.example.com A +subnet=8.8.8.0/24",
		"www.example.com A", "www.example.com A +subnet=0.0.0.0/0", "www.example.com A +subnet=10.0.0.0/24", "www.example.com AAAA +subnet=198.51.100.0/24",
		"gone.example.com A", "gone.example.com AAAA", "www.example.com MX",
	} {
		s.exchange(t, q)
	}
	series := scrape(t, listen)
	server := `server="dns://` + s.addr + `"`
	for want, value := range map[string]float64{
		`requests_total{host="www.example.com.",region="eu",` + server + `,source="ecs",view="inside"}`:          2,
		`requests_total{host="www.example.com.",region="us",` + server + `,source="ecs",view="inside"}`:          2,
		`requests_total{host="www.example.com.",region="us",` + server + `,source="transport",view="inside"}`:    3,
		`requests_total{host="gone.example.com.",region="none",` + server + `,source="transport",view="inside"}`: 1,
		`decisions_total{host="www.example.com.",outcome="answer",` + server + `,view="inside"}`:                 7,
		`decisions_total{host="gone.example.com.",outcome="last_resort",` + server + `,view="inside"}`:           1,
		`decisions_total{host="gone.example.com.",outcome="no_family",` + server + `,view="inside"}`:             1,
		`family_moved_total{host="www.example.com.",` + server + `,view="inside"}`:                               1,
		`client_subnets_total{` + server + `,subnet="absent",view="inside"}`:                                     4,
		`client_subnets_total{` + server + `,subnet="used",view="inside"}`:                                       4,
		`client_subnets_total{` + server + `,subnet="ignored",view="inside"}`:                                    2,
		`file_failing{file="` + db + `"}`: 0,
		`endpoint_state{endpoint="192.0.2.1",host="gone.example.com.",region="eu",view="inside"}`:   0,
		`endpoint_state{endpoint="192.0.2.9",host="probed.example.com.",region="us",view="inside"}`: 1,
		`probed_endpoints{verdict="up"}`:                                                              1,
		`lists_last_resort{family="v4",host="gone.example.com.",view="inside"}`:                       1,
		`region_availability_ratio{family="v4",host="probed.example.com.",region="us",view="inside"}`: 1,
		`database_networks{file="` + db + `",kind="country"}`:                                         4,
		`database_size_bytes{file="` + db + `",kind="country"}`:                                       660,
	} {
		got, there := series["coredns_gslb_"+want]
		if !there || got != value {
			t.Errorf("%s is %v (there: %t), want %v", want, got, there, value)
		}
	}
	for _, positive := range []string{
		`topology_blocks{family="v4",lookup="client_subnet",` + server + `,view="inside",zone="example.com."}`,
		`topology_blocks{family="v6",lookup="transport",` + server + `,view="inside",zone="example.com."}`,
		`topology_lists{` + server + `,view="inside",zone="example.com."}`,
		`topology_build_seconds{` + server + `,view="inside",zone="example.com."}`,
		`database_build_timestamp_seconds{file="` + db + `",kind="country"}`,
		`database_load_timestamp_seconds{file="` + db + `",kind="country"}`,
		`probes_total{check="web",class="ok",result="pass"}`,
		`probe_duration_seconds_count{check="web"}`,
	} {
		if series["coredns_gslb_"+positive] <= 0 {
			t.Errorf("%s is %v, want more than 0", positive, series["coredns_gslb_"+positive])
		}
	}
	if problems, err := testutil.GatherAndLint(prometheus.DefaultGatherer, metricNames(t)...); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	checkDocumented(t, series)
}

// scrape reads a metrics page: the values by series.
func scrape(t *testing.T, listen string) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	series := make(map[string]float64)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && strings.HasPrefix(name, "coredns_gslb_") {
			series[name] = v
		}
	}
	if err := lines.Err(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return series
}

var documented = regexp.MustCompile("`(coredns_gslb_[a-z_]+)\\{([a-z, ]*)\\}`")

// documentedMetrics are the metrics of README.md, with their labels sorted.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	labels := make(map[string][]string)
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		labels[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels[m[1]])
	}
	return labels
}

func metricNames(t *testing.T) (names []string) {
	for name := range documentedMetrics(t) {
		names = append(names, name)
	}
	return names
}

var (
	labelName = regexp.MustCompile(`([a-z_]+)="`)
	histogram = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkDocumented checks that README.md has the metrics that are there, and they
// the labels that it says. One is there only after a data file has changed.
func checkDocumented(t *testing.T, series map[string]float64) {
	t.Helper()
	documented := documentedMetrics(t)
	missing := maps.Clone(documented)
	delete(missing, "coredns_gslb_file_reloads_total")
	for s := range series {
		name, rest, _ := strings.Cut(s, "{")
		if short := histogram.ReplaceAllString(name, ""); documented[short] != nil {
			name = short
		}
		var labels []string
		for _, m := range labelName.FindAllStringSubmatch(rest, -1) {
			if m[1] != "le" { // of a histogram
				labels = append(labels, m[1])
			}
		}
		if slices.Sort(labels); !slices.Equal(labels, documented[name]) {
			t.Errorf("README.md gives %s the labels %v, and it has %v", name, documented[name], labels)
		}
		delete(missing, name)
	}
	for name := range missing {
		t.Errorf("README.md tells of %s, and it isn't there", name)
	}
}
