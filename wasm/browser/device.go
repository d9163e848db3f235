// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Numbers of the WebGPU specification: what buffers are for.
const (
	usageCopySrc = 0x4
	usageCopyDst = 0x8
	usageStorage = 0x80

	usageOwn = usageStorage | usageCopySrc | usageCopyDst
)

var _ driver.Device = (*device)(nil)

// device is a GPUDevice: its own or an adopted one.
type device struct {
	driver.Objects
	handle       js.Value
	owned        bool
	faults, lost int           // tickets for the errors of queued work, and for the loss of the device
	closing      chan struct{} // closed by Close, for the goroutines that wait

	mu      sync.Mutex // guards what follows, and Objects; never held while waiting
	helper  *helper
	imports map[driver.BufferID]js.Value // of the caller's
	fault   error                        // of work that was queued earlier
	refused []driver.Refusal             // what nobody was told yet
	reading []byte                       // what was read into last: it is here so that it is on no stack, as these move while JavaScript writes to it
}

// newDevice wraps a GPUDevice.
func newDevice(handle js.Value, owned bool, info driver.AdapterInfo, glue js.Value) *device {
	d := &device{
		Objects: driver.NewObjects(info), handle: handle, owned: owned, closing: make(chan struct{}),
		imports: map[driver.BufferID]js.Value{},
	}
	d.faults = expect(func(o outcome) { d.noteFault(o.value) })
	d.lost = expect(d.noteLoss)
	d.helper = newHelper(glue, d)
	return d
}

// locked runs f under the lock. What JavaScript throws meanwhile is an error.
func (d *device) locked(op string, f func() error) (err error) {
	defer rescue(op, &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	return f()
}

// unnamed stands for the number of a buffer that has none any more; see glue.js.
const unnamed = 1<<32 - 1

// queued is where the errors that arrive later come from.
const queued = "browser: queued work"

// noteFault keeps what went wrong until somebody can be told: what was refused, and the first of other errors; those that follow are
// mostly its consequences.
func (d *device) noteFault(value js.Value) {
	r := driver.Refusal{List: number(value, "list"), Buffer: driver.BufferID(number(value, "buffer")), Err: failure(queued, value)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.List == 0 && r.Buffer == 0 {
		d.fault = cmp.Or(d.fault, r.Err)
	} else {
		d.refused = append(d.refused, r)
	}
}

func (d *device) noteLoss(o outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Usable("") != nil { // closed: the device was destroyed by us
		return
	}
	reason := "lost"
	if o.value.Type() == js.TypeObject {
		reason = strings.TrimSuffix(text(o.value, "reason")+": "+text(o.value, "message"), ": ")
	}
	d.SetLost(reason)
}

// usable reports why the device cannot be used, or what went wrong since somebody asked last.
func (d *device) usable(op string) error {
	if err := d.Usable(op); err != nil {
		return err
	}
	if len(d.refused) > 0 {
		r := d.refused[0]
		d.refused = d.refused[1:]
		return r
	}
	err := d.fault
	d.fault = nil
	return err
}

func (d *device) closed() bool { return errors.Is(d.Usable(""), fault.ErrClosed) }

func (d *device) Close() error {
	return d.locked("browser: Close", func() error {
		if !d.Objects.Close() {
			return nil
		}
		close(d.closing)
		forget(d.faults)
		forget(d.lost)
		d.helper.call("close")
		if d.owned {
			d.handle.Call("destroy")
		}
		return nil
	})
}

func (d *device) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	return d.locked("browser: NewBuffer", func() error {
		if err := d.AddBuffer(id, size, mappable, false); err != nil {
			return err
		}
		d.helper.call("newBuffer", uint32(id), size)
		return nil
	})
}

// ImportBuffer takes a GPUBuffer and knows the very object again.
func (d *device) ImportBuffer(id driver.BufferID, handle any) (known driver.BufferID, size uint64, err error) {
	const op = "browser: ImportBuffer"
	err = d.lockedFor(op, handle, func(v js.Value) error {
		size = number(v, "size")
		for other, o := range d.imports {
			if o.Equal(v) {
				known = other
				return nil
			}
		}
		if number(v, "usage")&usageOwn != usageOwn {
			return fault.Fail(op, fault.ErrInvalid, "the buffer needs the usages STORAGE, COPY_SRC and COPY_DST")
		}
		if state := text(v, "mapState"); state != "unmapped" {
			return fault.Fail(op, fault.ErrMapped, "the buffer's mapState is "+state)
		}
		if err := d.AddBuffer(id, size, false, true); err != nil {
			return err
		}
		d.helper.call("importBuffer", uint32(id), v)
		d.imports[id] = v
		known = id
		return nil
	})
	return known, size, err
}

// DestroyBuffer destroys a GPUBuffer, which unmaps it.
func (d *device) DestroyBuffer(handle any) error {
	const op = "browser: DestroyBuffer"
	return d.lockedFor(op, handle, func(v js.Value) error {
		if d.helper.call("owns", v).Bool() {
			return fault.Fail(op, fault.ErrInvalid, "the buffer is Sublet's own")
		}
		v.Call("destroy")
		return nil
	})
}

// lockedFor is locked for a call on a GPUBuffer of the caller's.
func (d *device) lockedFor(op string, handle any, f func(js.Value) error) error {
	return d.locked(op, func() error {
		if err := d.Usable(op); err != nil {
			return err
		}
		v, ok := value(handle, "GPUBuffer")
		if !ok {
			return fault.Fail(op, fault.ErrUnsupported, "not a GPUBuffer")
		}
		return f(v)
	})
}

func (d *device) Handle(id driver.BufferID) any {
	if id == 0 {
		return d.handle
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Usable("") != nil || d.BufferSize(id) == 0 {
		return nil
	}
	return d.helper.call("buffer", uint32(id))
}

func (d *device) FreeBuffer(id driver.BufferID) {
	_ = d.locked("browser: FreeBuffer", func() error { // nothing of WebGPU's throws here
		delete(d.imports, id)
		for i := range d.refused {
			if d.refused[i].Buffer == id { // which may name another one soon
				d.refused[i].Buffer = unnamed
			}
		}
		if d.DropBuffer(id) && !d.closed() { // what is closed has freed everything
			d.helper.call("freeBuffer", uint32(id))
		}
		return nil
	})
}

func (d *device) FreeKernel(id driver.KernelID) {
	_ = d.locked("browser: FreeKernel", func() error { // nor here
		if d.DropKernel(id) {
			d.helper.call("freeKernel", uint32(id))
		}
		return nil
	})
}

func (d *device) Submit(list *driver.CommandList) error {
	const op = "browser: Submit"
	return d.locked(op, func() error {
		if err := d.usable(op); err != nil {
			return err
		}
		if err := d.Check(list); err != nil || len(list.Words) == 0 {
			return err
		}
		return d.helper.submit(list)
	})
}

// objectHost checks that foreign host memory is an object, whatever kind of: the helper finds out.
func objectHost(op string, h host.Memory) error {
	if v, ok := h.Foreign.(js.Value); h.Foreign != nil && (!ok || v.Type() != js.TypeObject) {
		return checkHost(op, h)
	}
	return nil
}

// checkHost checks host memory that lives in JavaScript, which package driver cannot.
func checkHost(op string, h host.Memory) error {
	if h.Foreign == nil {
		return nil
	}
	_, _, err := h.Buffer(op)
	return err
}

// await runs start under the lock and waits until its ticket is settled or the device is closed.
func (d *device) await(ctx context.Context, op string, start func(ticket int) error) (js.Value, error) {
	return await(ctx, op, d.closing, func(ticket int) error {
		return d.locked(op, func() error { return start(ticket) })
	})
}

// Read implements [driver.Device]. Several reads may be under way at once; each has a staging buffer of its own. Copies on the GPU
// go by words, so what is not aligned is read with the bytes around it.
func (d *device) Read(ctx context.Context, t driver.Transfer) error {
	const op = "browser: Read"
	if t.Span() == 0 {
		return d.locked(op, func() error { return cmp.Or(checkHost(op, t.Host), d.checkRead(op, t)) })
	}
	from, to := t.Offset&^3, (t.Offset+uint64(t.Span())+3)&^3
	reading := 0
	taken, err := d.await(ctx, op, func(ticket int) error {
		if err := d.checkRead(op, t); err != nil {
			return err
		}
		reading, d.reading = ticket, t.Host.Bytes
		d.helper.begin(ticket, from, to-from, t)
		return nil
	})
	if reading == 0 {
		return err
	}
	err = d.locked(op, func() error {
		if d.closed() { // which has dropped what was read
			return d.Usable(op)
		}
		if err == nil && taken.Truthy() {
			return nil
		}
		defer d.helper.call("drop", reading)
		if err := d.outcome(op, err); err != nil {
			return err
		}
		if err := checkHost(op, t.Host); err != nil { // which is why the helper has not taken it
			return err
		}
		d.helper.take(reading, int(t.Offset-from), t)
		return nil
	})
	d.mu.Lock()
	d.reading = nil
	d.mu.Unlock()
	runtime.KeepAlive(t.Host.Bytes)
	if errors.Is(err, fault.ErrDeviceLost) { // the browser may tell of the loss later, and whoever gets the error may ask for it
		select {
		case <-d.Lost():
		case <-d.closing:
		case <-ctx.Done():
		}
	}
	return err
}

func (d *device) checkRead(op string, t driver.Transfer) error {
	if err := cmp.Or(d.CheckRead(t), objectHost(op, t.Host)); err != nil {
		return err
	}
	return d.usable(op)
}

// Wait implements [driver.Device].
func (d *device) Wait(ctx context.Context) error {
	const op = "browser: Wait"
	err := fault.Ended(ctx, op)
	if err == nil {
		_, err = d.await(ctx, op, func(ticket int) error {
			err := d.Usable(op) // what was refused is told below, one at a time
			if err == nil {
				d.helper.call("idle", ticket)
			}
			return err
		})
	}
	return d.locked(op, func() error { return d.outcome(op, err) })
}

// outcome is what a wait has come to: its own error, unless the device or the queued work explains it.
func (d *device) outcome(op string, err error) error {
	if first := d.usable(op); first != nil {
		return first
	}
	return err
}

// Map implements [driver.Device]. WebGPU in browsers has no buffers that are both storage and mappable.
func (d *device) Map(_ context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return nil, d.Objects.Map(id, offset, size)
}

func (d *device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Objects.Unmap(id)
}

// NewKernel implements [driver.Device]. The id is taken only when the kernel is compiled, so that nothing can dispatch
// it before.
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	const op = "browser: NewKernel"
	var module js.Value
	pipeline, err := d.await(ctx, op, func(ticket int) error {
		if err := d.AddKernel(id, k); err != nil {
			return err
		}
		d.DropKernel(id)
		module = d.helper.call("compile", ticket, uint32(k.Layout), uint32(k.Layout>>32), k.Label, k.Source, k.Entry)
		return nil
	})
	if errors.Is(err, fault.ErrCompile) && !module.IsUndefined() {
		return compileError(ctx, op, k, module, err)
	}
	if err != nil {
		return err
	}
	return d.locked(op, func() error {
		err := d.AddKernel(id, k)
		if err == nil {
			d.helper.call("addKernel", uint32(id), pipeline)
		}
		return err
	})
}

// compileError adds to a compiler's error which kernel it is about and which lines are to blame.
func compileError(ctx context.Context, op string, k *driver.Kernel, module js.Value, err error) (all error) {
	defer rescue(op, &all)
	e, _ := errors.AsType[*fault.OpError](err)
	detail := e.Detail
	if info, err := awaitPromise(ctx, op, module.Call("getCompilationInfo")); err == nil {
		if lines := diagnostics(info.Get("messages"), k.Source); lines != "" {
			detail = lines
		}
	}
	if k.Label != "" {
		detail = k.Label + ": " + detail
	}
	return fault.Fail(op, fault.ErrCompile, detail)
}

// diagnostics lists the errors among the messages of a compiler, each with the line that it is about.
func diagnostics(messages js.Value, source string) string {
	var list []string
	for i := range messages.Length() {
		if m := messages.Index(i); text(m, "type") == "error" {
			d := wgsl.Diagnostic{Line: int(number(m, "lineNum")), Column: int(number(m, "linePos")), Text: text(m, "message")}
			line, _ := wgsl.LineOf(source, d.Line)
			list = append(list, d.Show(line))
		}
	}
	return strings.Join(list, "\n")
}
