package main

import (
	"fmt"
	"net/netip"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
)

// forms are the arguments of the commands that change something.
var forms = map[string][]string{
	"drain":   {"REGION or ADDRESS"},
	"undrain": {"REGION or ADDRESS"},
	"dial":    {"REGION", "PERCENT"},
	"share":   {"REGION", "PERCENT or off"},
	"trickle": {"REGION", "PERCENT"},
	"weight":  {"ADDRESS", "0..10000"},
	"force":   {"ADDRESS", "up or down"},
	"cancel":  {"ID"},
}

// changeOf is the change that a command asks for. What its words are worth, the
// server says.
func (c *controlCall) changeOf(command string, args []string) (control.Change, error) {
	form, ok := forms[command]
	if !ok {
		var names []string
		for name := range forms {
			names = append(names, name)
		}
		return control.Change{}, fmt.Errorf("%q changes nothing: expected drain, undrain, dial, share, trickle, weight, force or cancel%s", command, config.DidYouMean(command, names))
	}
	if len(args) != len(form) {
		expected := form[0]
		if len(form) > 1 {
			expected += " and " + form[1]
		}
		return control.Change{}, fmt.Errorf("%d arguments of %s: expected %s", len(args), command, expected)
	}
	change := control.Change{Terms: c.Terms}
	if command == "cancel" {
		change.Cancel, change.Terms = args[0], control.Terms{Why: c.Why}
		return change, nil
	}
	change.Lever, change.Host, change.Region, change.Area = control.Lever(command), c.host, c.region, c.area
	if addr, err := netip.ParseAddr(args[0]); err == nil {
		change.Endpoint = addr
	} else if form[0] == "ADDRESS" {
		return control.Change{}, fmt.Errorf("%q is no address of an endpoint", args[0])
	} else if c.region != "" {
		return control.Change{}, fmt.Errorf("-region %s beside %q: expected one region", c.region, args[0])
	} else {
		change.Region = args[0]
	}
	switch command {
	case "drain":
		change.Value = "on"
	case "undrain":
		change.Lever, change.Value = control.Drain, "off"
	default:
		change.Value = control.Value(args[1])
	}
	return change, nil
}
