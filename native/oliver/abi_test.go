// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package oliver

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What abi.h declares is what the binding's headers declare.
func TestABI(t *testing.T) {
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	compiler := strings.Fields(run("go", "env", "CC"))
	binding := run("go", "list", "-f", "{{.Dir}}", "github.com/oliverbestmann/webgpu/wgpu")
	layout := func(header string) string {
		t.Helper()
		program := filepath.Join(t.TempDir(), "abi")
		args := append(compiler[1:], "-DHEADER=\""+header+"\"", "-o", program, filepath.Join("testdata", "abi.c"))
		run(compiler[0], args...)
		return run(program)
	}
	ours, err := filepath.Abs("abi.h")
	must(t, err)
	got := strings.Split(layout(filepath.ToSlash(ours)), "\n")
	want := strings.Split(layout(filepath.ToSlash(filepath.Join(binding, "lib", run("go", "env", "GOOS"), run("go", "env", "GOARCH"), "wgpu.h"))), "\n")
	if len(got) != len(want) || len(got) < 100 {
		t.Fatalf("%d and %d lines", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("abi.h has %q, the binding %q", got[i], want[i])
		}
	}
}
