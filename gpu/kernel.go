// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/rules"
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
	// Reference computes the same in Go so that the oracle can run the kernel; it may be nil. It gets the workgroup
	// counts, the parameter block and the bytes of each storage binding.
	Reference func(groups [3]uint32, params []byte, storage [][]byte)
	// Ahead says that the kernel is not needed yet, which only changes how [Stats] counts it.
	Ahead bool
}

// Kernel is a reference to a compiled compute shader of one device. Callers who ask for the same shader get references of
// their own.
type Kernel struct {
	dev     *Device
	entry   *kernelEntry
	id      driver.KernelID // as the entry's, without the way there
	storage int
	closed  bool
}

// Arg binds a part of a buffer. Offset is a multiple of 256; Size 0 is the rest of the buffer.
type Arg struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// kernelCache finds compiled kernels by source, so that the same text compiles once, also when several goroutines ask at
// the same time. It keeps none that has no references.
type kernelCache struct {
	byKey map[string]*kernelEntry
	ids   idTable[driver.KernelID]
}

type kernelEntry struct {
	key        string
	id         driver.KernelID
	layout     driver.Layout
	generation uint32 // of the device
	drv        driver.Device
	references int           // of callers, those that wait included
	live       bool          // it is compiled, and not released
	done       chan struct{} // closed when compiled
	err        error
}

// Kernel compiles a compute shader, or finds it compiled for another caller. It waits for the compiler, without holding up
// other calls; a caller that stops waiting has no reference. [Kernel.Close] releases the reference.
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
	e, found, err := d.reference(ctx, driver.NewLayout(desc.Bindings...), desc)
	if err != nil {
		return nil, err
	}
	if !found {
		go d.compile(context.WithoutCancel(ctx), e, desc) // other callers may wait for it longer than this one
	}
	if err := e.wait(ctx); err != nil {
		d.mu.Lock()
		d.release(e)
		d.mu.Unlock()
		return nil, err
	}
	return &Kernel{dev: d, entry: e, id: e.id, storage: e.layout.Storage()}, nil
}

// reference finds the cache's entry for a shader, or makes one that is to be compiled.
func (d *Device) reference(ctx context.Context, layout driver.Layout, desc KernelDesc) (e *kernelEntry, found bool, err error) {
	key := desc.Entry + "\x00" + num(uint64(layout)) + "\x00" + desc.Source
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("Kernel"); err != nil {
		return nil, false, err
	}
	c := &d.kernels
	if e, found = c.byKey[key]; found {
		d.stats.CacheHits++
	} else {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if c.byKey == nil {
			c.byKey = map[string]*kernelEntry{}
		}
		e = &kernelEntry{
			key: key, id: c.ids.take(), layout: layout, generation: d.generation.Load(), drv: d.drv, done: make(chan struct{}),
		}
		c.byKey[key] = e
	}
	e.references++
	return e, found, nil
}

func (e *kernelEntry) wait(ctx context.Context) error {
	select {
	case <-e.done:
	case <-ctx.Done():
		select {
		case <-e.done: // a finished entry wins over a finished context
		default:
			return ctx.Err()
		}
	}
	return e.err
}

// compile compiles for all callers that wait. A failure is not remembered: the next caller tries again.
func (d *Device) compile(ctx context.Context, e *kernelEntry, desc KernelDesc) {
	err := e.drv.NewKernel(ctx, e.id, &driver.Kernel{
		Label: desc.Label, Source: desc.Source, Entry: desc.Entry, Layout: e.layout, Reference: desc.Reference,
	})
	d.mu.Lock()
	switch {
	case e.generation != d.generation.Load():
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
		if e.references == 0 { // all callers have stopped waiting
			d.destroyKernel(e)
		}
	default:
		delete(d.kernels.byKey, e.key)
		d.kernels.ids.give(e.id)
	}
	e.err = err
	d.mu.Unlock()
	close(e.done)
}

// release takes a reference back. The last one destroys the kernel; compile destroys one that is still being compiled.
func (d *Device) release(e *kernelEntry) {
	e.references--
	if e.references == 0 && e.live && !d.closed && e.generation == d.generation.Load() {
		d.destroyKernel(e)
	}
}

// destroyKernel frees a kernel once the batch in progress, which may name it, has left.
func (d *Device) destroyKernel(e *kernelEntry) {
	e.live = false
	delete(d.kernels.byKey, e.key)
	d.stats.Kernels--
	if len(d.batch.list.Words) > 0 {
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

// Dispatch queues one launch: workgroup counts, the parameter block, and one argument per storage binding in the order
// of the bindings. A buffer may appear twice only if both bindings are read-only.
func (k *Kernel) Dispatch(groups [3]uint32, params []byte, args ...Arg) error {
	const op = "Dispatch"
	if k == nil || k.dev == nil {
		return fail(op, ErrInvalid, "nil kernel")
	}
	d, e := k.dev, k.entry
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(op); err != nil {
		return err
	}
	if k.closed {
		return fail(op, ErrClosed, "the kernel")
	}
	if e.generation != d.generation.Load() {
		return fail(op, ErrDeviceLost, "the kernel was compiled before the device came back")
	}
	if len(params) > driver.MaxParams {
		return fail(op, ErrLimit, num(uint64(len(params))), " bytes of parameters")
	}
	if e.layout.HasParams() != (len(params) > 0) {
		return fail(op, ErrInvalid, "a parameter block where the kernel has none, or none where it has one")
	}
	if err := rules.Groups("gpu: Dispatch", groups, d.info.Limits.MaxGroups); err != nil {
		return err
	}
	if len(args) != k.storage {
		return fail(op, ErrInvalid, num(uint64(len(args))), " arguments for ", num(uint64(k.storage)), " storage bindings")
	}
	set, err := d.bind(e.layout, args)
	if err != nil {
		return err
	}
	for _, a := range args {
		d.use(a.Buffer)
	}
	d.batch.list.Dispatch(k.id, set.id, groups, params)
	d.stats.Dispatches++
	return d.added()
}

// bind finds the binding set of the arguments. Those of a set that is known have been checked when it was made.
func (d *Device) bind(layout driver.Layout, args []Arg) (*set, error) {
	var entries [driver.MaxBindings]driver.Binding
	var sizes [driver.MaxBindings]uint64
	for i, a := range args {
		b := a.Buffer
		if b == nil || b.dev != d {
			return nil, fail("Dispatch", ErrForeign, "a buffer of another device")
		}
		if err := b.present("Dispatch"); err != nil {
			return nil, err
		}
		if a.Size == 0 && a.Offset < b.size {
			a.Size = b.size - a.Offset
		}
		entries[i], sizes[i] = driver.Binding{Buffer: b.id, Offset: a.Offset, Size: a.Size}, b.size
	}
	bound := entries[:len(args)]
	if s := d.sets.find(layout, bound); s != nil {
		return s, nil
	}
	if err := d.info.Limits.CheckBindings("gpu: Dispatch", layout, bound, sizes[:len(args)]); err != nil {
		return nil, err
	}
	return d.sets.add(&d.batch.list, layout, bound), nil
}

// Close releases the reference: the kernel is [ErrClosed] for this caller, and what it has queued runs. Later calls do
// nothing, as do all on a device that is closed or has come back since. There is no error.
func (k *Kernel) Close() error {
	if k == nil || k.dev == nil {
		return nil
	}
	d := k.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if !k.closed {
		k.closed = true
		d.release(k.entry)
	}
	return nil
}
