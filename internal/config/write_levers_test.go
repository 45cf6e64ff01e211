package config_test

import (
	"strconv"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// levers writes the levers of a region or a pool.
func (w *writer) levers(l config.Levers) {
	for _, d := range l.Drain {
		w.line("drain %s", d.When)
	}
	for _, d := range l.Dial {
		w.line("dial %s%% %s", number(d.Percent), d.When)
	}
	for _, s := range l.Share {
		part := number(s.Percent) + "%"
		if s.Off {
			part = "off"
		}
		w.line("share %s %s %s", part, when(s.Area != "", "area "+s.Area), s.When)
	}
	if l.Trickle != nil {
		w.line("trickle %s%%", number(l.Trickle.Value))
	}
	if l.Ramp != nil {
		w.line("ramp %s", l.Ramp.Value)
	}
	if c := l.Capacity; c != nil {
		amount := strconv.FormatFloat(c.Value, 'g', -1, 64)
		if c.Score {
			amount = "score"
		}
		w.line("capacity %s%s%s", amount, when(c.Target > 0, " target "+number(c.Target)+"%"), when(c.Growth > 0, " growth "+number(c.Growth)+"%"))
	}
	if l.Load != nil {
		w.load(l.Load)
	}
}

func (w *writer) load(l *config.Load) {
	from := ""
	switch l.Kind {
	case config.LoadHTTP:
		from = quote(l.URL) + " json " + quote(l.Path)
		if l.Metric != "" {
			from = quote(l.URL) + " metric " + quote(l.Metric)
		}
	case config.LoadPrometheus:
		from = quote(l.URL) + " " + quote(l.Query)
	case config.LoadHeader:
		from = l.Check + " " + l.Header
	case config.LoadFile:
		from = quote(l.File)
	}
	// A check's interval can be longer than what may be written.
	w.line("load %s %s%s", l.Kind, from, when(l.Kind != config.LoadHeader || l.Every.Minutes() <= 5, " every "+l.Every.String()))
}

// steering writes what guards and controls the block.
func (w *writer) steering(b *config.Block) {
	if b.Resolvers != nil {
		w.line("resolvers %s", strings.Join(b.Resolvers.Servers, " "))
	}
	w.line("guard hosts %d\nguard max_move %s%%", b.Guard.Hosts, number(b.Guard.MaxMove))
	if b.Guard.MaxUse > 0 {
		w.line("guard max_use %s%%", number(b.Guard.MaxUse))
	}
	for _, r := range b.Guard.Require {
		w.line("guard require %d of %s", r.Count, strings.Join(r.Regions, " "))
	}
	for _, a := range b.Guard.Accepted {
		w.line("guard accept %s until %s", quote(a.Reason), a.Until.Format("2006-01-02T15:04:05Z07:00"))
	}
	if c := b.Control; c != nil {
		w.line("control %s token %s {", quote(map[bool]string{true: "unix:"}[c.Network == "unix"]+c.Address), quote(c.Token))
		if c.Cert != "" {
			w.line("tls %s %s", quote(c.Cert), quote(c.Key))
		}
		if c.ClientCA != "" {
			w.line("client_ca %s", quote(c.ClientCA))
		}
		w.line("}")
	}
}
