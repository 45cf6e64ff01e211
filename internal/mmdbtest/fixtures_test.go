package mmdbtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestFixturesAreUpToDate(t *testing.T) {
	for name, database := range Fixtures() {
		t.Run(name, func(t *testing.T) {
			want, err := database.Build()
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join("..", "..", "testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("testdata/%s differs from its generator's output: run go generate ./internal/mmdbtest", name)
			}
		})
	}
}
