// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"math/rand/v2"
	"runtime"
	"syscall/js"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// helper is the JavaScript half of a device, which executes command lists; see the class Session of glue.js.
type helper struct {
	shared  bool // the helper sees Go's memory
	session js.Value
	run     js.Value // its method submit
	read    js.Value // and read

	table []uint32 // of the current list's host data; see submit in glue.js
	args  []any
	// Where memory is not shared, a list is packed into a frame, which is copied to JavaScript's scratch at once.
	frame   []byte
	scratch js.Value
	size    int // of the scratch
}

// glueVersion is the version of the helper that this driver talks to.
const glueVersion = 9

// provideHelper installs the helper, where the page allows it. With the tag sublet_page it is nil: the page brings the helper,
// always, as the npm package does, and a program is smaller by the copy of it.
var provideHelper func(context.Context)

// helperObject returns the helper: the page's own, or the one that the program brings.
func helperObject(ctx context.Context) (js.Value, error) {
	const op = "browser: Open"
	err := fault.Ended(ctx, op)
	if err == nil && presentHelper().IsUndefined() && provideHelper != nil {
		provideHelper(ctx)
		err = fault.Ended(ctx, op)
	}
	present := presentHelper()
	if err != nil || !present.IsUndefined() {
		return present, err
	}
	return present, fault.Fail(op, fault.ErrUnsupported, "the page has to load glue.js of this version, as its policy lets no program do so")
}

// presentHelper returns the helper if it is there and speaks our version.
func presentHelper() js.Value {
	key := js.Global().Get("Symbol").Call("for", "sublet.glue")
	found := js.Global().Get("Reflect").Call("get", js.Global(), key)
	if found.Type() != js.TypeObject || number(found, "version") != glueVersion {
		return js.Undefined()
	}
	return found
}

// newHelper starts a session of the helper for a device.
func newHelper(glue js.Value, d *device) *helper {
	proof := []uint32{rand.Uint32(), rand.Uint32(), rand.Uint32(), rand.Uint32()}
	opened := glue.Call("open", d.handle, d.owned, settle, d.faults, d.lost, address(proof), proof[0], proof[1], proof[2], proof[3])
	runtime.KeepAlive(proof)
	session := opened.Get("session")
	// Calling a bound function is several times cheaper than calling a method by name.
	bound := func(method string) js.Value { return session.Get(method).Call("bind", session) }
	return &helper{shared: opened.Get("shared").Bool(), session: session, run: bound("submit"), read: bound("read")}
}

// address returns where a slice begins in Go's memory, which is what the helper calls it. Slices that come here are on
// the heap, which does not move: they have passed through an interface.
func address[T any](s []T) uint { return uint(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

// call calls a method of the session.
func (h *helper) call(method string, args ...any) js.Value { return h.session.Call(method, args...) }

func (h *helper) submit(l *driver.CommandList) error {
	if err := h.tabulate(l.Data); err != nil {
		return err
	}
	defer clear(h.args) // JavaScript's memory must not be kept alive
	words, params, table := address(l.Words), address(l.Params), address(h.table)
	if !alwaysShared && !h.shared {
		words, params, table = h.pack(l)
	}
	h.args[0], h.args[1], h.args[2], h.args[3], h.args[4], h.args[5], h.args[6] = words, len(l.Words), params, len(l.Params), table, l.Number, l.More
	failed := h.run.Invoke(h.args...)
	runtime.KeepAlive(l)
	if !failed.IsNull() {
		return failure("browser: Submit", failed)
	}
	return nil
}

// pack copies a list and its table to the helper's scratch, and returns where the parts begin there.
func (h *helper) pack(l *driver.CommandList) (words, params, table uint) {
	h.frame = append(h.frame[:0], host.BytesOf(l.Words)...)
	table = uint(len(h.frame))
	h.frame = append(h.frame, host.BytesOf(h.table)...)
	params = uint(len(h.frame))
	h.frame = append(h.frame, l.Params...)
	if len(h.frame) > h.size {
		h.scratch = h.session.Call("scratch", len(h.frame))
		h.size = h.scratch.Length()
	}
	js.CopyBytesToJS(h.scratch, h.frame)
	return 0, params, table
}

// tabulate fills the table of host data; see submit in glue.js. Foreign memory, and a copy of Go's where the helper does not
// see it, become arguments of the call.
func (h *helper) tabulate(data []driver.Host) error {
	h.table, h.args = h.table[:0], append(h.args[:0], 0, 0, 0, 0, 0, 0, false)
	for _, d := range data {
		if err := objectHost("browser: Submit", d); err != nil {
			return err
		}
		if !alwaysShared && d.Foreign == nil && !h.shared {
			d.Foreign, d.Offset = copied(d.Mem()), 0
		}
		argument, at := uint32(0), uint64(d.Offset)
		if d.Foreign == nil {
			at = uint64(address(d.Mem()))
		} else {
			h.args = append(h.args, d.Foreign)
			argument = uint32(len(h.args) - 7)
		}
		h.table = append(h.table, argument, uint32(at), uint32(at>>32), uint32(d.Size), uint32(uint64(d.Size)>>32))
	}
	return nil
}

// begin begins a readback of size bytes and, where the helper can, has it copy the rows of the transfer, after so many bytes, as soon as
// they are there. The memory must stay where it is until the ticket is settled or dropped.
func (h *helper) begin(ticket int, from, size uint64, t driver.Transfer) {
	skip, at, count := int(t.Offset-from), t.Host.Offset+t.HostOffset, t.Count
	switch {
	case t.Host.Foreign != nil:
	case alwaysShared || h.shared:
		at = int(address(t.Host.Mem())) + t.HostOffset
	default:
		count = 0
	}
	h.read.Invoke(ticket, uint32(t.Buffer), from, size, skip, t.Host.Foreign, at, t.Width, t.Pitch, count)
}

// take copies the rows of a transfer that the helper has not taken.
func (h *helper) take(ticket, skip int, t driver.Transfer) {
	if alwaysShared || t.Host.Foreign != nil || h.shared {
		h.session.Call("take", ticket)
	} else {
		copyRows(t, h.session.Call("window", ticket), skip)
	}
}

// copied makes a Uint8Array with a copy of Go's memory.
func copied(b []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(array, b)
	return array
}

// copyRows copies the rows of a transfer from a Uint8Array into Go's memory.
func copyRows(t driver.Transfer, from js.Value, skip int) {
	into := t.Host.Mem()[t.HostOffset:][:t.Span()]
	if skip > 0 {
		from = from.Call("subarray", skip)
	}
	if t.Count == 1 || t.Width == t.Pitch {
		js.CopyBytesToGo(into, from)
		return
	}
	span := make([]byte, len(into))
	js.CopyBytesToGo(span, from)
	for at := 0; at < len(into); at += t.Pitch {
		copy(into[at:at+t.Width], span[at:])
	}
}
