// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"
)

// FuzzWords: arbitrary words can be decoded, printed and checked; what is refused changes nothing, and what is accepted
// stays within every buffer and within the list.
func FuzzWords(f *testing.F) {
	seed := func(build func(l *CommandList)) {
		var l CommandList
		build(&l)
		var b []byte
		for _, w := range l.Words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		f.Add(b)
	}
	seed(func(l *CommandList) { *l = *sample() })
	seed(func(l *CommandList) { l.Write(1, 0, Host{}); l.Copy(1, 8, 2, 0, 64); l.Clear(2, 0, 1024) })
	seed(func(l *CommandList) {
		l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
		l.Unbind(1)
		l.Bind(1, testKernel.Layout, []Binding{{2, 256, 256}})
		l.Dispatch(1, 1, [3]uint32{100, 0, 100}, nil)
	})
	seed(func(l *CommandList) { l.Bind(2, testKernel.Layout, []Binding{{1, 0, 4}}); l.Unbind(2); l.Unbind(2) })
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &CommandList{Params: make([]byte, 512), Data: []Host{HostBytes(make([]byte, 64)), {Size: 4}}}
		for ; len(b) >= 4; b = b[4:] {
			l.Words = append(l.Words, binary.LittleEndian.Uint32(b))
		}
		checkDecoding(t, l)
		o := newTestObjects(t)
		before := slices.Clone(o.sets)
		if o.Check(l) != nil {
			for i, s := range o.sets {
				if i < len(before) && !reflect.DeepEqual(s, before[i]) || i >= len(before) && s != nil {
					t.Fatalf("a refused list changed set %d", i)
				}
			}
			return
		}
		for c := range l.All() {
			checkAccepted(t, o, l, c)
		}
	})
}

// checkDecoding wants the commands to be the words in their order, with nothing left out before the first mistake.
func checkDecoding(t *testing.T, l *CommandList) {
	at := 0
	for c := range l.All() {
		if c.Op == 0 {
			break
		}
		if l.Words[at] != uint32(len(c.Words)+1)<<8|uint32(c.Op) || &c.Words[0] != &l.Words[at+1] {
			t.Fatalf("word %d is not the header of %v", at, c)
		}
		at += 1 + len(c.Words)
	}
}

func checkAccepted(t *testing.T, o *Objects, l *CommandList, c Command) {
	inside := func(id uint32, offset, size uint64) {
		t.Helper()
		if n := o.BufferSize(BufferID(id)); n == 0 || offset > n || size > n-offset || offset%4 != 0 || size%4 != 0 {
			t.Fatalf("accepted %d bytes at %d of buffer %d in\n%d", size, offset, id, l.Words)
		}
	}
	switch w := c.Words; c.Op {
	case OpWrite:
		inside(w[0], c.U64(1), (uint64(len(l.Data[w[3]].Bytes))+3)&^3)
	case OpCopy:
		inside(w[0], c.U64(1), c.U64(6))
		inside(w[3], c.U64(4), c.U64(6))
	case OpClear:
		inside(w[0], c.U64(1), c.U64(3))
	case OpBind:
		for _, e := range c.Bindings() {
			inside(uint32(e.Buffer), e.Offset, e.Size)
		}
	case OpDispatch:
		if w[0] != 1 || max(w[2], w[3], w[4]) > 100 || int(w[5]) >= len(l.Params) {
			t.Fatalf("accepted the dispatch %v", w)
		}
	case OpUnbind:
	default:
		t.Fatalf("accepted operation %d", c.Op)
	}
}
