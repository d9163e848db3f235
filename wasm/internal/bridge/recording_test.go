// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// assignment is a command that assigns to a whole matrix.
func assignment(to uint32, expr ...[]uint32) []uint32 {
	return command(page.CmdAssign, join([]uint32{0}, leaf(to), join(expr...))...)
}

// TestRecording runs assignments several times, and has the error of a run told by what the run writes to.
func TestRecording(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	r.newMatrix(2, 1, 2, 0, 0)
	r.newMatrix(3, 2, 1, 0, 0)
	live := r.live()
	sum := []uint32{1, 2} // of the second and the third value
	steps := join(
		assignment(2, leaf(2), leaf(1), instruction(bridge.OpBinary, f32, sum...)),
		// The sum is computed before it gets another shape.
		assignment(3, leaf(1), leaf(2), instruction(bridge.OpBinary, f32, sum...), instruction(bridge.OpReshape, f32, 3, 2, 1)),
	)
	wantError(t, r.ask(page.CmdRecord, append([]uint32{9}, steps...)...), nil)
	r.wantRead([]float32{0, 0}, leaf(2))
	run := command(page.CmdReplay, 9)
	r.post(run, run)
	r.wantRead([]float32{2, 4}, leaf(2))
	r.wantRead([]float32{3, 6}, leaf(3))

	failing := assignment(1, instruction(bridge.OpFill, f32, math.Float32bits(7), 3, 3))
	r.post(failing, run)
	_, err := r.read(2, leaf(2))
	wantError(t, err, buffer.ErrShape)
	r.post(run)
	r.wantRead([]float32{3, 6}, leaf(2))
	r.wantRead([]float32{4, 8}, leaf(3))
	r.post(command(page.CmdClose, 0, 1), run)
	_, err = r.read(2, leaf(3))
	wantError(t, err, gpu.ErrClosed)
	r.wantRead([]float32{3, 6}, leaf(2))
	r.post(command(page.CmdClose, 0, 9), command(page.CmdReplay, 9))
	wantError(t, r.ask(page.CmdWait), gpu.ErrInvalid)
	r.post(command(page.CmdClose, 0, 2), command(page.CmdClose, 0, 3))
	wantError(t, r.ask(page.CmdWait), nil)
	if now := r.live(); now >= live {
		t.Errorf("%d bytes are left of %d", now, live)
	}

	r.newMatrix(1, 1, 2, 1, 2)
	for name, words := range map[string][]uint32{
		"nothing": nil, "no command": {0}, "another command": command(page.CmdSync, 0, 1), "cut off": steps[:len(steps)-1], "beyond the end": {7<<8 | uint32(page.CmdAssign), 0},
		"no matrix": assignment(20, number(1)), "what is no value": assignment(1, instruction(bridge.OpTranspose, f32, 9)),
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, r.ask(page.CmdRecord, append([]uint32{9}, words...)...), gpu.ErrInvalid)
			r.post(command(page.CmdReplay, 9), command(page.CmdClose, 0, 9))
			_ = r.ask(page.CmdWait)
			r.wantRead([]float32{1, 2}, leaf(1))
		})
	}
}
