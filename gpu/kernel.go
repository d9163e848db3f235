// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Access tells what a kernel does with a binding.
type Access = driver.Access

// The kinds of binding.
const (
	AccessRead      = driver.AccessRead
	AccessReadWrite = driver.AccessReadWrite
	AccessParams    = driver.AccessParams
)

// KernelDesc describes a compute shader. All its bindings are in group 0; Bindings lists them from binding 0 on.
// AccessParams is a uniform block of at most 1024 bytes that each dispatch fills.
type KernelDesc struct {
	Label    string
	Source   string // WGSL
	Entry    string // "main" when empty
	Bindings []Access
	// Twin computes the same in Go so that the oracle can run the kernel; it may be nil. It gets the workgroup counts,
	// the parameter block and the bytes of each storage binding.
	Twin func(groups [3]uint32, params []byte, storage [][]byte)
	// Ahead says that the kernel is not needed yet, which only changes how [Stats] counts it.
	Ahead bool
}

// Kernel is a compiled compute shader of one device.
type Kernel struct {
	dev     *Device
	id      driver.KernelID
	layout  driver.Layout
	storage int
	key     string
	entry   *kernelEntry
	life    uint32 // of the device
	closed  bool
}

// Arg binds a part of a buffer. Offset is a multiple of 256; Size 0 is the rest of the buffer.
type Arg struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// kernelCache holds compiled kernels by source, so that the same text compiles once, also when several goroutines ask at
// the same time.
type kernelCache struct {
	byKey map[string]*kernelEntry
	ids   idTable[driver.KernelID]
}

type kernelEntry struct {
	k    *Kernel
	drv  driver.Device
	done chan struct{} // closed when compiled
	err  error
}

// Kernel compiles a compute shader, or finds it compiled. It waits for the compiler, without holding up others.
func (d *Device) Kernel(ctx context.Context, desc KernelDesc) (*Kernel, error) {
	const op = "Kernel"
	if desc.Entry == "" {
		desc.Entry = "main"
	}
	if len(desc.Bindings) > driver.MaxBindings {
		return nil, fail(op, ErrLimit, "more than ", num(driver.MaxBindings), " bindings")
	}
	layout := driver.NewLayout(desc.Bindings...)
	key := desc.Entry + "\x00" + num(uint64(layout)) + "\x00" + desc.Source
	d.mu.Lock()
	if err := d.usable(op); err != nil {
		d.mu.Unlock()
		return nil, err
	}
	if e, ok := d.kernels.byKey[key]; ok {
		d.stats.CacheHits++
		d.mu.Unlock()
		return e.wait(ctx)
	}
	k := &Kernel{dev: d, id: d.kernels.ids.take(), layout: layout, storage: layout.Storage(), key: key, life: d.life.Load()}
	e := &kernelEntry{k: k, drv: d.drv, done: make(chan struct{})}
	k.entry = e
	if d.kernels.byKey == nil {
		d.kernels.byKey = map[string]*kernelEntry{}
	}
	d.kernels.byKey[key] = e
	d.mu.Unlock()
	go d.compile(context.WithoutCancel(ctx), e, desc) // others may wait for it longer than this caller
	return e.wait(ctx)
}

