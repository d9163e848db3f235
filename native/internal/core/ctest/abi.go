// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ABI checks that the package's abi.h declares what a header in the directory of a binding's package declares. It compiles
// testdata/abi.c, which prints sizes, offsets and values, with either.
func ABI(t *testing.T, binding, header string) {
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	compiler := strings.Fields(run("go", "env", "CC"))
	layout := func(header string) []string {
		t.Helper()
		program := filepath.Join(t.TempDir(), "abi")
		args := append(slices.Clone(compiler[1:]), "-DHEADER=\""+filepath.ToSlash(header)+"\"", "-o", program, filepath.Join("testdata", "abi.c"))
		run(compiler[0], args...)
		return strings.Split(run(program), "\n")
	}
	ours, err := filepath.Abs("abi.h")
	must(t, err)
	got, want := layout(ours), layout(filepath.Join(run("go", "list", "-f", "{{.Dir}}", binding), header))
	if len(got) != len(want) || len(got) < 100 {
		t.Fatalf("%d and %d lines", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("abi.h has %q, the binding %q", got[i], want[i])
		}
	}
}
