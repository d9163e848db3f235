// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"cmp"
	"encoding/binary"
	"runtime"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// tableWords is how many words of the table describe one piece of host data.
const tableWords = 5

func (h *helper) submit(l *driver.CommandList) error {
	h.tabulate(l.Data)
	var err error
	if h.shared {
		err = h.run(address(l.Words), len(l.Words), address(l.Params), len(l.Params), address(h.table))
		runtime.KeepAlive(l)
	} else {
		err = h.submitFrames(l)
	}
	clear(h.args) // JavaScript's memory must not be kept alive
	return err
}

// tabulate fills the table, with addresses in Go's memory, and notes the foreign data as arguments of the call.
func (h *helper) tabulate(data []driver.Host) {
	h.table, h.args = h.table[:0], append(h.args[:0], 0, 0, 0, 0, 0)
	for _, d := range data {
		argument, at := uint32(0), uint64(d.Offset)
		if d.Foreign != nil {
			h.args = append(h.args, d.Foreign)
			argument = uint32(len(h.args) - 5)
		} else {
			at = uint64(address(d.Mem()))
		}
		h.table = append(h.table, argument, uint32(at), uint32(at>>32), uint32(d.Size), uint32(uint64(d.Size)>>32))
	}
}

// run makes the one call that executes a list.
func (h *helper) run(words uint, wordCount int, params uint, paramsSize int, table uint) error {
	h.args[0], h.args[1], h.args[2], h.args[3], h.args[4] = words, wordCount, params, paramsSize, table
	if failed := h.fn.submit.Invoke(h.args...); !failed.IsNull() {
		return failure("browser: Submit", failed)
	}
	return nil
}

// submitFrames executes a list whose words and data JavaScript cannot see. They are copied over in one frame, unless
// there are large writes of Go memory: those cut the list.
func (h *helper) submitFrames(l *driver.CommandList) error {
	params := l.Params
	from, at, room := 0, 0, frameData
	var first error
	flush := func() {
		if from < at || len(params) > 0 {
			// A part that fails does not stop the others, so that the binding sets stay as they were checked.
			first = cmp.Or(first, h.runFrame(l, l.Words[from:at], params))
		}
		params, from, room = nil, at, frameData // the parameters stay in their buffer
	}
	for c := range l.All() {
		next := at + 1 + len(c.Words)
		if c.Op == driver.OpWrite && l.Data[c.Words[3]].Foreign == nil {
			src := l.Data[c.Words[3]]
			if src.Size > room {
				flush()
			}
			if src.Size > frameData {
				h.writePieces(driver.BufferID(c.Words[0]), c.U64(1), src.Mem())
				from = next
			} else {
				room -= src.Size
			}
		}
		at = next
	}
	flush()
	return first
}

// runFrame packs a part of a list into the scratch: its words, the table, the parameters and the data of its writes.
func (h *helper) runFrame(l *driver.CommandList, words []uint32, params []byte) error {
	f := h.frame[:0]
	f = append(f, raw(words)...)
	tableAt := len(f)
	f = append(f, raw(h.table)...)
	paramsAt := len(f)
	f = append(f, params...)
	if len(l.Data) > 0 {
		part := driver.CommandList{Words: words}
		for c := range part.All() {
			if c.Op != driver.OpWrite || l.Data[c.Words[3]].Foreign != nil {
				continue
			}
			src := l.Data[c.Words[3]]
			row := tableAt + 4*tableWords*int(c.Words[3])
			binary.LittleEndian.PutUint64(f[row+4:], uint64(len(f)))
			f = append(f, src.Mem()...)
		}
	}
	h.frame = f
	h.toScratch(f)
	return h.run(0, len(words), uint(paramsAt), len(params), uint(tableAt))
}

// writePieces writes data that is too large for a frame.
func (h *helper) writePieces(id driver.BufferID, offset uint64, data []byte) {
	for len(data) > 0 {
		piece := data[:min(len(data), frameData)]
		h.toScratch(piece)
		h.fn.write.Invoke(uint32(id), offset, len(piece))
		data, offset = data[len(piece):], offset+uint64(len(piece))
	}
}

func (h *helper) toScratch(b []byte) {
	if len(b) > h.size {
		h.scratch = h.fn.scratch.Invoke(len(b))
		h.size = h.scratch.Length()
	}
	js.CopyBytesToJS(h.scratch, b)
}
