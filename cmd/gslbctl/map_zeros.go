package main

import (
	"flag"
	"fmt"
	"strconv"

	"github.com/seed-945f90c5/gslb/internal/latency/build"
)

// settleZeros has a 0 that was written mean what it says, where the zero value of an option
// stands for its usual value; and refuses it where it says nothing.
func settleZeros(flags *flag.FlagSet, o *build.Options) (err error) {
	parts := map[string]*float64{"budget": &o.Budget, "emergency-budget": &o.Emergency, "max-bad": &o.MaxBad}
	positive := map[string]string{
		"window": "a length such as 168h", "min-samples": "a number of samples", "resolver-samples": "a number of samples", "resolver-spread": "milliseconds",
		"half-life": "a time such as 48h, or -1s for all to count the same", "source-share": "a part such as 0.05, or -1 for no limit",
		"longest4": "a length", "longest6": "a length", "shortest4": "a length", "shortest6": "a length", "memory": "a size such as 2G",
	}
	flags.Visit(func(f *flag.Flag) {
		if part, ok := parts[f.Name]; ok {
			switch {
			case *part < 0:
				err = fmt.Errorf("-%s %s: expected 0 to 1", f.Name, f.Value)
			case *part == 0:
				*part = -1
			}
		}
		if expected, ok := positive[f.Name]; ok && isZero(f.Value.String()) {
			err = fmt.Errorf("-%s 0: expected %s; leave the flag out for the usual value", f.Name, expected)
		}
	})
	return err
}

// isZero tells whether a number or a duration is 0.
func isZero(s string) bool {
	n, err := strconv.ParseFloat(s, 64)
	return err == nil && n == 0 || s == "0s"
}
