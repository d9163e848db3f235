// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestUpToDate compares the generated files with what the table gives now.
func TestUpToDate(t *testing.T) {
	root := filepath.Join("..", root)
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: go generate ./internal/ops", path)
		}
	}
}
