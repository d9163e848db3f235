// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// TestRunLongLoops counts in loops that llvmpipe ends early: there is a result that is right, or a status and no result.
func TestRunLongLoops(t *testing.T) {
	source := wgsl(t, "fn count(i: u32) { for (var k = 0u; k < n; k++) { arr[i] += 1u; } }")
	in := vector[uint32](t, dtype.Uint32, 64, 1)
	for _, c := range []struct {
		turns string
		want  uint32 // 0: fails
	}{{"60000", 60001}, {"70000", 0}} {
		out := filepath.Join(t.TempDir(), "out.npy")
		o := sublet("run", source, "-g", "64", "-a", "arr="+in, "-s", "n="+c.turns+":uint32", "--adapter", "llvmpipe", "-o", "arr="+out)
		if c.want == 0 {
			if _, err := os.Stat(out); o.status == 0 || err == nil || !strings.Contains(o.stderr, "65535 turns") {
				t.Errorf("%s turns: status %d, %q, result: %v", c.turns, o.status, o.stderr, err)
			}
			continue
		}
		if o.status != 0 {
			t.Fatalf("%s turns: %s", c.turns, o.stderr)
		}
		_, v := read[uint32](t, out)
		equal(t, c.turns, v, 64, c.want)
	}
}
