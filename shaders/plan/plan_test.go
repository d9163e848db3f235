// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"testing"

	"github.com/sublet-gpu/sublet/shaders/fuse"
)

// TestFunc checks which function completes which pass.
func TestFunc(t *testing.T) {
	view := fuse.View{Type: fuse.F32, Class: fuse.Vector}
	tail := fuse.Identity(view)
	head := &fuse.Func{
		Code: []fuse.Instr{{Op: fuse.OpLoad}}, Loads: []fuse.View{view}, Store: fuse.View{Type: fuse.F16, Class: fuse.Gather},
		Slots: []fuse.Slot{{Type: fuse.F16}},
	}
	for _, c := range []struct {
		pass  Pass[int]
		same  *fuse.Func
		moved bool
	}{
		{Pass[int]{Head: true}, head, false},
		{Pass[int]{}, tail, false},
		{Pass[int]{Head: true, To: Scratch1}, nil, true},
		{Pass[int]{To: Scratch0}, nil, false},
	} {
		f, moved := c.pass.Func(head, tail, fuse.F32)
		if moved != c.moved || c.same != nil && f != c.same {
			t.Errorf("%+v: %+v, moved %v", c.pass, f, moved)
		}
		if c.same == nil && (f.Store != view || !f.Slots[0].Vec) {
			t.Errorf("%+v does not store vectors in scratch memory: %+v", c.pass, f)
		}
		if moved && (f.Loads[0].Slot != 1 || f.Slots[1] != head.Slots[0] || head.Loads[0].Slot != 0) {
			t.Errorf("the operand is in slot %d of %v", f.Loads[0].Slot, f.Slots)
		}
	}
}

func TestPlace(t *testing.T) {
	result := fuse.Place{Offset: 7, Row: 8, Col: 9}
	if p := (&Pass[int]{}).Place(result); p != result {
		t.Error(p)
	}
	if p := (&Pass[int]{To: Scratch0, Row: 12}).Place(result); p != (fuse.Place{Row: 12, Col: 1}) {
		t.Error(p)
	}
}

func TestWords(t *testing.T) {
	if b := Words([]byte{1}, 0x01020304, 5); !bytes.Equal(b, []byte{1, 4, 3, 2, 1, 5, 0, 0, 0}) {
		t.Error(b)
	}
	for n, q := range map[int]int{0: 0, 1: 1, 4: 1, 5: 2} {
		if Quads(n) != q {
			t.Error(n, Quads(n))
		}
	}
}
