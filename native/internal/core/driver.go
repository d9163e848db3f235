// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// library is a driver: a binding, its adapters and what its devices share.
type library struct {
	*Binding
	calls *C.core_calls

	mu     sync.Mutex
	newest *listing // the last listing, until a device takes it over

	openGL      func() *listing
	openGLMutex sync.Mutex // the lock of all devices of OpenGL, where the library gives up after waiting a second for its context
}

// New returns the driver of a binding. A table of calls of another version is a driver without adapters.
func New(b Binding) driver.Driver {
	l := &library{Binding: &b, calls: (*C.core_calls)(b.Calls)}
	if l.calls == nil || l.calls.size != C.sizeof_core_calls {
		return unsupported(b.Name, "its table of calls is not this version's")
	}
	l.openGL = sync.OnceValue(func() *listing {
		gl := l.enumerate(C.CORE_OPENGL)
		gl.kept = true
		return gl
	})
	register(&b)
	return driver.Driver{Name: b.Name, Adapters: l.list, OfBackend: l.listBackend, Adopt: l.adopt}
}

func (l *library) fail(op string, err error, detail ...string) error {
	return fault.Fail(l.Name+": "+op, err, detail...)
}

func (l *library) list(ctx context.Context) ([]driver.Adapter, error) { return l.listBackend(ctx, "") }

// listBackend lists the adapters as they are now: what the environment selects may have changed.
func (l *library) listBackend(ctx context.Context, backend string) ([]driver.Adapter, error) {
	if err := fault.Ended(ctx, l.Name+": Adapters"); err != nil {
		return nil, err
	}
	found := l.find(backend)
	l.keep(found)
	var adapters []driver.Adapter
	for _, a := range found.adapters {
		if backend == "" && a.again {
			continue
		}
		adapters = append(adapters, driver.Adapter{Info: a.info, Open: func(ctx context.Context) (driver.Device, error) {
			return l.open(ctx, a)
		}})
	}
	slices.SortStableFunc(adapters, func(a, b driver.Adapter) int {
		return slices.Index(order, a.Info.Kind) - slices.Index(order, b.Info.Kind)
	})
	return adapters, nil
}

// order is that of adapters in the list.
var order = []driver.Kind{driver.KindDiscrete, driver.KindIntegrated, driver.KindVirtual, driver.KindUnknown, driver.KindCPU}

// keep makes a listing the newest and releases the one that was: each takes a megabyte, of which the garbage collector knows nothing.
func (l *library) keep(next *listing) {
	l.mu.Lock()
	last := l.newest
	l.newest = next
	l.mu.Unlock()
	last.release(l)
}

// take returns the newest listing, or nil, which is the caller's then.
func (l *library) take() *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.newest
	l.newest = nil
	return last
}

// adapter is a processor as it was listed.
type adapter struct {
	info    driver.AdapterInfo
	ordinal int  // how many with the same information are listed before it
	again   bool // another backend has it, too, and is preferred
}

// listing is the adapters of one instance of the library. It opens one device: wgpu 0.19 takes one number for
// a device and its queue. If one of the two outlives the other, because somebody still has an object of it, the numbers of later devices
// differ, and their next submission ends the process.
type listing struct {
	adapters []adapter
	refs     []C.WGPUAdapter
	instance C.WGPUInstance
	kept     bool // it is never released
}

// backendBits names each backend, the preferred one of a system first.
var backendBits = []struct {
	name string
	bit  C.uint32_t
}{
	{"vulkan", C.CORE_VULKAN}, {"metal", C.CORE_METAL}, {"d3d12", C.CORE_D3D12}, {openGLBackend, C.CORE_OPENGL},
}

const openGLBackend = "opengl"

// find lists the adapters of one backend, or with "" those of Vulkan, Metal and Direct3D 12 or, where there are none, of OpenGL.
func (l *library) find(backend string) *listing {
	bits := C.uint32_t(0)
	for _, b := range backendBits {
		if backend == b.name || backend == "" && b.bit != C.CORE_OPENGL {
			bits |= b.bit
		}
	}
	found := new(listing)
	if bits&^C.CORE_OPENGL != 0 {
		found = l.enumerate(bits)
	}
	if len(found.refs) > 0 || backend != "" && backend != openGLBackend {
		return found
	}
	found.release(l)
	l.openGLMutex.Lock()
	defer l.openGLMutex.Unlock()
	// In wgpu 0.19 the end of one instance of OpenGL is that of all others, so there is one that never ends, nor do its devices.
	return l.openGL()
}

