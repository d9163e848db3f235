// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// layerOf is an operation of package nn.
func layerOf(kind uint32, operands []uint32, numbers ...float64) []uint32 {
	words := append([]uint32{kind, uint32(len(operands))}, operands...)
	for _, n := range numbers {
		b := math.Float64bits(n)
		words = append(words, uint32(b), uint32(b>>32))
	}
	return instruction(bridge.OpLayer, f32, words...)
}

// training is a command that writes to several matrices or makes several.
func training(kind uint32, made, targets, values [3]uint32, numbers [6]uint32, expr ...[]uint32) []uint32 {
	return command(page.CmdLayer, join([]uint32{kind}, made[:], targets[:], values[:], numbers[:], join(expr...))...)
}

func TestTensors(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 3, 1, 2, 3, 4, 5, 6)
	r.newMatrix(2, 1, 2, 10, 100)
	a, both := leaf(1), join(leaf(1), leaf(2))
	add := uint32(fuse.OpAdd)
	for _, c := range []struct {
		expr, words []uint32
		want        []float32
	}{
		{a, []uint32{0, 1, 0, 3, 1, 2, 3, 2, 1, 0}, []float32{1, 4, 2, 5, 3, 6}},                          // permuted
		{a, []uint32{1, 1, 0, 2, 2, 3, 0, 2, 1, 3}, []float32{2, 3, 5, 6}},                                // a slice
		{a, []uint32{2, 1, 0, 3, 2, 1, 3, 2, 2, 3}, []float32{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},        // broadcast
		{both, []uint32{3, 2, 0, 1, 2, 2, 3, 2, 2, 1, add}, []float32{11, 12, 13, 104, 105, 106}},         // zipped
		{both, []uint32{4, 2, 1, 0, 2, 1, 2, 3, 1, 2, 3}, []float32{410, 520, 630}},                       // multiplied
		{a, []uint32{3, 3, 0, 0, 0, 1, 6, 1, 6, 1, 6, uint32(fuse.OpWhere)}, []float32{1, 2, 3, 4, 5, 6}}, // of three
	} {
		r.wantRead(c.want, c.expr, instruction(bridge.OpTensor, f32, c.words...))
	}
	for _, c := range []struct {
		want  error
		words []uint32
	}{
		{gpu.ErrInvalid, []uint32{5, 1, 0, 1, 6}},                              // no such kind
		{gpu.ErrInvalid, []uint32{0, 0}},                                       // no operand
		{gpu.ErrInvalid, []uint32{0, 9, 0}},                                    // fewer than it says
		{gpu.ErrInvalid, []uint32{0, 1, 7, 1, 6}},                              // no value
		{buffer.ErrShape, []uint32{0, 1, 0, 1, 7}},                             // another number of elements
		{buffer.ErrShape, []uint32{0, 1, 0, 17, 1}},                            // fewer sizes than it says
		{gpu.ErrInvalid, []uint32{0, 1, 0, 2, 2, 3, 0, 0}},                     // a dimension twice
		{buffer.ErrIndex, []uint32{0, 1, 0, 2, 2, 3, 0, math.MaxUint32}},       // no dimension
		{buffer.ErrIndex, []uint32{1, 1, 0, 1, 6, 2, math.MaxUint32}},          // a range
		{gpu.ErrInvalid, []uint32{1, 1, 0, 1, 6, 2}},                           // half a range
		{gpu.ErrLimit, []uint32{2, 1, 0, 2, 1, 6, 1 << 30, 6}},                 // too many elements
		{gpu.ErrInvalid, []uint32{3, 1, 0, 1, 6, uint32(fuse.OpNeg)}},          // one operand
		{gpu.ErrInvalid, []uint32{3, 2, 0, 0, 1, 6, 1, 6, 255}},                // no operation
		{gpu.ErrInvalid, []uint32{3, 2, 0, 0, 1, 6, 1, 6}},                     // none at all
		{gpu.ErrInvalid, []uint32{4, 2, 0, 0, 1, 6, 1, 6}},                     // vectors
		{gpu.ErrInvalid, []uint32{3, 2, 0, 0, 1, 6, 1, 6, uint32(fuse.OpNeg)}}, // of two
		{buffer.ErrIndex, []uint32{0, 1, 0, 1, 6, 0, 7}},                       // more axes than dimensions
	} {
		_, err := r.read(6, leaf(1), instruction(bridge.OpTensor, f32, c.words...))
		if !errors.Is(err, c.want) {
			t.Errorf("%v: error %v, want %v", c.words, err, c.want)
		}
	}
}

