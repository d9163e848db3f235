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
	// Reference computes the same in Go so that the oracle can run the kernel; it may be nil. It gets the workgroup counts,
	// the parameter block and the bytes of each storage binding.
	Reference func(groups [3]uint32, params []byte, storage [][]byte)
	// Ahead says that the kernel is not needed yet, which only changes how [Stats] counts it.
	Ahead bool
}

// Kernel is a caller's hold on a compiled compute shader of one device. Others who asked for the same have holds of their own.
type Kernel struct {
	dev     *Device
	entry   *kernelEntry
	id      driver.KernelID // as the entry's, without the way there
	layout  driver.Layout
	storage int
	life    uint32 // of the device
	closed  bool
}

// Arg binds a part of a buffer. Offset is a multiple of 256; Size 0 is the rest of the buffer.
type Arg struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// kernelCache finds compiled kernels by source, so that the same text compiles once, also when several goroutines ask at
// the same time. It keeps none that nobody holds.
type kernelCache struct {
	byKey map[string]*kernelEntry
	ids   idTable[driver.KernelID]
}

type kernelEntry struct {
	key    string
	id     driver.KernelID
	layout driver.Layout
	life   uint32 // of the device
	drv    driver.Device
	holds  int           // of callers, those that wait included
	live   bool          // it is compiled, and not released
	done   chan struct{} // closed when compiled
	err    error
}

// Kernel compiles a compute shader, or finds it compiled for somebody who still holds it. It waits for the compiler, without
// holding up others; who gives up waiting holds nothing. [Kernel.Close] gives the hold back.
func (d *Device) Kernel(ctx context.Context, desc KernelDesc) (*Kernel, error) {
	const op = "Kernel"
	if ctx == nil {
		return nil, fail(op, ErrInvalid, "nil context")
	}
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
	e, found := d.kernels.byKey[key]
	if found {
		d.stats.CacheHits++
	} else {
		if err := ctx.Err(); err != nil {
			d.mu.Unlock()
			return nil, err
		}
		e = d.kernels.add(&kernelEntry{key: key, layout: layout, life: d.life.Load(), drv: d.drv, done: make(chan struct{})})
	}
	e.holds++
	d.mu.Unlock()
	if !found {
		go d.compile(context.WithoutCancel(ctx), e, desc) // others may wait for it longer than this caller
	}
	if err := e.wait(ctx); err != nil {
		d.mu.Lock()
		d.letGo(e)
		d.mu.Unlock()
		return nil, err
	}
	return &Kernel{dev: d, entry: e, id: e.id, layout: layout, storage: layout.Storage(), life: e.life}, nil
}

func (c *kernelCache) add(e *kernelEntry) *kernelEntry {
	if c.byKey == nil {
		c.byKey = map[string]*kernelEntry{}
	}
	e.id = c.ids.take()
	c.byKey[e.key] = e
	return e
}

func (e *kernelEntry) wait(ctx context.Context) error {
	select {
	case <-e.done: // a finished entry wins over a finished context
		return e.err
	default:
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compile compiles for everybody who waits. A failure is not remembered: the next caller tries again.
func (d *Device) compile(ctx context.Context, e *kernelEntry, desc KernelDesc) {
	err := e.drv.NewKernel(ctx, e.id, &driver.Kernel{
		Label: desc.Label, Source: desc.Source, Entry: desc.Entry, Layout: e.layout, Reference: desc.Reference,
	})
	d.mu.Lock()
	switch {
	case e.life != d.life.Load():
		err = fail("Kernel", ErrDeviceLost, "it came back while this was compiled")
	case d.closed:
		err = fail("Kernel", ErrClosed, "the device")
	case err == nil:
		if desc.Ahead {
			d.stats.Prepared++
		} else {
			d.stats.Compilations++
		}
		d.stats.Kernels++
		e.live = true
		if e.holds == 0 { // all have given up
			d.release(e)
		}
	default:
		delete(d.kernels.byKey, e.key)
		d.kernels.ids.give(e.id)
	}
	e.err = err
	d.mu.Unlock()
	close(e.done)
}

// letGo takes a hold back. The last one releases the kernel; one that is still being compiled is then compile's to release.
func (d *Device) letGo(e *kernelEntry) {
	e.holds--
	if e.holds == 0 && e.live && !d.closed && e.life == d.life.Load() {
		d.release(e)
	}
}

// release destroys a kernel, but not before what is queued has left: that may name it.
func (d *Device) release(e *kernelEntry) {
	e.live = false
	delete(d.kernels.byKey, e.key)
	d.stats.Kernels--
	if !d.batch.list.Empty() {
		d.batch.kernels = append(d.batch.kernels, e.id)
		return
	}
	d.freeKernel(e.id)
}

func (d *Device) freeKernel(id driver.KernelID) {
	d.drv.FreeKernel(id)
	d.kernels.ids.give(id)
}

// CountHit notes that a caller's own cache found a compiled kernel, so that [Stats] shows it.
func (k *Kernel) CountHit() {
	if k == nil || k.dev == nil {
		return
	}
	k.dev.mu.Lock()
	k.dev.stats.CacheHits++
	k.dev.mu.Unlock()
}

// Device returns the device the kernel was compiled for.
func (k *Kernel) Device() *Device {
	if k == nil {
		return nil
	}
	return k.dev
}

// Dispatch queues one launch: workgroup counts, the parameter block, and one argument per storage binding in the order
// of the bindings. A buffer may appear twice only if both bindings are read-only.
func (k *Kernel) Dispatch(groups [3]uint32, params []byte, args ...Arg) error {
	const op = "Dispatch"
	if k == nil || k.dev == nil {
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

// Close gives the hold back: the kernel is [ErrClosed] for this caller. What it has queued runs. The device releases the kernel
// when nobody holds it any more. Later calls do nothing, as do all on a device that is closed or has come back since. There is no
// error.
func (k *Kernel) Close() error {
	if k == nil || k.dev == nil {
		return nil
	}
	d := k.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if !k.closed {
		k.closed = true
		d.letGo(k.entry)
	}
	return nil
}