func (l *library) enumerate(backends C.uint32_t) *listing {
	var list *C.WGPUAdapter
	found := new(listing)
	n := C.core_list(l.calls, backends, &found.instance, &list)
	defer C.free(unsafe.Pointer(list))
	listed := map[driver.AdapterInfo]int{}
	var models []processor
	for _, ref := range unsafe.Slice(list, n) {
		var raw C.core_adapter
		C.core_describe(l.calls, ref, &raw)
		info := l.describe(&raw)
		if info.Limits.MaxGroups == 0 { // old OpenGL has no compute shaders
			C.core_drop_adapter(l.calls, ref)
			continue
		}
		models = append(models, processor{uint32(raw.vendor), uint32(raw.device)})
		found.adapters = append(found.adapters, adapter{info: info, ordinal: listed[info]})
		found.refs = append(found.refs, ref)
		listed[info]++
	}
	markRepeats(found.adapters, models)
	return found
}

// processor is a model of GPU.
type processor struct{ vendor, device uint32 }

// markRepeats marks the adapters that another backend shows as well, and is preferred. A machine may have several of a model: the n-th
// that a backend lists is taken for the n-th of every other one.
func markRepeats(adapters []adapter, models []processor) {
	type place struct {
		model   processor
		backend string
	}
	listed := map[place]int{}
	for i, a := range adapters {
		listed[place{models[i], a.info.Backend}]++
	}
	before := map[place]int{}
	for i := range adapters {
		own := place{models[i], adapters[i].info.Backend}
		for _, b := range backendBits {
			if b.name == own.backend {
				break
			}
			adapters[i].again = adapters[i].again || listed[place{models[i], b.name}] > before[own]
		}
		before[own]++
	}
}

// index returns the adapter's place in the listing, if there is one, or -1.
func (f *listing) index(a adapter) int {
	if f == nil {
		return -1
	}
	return slices.Index(f.adapters, a)
}

func (f *listing) release(l *library) {
	if f == nil || f.kept {
		return
	}
	for _, ref := range f.refs {
		C.core_drop_adapter(l.calls, ref) // devices keep what they need of it
	}
	if f.instance != nil {
		C.core_drop_instance(l.calls, f.instance)
	}
}

// only returns an adapter and releases the others.
func (f *listing) only(l *library, i int) C.WGPUAdapter {
	ref := f.refs[i]
	if !f.kept {
		f.refs = slices.Delete(f.refs, i, i+1)
		instance := f.instance
		f.instance = nil
		f.release(l)
		f.refs, f.instance = []C.WGPUAdapter{ref}, instance
	}
	return ref
}

// open requests a device, in a new instance unless the newest has made none.
func (l *library) open(ctx context.Context, a adapter) (driver.Device, error) {
	const op = "Open"
	if err := fault.Ended(ctx, l.Name+": "+op); err != nil {
		return nil, err
	}
	from := l.take()
	i := from.index(a)
	if i < 0 {
		from.release(l)
		from = l.find(a.info.Backend)
		i = from.index(a)
	}
	if i < 0 {
		from.release(l)
		return nil, l.fail(op, fault.ErrNoAdapter, a.info.Name, " is not there any more")
	}
	if from.kept {
		l.openGLMutex.Lock()
		defer l.openGLMutex.Unlock()
	}
	var e C.core_error
	ref := from.only(l, i)
	c := C.core_open(l.calls, ref, a.info.Kind == driver.KindCPU, &e)
	if err := l.taken(op, &e, fault.ErrNoAdapter); err != nil {
		from.release(l)
		return nil, err
	}
	return l.newDevice(ctx, c, a.info, nil, from, ref)
}

// adopt takes a device of the binding.
func (l *library) adopt(ctx context.Context, handle any) (driver.Device, error) {
	const op = "Adopt"
	if err := fault.Ended(ctx, l.Name+": "+op); err != nil {
		return nil, err
	}
	ref, ok := l.Device(handle)
	if !ok {
		return nil, l.fail(op, fault.ErrUnsupported, "not a *wgpu.Device of "+l.Package)
	}
	if ref == nil {
		return nil, l.fail(op, fault.ErrInvalid, "nil device, or one that is closed")
	}
	var e C.core_error
	c := C.core_adopt(l.calls, C.WGPUDevice(ref), &e)
	if err := l.taken(op, &e, fault.ErrInvalid); err != nil {
		return nil, err
	}
	return l.newDevice(ctx, c, driver.AdapterInfo{}, handle, nil, nil)
}
