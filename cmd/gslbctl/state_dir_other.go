//go:build !unix

package main

// access would tell whether this user can make files in a directory, which only a try
// could here.
func access(string) error { return nil }
