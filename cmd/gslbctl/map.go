package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
)

const mapHelp = `Usage: gslbctl map COMMAND [flags] …

Works on steering maps, the files that a "latency" line names. It reads MaxMind DB
files of maps and their text form, nets files of gdnsd, and coverage zones of
Apache Traffic Control, and knows them by their content.

`

// mapCommand is one "gslbctl map NAME".
type mapCommand struct {
	about string // one line for the help, without a full stop
	run   func(args []string, stdout, stderr io.Writer) int
}

// mapCommands are what gslbctl does with steering maps, by name.
var mapCommands = map[string]mapCommand{
	"build":    {"make a map of measurements of real users", mapBuild},
	"collect":  {"take in what browsers measure, and serve the beacon for pages", mapCollect},
	"merge":    {"make a map of sketches of days", mapMerge},
	"check":    {"hold a map against measurements it was not made from", mapCheck},
	"show":     {"what a map says of an address or a prefix", mapShow},
	"diff":     {"what a new map changes, and whether it may be published", mapDiff},
	"convert":  {"write a map in another form", mapConvert},
	"rollback": {"put the previous version of a published map back", mapRollback},
}

// mapTool runs one of mapCommands.
func mapTool(args []string, stdout, stderr io.Writer) int {
	names := slices.Sorted(maps.Keys(mapCommands))
	help := func(w io.Writer) {
		fmt.Fprint(w, mapHelp, "Commands:\n")
		for _, name := range names {
			fmt.Fprintf(w, "    %-10s%s\n", name, mapCommands[name].about)
		}
		fmt.Fprint(w, "\n\"gslbctl map COMMAND -help\" says more.\n")
	}
	if len(args) == 0 {
		help(stderr)
		return exitUsage
	}
	if command, ok := mapCommands[args[0]]; ok {
		return command.run(args[1:], stdout, stderr)
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		help(stdout)
		return exitOK
	}
	fmt.Fprintf(stderr, "gslbctl map: unknown command %q: expected %s%s\n",
		args[0], strings.Join(names, ", "), config.DidYouMean(args[0], names))
	return exitUsage
}
