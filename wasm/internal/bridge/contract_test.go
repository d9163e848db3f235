// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

const (
	dontOwn   = uint32(buffer.DontOwnBuffer)
	byColumns = 1 << 8
	padded    = 1 << 9
	inRows    = 1 << 10
)

// source is memory of the page's without gaps.
func (r *rig) source(flags, form, rows, cols uint32, mem []byte) []uint32 {
	minor := cols
	if form&byColumns != 0 && form&inRows == 0 {
		minor = rows
	}
	return []uint32{flags, form, rows, cols, 0, minor, r.page.put(mem), uint32(len(mem))}
}

func (r *rig) wrap(handle, rows, cols uint32, mem []byte) {
	r.post(command(page.CmdFrom, append([]uint32{handle}, r.source(dontOwn, 0, rows, cols, mem)...)...))
}

// change posts a command that makes `from` another handle.
func (r *rig) change(c page.Command, to, from uint32, words ...uint32) error {
	r.t.Helper()
	return r.ask(c, append([]uint32{to, from}, words...)...)
}

func TestPlaces(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2, 3, 4, 5, 6)
	for i, form := range []uint32{0, byColumns, padded} {
		h, minor := uint32(i+1), []uint32{3, 2, 4}[i]
		r.post(command(page.CmdNew, h, form, 2, 3, 8, minor), command(page.CmdData, h, r.page.put(mem), 24))
	}
	r.wantRead([]float32{1, 2, 3, 4, 5, 6}, leaf(1))
	r.wantRead([]float32{1, 3, 5, 2, 4, 6}, leaf(2))
	r.wantRead([]float32{1, 2, 3, 4, 5, 6}, leaf(3))
	r.post(command(page.CmdNew, 4, padded, 2, 3, 0, 3))
	_, err := r.read(6, leaf(4))
	wantError(t, err, matrix.ErrCapacity)
}

// TestNewFilled makes matrices of the page's elements, in matrices that the page has closed where these have their size and form. What cannot
// be made leaves nothing but its error.
func TestNewFilled(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2, 3, 4, 5, 6)
	made := func(handle, form, rows, cols, size uint32) {
		minor := cols
		if form&byColumns != 0 {
			minor = rows
		}
		r.post(command(page.CmdNew, handle, form, rows, cols, 0, minor, r.page.put(mem), size))
	}
	for i := range uint32(3) { // two of which are in the first one's memory
		mem = bytesOf(float32(i), 2, 3, 4, 5, 6)
		made(1, 0, 2, 3, 24)
		r.wantRead([]float32{float32(i), 2, 3, 4, 5, 6}, leaf(1))
		if n := r.dev.Stats().Buffers; n != 1 {
			t.Errorf("%d buffers", n)
		}
	}
	made(1, byColumns, 3, 2, 24)
	r.wantRead([]float32{2, 4, 2, 5, 3, 6}, leaf(1))
	made(1, 0, 1, 4, 16)
	r.wantRead([]float32{2, 2, 3, 4}, leaf(1))
	made(1, 0, 1, 4, 8)
	_, err := r.read(4, leaf(1))
	wantError(t, err, buffer.ErrShort)
	if n := r.dev.Stats().Buffers; n != 0 {
		t.Errorf("%d buffers of what could not be made", n)
	}
	made(1, 0, 1, 4, 16)
	r.wantRead([]float32{2, 2, 3, 4}, leaf(1))
}

func TestFromCopies(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2, 3, 4, 5, 6)
	r.post(command(page.CmdFrom, append([]uint32{1}, r.source(0, byColumns|inRows, 2, 3, mem)...)...))
	if err := r.ask(page.CmdWait); err != nil {
		t.Fatal(err)
	}
	clear(mem)
	r.wantRead([]float32{1, 2, 3, 4, 5, 6}, leaf(1))
	for i, flags := range []uint32{uint32(buffer.SetValueOnDevice), dontOwn | uint32(buffer.SetValueOnDevice), 1 << 8} {
		r.post(command(page.CmdFrom, append([]uint32{uint32(i + 2)}, r.source(flags, 0, 2, 3, mem)...)...))
		_, err := r.read(6, leaf(uint32(i+2)))
		wantError(t, err, gpu.ErrInvalid)
	}
}

