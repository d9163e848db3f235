// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && !sublet_page

package browser

import (
	"math/bits"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

type directSet struct {
	layout  *directLayout
	entries []driver.Binding
	buffers []*directBuffer // of the entries
	group   js.Value
	params  js.Value // the parameter buffer that the group shows
	used    uint
}

// openList is the state of the list that is being executed.
type openList struct {
	number        uint // of the open encoder
	encoder, pass js.Value
	kernel        driver.KernelID
	set           driver.BindingsID
	offset        uint32 // of the parameters
	err           error
}

func (d *direct) submit(l *driver.CommandList) error {
	d.list = openList{number: d.list.number + 1}
	d.scoped("validation", func() {
		if len(l.Params) > 0 {
			d.setParams(l.Params)
		}
		for c := range l.All() {
			switch w := c.Words; c.Op {
			case driver.OpDispatch:
				d.dispatch(driver.KernelID(w[0]), driver.BindingsID(w[1]), w[2:5], w[5])
			case driver.OpBind:
				d.bindSet(c)
			case driver.OpUnbind:
				delete(d.sets, driver.BindingsID(w[0]))
			case driver.OpCopy:
				to, from := d.use(w[0]), d.use(w[3])
				d.encoder().Call("copyBufferToBuffer", from, c.U64(4), to, c.U64(1), c.U64(6))
			case driver.OpClear:
				d.encoder().Call("clearBuffer", d.use(w[0]), c.U64(1), c.U64(3))
			case driver.OpWrite:
				d.write(d.buffers[driver.BufferID(w[0])], c.U64(1), l.Data[w[3]])
			}
		}
		d.flush()
	})
	return d.list.err
}

// flush hands the open encoder to the queue.
func (d *direct) flush() {
	d.endPass()
	if d.list.encoder.IsUndefined() {
		return
	}
	d.queue.Call("submit", []any{d.list.encoder.Call("finish")})
	d.list.encoder = js.Undefined()
	d.list.number++
}

func (d *direct) endPass() {
	if !d.list.pass.IsUndefined() {
		d.list.pass.Call("end")
	}
	d.list.pass, d.list.kernel, d.list.set = js.Undefined(), 0, 0
}

// encoder returns an encoder with no open pass.
func (d *direct) encoder() js.Value {
	d.endPass()
	if d.list.encoder.IsUndefined() {
		d.list.encoder = d.device.Call("createCommandEncoder")
	}
	return d.list.encoder
}

// use notes that the open encoder has a command on the buffer.
func (d *direct) use(id uint32) js.Value {
	b := d.buffers[driver.BufferID(id)]
	b.used = d.list.number
	return b.gpu
}

// setParams uploads the parameter blocks of a list.
func (d *direct) setParams(blocks []byte) {
	need := len(blocks) + driver.MaxParams
	if d.paramsSize < need {
		if d.paramsSize > 0 {
			d.params.Call("destroy")
		}
		d.paramsSize = max(1<<16, 1<<bits.Len(uint(need-1)))
		d.params = d.makeBuffer(uint64(d.paramsSize), usageUniform|usageCopyDst)
	}
	d.writeBytes(d.params, 0, blocks)
}

func (d *direct) dispatch(kernel driver.KernelID, id driver.BindingsID, groups []uint32, params uint32) {
	if groups[0] == 0 || groups[1] == 0 || groups[2] == 0 {
		return // browsers warn of it
	}
	if d.list.pass.IsUndefined() {
		d.list.pass = d.encoder().Call("beginComputePass")
	}
	pass, set := d.list.pass, d.sets[id]
	if kernel != d.list.kernel {
		pass.Call("setPipeline", d.kernels[kernel])
		d.list.kernel = kernel
	}
	if id != d.list.set || params != d.list.offset {
		d.setGroup(pass, set, params)
		d.list.set, d.list.offset = id, params
	}
	if set.used != d.list.number {
		set.used = d.list.number
		for _, b := range set.buffers {
			b.used = d.list.number
		}
	}
	pass.Call("dispatchWorkgroups", groups[0], groups[1], groups[2])
}

func (d *direct) setGroup(pass js.Value, set *directSet, params uint32) {
	if set.layout.params < 0 {
		pass.Call("setBindGroup", 0, set.group)
		return
	}
	if !set.params.Equal(d.params) {
		d.makeGroup(set)
	}
	d.offset.SetIndex(0, params)
	pass.Call("setBindGroup", 0, set.group, d.offset, 0, 1)
}

func (d *direct) bindSet(c driver.Command) {
	set := &directSet{layout: d.layout(driver.Layout(c.U64(1))), entries: c.Bindings()}
	for _, e := range set.entries {
		set.buffers = append(set.buffers, d.buffers[e.Buffer])
	}
	if set.layout.params < 0 {
		d.makeGroup(set)
	}
	id := driver.BindingsID(c.Words[0])
	d.sets[id] = set
	if id == d.list.set {
		d.list.set = 0
	}
}

// makeGroup makes the bind group of a set.
func (d *direct) makeGroup(set *directSet) {
	var entries []any
	add := func(binding int, buffer js.Value, offset, size uint64) {
		resource := map[string]any{"buffer": buffer, "offset": offset, "size": size}
		entries = append(entries, map[string]any{"binding": binding, "resource": resource})
	}
	for i, e := range set.entries {
		add(set.layout.storage[i], set.buffers[i].gpu, e.Offset, e.Size)
	}
	if set.layout.params >= 0 {
		set.params = d.params
		add(set.layout.params, d.params, 0, driver.MaxParams)
	}
	set.group = d.device.Call("createBindGroup", map[string]any{"layout": set.layout.group, "entries": entries})
}

// write writes host data, after the commands that the open encoder has on the buffer.
func (d *direct) write(b *directBuffer, offset uint64, src driver.Host) {
	if b.used == d.list.number {
		d.flush()
	}
	if src.Foreign == nil {
		d.writeBytes(b.gpu, offset, src.Mem())
		return
	}
	defer rescue("browser: Submit", &d.list.err) // the rest of the list still runs
	memory, at := memoryOf(src.Foreign.(js.Value))
	at += src.Offset
	if whole := (src.Size + 3) &^ 3; whole != src.Size || resizable(memory) { // WebGPU refuses both
		copied := uint8s.New(whole)
		copied.Call("set", uint8s.New(memory, at, src.Size))
		memory, at, src.Size = copied.Get("buffer"), 0, whole
	}
	d.queue.Call("writeBuffer", b.gpu, offset, memory, at, src.Size)
}

// writeBytes writes Go memory by way of the scratch.
func (d *direct) writeBytes(buffer js.Value, offset uint64, data []byte) {
	for len(data) > 0 {
		n := js.CopyBytesToJS(d.scratch, data)
		d.queue.Call("writeBuffer", buffer, offset, d.scratch, 0, n)
		data, offset = data[n:], offset+uint64(n)
	}
}
