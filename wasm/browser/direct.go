// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && !sublet_page

package browser

import (
	"math/bits"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
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
	promises *promises
	device   js.Value
	queue    js.Value
	stop     js.Value // ends the wait for the loss of the device

	buffers map[driver.BufferID]js.Value
	owned   map[driver.BufferID]bool // ours to destroy
	kernels map[driver.KernelID]js.Value
	sets    map[driver.BindingsID]*directSet
	layouts map[driver.Layout]*directLayout
	staging map[int]js.Value // readbacks that are not dropped yet, by ticket

	params        js.Value // the parameter buffer
	paramsSize    int
	offset        js.Value // a Uint32Array of one element
	scratch       js.Value // a Uint8Array of directScratch bytes
	encoder, pass js.Value // the open ones of the list
	err           error    // of the list
}

const directScratch = 1 << 20

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

// without is the engine that does without the helper.
func without(device js.Value, p *promises) engine {
	return &direct{
		promises: p,
		device:   device,
		queue:    device.Get("queue"),
		buffers:  map[driver.BufferID]js.Value{},
		owned:    map[driver.BufferID]bool{},
		kernels:  map[driver.KernelID]js.Value{},
		sets:     map[driver.BindingsID]*directSet{},
		layouts:  map[driver.Layout]*directLayout{},
		staging:  map[int]js.Value{},
		offset:   js.Global().Get("Uint32Array").New(1),
		scratch:  uint8s.New(directScratch),
	}
}

// scoped runs f in an error scope and passes what goes wrong to the device.
func (d *direct) scoped(filter string, f func()) { d.scopedWith(filter, d.promises.fault, f) }

// scopedWith runs f in an error scope and passes what goes wrong to fault. The scope ends also where f throws: what is pushed must
// be popped, or the errors of later calls are lost in it.
func (d *direct) scopedWith(filter string, fault func(js.Value), f func()) {
	d.device.Call("pushErrorScope", filter)
	defer func() {
		d.promises.follow(d.device.Call("popErrorScope"), d.promises.expect(func(o outcome) {
			if o.fulfilled && !o.value.IsNull() {
				fault(o.value)
			}
		}))
	}()
	f()
}

func (d *direct) newBuffer(id driver.BufferID, size uint64) {
	d.scoped("out-of-memory", func() {
		d.buffers[id] = d.makeBuffer(size, usageOwn)
		d.owned[id] = true
	})
}

func (d *direct) makeBuffer(size uint64, usage int) js.Value {
	return d.device.Call("createBuffer", map[string]any{"size": size, "usage": usage})
}

func (d *direct) importBuffer(id driver.BufferID, gpu js.Value) {
	d.buffers[id] = gpu
	foreign := func(e js.Value) {
		named := js.Global().Get("Error").New(text(e, "message"))
		named.Set("name", "ErrForeign")
		d.promises.fault(named)
	}
	d.scopedWith("validation", foreign, func() {
		encoder := d.device.Call("createCommandEncoder")
		encoder.Call("clearBuffer", gpu, 0, 0)
		encoder.Call("finish")
	})
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
	d.scopedWith("validation", func(js.Value) {}, func() {
		module = d.device.Call("createShaderModule", map[string]any{"label": k.Label, "code": k.Source})
		d.promises.follow(d.device.Call("createComputePipelineAsync", map[string]any{
			"label": k.Label, "layout": layout, "compute": map[string]any{"module": module, "entryPoint": k.Entry},
		}), ticket)
	})
	return module
}

func (d *direct) submit(l *driver.CommandList) error {
	d.encoder, d.pass, d.err = js.Undefined(), js.Undefined(), nil
	d.scoped("validation", func() {
		d.setParams(l.Params)
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
				d.flush() // a write overtakes the open encoder
				d.write(d.buffers[driver.BufferID(w[0])], c.U64(1), l.Data[w[3]])
			}
		}
		d.flush()
	})
	return d.err
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
	d.writeBytes(d.params, 0, blocks)
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
		set.add(set.layout.storage[i], d.buffers[e.Buffer], e.Offset, e.Size)
	}
	return set
}

func (s *directSet) add(binding int, buffer js.Value, offset, size uint64) {
	resource := map[string]any{"buffer": buffer, "offset": offset, "size": size}
	s.entries = append(s.entries, map[string]any{"binding": binding, "resource": resource})
}

