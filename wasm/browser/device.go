// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
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
	handle   js.Value
	owned    bool
	info     driver.AdapterInfo
	promises *promises
	lost     chan struct{}

	mu      sync.Mutex // guards what follows; never held while waiting
	engine  engine
	objects driver.Objects
	imports map[driver.BufferID]js.Value // of the caller's
	fault   error                        // of work that was queued earlier
}

// newDevice wraps a GPUDevice.
func newDevice(handle js.Value, owned bool, info driver.AdapterInfo, glue js.Value) *device {
	d := &device{
		handle: handle, owned: owned, info: info, lost: make(chan struct{}),
		objects: driver.Objects{Info: info}, imports: map[driver.BufferID]js.Value{},
	}
	d.promises = newPromises(d.noteFault)
	if glue.IsUndefined() {
		d.engine = without(handle, d.promises)
	} else {
		d.engine = newHelper(glue, handle, owned, d.promises)
	}
	d.engine.lost(d.promises.expect(d.noteLoss))
	return d
}

// noteFault keeps the first error until somebody can be told; those that follow are mostly its consequences.
func (d *device) noteFault(reason js.Value) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		d.fault = failure("browser: queued work", reason)
	}
}

func (d *device) noteLoss(o outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects.Usable("") != nil { // closed: the device was destroyed by us
		return
	}
	reason := ""
	if o.value.Type() == js.TypeObject {
		reason = strings.TrimSuffix(text(o.value, "reason")+": "+text(o.value, "message"), ": ")
	}
	d.objects.SetLost(reason)
	close(d.lost)
}

// usable reports why the device cannot be used, or what went wrong since somebody asked last.
func (d *device) usable(op string) error {
	if err := d.objects.Usable(op); err != nil {
		return err
	}
	err := d.fault
	d.fault = nil
	return err
}

func (d *device) Info() driver.AdapterInfo { return d.info }

func (d *device) Lost() <-chan struct{} { return d.lost }

func (d *device) LostReason() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects.Reason()
}

func (d *device) Close() (err error) {
	defer rescue("browser: Close", &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.objects.Close() {
		return nil
	}
	d.promises.close()
	d.engine.close()
	if d.owned {
		d.handle.Call("destroy")
	}
	return nil
}

func (d *device) NewBuffer(id driver.BufferID, size uint64, mappable bool) (err error) {
	defer rescue("browser: NewBuffer", &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.AddBuffer(id, size, mappable, false); err != nil {
		return err
	}
	d.engine.newBuffer(id, size)
	return nil
}

func (d *device) ImportBuffer(id driver.BufferID, handle any) (size uint64, err error) {
	const op = "browser: ImportBuffer"
	defer rescue(op, &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.Usable(op); err != nil {
		return 0, err
	}
	v, ok := value(handle, "GPUBuffer")
	if !ok {
		return 0, fault.Fail(op, fault.ErrUnsupported, "not a GPUBuffer")
	}
	if usage := number(v, "usage"); usage&usageOwn != usageOwn {
		return 0, fault.Fail(op, fault.ErrInvalid, "the buffer needs the usages STORAGE, COPY_SRC and COPY_DST")
	}
	if state := text(v, "mapState"); state != "unmapped" {
		return 0, fault.Fail(op, fault.ErrMapped, "the buffer's mapState is "+state)
	}
	size = number(v, "size")
	if err := d.objects.AddBuffer(id, size, false, true); err != nil {
		return 0, err
	}
	d.engine.importBuffer(id, v)
	d.imports[id] = v
	d.checkOwner(v)
	return size, nil
}

// Imported looks for the very object.
func (d *device) Imported(handle any) (driver.BufferID, bool) {
	v, ok := handle.(js.Value)
	if !ok {
		return 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, o := range d.imports {
		if o.Equal(v) {
			return id, true
		}
	}
	return 0, false
}

// DestroyBuffer destroys a GPUBuffer, which unmaps it.
func (d *device) DestroyBuffer(handle any) (err error) {
	const op = "browser: DestroyBuffer"
	defer rescue(op, &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.Usable(op); err != nil {
		return err
	}
	v, ok := value(handle, "GPUBuffer")
	if !ok {
		return fault.Fail(op, fault.ErrUnsupported, "not a GPUBuffer")
	}
	v.Call("destroy")
	return nil
}

// checkOwner checks that a buffer is this device's. WebGPU does not say whose it is, but refuses to record commands on
// another's, so the answer comes later.
func (d *device) checkOwner(buffer js.Value) {
	d.handle.Call("pushErrorScope", "validation")
	encoder := d.handle.Call("createCommandEncoder")
	encoder.Call("clearBuffer", buffer, 0, 0)
	encoder.Call("finish")
	d.promises.follow(d.handle.Call("popErrorScope"), d.promises.expect(func(o outcome) {
		if o.fulfilled && o.value.Type() == js.TypeObject {
			d.noteFault(newError("ErrForeign", text(o.value, "message")))
		}
	}))
}

func (d *device) Handle(id driver.BufferID) any {
	if id == 0 {
		return d.handle
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects.Usable("") != nil || d.objects.BufferSize(id) == 0 {
		return nil
	}
	return d.engine.buffer(id)
}

func (d *device) FreeBuffer(id driver.BufferID) {
	var err error
	defer rescue("browser: FreeBuffer", &err) // nothing of WebGPU's throws here
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.imports, id)
	if d.objects.DropBuffer(id) && !d.closed() { // what is closed has freed everything
		d.engine.freeBuffer(id)
	}
}

func (d *device) Submit(list *driver.CommandList) (err error) {
	const op = "browser: Submit"
	defer rescue(op, &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.Usable(op); err != nil {
		return err
	}
	if list == nil {
		return fault.Fail(op, fault.ErrInvalid, "no command list")
	}
	for _, h := range list.Data {
		if err := checkHost(op, h); err != nil {
			return err
		}
	}
	if err := d.usable(op); err != nil {
		return err
	}
	if err := d.objects.Check(list); err != nil || len(list.Words) == 0 {
		return err
	}
	return d.engine.submit(list)
}

// outcome is what a wait has come to: its own error, unless the device or the queued work explains it.
func (d *device) outcome(op string, err error) error {
	if first := d.usable(op); first != nil {
		return first
	}
	return err
}

// discard frees what is held under a ticket.
func (d *device) discard(ticket int) {
	if !d.closed() {
		d.engine.drop(ticket)
	}
}

func (d *device) closed() bool { return errors.Is(d.objects.Usable(""), fault.ErrClosed) }

// Map implements [driver.Device]. WebGPU in browsers has no buffers that are both storage and mappable.
func (d *device) Map(_ context.Context, id driver.BufferID, offset, size uint64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.Map(id, offset, size); err != nil {
		return nil, err
	}
	return nil, fault.Fail("browser: Map", fault.ErrUnsupported, "mappable storage")
}

func (d *device) Unmap(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects.Unmap(id)
}
