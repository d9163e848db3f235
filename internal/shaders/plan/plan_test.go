// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

func TestFunc(t *testing.T) {
	f := fuse.Identity(fuse.View{Type: fuse.F16, Class: fuse.Vector})
	if g := (&Pass[int]{}).Func(f, fuse.F32); g != f {
		t.Errorf("the last pass stores by %+v", g)
	}
	for _, typ := range []fuse.Type{fuse.F32, fuse.I32, fuse.U32} {
		g := (&Pass[int]{To: Scratch}).Func(f, typ)
		if g.Store != (fuse.View{Type: typ, Class: fuse.Vector}) || g.Type != typ || !g.Slots[0].Vec {
			t.Errorf("partial results of type %d are stored by %+v", typ, g)
		}
	}
}

func TestPlace(t *testing.T) {
	result := fuse.Place{Offset: 7, Row: 8, Col: 9}
	if p := (&Pass[int]{}).Place(result); p != result {
		t.Error(p)
	}
	if p := (&Pass[int]{To: Scratch, Row: 12}).Place(result); p != (fuse.Place{Row: 12, Col: 1}) {
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