func TestLayers(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 4, 1, 2, 3, 4)
	r.newMatrix(2, 1, 1, 10)
	r.post(command(page.CmdNew, 3, 1, 1, 1, 0, 1), command(page.CmdNew, 4, 5, 1, 1, 0, 1))
	window := []float64{1, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}
	conv := append(append([]float64{}, window...), 1, 1)
	all := join(leaf(1), leaf(2), leaf(3), leaf(4))
	r.wantRead([]float32{20, 30, 40, 50}, all, layerOf(0, []uint32{0, 1, 1}, conv...))
	r.wantRead([]float32{10, 20, 30, 40}, all, layerOf(0, []uint32{0, 1}, conv...))
	r.wantRead([]float32{10, 20, 30, 40}, all, layerOf(1, []uint32{0, 1}, conv...))
	r.wantRead([]float32{30}, all, layerOf(2, []uint32{0, 0}, conv...))
	r.wantRead([]float32{10}, all, layerOf(3, []uint32{0}, conv...))
	r.wantRead([]float32{1, 2, 3, 4}, all, layerOf(7, []uint32{0}, append(window, 1)...))
	r.wantRead([]float32{0}, all, layerOf(12, []uint32{0, 0}))
	r.wantRead([]float32{1, 2, 3, 4}, all, layerOf(15, []uint32{0, 2}))
	r.wantRead([]float32{15}, all, layerOf(17, []uint32{3, 1, 1}, 1, 2), instruction(bridge.OpBinary, f32, 1, 4), instruction(bridge.OpScalar, f32, 0), instruction(bridge.Op(fuse.OpSub), f32, 5, 6),
		instruction(bridge.Op(fuse.OpSub), f32, 7, 1), instruction(bridge.OpScalar, f32, math.Float32bits(5)), instruction(bridge.OpBinary, f32, 8, 9))

	wantError(t, second(r.read(4, all, layerOf(0, []uint32{0, 2}, conv...))), gpu.ErrInvalid) // weights of int32
	wantError(t, second(r.read(4, all, layerOf(10, []uint32{0, 1}))), gpu.ErrInvalid)         // labels of float32
	wantError(t, second(r.read(4, all, layerOf(4, []uint32{1}, window...))), buffer.ErrShape)
	wantError(t, second(r.read(4, all, layerOf(14, []uint32{0, 0}, math.NaN()))), gpu.ErrInvalid)
	wantError(t, second(r.read(4, all, layerOf(17, []uint32{0, 1, 1}, 1, 2))), gpu.ErrInvalid)

	// Whatever numbers and operands there are, an error has a name.
	rnd := rand.New(rand.NewPCG(1, 2))
	numbers := []float64{-1, 0, 1, 1, 2, 2, 3, 1 << 31, 1 << 40, 0.5, math.NaN(), math.Inf(1), math.Inf(-1)}
	for i := range 4000 {
		kind := rnd.Uint32N(19)
		operands := make([]uint32, rnd.IntN(6))
		for i := range operands {
			operands[i] = rnd.Uint32N(5)
		}
		list := make([]float64, []int{15, 15, 15, 15, 13, 13, 14, 14, 2, 3, 0, 0, 0, 0, 1, 0, 1, 2, 0}[kind])
		copy(list, conv)
		for range rnd.IntN(3) {
			if len(list) > 0 {
				list[rnd.IntN(len(list))] = numbers[rnd.IntN(len(numbers))]
			}
		}
		_, err := r.read(16, all, layerOf(kind, operands, list[:len(list)-rnd.IntN(2)*rnd.IntN(len(list)+1)]...))
		if _, typed := errors.AsType[*fault.Sentinel](err); err != nil && !typed || errors.Is(err, page.ErrInternal) {
			t.Fatalf("%d: layer %d of %v, %v: %v", i, kind, operands, list, err)
		}
	}
}

func second(_ []float32, err error) error { return err }

