// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

func wordsOf(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

const (
	csc     = uint32(matrix.CSC) << 8
	csr     = uint32(matrix.CSR) << 8
	blocks  = uint32(matrix.BlockColumn) << 8
	wrapped = 1 << 16
)

// parts are three matrices of 3 rows and 4 columns: 1 at (0, 0), 2 at (2, 0), 3 at (1, 2).
var sparseParts = map[uint32]struct{ values, indices, pointers []byte }{
	csc:    {bytesOf(1, 2, 3), wordsOf(0, 2, 1), wordsOf(0, 2, 2, 3, 3)},
	csr:    {bytesOf(1, 3, 2), wordsOf(0, 2, 0), wordsOf(0, 1, 2, 3)},
	blocks: {bytesOf(1, 0, 2, 0, 3, 0), wordsOf(0, 2), nil},
}

var sparseDense = []float32{1, 0, 0, 0, 0, 0, 3, 0, 2, 0, 0, 0}

func (r *rig) sparse(handle, format uint32, values, indices, pointers []byte) {
	r.post(command(page.CmdSparse, handle, format, 3, 4, r.page.put(values), uint32(len(values)),
		r.page.put(indices), uint32(len(indices)/4), r.page.put(pointers), uint32(len(pointers)/4)))
}

func TestSparse(t *testing.T) {
	for format, p := range sparseParts {
		for _, flag := range []uint32{0, wrapped} {
			r := newRig(t)
			r.sparse(1, format|flag, p.values, p.indices, p.pointers)
			r.newMatrix(2, 4, 2, 1, 2, 3, 4, 5, 6, 7, 8)
			r.newMatrix(3, 3, 3, make([]float32, 9)...)
			r.post(command(page.CmdEval, join([]uint32{4}, leaf(1))...),
				command(page.CmdEval, join([]uint32{5}, leaf(1), leaf(2), number(1), instruction(bridge.OpBinary, f32, 1, 2), instruction(bridge.OpMatMul, f32, 0, 3))...),
				// Into columns 1 and 2 of matrix 3.
				command(page.CmdAssign, join([]uint32{1}, leaf(3), instruction(bridge.OpSlice, f32, 0, 0, 3, 1, 3), leaf(1), leaf(2), instruction(bridge.OpMatMul, f32, 2, 3))...))
			r.wantRead(sparseDense, leaf(4))
			r.wantRead([]float32{2, 3, 18, 21, 4, 6}, leaf(5))
			r.wantRead([]float32{0, 1, 2, 0, 15, 18, 0, 2, 4}, leaf(3))
			values, indices, pointers := make([]byte, len(p.values)), make([]byte, len(p.indices)), make([]byte, len(p.pointers))
			err := r.ask(page.CmdSparseRead, 1, r.page.put(values), uint32(len(values)), r.page.put(indices), uint32(len(indices)/4),
				r.page.put(pointers), uint32(len(pointers)/4))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(values, p.values) || !slices.Equal(indices, p.indices) || !slices.Equal(pointers, p.pointers) {
				t.Errorf("format %#x: read %v %v %v", format, floats(values), indices, pointers)
			}
			// With other values, in another format; and columns of a product.
			if err := r.ask(page.CmdSparseEval, join([]uint32{6, csr >> 8, 0}, leaf(1), number(7), instruction(bridge.OpWith, f32, 0, 1))...); err != nil {
				t.Fatal(err)
			}
			r.newMatrix(7, 2, 3, 1, 2, 3, 4, 5, 6)
			if err := r.ask(page.CmdSparseEval, join([]uint32{8, 255, 1}, leaf(7))...); err != nil {
				t.Fatal(err)
			}
			if format != blocks {
				r.wantRead([]float32{7, 0, 0, 0, 0, 0, 7, 0, 7, 0, 0, 0}, leaf(6))
			}
			r.wantRead([]float32{7, 0, 6, 0, 16, 0, 15, 0}, leaf(8))
		}
	}
}

// TestSparseWrapped writes to the values from both sides and to the structure.
func TestSparseWrapped(t *testing.T) {
	r := newRig(t)
	values, indices, pointers := bytesOf(1, 2, 3), wordsOf(0, 2, 1), wordsOf(0, 2, 2, 3, 3)
	r.sparse(1, csc|wrapped, values, indices, pointers)
	r.post(command(page.CmdValues, 2, 1),
		command(page.CmdAssign, join([]uint32{0}, leaf(2), leaf(2), number(1), instruction(bridge.OpBinary, f32, 1, 2))...))
	if err := r.ask(page.CmdSync, 1); err != nil {
		t.Fatal(err)
	}
	if got := floats(values); !slices.Equal(got, []float32{2, 3, 4}) {
		t.Errorf("values %v after sync", got)
	}
	touch := func(index, pointer []byte) {
		r.post(command(page.CmdSparseTouch, 1, r.page.put(index), uint32(len(index)/4), r.page.put(pointer), uint32(len(pointer)/4)))
	}
	copy(values, bytesOf(10))
	touch(wordsOf(1, 2, 0), wordsOf(0, 1, 2, 2, 3))
	r.post(command(page.CmdEval, join([]uint32{3}, leaf(1))...))
	r.wantRead([]float32{0, 0, 0, 4, 10, 0, 0, 0, 0, 3, 0, 0}, leaf(3))

	copy(values, bytesOf(77))
	for _, broken := range [][]byte{wordsOf(1, 2, 9), wordsOf(1, 2)} {
		touch(broken, wordsOf(0, 1, 2, 2, 3))
		if err := r.ask(page.CmdWait); err == nil {
			t.Error("a broken structure was taken")
		}
	}
	r.post(command(page.CmdEval, join([]uint32{4}, leaf(1))...))
	r.wantRead([]float32{0, 0, 0, 4, 10, 0, 0, 0, 0, 3, 0, 0}, leaf(4))
	wantError(t, r.ask(page.CmdBuffer, 1), gpu.ErrInvalid)
}

func TestSparseColumnsAndAppend(t *testing.T) {
	r := newRig(t)
	p := sparseParts[csc]
	r.sparse(1, csc, p.values, p.indices, p.pointers)
	r.post(command(page.CmdAppend, 1, 2, 2, math.Float32bits(4)), command(page.CmdAppend, 1, 0, 3, math.Float32bits(5)),
		command(page.CmdColumns, 2, 1, 2, 2), command(page.CmdEval, join([]uint32{3}, leaf(2))...))
	r.wantRead([]float32{0, 5, 3, 0, 4, 0}, leaf(3))
	for _, c := range []struct {
		words []uint32
		want  error
	}{
		{command(page.CmdAppend, 1, 1, 3, 0), matrix.ErrView},
		{command(page.CmdAppend, 2, 1, 1, 0), matrix.ErrView},
		{command(page.CmdAppend, 9, 1, 1, 0), gpu.ErrInvalid},
		{command(page.CmdAppend, 3, 1, 1, 0), gpu.ErrInvalid},
		{command(page.CmdColumns, 4, 1, 3, 2), buffer.ErrIndex},
		{command(page.CmdColumns, 4, 3, 0, 1), gpu.ErrInvalid},
		{command(page.CmdEval, join([]uint32{5}, leaf(1), leaf(3), instruction(bridge.OpMatMul, f32, 0, 1))...), buffer.ErrShape},
		{command(page.CmdAssign, join([]uint32{0}, leaf(3), leaf(1))...), buffer.ErrShape},
		{command(page.CmdResize, 0, 7, 1, 1, 1), gpu.ErrInvalid},
		{command(page.CmdSparseTouch, 1, 999, 3, 999, 5), gpu.ErrInvalid},
	} {
		r.post(c.words)
		wantError(t, r.ask(page.CmdWait), c.want)
	}
	r.post(command(page.CmdClose, 0, 2), command(page.CmdAppend, 1, 0, 0, 0))
	wantError(t, r.ask(page.CmdWait), matrix.ErrOrder)
}

func TestSparseHostile(t *testing.T) {
	r := newRig(t)
	p := sparseParts[csc]
	none := r.page.put(p.values)
	for name, m := range map[string][]uint32{
		"format":         command(page.CmdSparse, 9, 3<<8, 3, 4, none, 12, none, 3, none, 5),
		"element type":   command(page.CmdSparse, 9, 4, 3, 4, none, 12, none, 3, none, 5),
		"float16":        command(page.CmdSparse, 9, uint32(matrix.Float16), 3, 4, none, 12, none, 3, none, 5),
		"flags":          command(page.CmdSparse, 9, 1<<17, 3, 4, none, 12, none, 3, none, 5),
		"much structure": command(page.CmdSparse, 9, csc, 3, 4, none, 12, none, math.MaxUint32, none, 5),
		"much more":      command(page.CmdSparse, 9, csc, 3, 4, none, 12, none, 3, none, math.MaxUint32),
		"many rows":      command(page.CmdSparse, 9, csc, math.MaxUint32, math.MaxUint32, none, 12, none, 3, none, 5),
		"no parts":       command(page.CmdSparse, 9, csc, 3, 4, none, 0, none, 0, none, 0),
	} {
		r.post(m)
		if err := r.ask(page.CmdWait); err == nil || fault.Code(err) == page.ErrInternal.Code() {
			t.Errorf("%s: error %v", name, err)
		}
		r.post(command(page.CmdClose, 0, 9))
	}
	before := r.dev.Stats().LiveBytes
	for range 100 {
		r.sparse(1, csc|wrapped, p.values, p.indices, p.pointers)
		r.post(command(page.CmdValues, 2, 1), command(page.CmdColumns, 3, 1, 0, 1), command(page.CmdEval, join([]uint32{4}, leaf(3))...),
			command(page.CmdClose, 0, 1), command(page.CmdClose, 0, 2), command(page.CmdClose, 0, 3), command(page.CmdClose, 0, 4))
	}
	if err := r.ask(page.CmdWait); err != nil {
		t.Fatal(err)
	}
	if after := r.dev.Stats().LiveBytes; after != before {
		t.Errorf("%d live bytes, %d before", after, before)
	}
}
