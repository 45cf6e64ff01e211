package steer

import (
	"net/netip"
	"testing"
)

func allUp(Region, int) EndpointState { return EndpointState{} }

func mustHost(tb testing.TB, cfg HostConfig) *Host {
	tb.Helper()
	h, err := NewHost(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }
