// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"runtime"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// KernelDesc describes a compute shader. All its bindings are in group 0; Bindings lists them from binding 0 on.
// driver.AccessParams is a uniform block of at most 1024 bytes that each dispatch fills.
type KernelDesc struct {
	Label    string
	Source   string // WGSL
	Entry    string // "main" when empty
	Bindings []driver.Access
	// Reference computes the same in Go so that the oracle can run the kernel; it may be nil. It gets the workgroup
	// counts, the parameter block and the bytes of each storage binding.
	Reference func(groups [3]uint32, params []byte, storage [][]byte)
	// Bounded promises that the loops of an invocation stay below the device's MaxLoopsPerInvoking. On devices with such a limit other
	// kernels with loops are instrumented: if one exceeds the limit, using the memory that it writes is [ErrLimit]. This takes another
	// storage binding, so a kernel with loops that uses all bindings of such a device is [ErrCompile].
	Bounded bool
	// Fused says that the source repeats calls of a user's functions for many elements. A driver that limits the size of a source, because
	// of compilation time, allows more for it.
	Fused bool
	// Exact promises that every index written to is in range, and that an index read from is beyond the end by at most three elements of
	// four bytes, whose values do not matter. A device that computes on the CPU then omits bounds checks.
	Exact bool
	// Native computes the same in Go, with the arguments of Reference. A native device that computes on the CPU runs it instead of Source.
	// It may use goroutines, which must have ended when it returns.
	Native func(groups [3]uint32, params []byte, storage [][]byte)
	// Ahead says that the kernel is not needed yet, which only changes how [Stats] counts it.
	Ahead bool
}

// RunsReferences is true if a linked driver runs the reference implementations of kernels, [KernelDesc.Reference].
const RunsReferences = runsReferences

// RunsSIMD is true if the driver "simd" is linked.
const RunsSIMD = runsSIMD

// RunsNative is true if a linked driver runs [KernelDesc.Native].
const RunsNative = runtime.GOOS != "js"

// Kernel is a reference to a compiled compute shader of one device. Callers who ask for the same shader get references of
// their own.
type Kernel struct {
	dev    *Device
	entry  *kernelEntry
	closed bool
}

// Arg binds a part of a buffer. Offset is a multiple of 256; Size 0 is the rest of the buffer.
type Arg struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// kernelEntry is a shader of a device, so that the same text compiles once, also when several goroutines ask at the same time.
type kernelEntry struct {
	key, label string
	id         driver.KernelID
	layout     driver.Layout
	written    uint32 // its Written
	generation uint32 // of the device
	queue      *queue
	references int           // of callers, those that wait included, and of the compiler
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
	if len(desc.Bindings) > driver.MaxBindings {
		return nil, fail(op, ErrLimit, "more than ", driver.MaxBindings, " bindings")
	}
	desc.Entry = cmp.Or(desc.Entry, "main")
	if err := d.lock(op); err != nil {
		return nil, err
	}
	e, err := d.reference(ctx, desc)
	d.mu.Unlock()
	if err != nil {
		return nil, named(op, err)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		select {
		case <-e.done: // a finished entry wins over a finished context
		default:
			err = ctx.Err()
		}
	}
	if err == nil {
		err = e.err
	}
	if err != nil {
		d.mu.Lock()
		d.release(e)
		_ = d.unlock() // the caller gets the error of the compiler
		return nil, named(op, err)
	}
	return &Kernel{dev: d, entry: e}, nil
}

