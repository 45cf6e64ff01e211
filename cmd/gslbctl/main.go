// Command gslbctl is the operator's command line of gslb: it checks a Corefile
// as the server does, tells why a client gets the addresses it gets, and moves
// traffic by the control API of running servers.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // the Corefile or a data file is wrong, or the name is not ours
	exitUsage = 2
)

const usage = `gslbctl checks and explains the gslb blocks of a Corefile, moves traffic, and makes
steering maps of what users measured.

Usage:
    gslbctl check   -conf Corefile
    gslbctl explain -conf Corefile [-resolver ADDR] [-type A|AAAA] [-exact] [-view NAME] [-json] NAME [CLIENT]
    gslbctl failover [-conf Corefile NAME] [flags]
    gslbctl version

Of running servers, which -control names (or GSLBCTL_CONTROL):
    gslbctl status, overrides or audit
    gslbctl explain -control SERVER [flags] NAME [CLIENT]
    gslbctl drain, undrain, dial, share, trickle, weight, force, cancel or return …
    gslbctl whatif COMMAND …

Of latency maps:
    gslbctl map collect, build, merge, check, diff, show, convert or rollback …

Examples:
    gslbctl check -conf /etc/coredns/Corefile
    gslbctl explain api.example.com 198.51.100.77
    gslbctl explain -resolver 192.0.2.53 api.example.com 198.51.100.0/24
    gslbctl explain -resolver 192.0.2.53 -type AAAA -json api.example.com
    gslbctl failover -conf /etc/coredns/Corefile -rate 40000 api.example.com
    gslbctl whatif drain eu -control unix:/run/gslb.sock -token-file ~/.gslb-token
    gslbctl drain eu -why "power works, ticket 4711" -for 2h

"gslbctl COMMAND -help" says more. It exits with 0 when all is well, 1 for
errors, 2 when it was called wrongly.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// commands are what gslbctl does, by name.
var commands = map[string]func(args []string, stdout, stderr io.Writer) int{
	"check":    check,
	"explain":  explain,
	"failover": failoverCommand,
	"map":      mapTool,
	"version":  version,
}

// run is the whole command and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	if command := commands[args[0]]; command != nil {
		return command(args[1:], stdout, stderr)
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	names := slices.Sorted(maps.Keys(commands))
	fmt.Fprintf(stderr, "gslbctl: unknown command %q: expected %s%s\n", args[0], strings.Join(names, ", "), config.DidYouMean(args[0], names))
	return exitUsage
}

// version prints what was built, and the version of the hash: only instances
// and tools with the same one make the same choices.
func version(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("version", "gslbctl version\n", stdout, stderr)
	if rest, code := parseFlags(flags, args); code != exitOK || rest == nil {
		return code
	} else if len(rest) > 0 {
		return misuse(flags, "unexpected %q", rest[0])
	}
	built := "unknown version"
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Main.Version + " " + info.GoVersion
	}
	fmt.Fprintf(stdout, "gslbctl %s, hash version %d\n", built, steer.HashVersion)
	return exitOK
}

// newFlags makes the flags of a command. Its help goes to stdout when asked for.
func newFlags(command, help string, stdout, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		flags.SetOutput(stdout)
		fmt.Fprint(stdout, help)
		flags.PrintDefaults()
		flags.SetOutput(stderr)
	}
	return flags
}

// parseFlags reads flags wherever they stand between the other arguments, which it
// returns; nil when help was given instead.
func parseFlags(flags *flag.FlagSet, args []string) (rest []string, code int) {
	rest = []string{}
	for {
		usage := flags.Usage
		flags.Usage = func() {} // for a mistake, one line says more than all of it
		err := flags.Parse(args)
		flags.Usage = usage
		switch {
		case errors.Is(err, flag.ErrHelp):
			flags.Usage()
			return nil, exitOK
		case err != nil:
			fmt.Fprintf(flags.Output(), "See gslbctl %s -help.\n", flags.Name())
			return nil, exitUsage
		}
		if args = flags.Args(); len(args) == 0 {
			return rest, exitOK
		}
		rest = append(rest, args[0])
		args = args[1:]
	}
}

// misuse tells that a command was called wrongly.
func misuse(flags *flag.FlagSet, format string, args ...any) int {
	fmt.Fprintf(flags.Output(), "gslbctl %s: %s\nSee gslbctl %s -help.\n", flags.Name(), fmt.Sprintf(format, args...), flags.Name())
	return exitUsage
}

// fail tells of an error.
func fail(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, strings.TrimSpace(err.Error()))
	return exitError
}