func (e *kernelEntry) wait(ctx context.Context) (*Kernel, error) {
	select {
	case <-e.done: // a finished entry wins over a finished context
		return e.result()
	default:
	}
	select {
	case <-e.done:
		return e.result()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *kernelEntry) result() (*Kernel, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.k, nil
}

// compile compiles for everybody who waits. A failure is not remembered: the next caller tries again.
func (d *Device) compile(ctx context.Context, e *kernelEntry, desc KernelDesc) {
	e.err = e.drv.NewKernel(ctx, e.k.id, &driver.Kernel{
		Label: desc.Label, Source: desc.Source, Entry: desc.Entry, Layout: e.k.layout, Twin: desc.Twin,
	})
	d.mu.Lock()
	switch {
	case e.k.life != d.life.Load():
		e.err = fail("Kernel", ErrDeviceLost, "it came back while this was compiled")
	case e.err == nil:
		if desc.Ahead {
			d.stats.Prepared++
		} else {
			d.stats.Compilations++
		}
		d.stats.Kernels++
	default:
		delete(d.kernels.byKey, e.k.key)
		d.kernels.ids.give(e.k.id)
	}
	d.mu.Unlock()
	close(e.done)
}

// CountHit notes that a caller's own cache found a compiled kernel, so that [Stats] shows it.
func (k *Kernel) CountHit() {
	k.dev.mu.Lock()
	k.dev.stats.CacheHits++
	k.dev.mu.Unlock()
}

// Device returns the device the kernel was compiled for.
func (k *Kernel) Device() *Device { return k.dev }

// Dispatch queues one launch: workgroup counts, the parameter block, and one argument per storage binding in the order
// of the bindings. A buffer may appear twice only if both bindings are read-only.
func (k *Kernel) Dispatch(groups [3]uint32, params []byte, args ...Arg) error {
	const op = "Dispatch"
	if k == nil {
		return fail(op, ErrInvalid, "nil kernel")
	}
	d := k.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(op); err != nil {
		return err
	}
	if k.closed {
		return fail(op, ErrClosed, "the kernel")
	}
	if k.life != d.life.Load() {
		return fail(op, ErrDeviceLost, "the kernel was compiled before the device came back")
	}
	if len(params) > driver.MaxParams {
		return fail(op, ErrLimit, num(uint64(len(params))), " bytes of parameters")
	}
	if k.layout.HasParams() != (len(params) > 0) {
		return fail(op, ErrInvalid, "a parameter block where the kernel has none, or none where it has one")
	}
	if len(args) != k.storage {
		return fail(op, ErrInvalid, num(uint64(len(args))), " arguments for ", num(uint64(k.storage)), " storage bindings")
	}
	var entries [driver.MaxBindings]driver.Binding
	for i, a := range args {
		if err := k.checkArg(a, &entries[i]); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if g > d.info.Limits.MaxGroups {
			return fail(op, ErrLimit, num(uint64(g)), " workgroups in one dimension")
		}
	}
	if err := k.checkSharing(entries[:len(args)]); err != nil {
		return err
	}
	for _, a := range args {
		d.touch(a.Buffer)
	}
	set := d.sets.find(&d.batch.list, k.layout, entries[:len(args)])
	d.batch.list.Dispatch(k.id, set, groups, params)
	d.stats.Dispatches++
	return d.added()
}

func (k *Kernel) checkArg(a Arg, e *driver.Binding) error {
	const op = "Dispatch"
	if a.Buffer == nil || a.Buffer.dev != k.dev {
		return fail(op, ErrForeign, "a buffer of another device")
	}
	if a.Buffer.closed {
		return fail(op, ErrClosed, "a buffer")
	}
	if a.Buffer.life != k.life {
		return fail(op, ErrDeviceLost, "a buffer was on the device before it came back")
	}
	if a.Offset >= a.Buffer.size || a.Size > a.Buffer.size-a.Offset {
		return fail(op, ErrInvalid, "an argument beyond the end of its buffer")
	}
	size := a.Size
	if size == 0 {
		size = a.Buffer.size - a.Offset
	}
	l := &k.dev.info.Limits
	if a.Offset%uint64(l.BindingOffsetAlign) != 0 || size%4 != 0 {
		return fail(op, ErrInvalid, "a misaligned argument")
	}
	if size > l.MaxBindingSize {
		return fail(op, ErrLimit, num(size), " bytes bound, the most are ", num(l.MaxBindingSize))
	}
	*e = driver.Binding{Buffer: a.Buffer.id, Offset: a.Offset, Size: size}
	return nil
}

// checkSharing refuses one buffer bound twice unless both only read, or both write apart from each other.
func (k *Kernel) checkSharing(entries []driver.Binding) error {
	slot := -1
	var access [driver.MaxBindings]Access
	for i := range entries {
		for slot++; k.layout.At(slot) != AccessRead && k.layout.At(slot) != AccessReadWrite; slot++ {
		}
		access[i] = k.layout.At(slot)
		for j := range i {
			x, y := entries[i], entries[j]
			if x.Buffer != y.Buffer || access[i] == AccessRead && access[j] == AccessRead {
				continue
			}
			if access[i] != access[j] || x.Offset < y.Offset+y.Size && y.Offset < x.Offset+x.Size {
				return fail("Dispatch", ErrInvalid, "one buffer bound for reading and for writing")
			}
		}
	}
	return nil
}

// Close releases the kernel. Others who got it from the cache must not use it any more either.
func (k *Kernel) Close() error {
	if k == nil {
		return nil
	}
	d := k.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || k.closed || k.life != d.life.Load() {
		k.closed = true
		return nil
	}
	k.closed = true
	err := d.flush()
	delete(d.kernels.byKey, k.key)
	d.drv.FreeKernel(k.id)
	d.kernels.ids.give(k.id)
	d.stats.Kernels--
	return err
}
