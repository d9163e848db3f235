// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && !sublet_page

package browser

import (
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

// direct is the engine for pages that forbid the helper. It does the same call by call; the comments on why stand in
// glue.js.
type direct struct {
	promises *promises
	device   js.Value
	queue    js.Value
	stop     js.Value // ends the wait for the loss of the device

	buffers map[driver.BufferID]*directBuffer
	owned   map[driver.BufferID]bool // ours to destroy
	kernels map[driver.KernelID]js.Value
	sets    map[driver.BindingsID]*directSet
	layouts map[driver.Layout]*directLayout
	staging map[int]js.Value // readbacks that are not dropped yet, by ticket

	params     js.Value // the parameter buffer
	paramsSize int
	offset     js.Value // a Uint32Array of one element
	scratch    js.Value // a Uint8Array of directScratch bytes
	list       openList
}

const directScratch = 1 << 20

// directBuffer is a GPUBuffer, which may have several numbers.
type directBuffer struct {
	gpu  js.Value
	used uint // number of the last encoder that has a command on it
}

// newDirect makes the engine for a device.
func newDirect(device js.Value, p *promises) *direct {
	return &direct{
		promises: p,
		device:   device,
		queue:    device.Get("queue"),
		buffers:  map[driver.BufferID]*directBuffer{},
		kernels:  map[driver.KernelID]js.Value{},
		sets:     map[driver.BindingsID]*directSet{},
		layouts:  map[driver.Layout]*directLayout{},
		staging:  map[int]js.Value{},
		owned:    map[driver.BufferID]bool{},
		offset:   js.Global().Get("Uint32Array").New(1),
		scratch:  uint8s.New(directScratch),
		list:     openList{number: 1},
	}
}

// scoped runs f in an error scope and passes what goes wrong to the device.
func (d *direct) scoped(filter string, f func()) {
	d.device.Call("pushErrorScope", filter)
	// The scope ends also where f throws: what is pushed must be popped, or the errors of later calls are lost in it.
	defer func() {
		d.promises.follow(d.device.Call("popErrorScope"), d.promises.expect(func(o outcome) {
			if o.fulfilled && !o.value.IsNull() {
				d.promises.fault(o.value)
			}
		}))
	}()
	f()
}

func (d *direct) newBuffer(id driver.BufferID, size uint64) {
	d.scoped("out-of-memory", func() {
		d.buffers[id] = &directBuffer{gpu: d.makeBuffer(size, usageOwn)}
		d.owned[id] = true
	})
}

func (d *direct) makeBuffer(size uint64, usage int) js.Value {
	return d.device.Call("createBuffer", map[string]any{"size": size, "usage": usage})
}

func (d *direct) importBuffer(id driver.BufferID, gpu js.Value) {
	for _, b := range d.buffers {
		if b.gpu.Equal(gpu) {
			d.buffers[id] = b
			return
		}
	}
	d.buffers[id] = &directBuffer{gpu: gpu}
}

func (d *direct) buffer(id driver.BufferID) js.Value { return d.buffers[id].gpu }

func (d *direct) freeBuffer(id driver.BufferID) {
	if d.owned[id] {
		d.buffers[id].gpu.Call("destroy")
	}
	delete(d.owned, id)
	delete(d.buffers, id)
}

func (d *direct) addKernel(id driver.KernelID, pipeline js.Value) { d.kernels[id] = pipeline }

func (d *direct) freeKernel(id driver.KernelID) { delete(d.kernels, id) }

type directLayout struct {
	group, pipeline js.Value
	storage         []int // binding numbers
	params          int   // that of the parameter block, or -1
}

// layout makes the layout objects of a kernel, once for all kernels that have it.
func (d *direct) layout(l driver.Layout) *directLayout {
	if known := d.layouts[l]; known != nil {
		return known
	}
	layout := &directLayout{params: -1}
	var entries []any
	for i := range driver.MaxBindings {
		buffer := map[string]any{}
		switch l.At(i) {
		case driver.AccessNone:
			continue
		case driver.AccessParams:
			layout.params = i
			buffer = map[string]any{"type": "uniform", "hasDynamicOffset": true, "minBindingSize": driver.MaxParams}
		case driver.AccessRead:
			layout.storage = append(layout.storage, i)
			buffer["type"] = "read-only-storage"
		case driver.AccessReadWrite:
			layout.storage = append(layout.storage, i)
			buffer["type"] = "storage"
		}
		entries = append(entries, map[string]any{"binding": i, "visibility": stageCompute, "buffer": buffer})
	}
	layout.group = d.device.Call("createBindGroupLayout", map[string]any{"entries": entries})
	layout.pipeline = d.device.Call("createPipelineLayout", map[string]any{"bindGroupLayouts": []any{layout.group}})
	d.layouts[l] = layout
	return layout
}

func (d *direct) pipelineLayout(l driver.Layout) js.Value { return d.layout(l).pipeline }

// read makes a staging buffer for every readback.
func (d *direct) read(ticket int, id driver.BufferID, offset, size uint64) {
	var staging js.Value
	d.scoped("out-of-memory", func() {
		d.scoped("validation", func() {
			staging = d.makeBuffer(size, usageMapRead|usageCopyDst)
			encoder := d.device.Call("createCommandEncoder")
			encoder.Call("copyBufferToBuffer", d.buffers[id].gpu, offset, staging, 0, size)
			d.queue.Call("submit", []any{encoder.Call("finish")})
		})
	})
	d.staging[ticket] = staging
	d.promises.follow(staging.Call("mapAsync", mapModeRead), ticket)
}

func (d *direct) take(ticket, skip int, t driver.Transfer) {
	from := uint8s.New(d.staging[ticket].Call("getMappedRange"))
	if t.Host.Foreign == nil {
		copyRows(t, from, skip)
		return
	}
	memory, at := memoryOf(t.Host.Foreign.(js.Value))
	for i := range t.Count {
		row := i * t.Pitch
		to := uint8s.New(memory, at+t.Host.Offset+t.HostOffset+row, t.Width)
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
