package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
)

const (
	maxBody   = 1 << 20    // bytes of a page
	maxHeader = 64 << 10   // bytes of an answer's headers
	maxFile   = 4 << 10    // bytes of a file
	maxReason = 256        // bytes of an error
	userAgent = "gslb"     // of requests
	hidden    = "[hidden]" // in place of a secret
)

// reader reads a source once, and ends soon after ctx does.
type reader func(ctx context.Context) (measure, error)

// page reads a page by a parser.
func (s Source) page(o Options, accept string, parse func([]byte) (measure, error)) (reader, error) {
	u, err := pageURL(s.URL)
	if err != nil {
		return nil, err
	}
	get := s.getter(o, u, accept)
	return func(ctx context.Context) (measure, error) {
		body, status, err := get(ctx)
		if err != nil {
			return measure{}, err
		}
		if status != http.StatusOK {
			return measure{}, wrongStatus(status)
		}
		return parse(body)
	}, nil
}

func wrongStatus(status int) error {
	if status >= 300 && status < 400 {
		return fmt.Errorf("status %d, expected 200: redirects are not followed, write the URL it leads to", status)
	}
	return fmt.Errorf("status %d, expected 200", status)
}

// getter makes the function that gets a page: its body, whatever the status.
// Redirects are not followed, and compressed answers, which may be a thousand
// times what they seem, are refused.
func (s Source) getter(o Options, u *url.URL, accept string) func(context.Context) ([]byte, int, error) {
	client := http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	header := http.Header{"Accept": {accept}, "Accept-Encoding": {"identity"}, "User-Agent": {userAgent}}
	return func(ctx context.Context) ([]byte, int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, 0, err
		}
		request.Header = header.Clone()
		response, err := client.Do(request)
		if err != nil {
			return nil, 0, s.explain(ctx, err, "no answer")
		}
		defer response.Body.Close()
		if e := response.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
			return nil, 0, fmt.Errorf("the answer is compressed, which wasn't asked for (Content-Encoding %.40q)", e)
		}
		if kind := response.Header.Get("Content-Type"); strings.HasPrefix(kind, "application/openmetrics-text") {
			return nil, 0, errors.New("the answer is in the OpenMetrics format, expected the Prometheus text format, which was asked for")
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
		switch {
		case err != nil:
			return nil, 0, s.explain(ctx, err, "no whole answer")
		case len(body) > maxBody:
			return nil, 0, fmt.Errorf("the answer is longer than %d bytes", maxBody)
		}
		return body, response.StatusCode, nil
	}
}

// explain finds the words for an error of HTTP or the network, which quotes
// neither the URL nor more than a little of what the peer said.
func (s Source) explain(ctx context.Context, err error, missing string) error {
	var (
		outer  *url.Error
		number syscall.Errno
		dns    *net.DNSError
	)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s within %s", missing, s.timeout())
	case errors.As(err, &dns) && dns.IsNotFound:
		return errors.New("the name in the URL has no address")
	case errors.As(err, &number):
		return fmt.Errorf("%s: %s", missing, number.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: connection closed by the peer", missing)
	case strings.Contains(err.Error(), "headers exceeded"), strings.Contains(err.Error(), "header list"):
		return fmt.Errorf("the answer's headers are longer than %d bytes", maxHeader)
	case errors.As(err, &outer):
		err = outer.Err
	}
	return fmt.Errorf("%s: %w", missing, err)
}

// readable makes an error fit for a log line: no secrets, nothing that is not
// printed, maxReason bytes at most.
func (s Source) readable(err error) error {
	text := err.Error()
	secrets := slices.DeleteFunc(s.secrets(), func(s string) bool { return len(s) < 6 })
	// Longer ones first, or a part would hide before the whole; and in every run the same ones.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason-len("…")], "") + "…"
	}
	return errors.New(text)
}

// fileReader reads a file that holds one number, with blanks and newlines round
// it. It was measured when the file was written. Who writes it should do so
// elsewhere and rename it, or a half of it may be read.
func fileReader(path string) reader {
	return func(context.Context) (measure, error) {
		// Opening a pipe would wait for whoever writes to it.
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return measure{}, cmp.Or(fileError(err), errors.New("it is no regular file"))
		}
		f, err := os.Open(path)
		if err != nil {
			return measure{}, fileError(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return measure{}, fileError(err)
		}
		data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		switch {
		case err != nil:
			return measure{}, fileError(err)
		case len(data) > maxFile:
			return measure{}, fmt.Errorf("it is longer than %d bytes, expected a number and nothing else", maxFile)
		}
		value, err := parseNumber(strings.Trim(string(data), " \t\r\n"))
		return measure{value, info.ModTime()}, err
	}
}

// fileError is what went wrong, without the path.
func fileError(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// newTransport makes connections that are kept for the next reading. Proxies of
// the environment are not asked. What is being dialled ends with ctx.
func newTransport(ctx context.Context) *http.Transport {
	dialer := net.Dialer{Timeout: maxTimeout}
	return &http.Transport{
		DialContext: func(dialling context.Context, network, address string) (net.Conn, error) {
			dialling, cancel := context.WithCancel(dialling)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return dialer.DialContext(dialling, network, address)
		},
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        2 * time.Minute,
		TLSHandshakeTimeout:    maxTimeout,
	}
}
