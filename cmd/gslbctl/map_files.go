package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

const mapConvertHelp = `Usage: gslbctl map convert IN OUT

Reads a map in any form and writes it in another: as a MaxMind DB file to a name that
ends in .mmdb, as text to one in .txt, and as text to standard output for -. An
existing file is replaced at once, when all is written; nothing is kept of it.

`

func mapConvert(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map convert", mapConvertHelp, stdout, stderr)
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	if len(rest) != 2 {
		return misuse(flags, "expected IN and OUT")
	}
	format := latency.Text
	if rest[1] != "-" {
		var err error
		if format, err = latency.FormatOf(rest[1]); err != nil {
			return misuse(flags, "%v", err)
		}
	}
	m, _, err := latency.Read(rest[0])
	if err != nil {
		return fail(stderr, err)
	}
	if rest[1] == "-" {
		err = latency.WriteText(stdout, m)
	} else {
		err = replaceFile(rest[1], func(w io.Writer) error { return latency.Write(w, m, format) })
	}
	if err != nil {
		return fail(stderr, err)
	}
	return exitOK
}

// replaceFile writes a file aside and renames it over the one there is.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if err := errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

const mapRollbackHelp = `Usage: gslbctl map rollback -why TEXT [-to N] FILE

Puts the previous version of a published map back in its place: the latest of FILE.1
to FILE.5 that was built before the map in place. A map in place from the future counts
as the oldest: no server takes it. Where the file in place is damaged or gone, it is the
latest of FILE.1 to FILE.5. The map gets a mark that says when, why and by whom, by
which servers take it although it is older; the next map that is built takes its place
as usual. FILE.log keeps a line of it. What was in place becomes FILE.1.

`

func mapRollback(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map rollback", mapRollbackHelp, stdout, stderr)
	why := flags.String("why", "", "the reason, a line of `text` for those who come after you")
	to := flags.Int("to", 0, "put FILE.`N` back; 0 for the latest that was built before")
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	switch {
	case len(rest) != 1:
		return misuse(flags, "expected FILE")
	case strings.TrimSpace(*why) == "":
		return misuse(flags, "expected a reason: -why TEXT")
	}
	old, put, err := latency.RollBack(rest[0], *to, time.Now(), latency.PublishOptions{By: whoami(), Why: *why})
	if err != nil {
		return fail(stderr, err)
	}
	of := "what can't be read"
	if old != nil {
		of = "the one built " + when(old.Built)
	}
	fmt.Fprintf(stdout, "%s: the map built %s is back in the place of %s\n", rest[0], when(put.Built), of)
	return exitOK
}

// whoami is the user of the operating system that runs this.
func whoami() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
