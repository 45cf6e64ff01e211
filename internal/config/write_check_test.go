package config_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
)

// check writes the definition of a check with every value that has a word.
func (w *writer) check(c config.Check) {
	w.line("check %s {", c.Name)
	w.line("%s", checkKind(c))
	w.line("interval %s\ntimeout %s", c.Interval, c.Timeout)
	w.line("fall %d%s", c.Fall, when(c.FallWithin > 0, fmt.Sprintf(" within %s", c.FallWithin)))
	w.line("rise %d%s", c.Rise, when(c.RiseOver > 0, fmt.Sprintf(" over %s", c.RiseOver)))
	w.line("initial %s%s", c.Initial, when(c.Initial == check.InitialLast, fmt.Sprintf(" %s", c.InitialAge)))
	w.line("return %s", map[bool]string{true: "manual", false: "auto"}[c.Manual])
	if c.Each {
		w.line("authority each")
	} else if c.Authority != "" {
		w.line("authority %s", c.Authority)
	}
	if c.Kind == check.HTTP || c.Kind == check.HTTPS {
		w.line("method %s", c.Method)
	}
	for _, h := range c.Headers {
		w.line("header %s %s", quote(h.Name), quote(h.Value))
	}
	if c.CA != "" {
		w.line("ca %s", quote(c.CA))
	}
	if c.Cert != "" {
		w.line("cert %s %s", quote(c.Cert), quote(c.Key))
	}
	if c.Send != "" {
		text := strconv.Quote(c.Send)
		w.line("send %s", quote(strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)))
	}
	if c.HoldFlips > 0 {
		w.line("hold %d flips", c.HoldFlips)
	}
	w.line("%s", when(c.Insecure, "insecure"))
	w.line("%s", when(c.Follow, "follow"))
	w.line("%s", when(c.KeepAlive, "keepalive"))
	w.line("%s", when(c.Retry, "retry"))
	w.line("%s", when(c.Accumulate, "accumulate"))
	for _, cond := range c.Expect {
		w.line("expect %s", condition(cond))
	}
	for _, cond := range c.Full {
		w.line("full %s", condition(cond))
	}
	w.line("}")
}

func checkKind(c config.Check) string {
	port := when(c.Port > 0, fmt.Sprintf(" :%d", c.Port))
	tls := when(c.TLS, " tls")
	switch c.Kind {
	case check.HTTP, check.HTTPS:
		return string(c.Kind) + port + " " + quote(c.Path)
	case check.TCP:
		return "tcp" + port + tls
	case check.GRPC:
		return "grpc" + port + tls + when(c.Service != "", " "+quote(c.Service))
	case check.DNS:
		return "dns " + c.QName + " " + c.QType
	case check.Exec:
		text := "exec"
		for _, word := range c.Command {
			text += " " + quote(word)
		}
		return text
	}
	return string(c.Kind)
}

func condition(c check.Condition) string {
	switch c.Kind {
	case check.Status:
		var list []string
		for _, r := range c.Ranges {
			list = append(list, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
		return "status " + strings.Join(list, ",")
	case check.JSON:
		return "json " + quote(c.Field) + " " + c.Op + " " + quote(c.Value)
	case check.HeaderField:
		return "header " + quote(c.Field) + when(c.Text != "", " "+quote(c.Text))
	case check.RCode:
		return "rcode " + c.Field
	case check.Address:
		return "address " + join(c.Addresses)
	}
	return string(c.Kind) + " " + quote(c.Text)
}
