// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

// TestRunTwoAdapters lets two drivers' adapters share the work.
func TestRunTwoAdapters(t *testing.T) {
	if !gputest.WithSecond(t) {
		return
	}
	out := filepath.Join(t.TempDir(), "out.npy")
	in := vector[uint16](t, dtype.Uint16, 5000, 55)
	calls := runJSON(t, stream, "-g", "5000", "-l", "50", "--devices", "1,0,1", "--calls", "4", "-a", "arr="+in+":partial-read,write", "-o", "arr="+out)
	for _, c := range calls {
		covers(t, c, 3, 0, 5000)
		if c.BytesUp != 10000 || c.BytesDown != 10000 {
			t.Errorf("%+v", c)
		}
	}
	_, v := read[uint16](t, out)
	equal(t, "two adapters", v, 5000, 67)
}
