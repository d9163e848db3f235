// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// sample is a list with every command.
func sample() *CommandList {
	l := new(CommandList)
	l.Write(1, 8, HostBytes(make([]byte, 24)))
	l.Copy(2, 1<<33, 1, 4, 16)
	l.Clear(2, 0, 1<<40)
	l.Bind(7, NewLayout(AccessRead, AccessParams, AccessReadWrite), []Binding{{1, 0, 64}, {2, 256, 128}})
	l.Bind(8, 0, nil)
	l.Dispatch(3, 7, [3]uint32{1, 2, 3}, words(5, 6))
	l.Unbind(7)
	return l
}

func TestCommandListAll(t *testing.T) {
	commands := slices.Collect(sample().All())
	var ops []Op
	for _, c := range commands {
		ops = append(ops, c.Op)
	}
	if want := []Op{OpWrite, OpCopy, OpClear, OpBind, OpBind, OpDispatch, OpUnbind}; !slices.Equal(ops, want) {
		t.Fatalf("got %v, want %v", ops, want)
	}
	if c := commands[1]; c.Words[0] != 2 || c.U64(1) != 1<<33 || c.Words[3] != 1 || c.U64(4) != 4 || c.U64(6) != 16 {
		t.Errorf("copy: %v", c.Words)
	}
	bind := commands[3]
	if Layout(bind.U64(1)) != NewLayout(AccessRead, AccessParams, AccessReadWrite) || !slices.Equal(bind.Bindings(), []Binding{{1, 0, 64}, {2, 256, 128}}) {
		t.Errorf("bind: %v", bind.Words)
	}
	if len(commands[4].Bindings()) != 0 {
		t.Errorf("bind of nothing: %v", commands[4].Words)
	}
	if c := commands[5]; !slices.Equal(c.Words, []uint32{3, 7, 1, 2, 3, 0}) {
		t.Errorf("dispatch: %v", c.Words)
	}
	for range sample().All() {
		break // and nothing comes after it
	}
}

func TestCommandListMalformed(t *testing.T) {
	h := func(op Op, words uint32) uint32 { return words<<8 | uint32(op) }
	for _, words := range [][]uint32{
		{0},
		{math.MaxUint32},
		{h(OpDispatch+1, 1)},
		{h(OpUnbind, 0), 1},
		{h(OpUnbind, 1), 1},
		{h(OpUnbind, 2)},
		{h(OpUnbind, 3), 1, 2},
		{h(OpWrite, 6), 1, 0, 0, 0, 0},
		{h(OpBind, 3), 1, 0},
		{h(OpDispatch, 7), 1, 1, 1, 1, 1},
	} {
		l := CommandList{Words: append([]uint32{h(OpUnbind, 2), 5}, words...)}
		got := slices.Collect(l.All())
		if len(got) != 2 || got[0].Op != OpUnbind || got[1].Op != 0 || got[1].Words != nil {
			t.Errorf("%#x: got %v, want the good command and the end", words, got)
		}
	}
}

func TestCommandListParams(t *testing.T) {
	var l CommandList
	var offsets []uint32
	for _, p := range [][]uint32{{1, 2}, {1, 2}, {1}, {1, 2, 0}, {3}, {1, 2}, nil, {1, 2}} {
		l.Dispatch(1, 1, [3]uint32{}, words(p...))
		offsets = append(offsets, l.Words[len(l.Words)-1])
	}
	// A block is found again while it is the last one, also as the beginning of what is there, zeros included.
	if want := []uint32{0, 0, 0, 0, 256, 512, 0, 512}; !slices.Equal(offsets, want) {
		t.Errorf("got offsets %v, want %v", offsets, want)
	}
	if want := 3 * paramsAlign; len(l.Params) != want {
		t.Errorf("got %d bytes of parameters, want %d", len(l.Params), want)
	}
	l.Dispatch(1, 1, [3]uint32{}, make([]byte, paramsAlign+4))
	l.Dispatch(1, 1, [3]uint32{}, []byte{9})
	if at := l.Words[len(l.Words)-1]; at != 5*paramsAlign || l.Params[at] != 9 {
		t.Errorf("behind a block of more than %d bytes comes %d", paramsAlign, at)
	}
}

func TestCommandListReset(t *testing.T) {
	l := sample()
	if len(l.Words) == 0 {
		t.Error("a list with commands is empty")
	}
	data := l.Data
	l.Reset()
	if len(l.Words) > 0 || len(l.Params) != 0 || len(l.Data) != 0 {
		t.Errorf("after Reset: %+v", l)
	}
	if data[0].Bytes != nil {
		t.Error("a list that was reset keeps host memory alive")
	}
	l.Dispatch(1, 1, [3]uint32{}, []byte{1}) // a block of the time before must not be found
	if len(l.Params) != paramsAlign || l.Params[0] != 1 {
		t.Errorf("the first block after Reset is %v", l.Params)
	}
}

// words returns the bytes of numbers.
func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}
