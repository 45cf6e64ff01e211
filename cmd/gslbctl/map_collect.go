package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/seed-945f90c5/gslb/internal/beacon"
)

const mapCollectHelp = `Usage: gslbctl map collect -dir DIR -regions NAME=URL,… [flags]

Collects what browsers measure, for "gslbctl map build". It serves the script
for pages, /beacon.js; what the script fetches, /probe; and what it reports to,
/report. A region is given with the URL at which this or another collector answers,
or alone if it isn't to be measured from now on. /demo is a page that measures.

Files are finished, and renamed from NAME.ndjson.open to NAME.ndjson, by age and by
size, and when the command ends (SIGTERM). Nothing is ever deleted: move them away. They
have prefixes of clients, /24 and /56, never addresses.

It speaks plain HTTP: put a proxy with TLS before it, and name it by
-trust-forwarded. docs/beacon.md has more.

Example:
    gslbctl map collect -dir /var/lib/beacons -regions eu=https://eu.example.com,us=https://us.example.com -trust-forwarded 127.0.0.1

`

// maxConnections is how many there may be at a time; more wait.
const maxConnections = 8192

// collectFlags are those of map collect.
type collectFlags struct {
	listen            string
	regions, reports  string
	maxFile, maxTotal byteSize
	stopTime          time.Duration // that requests may take when the collector ends
	options           beacon.Options
}

func newCollectFlags(flags *flag.FlagSet) *collectFlags {
	f := &collectFlags{maxFile: 64 << 20, maxTotal: 1 << 30, stopTime: 5 * time.Second}
	o := &f.options
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8090", "the `address` to listen on")
	flags.StringVar(&o.Dir, "dir", "", "the `directory` of the files")
	flags.StringVar(&f.regions, "regions", "", "the `regions` of the Corefile that may be measured, NAME=URL or NAME, with commas")
	flags.StringVar(&f.reports, "report", "", "the `URLs` that the script reports to, the next if one fails, with commas; /report of all regions if not given")
	flags.Float64Var(&o.Sample, "sample", 0.01, "the part of page loads that measure")
	flags.IntVar(&o.Pick, "pick", 4, "how many regions a page load measures, drawn at random")
	flags.DurationVar(&o.Rotate, "rotate", time.Hour, "the age at which a file is finished")
	flags.Var(&f.maxFile, "max-bytes", "the `bytes` at which a file is finished, with K, M or G")
	flags.Var(&f.maxTotal, "max-total", "the `bytes` that all files may have together; beyond, reports are refused")
	flags.BoolVar(&o.Gzip, "gzip", false, "compress files when they are finished")
	flags.Func("trust-forwarded", "a proxy's `address` or prefix whose X-Forwarded-For is believed; may be repeated, or have commas", func(s string) error {
		trusted, err := parsePrefixes(s)
		o.Trusted = append(o.Trusted, trusted...)
		return err
	})
	flags.IntVar(&o.PerMinute, "per-minute", 120, "the reports that are taken of a /24 or /56 in a minute")
	flags.BoolVar(&o.NoSources, "no-sources", false, "leave out what tells the users of a prefix apart for a day")
	return f
}

// parsePrefixes reads addresses and prefixes with commas between them.
func parsePrefixes(s string) (all []netip.Prefix, err error) {
	for _, word := range splitWords(s) {
		p, err := netip.ParsePrefix(word)
		if a, e := netip.ParseAddr(word); e == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p.Addr().Zone() != "" || p.Addr().Is4In6() || p != p.Masked() {
			return nil, fmt.Errorf("%q: expected an address, or a prefix such as 10.0.0.0/8", word)
		}
		all = append(all, p)
	}
	return all, nil
}

// read checks the flags and fills in the options.
func (f *collectFlags) read() error {
	o := &f.options
	switch {
	case o.Dir == "":
		return errors.New("expected -dir DIR")
	case f.regions == "":
		return errors.New("expected -regions, such as eu=https://eu.example.com,us=https://us.example.com")
	case o.Sample == 0 || o.Pick == 0 || o.Rotate == 0 || f.maxFile == 0 || f.maxTotal == 0 || o.PerMinute == 0:
		return errors.New("-sample, -pick, -rotate, -max-bytes, -max-total, -per-minute: expected more than 0")
	}
	for _, word := range splitWords(f.regions) {
		region, url, has := strings.Cut(word, "=")
		if has && url == "" {
			return fmt.Errorf("-regions: %q: expected NAME=URL or NAME", word)
		}
		o.Candidates = append(o.Candidates, beacon.Candidate{Region: region, URL: url})
	}
	if f.reports != "" {
		o.Reports = splitWords(f.reports)
	}
	o.MaxFile, o.MaxTotal = int64(f.maxFile), int64(f.maxTotal)
	o.Now, o.Random = time.Now, rand.Reader
	return nil
}

func mapCollect(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map collect", mapCollectHelp, stdout, stderr)
	f := newCollectFlags(flags)
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	if len(rest) > 0 {
		return misuse(flags, "unexpected %q", rest[0])
	}
	if err := f.read(); err != nil {
		return misuse(flags, "%v", err)
	}
	stop, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	if err := f.serve(stop, log.New(stderr, "", log.LstdFlags|log.LUTC)); err != nil {
		return fail(stderr, err)
	}
	return exitOK
}

// serve collects until it is to stop. Then it ends the requests there are and
// finishes the file.
func (f *collectFlags) serve(stop context.Context, to *log.Logger) error {
	f.options.Logf = to.Printf
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	c, err := beacon.New(f.options)
	if err != nil {
		l.Close()
		return err
	}
	to.Printf("collecting at http://%s", l.Addr())
	server := c.HTTP()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(netutil.LimitListener(l, maxConnections)) }()
	select {
	case err = <-failed:
	case <-stop.Done():
		within, cancel := context.WithTimeout(context.Background(), f.stopTime)
		defer cancel()
		if server.Shutdown(within) != nil {
			server.Close() // whoever is that slow has lost
		}
		if err = <-failed; errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
	}
	err = errors.Join(err, c.Close())
	if err == nil {
		to.Printf("all is written")
	}
	return err
}
