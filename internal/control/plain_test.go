package control

import (
	"context"
	"net/netip"
)

// plainBackend takes everything, for tests from inside.
type plainBackend struct {
	published *Overrides
	returned  bool
}

func (*plainBackend) Digest() string { return "aa" }
func (*plainBackend) Base(_ context.Context, l Lever, o Object) (Base, error) {
	return Base{Object: o, Value: "off"}, nil
}
func (*plainBackend) WhatIf(context.Context, *Overrides) (Report, error) { return Report{}, nil }
func (b *plainBackend) Publish(_ context.Context, p Publication) error {
	b.published = p.Next
	return nil
}
func (*plainBackend) Status(context.Context) (Status, error)               { return Status{Digest: "aa"}, nil }
func (*plainBackend) Explain(context.Context, Question) (Explained, error) { return Explained{}, nil }
func (*plainBackend) Returnable(context.Context, netip.Addr, string) error { return nil }
func (b *plainBackend) Return(context.Context, netip.Addr, string) error {
	b.returned = true
	return nil
}
