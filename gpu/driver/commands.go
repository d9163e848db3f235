// SPDX-License-Identifier: Apache-2.0

package driver

import "iter"

// Op is the kind of a command.
type Op uint32

// The commands. Each is a header word, its length in words << 8 | Op, and then the words named here. Values of 64 bits
// take two words, the low one first.
//
//	OpWrite    buffer offset64 data              host data number `data` into the buffer, at a multiple of 4; after data of another
//	                                             size zeros follow up to the next one
//	OpCopy     dst dstOffset64 src srcOffset64 size64   between two buffers; multiples of 4
//	OpClear    buffer offset64 size64            zeros; multiples of 4
//	OpBind     bindings layout64 (buffer offset64 size64)*   defines a binding set, one entry per storage binding of the layout
//	OpUnbind   bindings                          forgets it
//	OpDispatch kernel bindings x y z params      params is a byte offset into CommandList.Params
//	OpTimestamp buffer offset64                  the device's clock, 64 bits, once what stands before is done; a multiple of 8
const (
	OpWrite Op = 1 + iota
	OpCopy
	OpClear
	OpBind
	OpUnbind
	OpDispatch
	OpTimestamp
)

// MaxParams is the size of the largest parameter block. A block begins in [CommandList.Params] at a multiple of paramsAlign,
// which every device takes as a dynamic offset.
const (
	MaxParams   = 1024
	paramsAlign = 256
)

// Binding is a part of a buffer that a kernel sees. Offset is a multiple of the device's BindingOffsetAlign.
type Binding struct {
	Buffer       BufferID
	Offset, Size uint64
}

// CommandList is a program for a device. The zero value is empty and ready, nil takes nothing. It is not safe for concurrent use.
type CommandList struct {
	Words  []uint32
	Params []byte // parameter blocks of the dispatches; a multiple of 4 bytes
	Data   []Host // host memory of the writes
	Number uint64 // what a [Refusal] calls the list; 0 if nobody wants to know
	More   bool   // a Read follows at once, with which the device may begin the list

	last int // where the last parameter block begins, for reuse
}

// Reset empties the list and keeps its memory.
func (l *CommandList) Reset() {
	if l == nil {
		return
	}
	clear(l.Data) // host memory must not be kept alive
	l.Number, l.More = 0, false
	l.Words, l.Params, l.Data, l.last = l.Words[:0], l.Params[:0], l.Data[:0], 0
}

// add appends a command of these words.
func (l *CommandList) add(op Op, words ...uint32) {
	if l == nil {
		return
	}
	l.Words = append(l.Words, uint32(len(words)+1)<<8|uint32(op))
	l.Words = append(l.Words, words...)
}

func low(v uint64) uint32  { return uint32(v) }
func high(v uint64) uint32 { return uint32(v >> 32) }

// Write copies host memory into a buffer.
func (l *CommandList) Write(dst BufferID, offset uint64, src Host) {
	if l == nil {
		return
	}
	l.add(OpWrite, uint32(dst), low(offset), high(offset), uint32(len(l.Data)))
	l.Data = append(l.Data, src)
}

// Copy copies between two different buffers.
func (l *CommandList) Copy(dst BufferID, dstOffset uint64, src BufferID, srcOffset, size uint64) {
	l.add(OpCopy, uint32(dst), low(dstOffset), high(dstOffset), uint32(src), low(srcOffset), high(srcOffset), low(size), high(size))
}

// Clear writes zeros.
func (l *CommandList) Clear(dst BufferID, offset, size uint64) {
	l.add(OpClear, uint32(dst), low(offset), high(offset), low(size), high(size))
}

// Bind defines a binding set for kernels of the layout. The id must be free.
func (l *CommandList) Bind(id BindingsID, layout Layout, entries []Binding) {
	words := []uint32{uint32(id), low(uint64(layout)), high(uint64(layout))}
	for _, e := range entries {
		words = append(words, uint32(e.Buffer), low(e.Offset), high(e.Offset), low(e.Size), high(e.Size))
	}
	l.add(OpBind, words...)
}

// Unbind forgets a binding set.
func (l *CommandList) Unbind(id BindingsID) { l.add(OpUnbind, uint32(id)) }

// Dispatch runs a kernel. params is copied; a block equal to the one before is stored once.
func (l *CommandList) Dispatch(k KernelID, b BindingsID, groups [3]uint32, params []byte) {
	l.add(OpDispatch, uint32(k), uint32(b), groups[0], groups[1], groups[2], l.block(params))
}

// Timestamp writes the device's clock into 8 bytes of a buffer, in ticks of [Limits].TimestampPeriod.
func (l *CommandList) Timestamp(dst BufferID, offset uint64) {
	l.add(OpTimestamp, uint32(dst), low(offset), high(offset))
}

var padding [paramsAlign]byte

func (l *CommandList) block(params []byte) uint32 {
	if l == nil || len(params) == 0 {
		return 0
	}
	if end := l.last + len(params); end <= len(l.Params) && string(l.Params[l.last:end]) == string(params) {
		return uint32(l.last)
	}
	l.last = len(l.Params)
	l.Params = append(l.Params, params...)
	l.Params = append(l.Params, padding[:-len(l.Params)&(paramsAlign-1)]...)
	return uint32(l.last)
}

// Command is one decoded command: its operation and its words after the header.
type Command struct {
	Op    Op
	Words []uint32
}

// U64 joins words i and i+1, 0 where the command is shorter.
func (c Command) U64(i int) uint64 {
	if i < 0 || i >= len(c.Words)-1 {
		return 0
	}
	return uint64(c.Words[i]) | uint64(c.Words[i+1])<<32
}

// Bindings returns the entries of an OpBind.
func (c Command) Bindings() []Binding {
	entries := make([]Binding, max(0, len(c.Words)-3)/5)
	for i := range entries {
		at := 3 + 5*i
		entries[i] = Binding{BufferID(c.Words[at]), c.U64(at + 1), c.U64(at + 3)}
	}
	return entries
}

// words an operation has after its header; an OpBind has 5 more for each of its entries.
var opWords = [...]int{OpWrite: 4, OpCopy: 8, OpClear: 5, OpBind: 3, OpUnbind: 1, OpDispatch: 6, OpTimestamp: 3}

// All decodes the list. A word that is no command ends it with a Command of Op 0.
func (l *CommandList) All() iter.Seq[Command] {
	return func(yield func(Command) bool) {
		for w := l.Words; len(w) > 0; {
			op, n := Op(w[0]&0xff), int(w[0]>>8)
			if op == 0 || int(op) >= len(opWords) || n > len(w) || n < opWords[op]+1 || op != OpBind && n > opWords[op]+1 {
				yield(Command{})
				return
			}
			if !yield(Command{op, w[1:n]}) {
				return
			}
			w = w[n:]
		}
	}
}
