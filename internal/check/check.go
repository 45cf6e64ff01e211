// Package check holds the definition of a health check as plain data: the
// configuration writes it, probes carry it out.
package check

import (
	"net/netip"
	"time"
)

// Kind is what a probe does.
type Kind string

// The kinds of checks.
const (
	HTTP  Kind = "http"
	HTTPS Kind = "https"
	TCP   Kind = "tcp"
	GRPC  Kind = "grpc"
	DNS   Kind = "dns"
	ICMP  Kind = "icmp"
	Exec  Kind = "exec"
)

// Check is the definition of a health check. Its zero values are not defaults:
// Defaults sets those.
type Check struct {
	Name string
	Kind Kind

	Port      int    // where the probe goes, unless the endpoint says otherwise; 0: the kind's own
	Path      string // http, https: path and query
	Authority string // Host, SNI and name in certificates, of http, https, tcp tls, grpc; empty: the address
	Each      bool   // Authority is the owner name of each host (its first)
	Method    string // http, https
	Headers   []Header
	TLS       bool     // tcp, grpc
	CA        string   // file of certificates to trust instead of the system's
	Cert, Key string   // files of the client's certificate
	Insecure  bool     // certificates are not verified
	Follow    bool     // redirects are followed (to the same address)
	KeepAlive bool     // connections are kept for the next probe
	Service   string   // grpc: the service asked for
	QName     string   // dns
	QType     string   // dns; a name, or TYPE and a number (RFC 3597 section 5)
	Command   []string // exec
	Send      string   // tcp: sent after connecting, escapes replaced

	Expect []Condition // all must hold; none: the kind's own
	Full   []Condition // any that holds: alive, but overloaded

	// Report names headers of answers that are passed on with each result,
	// whatever it is (http, https). A check without any is digested as before.
	Report []string `json:",omitempty"`

	Interval, Timeout time.Duration
	Retry             bool // a failure is tried again after a second before it counts
	Fall, Rise        int
	FallWithin        time.Duration // Fall failures within this time instead of in a row; 0: in a row
	RiseOver          time.Duration // Rise successes, and at least this long good; 0: no such time
	Accumulate        bool          // only Rise successes in a row clear failures
	HoldFlips         int           // this many changes within an hour hold an endpoint down; 0: none
	Manual            bool          // return only by an operator's word
	Initial           Initial
	InitialAge        time.Duration // how old a verdict InitialLast takes
}

// Header is a header field of a request.
type Header struct{ Name, Value string }

// Initial is the verdict on an endpoint that was never probed.
type Initial string

// The initial verdicts. InitialLast is that before a reload or restart if it is
// young enough, else up.
const (
	InitialLast Initial = "last"
	InitialUp   Initial = "up"
	InitialDown Initial = "down"
)

// ConditionKind is what a condition looks at.
type ConditionKind string

// The kinds of conditions.
const (
	Status      ConditionKind = "status"        // http, https
	BodyText    ConditionKind = "body contains" // http, https, tcp, exec
	BodyMatch   ConditionKind = "body matches"  // the same, by regular expression (RE2)
	JSON        ConditionKind = "json"          // http, https
	HeaderField ConditionKind = "header"        // http, https
	RCode       ConditionKind = "rcode"         // dns
	Address     ConditionKind = "address"       // dns
)

// Condition is one thing that must hold of a probe's outcome.
type Condition struct {
	Kind      ConditionKind
	Ranges    [][2]int     // status: inclusive
	Text      string       // body contains, body matches; header: the value, if not empty
	Field     string       // json: a path such as ".db.queue[0].lag"; header: the name; rcode: NOERROR, NXDOMAIN, …
	Op        string       // json: < <= == != > >=
	Value     string       // json: what the field is compared with; a number for < <= > >=, else true, false, null, a number or a text
	Addresses []netip.Addr // address: all must be in the answer
}

// MaxBody is how much of a reply's body conditions see, in bytes.
const MaxBody = 5120

// Defaults gives a check of a kind with every default set.
func Defaults(name string, kind Kind) Check {
	return Check{
		Name: name, Kind: kind, Method: "GET",
		Interval: 10 * time.Second, Timeout: 3 * time.Second,
		Fall: 3, Rise: 5,
		Initial: InitialLast, InitialAge: 10 * time.Minute,
	}
}
