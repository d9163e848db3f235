// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/tune/timing"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// TestTuning sends results of a page's, and asks for timings on a device that has no kernels. TestWebTuning does it on others.
func TestTuning(t *testing.T) {
	r := newRig(t)
	ticket, done := r.page.expect()
	r.post(command(page.CmdTuning, ticket))
	wantError(t, <-done, nil)
	list, _ := r.page.values[ticket].([]any)
	if len(list) != 1+len(timing.Suite()) || list[1] != timing.Suite()[0].String() {
		t.Fatalf("reported %v", list)
	}
	fresh, _ := list[0].(string)
	use := func(text string) error { return r.ask(page.CmdTuned, r.page.put(text)) }
	wantError(t, use(fresh), nil)
	wantError(t, use(""), nil)
	wantError(t, use("{"), gpu.ErrInvalid)
	wantError(t, use(strings.Replace(fresh, `"cpu"`, `"simd"`, 1)), gpu.ErrUnsupported)
	time := func(text, work string, rounds uint32) error {
		return r.ask(page.CmdTime, r.page.put(text), r.page.put(work), rounds)
	}
	wantError(t, time(fresh, "grid:8x8", 1), gpu.ErrUnsupported)
	wantError(t, time("", "grid:8x8", 1), gpu.ErrInvalid)
	wantError(t, time(fresh, "grid", 1), gpu.ErrInvalid)
	wantError(t, time(fresh, "grid:8x8", 101), gpu.ErrInvalid)
	wantError(t, r.ask(page.CmdTime), gpu.ErrInvalid)
}
