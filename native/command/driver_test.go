// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOtherDriver builds a program that registers a driver and is the command otherwise, lists its adapter and computes on it.
func TestOtherDriver(t *testing.T) {
	program := filepath.Join(t.TempDir(), "mydriver.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "./testdata/mydriver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	call := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, args...)
		c.Env = append(os.Environ(), "SUBLET_DRIVER=mydriver", "SUBLET_ADAPTER=")
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, errs.String())
		}
		return string(out)
	}
	var found info
	if err := json.Unmarshal([]byte(call("info", "--driver", "mydriver", "--json")), &found); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(found.Drivers, "mydriver") || len(found.Adapters) != 1 || found.Adapters[0].Name != "My Adapter" {
		t.Errorf("found %+v", found)
	}
	if got := call("eval", "A*A + 1", "-i", "A="+floats(t, 2, 2, 1, 2, 3, 4)); !strings.Contains(got, "11") || !strings.Contains(got, "23") {
		t.Errorf("printed %q", got)
	}
	out := filepath.Join(t.TempDir(), "out.npy")
	if got := call("eval", "A*A", "-i", "A="+floats(t, 2, 2, 1, 2, 3, 4), "-o", out, "--json"); !strings.Contains(got, `"driver":"mydriver"`) {
		t.Errorf("printed %q", got)
	}
	if _, v := read[float32](t, out); !slices.Equal(v, []float32{7, 10, 15, 22}) {
		t.Errorf("computed %v", v)
	}
}
