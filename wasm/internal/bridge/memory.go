// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// pageMemory is memory of the page's for the Go oracle, which stands in where no device of the platform reads and writes such
// memory itself: it copies through the page.
type pageMemory struct {
	page   page.Page
	object any
}

// Load copies bytes from the page.
func (m pageMemory) Load(at int, into []byte) int { return m.page.Load(m.object, at, into) }

// Store copies bytes to the page.
func (m pageMemory) Store(at int, from []byte) { m.page.Store(m.object, at, from) }

// host returns memory of the page's for the device.
func (b *Bridge) host(object any, size uint32) gpu.Host {
	if b.Alone {
		object = pageMemory{b.Page, object}
	}
	return gpu.Host{Foreign: object, Size: int(size)}
}

// fill replaces all of a buffer. The page sends whole words, so the last one may go beyond the buffer's end: into memory
// that nobody uses.
func (b *Bridge) fill(buf *buffer.Buffer, object any, size uint32) {
	if int64(size) < int64(buf.Size()) || int64(size) > (int64(buf.Size())+3)/4*4 {
		page.Check(fault.Fail("bridge: Write", buffer.ErrShort, itoa(int(size)), " bytes for ", itoa(buf.Size())))
	}
	if size > 0 {
		page.Check(buf.Write(0, b.host(object, uint32(buf.Size()))))
	}
}

// read copies bytes of a buffer to the page, which has room for so many, and settles the ticket. The memory is read without the
// buffer, which would keep everybody else from it meanwhile. What is queued here comes before whatever happens to the buffer later.
func (b *Bridge) read(ticket uint32, buf *buffer.Buffer, offset, width int, object any, room uint32) {
	if int64(room) < int64(width) {
		page.Check(fault.Fail("bridge: Read", buffer.ErrShort, itoa(int(room)), " bytes for ", itoa(width)))
	}
	if width == 0 {
		b.Settle(ticket, nil, nil)
		return
	}
	mem := page.Must(buf.Memory(buffer.Reads))
	transfer := gpu.Transfer{Offset: uint64(offset), Width: width, Pitch: width, Count: 1, Host: b.host(object, room)}
	b.Queue(ticket, func(ctx context.Context) (any, error) { return nil, mem.Read(ctx, transfer) })
}