// reference finds the cache's entry for a shader, or makes one and has it compiled.
func (d *Device) reference(ctx context.Context, desc KernelDesc) (*kernelEntry, error) {
	layout := driver.NewLayout(desc.Bindings...)
	key := fault.Text(desc.Entry, "\x00", uint64(layout), "\x00", desc.Source)
	if desc.Bounded {
		key = "\x00" + key
	}
	if RunsSIMD && desc.Exact {
		key = "\x01" + key
	}
	if RunsNative && desc.Native != nil {
		key = "\x02" + key
	}
	if e := d.kernels[key]; e != nil {
		d.stats.CacheHits++
		e.references++
		d.tell(logKernels, "kernel found", "kernel", e.label, "ms", "0")
		return e, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := &kernelEntry{
		key: key, label: desc.Label, id: driver.KernelID(d.kernelIDs.take()), layout: layout, written: layout.Written(),
		generation: d.generation.Load(), queue: d.queue, references: 2, done: make(chan struct{}),
	}
	d.kernels[key] = e
	go d.compile(context.Background(), e, desc) // other callers may wait longer; context.WithoutCancel takes 1 KB of a page's program
	return e, nil
}

// compile compiles a shader for all callers that wait for it. A failure is not cached: the next caller compiles again.
func (d *Device) compile(ctx context.Context, e *kernelEntry, desc KernelDesc) {
	k := &driver.Kernel{
		Label: desc.Label, Source: desc.Source, Entry: desc.Entry, Layout: e.layout, Bounded: desc.Bounded, Fused: desc.Fused,
		Exact: desc.Exact, Native: desc.Native, Reference: desc.Reference,
	}
	d.tell(logWGSL, "wgsl", "kernel", e.label, "source", desc.Source)
	start := now()
	err := e.queue.drv.NewKernel(ctx, e.id, k)
	if d.relieve(ctx, e.queue, err) {
		err = e.queue.drv.NewKernel(ctx, e.id, k)
	}
	d.mu.Lock()
	switch {
	case e.generation != d.generation.Load():
		err = fail("Kernel", ErrDeviceLost, "it came back while this was compiled")
	case d.closed:
		err = fail("Kernel", ErrClosed, "the device")
	case err != nil:
		delete(d.kernels, e.key)
		d.kernelIDs.give(uint32(e.id))
	default:
		if desc.Ahead {
			d.stats.Prepared++
		} else {
			d.stats.Compilations++
		}
		d.stats.Kernels++
		if d.logs(logKernels) {
			d.tell(logKernels, "kernel compiled", "kernel", e.label, "ms", fault.Text(int(now()-start)))
		}
	}
	e.err = err
	d.release(e)
	close(e.done)
	_ = d.unlock() // nobody has asked for what leaves
}

// release drops a reference. The last one frees the compiled kernel.
func (d *Device) release(e *kernelEntry) {
	e.references--
	if e.references > 0 || e.err != nil || d.closed || e.generation != d.generation.Load() {
		return
	}
	delete(d.kernels, e.key)
	d.stats.Kernels--
	d.afterBatch(func() {
		d.drv.FreeKernel(e.id)
		d.kernelIDs.give(uint32(e.id))
	})
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
	if err := d.lock(op); err != nil {
		return err
	}
	set, err := k.bound(groups, params, args)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	for i, a := range args {
		if d.use(a.Buffer.mem); e.written&(1<<i) != 0 {
			d.write(a.Buffer.mem)
		}
	}
	d.batch.list.Dispatch(e.id, set.id, groups, params)
	d.batch.add(e)
	if d.logs(logKernels) {
		d.tell(logKernels, "dispatch", "kernel", e.label, "groups", fault.Text(groups[0], "x", groups[1], "x", groups[2]))
	}
	d.stats.Dispatches++
	return named(op, d.added())
}

// bound checks a launch and returns its binding set.
func (k *Kernel) bound(groups [3]uint32, params []byte, args []Arg) (*set, error) {
	const op = "Dispatch"
	d, e := k.dev, k.entry
	switch storage := e.layout.Storage(); {
	case k.closed:
		return nil, fail(op, ErrClosed, "the kernel")
	case e.generation != d.generation.Load():
		return nil, fail(op, ErrDeviceLost, "the kernel was compiled before the device came back")
	case len(params) > driver.MaxParams:
		return nil, fail(op, ErrLimit, len(params), " bytes of parameters")
	case e.layout.HasParams() != (len(params) > 0):
		return nil, fail(op, ErrInvalid, len(params), " bytes of parameters, which do not fit the kernel's bindings")
	case len(args) != storage:
		return nil, fail(op, ErrInvalid, len(args), " arguments for ", storage, " storage bindings")
	}
	if err := d.info.Limits.CheckGroups("gpu: Dispatch", groups); err != nil {
		return nil, err
	}
	return d.bind(e.layout, args)
}

// bind finds the binding set of the arguments. Those of a set that is known have been checked when it was made.
func (d *Device) bind(layout driver.Layout, args []Arg) (*set, error) {
	var entries [driver.MaxBindings]driver.Binding
	var sizes [driver.MaxBindings]uint64
	for i, a := range args {
		if a.Buffer == nil || a.Buffer.dev != d {
			return nil, fail("Dispatch", ErrForeign, "a buffer of another device")
		}
		if err := a.Buffer.present("Dispatch"); err != nil {
			return nil, err
		}
		m := a.Buffer.mem
		if err := m.intact("Dispatch"); err != nil {
			return nil, err
		}
		if a.Size == 0 && a.Offset < m.size {
			a.Size = m.size - a.Offset
		}
		entries[i], sizes[i] = driver.Binding{Buffer: m.id, Offset: a.Offset, Size: a.Size}, m.size
	}
	bound := entries[:len(args)]
	key := d.setKey(layout, bound)
	if s := d.sets[string(key)]; s != nil {
		return s, nil
	}
	if err := d.info.Limits.CheckBindings("gpu: Dispatch", layout, bound, sizes[:len(args)]); err != nil {
		return nil, err
	}
	return d.addSet(key, layout, bound, args), nil
}

// Close releases the reference: the kernel is [ErrClosed] for this caller, and what it has queued runs. Later calls do
// nothing, as do all on a device that is closed or has come back since. There is no error.
func (k *Kernel) Close() error {
	if k == nil || k.dev == nil {
		return nil
	}
	d := k.dev
	d.mu.Lock()
	if !k.closed {
		k.closed = true
		d.release(k.entry)
	}
	_ = d.unlock() // where that submits anything, it is what forgets binding sets
	return nil
}