// TestChanges gives matrices other sizes and other memory. The handle from is free afterwards.
func TestChanges(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 3, 1, 2, 3, 4, 5, 6)
	mem := bytesOf(7, 8, 9, 10)
	r.wrap(2, 2, 2, mem)
	steps := []struct {
		c     page.Command
		words []uint32
		want  []float32
	}{
		{page.CmdSetShape, []uint32{3, 2}, []float32{1, 2, 3, 4, 5, 6}},
		{page.CmdSetValue, leaf(2), []float32{7, 8, 9, 10}},
		{page.CmdSetValue, join(leaf(2), number(1), instruction(bridge.OpBinary, f32, 0, 1)), []float32{8, 9, 10, 11}},
		{page.CmdSetFrom, r.source(0, 0, 1, 3, bytesOf(1, 2, 3)), []float32{1, 2, 3}},
		{page.CmdResize, []uint32{0, 5}, nil},
		{page.CmdSetFrom, r.source(0, 0, 1, 8, bytesOf(1, 2, 3, 4, 5, 6, 7, 8)), []float32{1, 2, 3, 4, 5, 6, 7, 8}},
		{page.CmdSetFrom, r.source(dontOwn, 0, 2, 1, bytesOf(5, 6)), []float32{5, 6}},
	}
	at := uint32(1)
	for i, s := range steps {
		next := uint32(10 + i)
		if err := r.change(s.c, next, at, s.words...); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		r.wantRead(s.want, leaf(next))
		_, err := r.read(1, leaf(at))
		wantError(t, err, gpu.ErrInvalid)
		at = next
	}
	// What was wrapped last is written in place, and Sync brings it back.
	r.post(command(page.CmdAssign, join([]uint32{0}, leaf(at), instruction(bridge.OpFill, f32, math.Float32bits(4), 2, 1))...))
	if err := r.ask(page.CmdSync, at); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedChanges: the matrix stays what it was, under its old handle, and the new one says why. The ticket hears of it,
// which tells nobody.
func TestRefusedChanges(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2)
	r.wrap(1, 1, 2, mem)
	r.newMatrix(2, 2, 2, 1, 2, 3, 4)
	r.post(command(page.CmdAlias, 3, 2))
	for i, c := range []struct {
		name  string
		c     page.Command
		from  uint32
		words []uint32
		want  error
	}{
		{"too large", page.CmdSetValue, 1, leaf(2), matrix.ErrExternalResize},
		{"copy too large", page.CmdSetFrom, 1, r.source(0, 0, 2, 2, bytesOf(1, 2, 3, 4)), matrix.ErrExternalResize},
		{"resize external", page.CmdResize, 1, []uint32{1, 1}, matrix.ErrExternalResize},
		{"resize shared", page.CmdResize, 2, []uint32{3, 3}, matrix.ErrView},
		{"another number", page.CmdSetShape, 2, []uint32{3, 3}, buffer.ErrShape},
		{"too short", page.CmdSetFrom, 2, r.source(dontOwn, 0, 2, 2, bytesOf(1, 2, 3)), buffer.ErrShort},
		{"another type", page.CmdSetFrom, 2, r.source(dontOwn, uint32(matrix.Int32), 2, 2, bytesOf(1, 2, 3, 4)), gpu.ErrInvalid},
		{"of nothing", page.CmdResize, 77, []uint32{1, 1}, gpu.ErrInvalid},
		{"too large for the device", page.CmdResize, 3, []uint32{1, math.MaxUint32}, matrix.ErrView},
		{"a broken expression", page.CmdSetValue, 2, instruction(bridge.OpUnary, f32, 9), gpu.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := uint32(10 + i)
			wantError(t, r.change(c.c, to, c.from, c.words...), c.want)
			wantError(t, r.ask(page.CmdWait), c.want)
			_, err := r.read(1, leaf(to))
			wantError(t, err, c.want)
			r.wantRead([]float32{1, 2}, leaf(1))
			r.wantRead([]float32{1, 2, 3, 4}, leaf(2))
		})
	}
	wantError(t, r.change(page.CmdResize, 2, 1, 1, 2), gpu.ErrInvalid) // the handle is in use
	r.wantRead([]float32{1, 2, 3, 4}, leaf(2))
}

