// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && !sublet_page

package browser

import (
	"cmp"
	"math/bits"
	"slices"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Numbers of the WebGPU specification that nothing else needs.
const (
	usageMapRead = 0x1
	usageUniform = 0x40
	stageCompute = 0x4
	mapModeRead  = 0x1
)

// direct is the engine for pages that forbid the helper. It does the same call by call, with fewer short cuts; the comments on why
// stand in glue.js.
type direct struct {
	device, queue js.Value
	noteFault     func(error)

	buffers map[driver.BufferID]js.Value
	owned   map[driver.BufferID]bool // ours to destroy
	kernels map[driver.KernelID]js.Value
	sets    map[driver.BindingsID]*directSet
	layouts map[driver.Layout]*directLayout
	staging map[int]js.Value // readbacks that are not dropped yet, by ticket

	params        js.Value // the parameter buffer
	paramsSize    int
	encoder, pass js.Value // the open ones of the list
}

type directLayout struct {
	group, pipeline js.Value
	storage         []int // binding numbers
	params          int   // that of the parameter block, or -1
}

type directSet struct {
	layout  *directLayout
	entries []any    // of the descriptor, for the storage bindings
	group   js.Value // undefined until it is used
	params  js.Value // the parameter buffer that the group shows
}

// newDirect is the engine that does without the helper. An adopted device that outlives it keeps the callback, which the helper's does not.
func newDirect(d *device) engine {
	follow(d.handle.Get("lost"), d.lost)
	return &direct{
		device:    d.handle,
		queue:     d.handle.Get("queue"),
		noteFault: d.noteFault,
		buffers:   map[driver.BufferID]js.Value{},
		owned:     map[driver.BufferID]bool{},
		kernels:   map[driver.KernelID]js.Value{},
		sets:      map[driver.BindingsID]*directSet{},
		layouts:   map[driver.Layout]*directLayout{},
		staging:   map[int]js.Value{},
	}
}

// guarded runs f in an error scope. What goes wrong is a fault of the device.
func (d *direct) guarded(filter string, f func()) {
	d.scope(filter, f, func(e js.Value) { d.noteFault(failure(queued, e)) })
}

// scope runs f in an error scope and calls failed with what went wrong. The scope ends also where f throws: what is pushed must be
// popped, or the errors of later calls are lost in it.
func (d *direct) scope(filter string, f func(), failed func(js.Value)) {
	d.device.Call("pushErrorScope", filter)
	defer func() {
		var ticket int
		ticket = expect(func(o outcome) {
			forget(ticket)
			if o.fulfilled && !o.value.IsNull() {
				failed(o.value)
			}
		})
		follow(d.device.Call("popErrorScope"), ticket)
	}()
	f()
}

func (d *direct) makeBuffer(size uint64, usage int) js.Value {
	return d.device.Call("createBuffer", map[string]any{"size": size, "usage": usage})
}

func (d *direct) newBuffer(id driver.BufferID, size uint64) {
	d.guarded("out-of-memory", func() {
		d.buffers[id] = d.makeBuffer(size, usageOwn)
		d.owned[id] = true
	})
}

func (d *direct) importBuffer(id driver.BufferID, gpu js.Value) {
	d.buffers[id] = gpu
	d.scope("validation", func() {
		encoder := d.device.Call("createCommandEncoder")
		encoder.Call("clearBuffer", gpu, 0, 0)
		encoder.Call("finish")
	}, func(e js.Value) { d.noteFault(fault.Fail(queued, fault.ErrForeign, text(e, "message"))) })
}

func (d *direct) buffer(id driver.BufferID) js.Value { return d.buffers[id] }

func (d *direct) freeBuffer(id driver.BufferID) {
	if d.owned[id] {
		d.buffers[id].Call("destroy")
	}
	delete(d.owned, id)
	delete(d.buffers, id)
}

func (d *direct) addKernel(id driver.KernelID, pipeline js.Value) { d.kernels[id] = pipeline }

func (d *direct) freeKernel(id driver.KernelID) { delete(d.kernels, id) }

// layout makes the layout objects of a kernel, once for all kernels that have it.
func (d *direct) layout(l driver.Layout) *directLayout {
	if known := d.layouts[l]; known != nil {
		return known
	}
	layout := &directLayout{params: -1}
	var entries []any
	for i := range driver.MaxBindings {
		buffer := map[string]any{"type": "storage"}
		switch l.At(i) {
		case driver.AccessNone:
			continue
		case driver.AccessParams:
			buffer = map[string]any{"type": "uniform", "hasDynamicOffset": true, "minBindingSize": driver.MaxParams}
			layout.params = i
		case driver.AccessRead:
			buffer["type"] = "read-only-storage"
			fallthrough
		case driver.AccessReadWrite:
			layout.storage = append(layout.storage, i)
		}
		entries = append(entries, map[string]any{"binding": i, "visibility": stageCompute, "buffer": buffer})
	}
	layout.group = d.device.Call("createBindGroupLayout", map[string]any{"entries": entries})
	layout.pipeline = d.device.Call("createPipelineLayout", map[string]any{"bindGroupLayouts": []any{layout.group}})
	d.layouts[l] = layout
	return layout
}

func (d *direct) compile(ticket int, k *driver.Kernel) (module js.Value) {
	layout := d.layout(k.Layout).pipeline
	d.scope("validation", func() {
		module = d.device.Call("createShaderModule", map[string]any{"label": k.Label, "code": k.Source})
		follow(d.device.Call("createComputePipelineAsync", map[string]any{
			"label": k.Label, "layout": layout, "compute": map[string]any{"module": module, "entryPoint": k.Entry},
		}), ticket)
	}, func(js.Value) {})
	return module
}

func (d *direct) submit(l *driver.CommandList) (err error) {
	d.encoder, d.pass = js.Undefined(), js.Undefined()
	d.guarded("validation", func() {
		if len(l.Params) > 0 {
			d.setParams(l.Params)
		}
		for c := range l.All() {
			switch w := c.Words; c.Op {
			case driver.OpDispatch:
				d.dispatch(w)
			case driver.OpBind:
				d.sets[driver.BindingsID(w[0])] = d.makeSet(c)
			case driver.OpUnbind:
				delete(d.sets, driver.BindingsID(w[0]))
			case driver.OpCopy:
				to, from := d.buffers[driver.BufferID(w[0])], d.buffers[driver.BufferID(w[3])]
				d.open().Call("copyBufferToBuffer", from, c.U64(4), to, c.U64(1), c.U64(6))
			case driver.OpClear:
				d.open().Call("clearBuffer", d.buffers[driver.BufferID(w[0])], c.U64(1), c.U64(3))
			case driver.OpWrite:
				d.flush()                                                                            // a write overtakes the open encoder
				err = cmp.Or(err, d.write(d.buffers[driver.BufferID(w[0])], c.U64(1), l.Data[w[3]])) // the rest of the list still runs
			}
		}
		d.flush()
	})
	return err
}

// open returns an encoder with no open pass.
func (d *direct) open() js.Value {
	if !d.pass.IsUndefined() {
		d.pass.Call("end")
		d.pass = js.Undefined()
	}
	if d.encoder.IsUndefined() {
		d.encoder = d.device.Call("createCommandEncoder")
	}
	return d.encoder
}

// flush hands the open encoder to the queue.
func (d *direct) flush() {
	if !d.encoder.IsUndefined() {
		d.queue.Call("submit", []any{d.open().Call("finish")})
		d.encoder = js.Undefined()
	}
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
	d.queue.Call("writeBuffer", d.params, 0, copied(blocks))
}

func (d *direct) dispatch(w []uint32) {
	if w[2] == 0 || w[3] == 0 || w[4] == 0 {
		return // browsers warn of it
	}
	if d.pass.IsUndefined() {
		d.pass = d.open().Call("beginComputePass")
	}
	d.pass.Call("setPipeline", d.kernels[driver.KernelID(w[0])])
	d.setGroup(d.sets[driver.BindingsID(w[1])], w[5])
	d.pass.Call("dispatchWorkgroups", w[2], w[3], w[4])
}

func (d *direct) makeSet(c driver.Command) *directSet {
	set := &directSet{layout: d.layout(driver.Layout(c.U64(1)))}
	for i, e := range c.Bindings() {
		set.entries = append(set.entries, entry(set.layout.storage[i], d.buffers[e.Buffer], e.Offset, e.Size))
	}
	return set
}

// entry describes a binding of a bind group.
func entry(binding int, buffer js.Value, offset, size uint64) map[string]any {
	return map[string]any{"binding": binding, "resource": map[string]any{"buffer": buffer, "offset": offset, "size": size}}
}

// setGroup sets the bind group of a set, which is made anew when the parameter buffer has been.
func (d *direct) setGroup(set *directSet, params uint32) {
	hasParams, offsets := set.layout.params >= 0, []any{}
	if set.group.IsUndefined() || hasParams && !set.params.Equal(d.params) {
		entries := set.entries
		if hasParams {
			entries = append(slices.Clip(entries), entry(set.layout.params, d.params, 0, driver.MaxParams))
		}
		set.group, set.params = d.device.Call("createBindGroup", map[string]any{"layout": set.layout.group, "entries": entries}), d.params
	}
	if hasParams {
		offsets = append(offsets, params)
	}
	d.pass.Call("setBindGroup", 0, set.group, offsets)
}

// write writes host data.
func (d *direct) write(buffer js.Value, offset uint64, src driver.Host) (err error) {
	const op = "browser: Submit"
	defer rescue(op, &err)
	if src.Foreign == nil {
		src = driver.Host{Foreign: copied(src.Mem()), Size: src.Size}
	}
	memory, at, err := src.Buffer(op)
	if err != nil {
		return err
	}
	size := (src.Size + 3) &^ 3
	if size != src.Size || memory.Get("resizable").Truthy() || memory.Get("growable").Truthy() { // WebGPU refuses both
		whole := uint8s.New(size)
		whole.Call("set", uint8s.New(memory, at, src.Size))
		memory, at = whole.Get("buffer"), 0
	}
	d.queue.Call("writeBuffer", buffer, offset, memory, at, size)
	return nil
}

// read makes a staging buffer for every readback.
func (d *direct) read(ticket int, id driver.BufferID, offset, size uint64) {
	d.guarded("out-of-memory", func() {
		d.guarded("validation", func() {
			d.staging[ticket] = d.makeBuffer(size, usageMapRead|usageCopyDst)
			encoder := d.device.Call("createCommandEncoder")
			encoder.Call("copyBufferToBuffer", d.buffers[id], offset, d.staging[ticket], 0, size)
			d.queue.Call("submit", []any{encoder.Call("finish")})
		})
	})
	follow(d.staging[ticket].Call("mapAsync", mapModeRead), ticket)
}

func (d *direct) take(ticket, skip int, t driver.Transfer) {
	from := uint8s.New(d.staging[ticket].Call("getMappedRange"))
	if t.Host.Foreign == nil {
		copyRows(t, from, skip)
		return
	}
	memory, at, _ := t.Host.Buffer("") // it was checked just now
	to := uint8s.New(memory, at+t.HostOffset, t.Span())
	for i := range t.Count {
		row := i * t.Pitch
		to.Call("set", from.Call("subarray", skip+row, skip+row+t.Width), row)
	}
}

func (d *direct) drop(ticket int) {
	if staging, ok := d.staging[ticket]; ok {
		staging.Call("destroy")
		delete(d.staging, ticket)
	}
}

func (d *direct) idle(ticket int) { follow(d.queue.Call("onSubmittedWorkDone"), ticket) }

func (d *direct) close() {
	for id := range d.owned {
		d.freeBuffer(id)
	}
	for ticket := range d.staging {
		d.drop(ticket)
	}
	if d.paramsSize > 0 {
		d.params.Call("destroy")
	}
}