func TestOptimisers(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	r.newMatrix(2, 1, 2, 4, 8)
	rate := [6]uint32{math.Float32bits(0.5)}
	step := func(kind, optimiser, param uint32, numbers [6]uint32) []uint32 {
		return training(kind, [3]uint32{optimiser}, [3]uint32{param}, [3]uint32{0}, numbers, leaf(2))
	}
	r.post(step(0, 9, 1, rate))
	r.wantRead([]float32{-1, -2}, leaf(1))
	for kind := range uint32(6) {
		r.post(step(kind, 20+kind, 1, [6]uint32{}))
		wantError(t, r.ask(page.CmdWait), nil)
	}
	r.post(step(1, 20, 1, rate)) // an optimiser of another kind, which whoever reads the parameter is told
	wantError(t, second(r.read(2, leaf(1))), gpu.ErrInvalid)
	wantError(t, r.ask(page.CmdWait), nil)
	r.wantRead([]float32{-1, -2}, leaf(1))
	r.post(step(0, 1, 2, rate)) // a matrix
	wantError(t, r.ask(page.CmdWait), gpu.ErrInvalid)
	r.post(step(0, 9, 999, rate)) // no parameter
	wantError(t, r.ask(page.CmdWait), gpu.ErrInvalid)
	r.post(step(0, 9, 20, rate)) // an optimiser as the parameter
	wantError(t, r.ask(page.CmdWait), gpu.ErrInvalid)
	r.post(step(8, 30, 1, rate), training(0, [3]uint32{9}, [3]uint32{1}, [3]uint32{7}, rate, leaf(2))) // no kind, no value
	wantError(t, r.ask(page.CmdWait), gpu.ErrInvalid)
	r.post(command(page.CmdEval, join([]uint32{40}, leaf(20))...))
	wantError(t, r.ask(page.CmdWait), gpu.ErrInvalid) // an optimiser as a matrix
	for h := uint32(20); h < 26; h++ {
		r.post(command(page.CmdClose, 0, h))
	}
	_, _ = r.read(2, leaf(1))
	_, _ = r.read(2, leaf(2))
	r.wantRead([]float32{-1, -2}, leaf(1))
}

func TestBatchNorm(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 1, 1, 3)
	r.newMatrix(2, 1, 1, 2)
	r.newMatrix(3, 2, 1, 0, 0)
	epsilon := [6]uint32{0, 0, 0x3f800000}
	r.post(training(6, [3]uint32{10, 11}, [3]uint32{3}, [3]uint32{0, 1, 1}, epsilon, leaf(1), leaf(2)))
	r.wantRead([]float32{0, 4}, leaf(3))
	r.wantRead([]float32{2}, leaf(10))
	r.wantRead([]float32{1}, leaf(11))
	for _, c := range []struct{ made, targets, values [3]uint32 }{
		{[3]uint32{12, 12}, [3]uint32{3}, [3]uint32{0, 1, 1}},          // one handle twice
		{[3]uint32{12, 3}, [3]uint32{3}, [3]uint32{0, 1, 1}},           // one in use
		{[3]uint32{12, 13}, [3]uint32{2}, [3]uint32{0, 1, 1}},          // a destination of another size
		{[3]uint32{12, 13}, [3]uint32{0}, [3]uint32{0, 1, 1}},          // none
		{[3]uint32{12, 13}, [3]uint32{3, 2, 0}, [3]uint32{0, 1, 1}},    // half the running statistics
		{[3]uint32{12, 13}, [3]uint32{3, 3, 3}, [3]uint32{0, 1, 1}},    // of another size
		{[3]uint32{12, 13}, [3]uint32{3}, [3]uint32{0, 1, 0x80000000}}, // no value
	} {
		r.post(training(6, c.made, c.targets, c.values, epsilon, leaf(1), leaf(2)))
		err := r.ask(page.CmdWait)
		if !errors.Is(err, gpu.ErrInvalid) && !errors.Is(err, buffer.ErrShape) {
			t.Errorf("%v: error %v", c, err)
		}
		for h := uint32(12); h < 14; h++ {
			r.post(command(page.CmdClose, 0, h))
		}
		for h := uint32(2); h < 4; h++ {
			_, _ = r.read(2, leaf(h)) // tells
		}
		r.wantRead([]float32{0, 4}, leaf(3))
	}
}

func TestQuantisation(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 1, 1, 3)
	r.newMatrix(3, 2, 1, 0, 4)
	residual := [3]uint32{3}
	r.post(training(7, [3]uint32{15, 16, 17}, residual, [3]uint32{0}, [6]uint32{1}, leaf(1))) // 1 and 3+4 of one bit
	r.wantRead([]float32{1}, leaf(16))
	r.wantRead([]float32{7}, leaf(17))
	r.wantRead([]float32{0, 0}, leaf(3))
	r.wantRead([]float32{1, 7}, leaf(15), leaf(16), leaf(17), layerOf(17, []uint32{0, 1, 2}, 2, 1))
	for _, bits := range []uint32{0, 9, math.MaxUint32} {
		r.post(training(7, [3]uint32{25, 26, 27}, [3]uint32{}, [3]uint32{0}, [6]uint32{bits}, leaf(1)))
		wantError(t, second(r.read(1, leaf(26))), gpu.ErrInvalid)
		for h := uint32(25); h < 28; h++ {
			r.post(command(page.CmdClose, 0, h))
		}
		_ = r.ask(page.CmdWait)
	}
}