// TestOutOfMemory: what was queued after a resize that failed never sees a matrix of the old size.
func TestOutOfMemory(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	ticket, done := r.page.expect()
	n := uint32(testMemory)
	r.post(
		command(page.CmdResize, ticket, 2, 1, 1, n),
		command(page.CmdEval, join([]uint32{3}, leaf(2), number(1), instruction(bridge.OpBinary, f32, 0, 1))...),
	)
	if err := r.await(done); err == nil { // memory is taken when it is used
		_, err = r.read(1, leaf(3))
		wantError(t, err, gpu.ErrNoMemory)
		return
	}
	_, err := r.read(1, leaf(3))
	wantError(t, err, gpu.ErrNoMemory)
	r.wantRead([]float32{1, 2}, leaf(1))
}

// TestExplain wants the plan that package matrix makes.
func TestExplain(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	ticket, done := r.page.expect()
	r.post(command(page.CmdExplain, join([]uint32{ticket}, leaf(1), number(2), instruction(bridge.OpBinary, f32, 0, 1))...))
	if err := r.await(done); err != nil {
		t.Fatal(err)
	}
	answer, ok := r.value(ticket).([]any)
	if !ok || len(answer) != 4 || !strings.Contains(answer[0].(string), "kernels: 1") || answer[1] != 0 || len(answer[3].([]any)) != 1 {
		t.Fatalf("%v", answer)
	}
	if launch := answer[3].([]any)[0].([]any); len(launch) != 10 || launch[4] != 1 || launch[5] != 2 || launch[6] != "float32" || launch[8] != 8 {
		t.Errorf("%v", launch)
	}
	wantError(t, r.ask(page.CmdExplain, leaf(9)...), gpu.ErrInvalid)
}

func TestAlias(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2, 3, 4)
	r.wrap(1, 2, 2, mem)
	r.post(command(page.CmdAlias, 2, 1), command(page.CmdClose, 0, 1),
		command(page.CmdAssign, join([]uint32{0}, leaf(2), instruction(bridge.OpFill, f32, math.Float32bits(5), 2, 2))...))
	if err := r.ask(page.CmdSync, 2); err != nil {
		t.Fatal(err)
	}
	if got := floats(mem); got[0] != 5 || got[3] != 5 {
		t.Errorf("memory %v", got)
	}
	copy(mem, bytesOf(9))
	r.post(command(page.CmdTouch, 2))
	r.wantRead([]float32{9, 5, 5, 5}, leaf(2))
	if err := r.ask(page.CmdLocation, 2); err != nil {
		t.Error(err)
	}
	wantError(t, r.ask(page.CmdLocation, 1), gpu.ErrInvalid)
	// Other memory takes the place of what was wrapped.
	if err := r.change(page.CmdSetFrom, 3, 2, r.source(dontOwn, 0, 1, 2, bytesOf(1, 2))...); err != nil {
		t.Error(err)
	}
	if err := r.change(page.CmdSetFrom, 4, 3, r.source(0, 0, 1, 1, bytesOf(3))...); err != nil {
		t.Error(err)
	}
	wantError(t, r.change(page.CmdResize, 5, 4, 4, 4), matrix.ErrExternalResize) // it is still in the memory that was wrapped
}