// setGroup sets the bind group of a set, which is made anew when the parameter buffer has been.
func (d *direct) setGroup(set *directSet, params uint32) {
	hasParams := set.layout.params >= 0
	if set.group.IsUndefined() || hasParams && !set.params.Equal(d.params) {
		whole := *set
		if hasParams {
			set.params = d.params
			whole.add(set.layout.params, d.params, 0, driver.MaxParams)
		}
		set.group = d.device.Call("createBindGroup", map[string]any{"layout": set.layout.group, "entries": whole.entries})
	}
	if hasParams {
		d.offset.SetIndex(0, params)
		d.pass.Call("setBindGroup", 0, set.group, d.offset, 0, 1)
	} else {
		d.pass.Call("setBindGroup", 0, set.group)
	}
}

// write writes host data.
func (d *direct) write(buffer js.Value, offset uint64, src driver.Host) {
	if src.Foreign == nil {
		d.writeBytes(buffer, offset, src.Mem())
		return
	}
	defer rescue("browser: Submit", &d.err) // the rest of the list still runs
	memory, at, err := src.Buffer("browser: Submit")
	if err != nil {
		d.err = err
		return
	}
	size := (src.Size + 3) &^ 3
	if size != src.Size || memory.Get("resizable").Truthy() || memory.Get("growable").Truthy() { // WebGPU refuses both
		copied := uint8s.New(size)
		copied.Call("set", uint8s.New(memory, at, src.Size))
		memory, at = copied.Get("buffer"), 0
	}
	d.queue.Call("writeBuffer", buffer, offset, memory, at, size)
}

// writeBytes writes Go memory by way of the scratch.
func (d *direct) writeBytes(buffer js.Value, offset uint64, data []byte) {
	for len(data) > 0 {
		n := js.CopyBytesToJS(d.scratch, data)
		d.queue.Call("writeBuffer", buffer, offset, d.scratch, 0, n)
		data, offset = data[n:], offset+uint64(n)
	}
}

// read makes a staging buffer for every readback.
func (d *direct) read(ticket int, id driver.BufferID, offset, size uint64) {
	d.scoped("out-of-memory", func() {
		d.scoped("validation", func() {
			d.staging[ticket] = d.makeBuffer(size, usageMapRead|usageCopyDst)
			encoder := d.device.Call("createCommandEncoder")
			encoder.Call("copyBufferToBuffer", d.buffers[id], offset, d.staging[ticket], 0, size)
			d.queue.Call("submit", []any{encoder.Call("finish")})
		})
	})
	d.promises.follow(d.staging[ticket].Call("mapAsync", mapModeRead), ticket)
}

func (d *direct) take(ticket, skip int, t driver.Transfer) {
	from := uint8s.New(d.staging[ticket].Call("getMappedRange"))
	if t.Host.Foreign == nil {
		copyRows(t, from, skip)
		return
	}
	memory, at, _ := t.Host.Buffer("") // it was checked just now
	for i := range t.Count {
		row := i * t.Pitch
		to := uint8s.New(memory, at+t.HostOffset+row, t.Width)
		to.Call("set", from.Call("subarray", skip+row, skip+row+t.Width))
	}
}

func (d *direct) drop(ticket int) {
	if staging, ok := d.staging[ticket]; ok {
		staging.Call("destroy")
		delete(d.staging, ticket)
	}
}

// idle takes as many turns of the event loop as lost does, so that a loss that ends the work is known first.
func (d *direct) idle(ticket int) {
	done := d.queue.Call("onSubmittedWorkDone")
	d.promises.follow(promise.Call("all", []any{done}), ticket)
}

// lost follows a race between the loss of the device and close, because the device may be the caller's and outlive this
// engine, whose callback it would keep.
func (d *direct) lost(ticket int) {
	executor := js.FuncOf(func(_ js.Value, args []js.Value) any {
		d.stop = args[0]
		return nil
	})
	closing := promise.New(executor) // calls the executor at once
	executor.Release()
	d.promises.follow(promise.Call("race", []any{d.device.Get("lost"), closing}), ticket)
}

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
	d.stop.Invoke()
}
