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
	stop     js.Value // ends the wait for the loss of the device

	fn struct { // bound to the device and its queue
		createBuffer, createBindGroup, createCommandEncoder js.Value
		pushErrorScope, popErrorScope                       js.Value
		writeBuffer, submit                                 js.Value
	}
	on struct { // take their object as the first argument
		beginPass, finish, copyBuffer, clearBuffer         js.Value
		setPipeline, setGroup, dispatch, endPass           js.Value
		mapAsync, getMappedRange, unmap, destroy, setBytes js.Value
	}

	buffers map[driver.BufferID]*directBuffer
	owned   map[driver.BufferID]bool // ours to destroy
	kernels map[driver.KernelID]js.Value
	sets    map[driver.BindingsID]*directSet
	layouts map[driver.Layout]*directLayout
	staging map[int]js.Value // readbacks that are not dropped yet, by ticket

	params     js.Value // the parameter buffer
	paramsSize int
	offset     js.Value // a Uint32Array of one element
	scratch    js.Value // a Uint8Array of frameData bytes
	list       openList
}

// directBuffer is a GPUBuffer, which may have several numbers.
type directBuffer struct {
	gpu  js.Value
	used uint // number of the last encoder that has a command on it
}

// newDirect makes the engine for a device.
func newDirect(device js.Value, p *promises) *direct {
	d := &direct{
		promises: p,
		device:   device,
		buffers:  map[driver.BufferID]*directBuffer{},
		kernels:  map[driver.KernelID]js.Value{},
		sets:     map[driver.BindingsID]*directSet{},
		layouts:  map[driver.Layout]*directLayout{},
		staging:  map[int]js.Value{},
		owned:    map[driver.BufferID]bool{},
		offset:   uint32s.New(1),
		scratch:  uint8s.New(frameData),
		list:     openList{number: 1},
	}
	d.bind()
	return d
}

func (d *direct) bind() {
	queue := d.device.Get("queue")
	d.fn.createBuffer = method(d.device, "createBuffer")
	d.fn.createBindGroup = method(d.device, "createBindGroup")
	d.fn.createCommandEncoder = method(d.device, "createCommandEncoder")
	d.fn.pushErrorScope = method(d.device, "pushErrorScope")
	d.fn.popErrorScope = method(d.device, "popErrorScope")
	d.fn.writeBuffer = method(queue, "writeBuffer")
	d.fn.submit = method(queue, "submit")

	of := func(class, name string) js.Value {
		return uncurry(js.Global().Get(class).Get("prototype").Get(name))
	}
	d.on.beginPass = of("GPUCommandEncoder", "beginComputePass")
	d.on.finish = of("GPUCommandEncoder", "finish")
	d.on.copyBuffer = of("GPUCommandEncoder", "copyBufferToBuffer")
	d.on.clearBuffer = of("GPUCommandEncoder", "clearBuffer")
	d.on.setPipeline = of("GPUComputePassEncoder", "setPipeline")
	d.on.setGroup = of("GPUComputePassEncoder", "setBindGroup")
	d.on.dispatch = of("GPUComputePassEncoder", "dispatchWorkgroups")
	d.on.endPass = of("GPUComputePassEncoder", "end")
	d.on.mapAsync = of("GPUBuffer", "mapAsync")
	d.on.getMappedRange = of("GPUBuffer", "getMappedRange")
	d.on.unmap = of("GPUBuffer", "unmap")
	d.on.destroy = of("GPUBuffer", "destroy")
	d.on.setBytes = of("Uint8Array", "set")
}

// scoped runs f in an error scope and passes what goes wrong to the device.
func (d *direct) scoped(filter string, f func()) {
	d.fn.pushErrorScope.Invoke(filter)
	// The scope ends also where f throws: what is pushed must be popped, or the errors of later calls are lost in it.
	defer func() {
		d.promises.follow(d.fn.popErrorScope.Invoke(), d.promises.expect(func(o outcome) {
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
	return d.fn.createBuffer.Invoke(map[string]any{"size": size, "usage": usage})
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
		d.on.destroy.Invoke(d.buffers[id].gpu)
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
		var buffer map[string]any
		switch l.At(i) {
		case driver.AccessNone:
			continue
		case driver.AccessParams:
			layout.params = i
			buffer = map[string]any{"type": "uniform", "hasDynamicOffset": true, "minBindingSize": driver.MaxParams}
		case driver.AccessRead:
			layout.storage = append(layout.storage, i)
			buffer = map[string]any{"type": "read-only-storage"}
		case driver.AccessReadWrite:
			layout.storage = append(layout.storage, i)
			buffer = map[string]any{"type": "storage"}
		}
		entries = append(entries, map[string]any{"binding": i, "visibility": stageCompute, "buffer": buffer})
	}
	layout.group = d.device.Call("createBindGroupLayout", map[string]any{"entries": entries})
	layout.pipeline = d.device.Call("createPipelineLayout", map[string]any{"bindGroupLayouts": []any{layout.group}})
	d.layouts[l] = layout
	return layout
}

func (d *direct) pipelineLayout(l driver.Layout) js.Value { return d.layout(l).pipeline }
