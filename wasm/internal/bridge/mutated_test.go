// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// mutator makes encoded programs, most of them right, and spoils them.
type mutator struct {
	*rand.Rand
	leaves int
}

func (m *mutator) pick(list ...uint32) uint32 { return list[m.IntN(len(list))] }

// expression is a program of up to so many instructions, about as JavaScript writes it.
func (m *mutator) expression(most int) (words []uint32) {
	words = leaf(1 + m.Uint32N(uint32(m.leaves)))
	for n := uint32(1); n < uint32(1+m.IntN(most)); n++ {
		x, y := m.value(n), m.value(n)
		t := matrix.DType(m.pick(0, 0, 0, 1, 2, 3, 4, 8))
		size := func() uint32 { return m.pick(0, 1, 1, 2, 2, 3) }
		words = append(words, [][]uint32{
			leaf(1 + m.Uint32N(uint32(m.leaves))),
			instruction(bridge.OpScalar, t, m.Uint32()),
			instruction(bridge.OpFill, t, m.Uint32(), size(), size()),
			instruction(bridge.OpTranspose, t, x),
			instruction(bridge.OpSlice, t, x, 0, size(), 0, size()),
			instruction(bridge.OpReshape, t, x, size(), size()),
			instruction(bridge.OpCast, t, x),
			instruction(bridge.OpMatMul, t, x, y),
			instruction(bridge.OpCall, t, 1, x),
			instruction(bridge.OpShape, t, m.Uint32N(40), m.pick(0, 1, 2), x, 0, m.pick(0x40000000, 0x3ff00000, 0xbff00000), 0, 0x3ff00000),
			instruction(bridge.OpReduce, t, x, m.Uint32N(20), m.pick(0, 1, 2), m.pick(0, 0x3f800000, 0x40400000)),
			instruction(bridge.OpSoftmax, t, x, m.pick(0, 1, 2)),
			instruction(bridge.OpHardmax, t, x, m.pick(0, 1, 2)),
			instruction(bridge.OpArgSort, t, x, m.pick(0, 1, 2)),
			instruction(bridge.OpTopK, t, x, m.pick(1, 2), size()),
			instruction(bridge.OpTensor, t, m.Uint32N(2), 1, x, 2, size(), size(), m.Uint32N(2), m.Uint32N(2), m.Uint32N(2), size()),
			instruction(bridge.OpTensor, t, m.pick(3, 4), 2, x, y, 2, size(), size(), 2, size(), size(), 32+m.Uint32N(110)),
			layerOf(m.Uint32N(19), []uint32{x, y}[:1+m.IntN(2)], []float64{1, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1}[:m.pick(0, 1, 13, 14, 15)]...),
			instruction(bridge.Op(32+m.IntN(80)), t, x),
			instruction(bridge.Op(32+m.IntN(80)), t, x, y),
		}[m.IntN(20)]...)
	}
	return words
}

// training is a command of package nn without its expression: what it makes has the handles 60 to 62.
func (m *mutator) training() []uint32 {
	made, targets := [3]uint32{60, 61, 62}, [3]uint32{m.pick(2, 2, 3), m.pick(0, 2), m.pick(0, 2)}
	values, numbers := [3]uint32{0, m.Uint32N(3), m.Uint32N(3)}, [6]uint32{m.pick(0, 1, 8), m.pick(0, 0x3f000000), 0, 0, 0, m.Uint32()}
	return training(m.Uint32N(9), made, targets, values, numbers)[1:]
}

// value is the number of an earlier value.
func (m *mutator) value(n uint32) uint32 { return n - 1 - min(m.Uint32N(n), m.Uint32N(n)) }

// spoil changes some words.
func (m *mutator) spoil(words []uint32) []uint32 {
	for range m.IntN(4) {
		if len(words) == 0 {
			return words
		}
		i := m.IntN(len(words))
		switch m.IntN(6) {
		case 0:
			words[i] ^= 1 << m.IntN(32)
		case 1:
			words[i] = m.pick(0, 1, 2, 3, 64, 255, 256, 1<<16, 1<<20, 1<<31-1, 1<<31, math.MaxUint32, m.Uint32())
		case 2:
			words = slices.Delete(words, i, i+1)
		case 3:
			words = slices.Insert(words, i, words[m.IntN(len(words))])
		case 4:
			words = words[:i]
		default:
			j := i + m.IntN(len(words)-i)
			words = append(words, words[i:j]...)
		}
	}
	return words
}

// TestMutatedPrograms decodes programs that somebody has tampered with: they work or are an error that has a name, take no more than their
// time and no memory, and leave what they do not write.
func TestMutatedPrograms(t *testing.T) {
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("SUBLET_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("SUBLET_SEED=%d", seed)
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, 0)), leaves: 5}
	r := newRig(t)
	right := 0
	for i := range devtest.Times(4000) {
		if i%100 == 0 {
			r = newRig(t)
			r.newMatrix(1, 2, 2, 1, 2, 3, 4)
			r.newMatrix(2, 2, 3, 1, 2, 3, 4, 5, 6)
			r.post(command(page.CmdNew, 3, 1, 2, 2, 0, 2), command(page.CmdNew, 4, 1<<8, 3, 2, 0, 3), command(page.CmdNew, 5, 3, 2, 2, 0, 2))
			r.newMatrix(100, 2, 2, 5, 6, 7, 8)
			r.post(command(page.CmdFunc, 1, r.page.put("fn f(x: f32) -> f32 { return x; }")))
			wantError(t, r.ask(page.CmdWait), nil)
		}
		live := r.dev.Stats().LiveBytes
		x := m.spoil(m.expression(8))
		into := r.page.put(make([]byte, 64))
		var err error
		grows := false
		switch m.IntN(7) {
		case 6:
			err = r.ask(page.CmdRecord, append([]uint32{50}, m.spoil(assignment(2, x))...)...)
			r.post(command(page.CmdReplay, 50), command(page.CmdClose, 0, 50))
		case 3:
			r.post(command(page.CmdLayer, append(m.training(), x...)...))
			for h := uint32(60); h < 63; h++ {
				r.post(command(page.CmdClose, 0, h))
			}
			err = r.ask(page.CmdWait)
		case 0:
			r.post(command(page.CmdEval, append([]uint32{50}, x...)...), command(page.CmdClose, 0, 50))
			err = r.ask(page.CmdWait)
		case 1:
			r.post(command(page.CmdAssign, append([]uint32{m.Uint32N(3)}, x...)...))
			err = r.ask(page.CmdWait)
		case 2:
			grows = true // to what it has to hold, and it keeps that
			err = r.ask(page.CmdSetValue, append([]uint32{51, 2}, x...)...)
			r.post(command(page.CmdSetValue, append([]uint32{0, 2, 51}, leaf(1)...)...)) // whatever became of it
		default:
			err = r.ask(page.CmdRead, append([]uint32{into, 64}, x...)...)
		}
		if _, typed := errors.AsType[*fault.Sentinel](err); err != nil && !typed || errors.Is(err, page.ErrInternal) {
			t.Fatalf("program %d, %x: %v", i, x, err)
		}
		if err == nil {
			right++
		}
		_ = r.ask(page.CmdWait) // what is left to be told
		if i%10 == 0 {
			r.wantRead([]float32{5, 6, 7, 8}, leaf(100))
		}
		if s := r.dev.Stats(); !grows && s.LiveBytes > live+4096 {
			t.Fatalf("program %d, %x: %d bytes are left, %d before, err %v", i, x, s.LiveBytes, live, err)
		}
	}
	if right < 200 {
		t.Errorf("only %d programs were right", right)
	}
}
