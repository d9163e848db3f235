// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHello(t *testing.T) {
	stdout := os.Stdout
	f, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = f
	err = hello(t.Context())
	os.Stdout = stdout
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Name()); err != nil || !strings.HasPrefix(string(got), "[14 32 32 77] on ") {
		t.Errorf("printed %q, %v", got, err)
	}
}

// The README prints this program; what it prints must be what is tested here.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(program), "\npackage main\n")
	if body == "" || !strings.Contains(string(readme), "package main\n"+body) {
		t.Error("README.md does not print main.go as it is")
	}
}
