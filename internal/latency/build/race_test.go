//go:build race

package build

func init() { worldPrefixes = 100 }
