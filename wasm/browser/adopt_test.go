// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"runtime"
	"slices"
	"syscall/js"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// newGPUDevice makes a device as a page would, without the driver.
func newGPUDevice(t testing.TB) js.Value {
	t.Helper()
	wait := func(promise js.Value) js.Value {
		v, err := awaitPromise(t.Context(), "test", promise)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := wait(wait(gpu().Call("requestAdapter")).Call("requestDevice"))
	t.Cleanup(func() { v.Call("destroy") })
	return v
}

func adopt(t testing.TB, handle js.Value) *device {
	t.Helper()
	d, err := New().Adopt(t.Context(), handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*device)
}

func gpuBuffer(device js.Value, size, usage int) js.Value {
	return device.Call("createBuffer", map[string]any{"size": size, "usage": usage})
}

func TestAdopt(t *testing.T) {
	for _, wrong := range []any{nil, 1, js.Null(), js.Undefined(), js.ValueOf("x"), js.Global(), js.ValueOf(map[string]any{})} {
		_, err := New().Adopt(t.Context(), wrong)
		wantError(t, err, fault.ErrUnsupported)
	}
	handle := newGPUDevice(t)
	d := adopt(t, handle)
	if !d.Handle(0).(js.Value).Equal(handle) {
		t.Error("Handle is another device")
	}
	if i := d.Info(); i.Kind != driver.KindCPU || i.Limits.MaxStorageBuffers != 8 || i.Name == "" {
		t.Errorf("info of the adopted device is %+v", i)
	}
	newBuffer(t, d, 1, 16)
	own := d.Handle(1).(js.Value)
	foreign := gpuBuffer(handle, 32, usageOwn)
	handle.Get("queue").Call("writeBuffer", foreign, 0, js.Global().Get("Float32Array").Call("of", 1, 2, 3, 4, 5, 6, 7, 8))
	_, size, err := d.ImportBuffer(2, foreign)
	if err != nil || size != 32 || !d.Handle(2).(js.Value).Equal(foreign) {
		t.Fatalf("size %d, error %v", size, err)
	}
	if known, _, err := d.ImportBuffer(3, foreign); err != nil || known != 2 {
		t.Fatalf("known as %d, error %v", known, err)
	}
	if _, _, err := d.ImportBuffer(3, own); err != nil { // a buffer of the driver's own may have two numbers
		t.Fatal(err)
	}
	wantError(t, d.DestroyBuffer(own), fault.ErrInvalid)
	newKernel(t, d, 1, &scale)
	submit(t, d, func(l *driver.CommandList) {
		l.Bind(1, scale.Layout, []driver.Binding{{Buffer: 2, Size: 32}})
		l.Dispatch(1, 1, [3]uint32{1, 1, 1}, scaleParams(10, 8))
		l.Write(2, 4, driver.HostBytes(floats(-1))) // must not overtake the dispatch
	})
	if got, want := readFloats(t, d, 2, 8), []float32{10, -1, 30, 40, 50, 60, 70, 80}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d.FreeBuffer(2)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	// The caller's device and buffer live on, ours is gone.
	other := adopt(t, handle)
	if _, _, err := other.ImportBuffer(1, foreign); err != nil {
		t.Error(err)
	}
	if got := readFloats(t, other, 1, 1); got[0] != 10 {
		t.Errorf("the caller's buffer holds %v", got)
	}
	if _, _, err := other.ImportBuffer(2, own); err != nil {
		t.Error(err)
	}
	host := make([]byte, 16)
	err = other.Read(t.Context(), driver.Transfer{Buffer: 2, Host: driver.HostBytes(host), Width: 16, Count: 1})
	wantError(t, err, fault.ErrInvalid) // destroyed
}

func TestImportMistakes(t *testing.T) {
	d := openDevice(t)
	handle := d.Handle(0).(js.Value)
	for name, c := range map[string]struct {
		handle any
		want   error
	}{
		"nil":       {nil, fault.ErrUnsupported},
		"undefined": {js.Undefined(), fault.ErrUnsupported},
		"device":    {handle, fault.ErrUnsupported},
		"object":    {js.ValueOf(map[string]any{"size": 16, "usage": usageOwn}), fault.ErrUnsupported},
		"usage":     {gpuBuffer(handle, 16, usageStorage|usageCopyDst), fault.ErrInvalid},
		"mapped":    {handle.Call("createBuffer", map[string]any{"size": 16, "usage": usageOwn, "mappedAtCreation": true}), fault.ErrMapped},
	} {
		if _, _, err := d.ImportBuffer(1, c.handle); err == nil {
			t.Errorf("imported %s", name)
		} else {
			wantError(t, err, c.want)
		}
	}
	mapped := handle.Call("createBuffer", map[string]any{"size": 16, "usage": usageOwn, "mappedAtCreation": true})
	floats := js.Global().Get("Float32Array").New(mapped.Call("getMappedRange"))
	floats.SetIndex(0, 7)
	_, _, err := d.ImportBuffer(1, mapped)
	wantError(t, err, fault.ErrMapped)
	if state := mapped.Get("mapState").String(); state != "mapped" || floats.Length() != 4 {
		t.Fatalf("the refused buffer is %s", state)
	}
	floats.SetIndex(3, 8)
	mapped.Call("unmap")
	if _, _, err := d.ImportBuffer(1, mapped); err != nil {
		t.Fatal(err)
	}
	if got := readFloats(t, d, 1, 4); !slices.Equal(got, []float32{7, 0, 0, 8}) {
		t.Errorf("the buffer has %v", got)
	}
	d.FreeBuffer(1)
	other := newGPUDevice(t)
	if _, _, err := d.ImportBuffer(1, gpuBuffer(other, 16, usageOwn)); err != nil {
		t.Fatal(err)
	}
	wantError(t, d.Wait(t.Context()), fault.ErrForeign)
	d.FreeBuffer(1)
	if err := d.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOddSize imports buffers whose size is no multiple of 4.
func TestOddSize(t *testing.T) {
	d := openDevice(t)
	gputest.OddSizes(t, d, func(size int) any { return gpuBuffer(d.Handle(0).(js.Value), size, usageOwn) })
}

// TestUsersErrors checks that mistakes which the page makes on its own device are not taken for ours.
func TestUsersErrors(t *testing.T) {
	handle := newGPUDevice(t)
	d := adopt(t, handle)
	handle.Call("pushErrorScope", "validation")
	gpuBuffer(handle, 16, 0x7fff)
	newBuffer(t, d, 1, 16)
	submit(t, d, func(l *driver.CommandList) { l.Clear(1, 0, 16) })
	if err := d.Wait(t.Context()); err != nil {
		t.Errorf("the page's error became ours: %v", err)
	}
	e, err := awaitPromise(t.Context(), "test", handle.Call("popErrorScope"))
	if err != nil || host.Tag(e) != "GPUValidationError" {
		t.Errorf("the page's error scope has got %s, %v", host.Tag(e), err)
	}
}

func TestLost(t *testing.T) {
	handle := newGPUDevice(t)
	d := adopt(t, handle)
	newBuffer(t, d, 1, 16)
	results := make(chan error, 1)
	go func() {
		host := make([]byte, 16)
		results <- d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(host), Width: 16, Count: 1})
	}()
	runtime.Gosched()
	handle.Call("destroy")
	wantError(t, <-results, fault.ErrDeviceLost)
	select {
	case <-d.Lost():
	case <-time.After(time.Minute):
		t.Fatal("nobody tells of the loss")
	}
	if !contains(d.LostReason(), "destroyed") {
		t.Errorf("the reason is %q", d.LostReason())
	}
	wantError(t, d.Submit(&driver.CommandList{}), fault.ErrDeviceLost)
	wantError(t, d.NewBuffer(2, 16, false), fault.ErrDeviceLost)
	wantError(t, d.Wait(t.Context()), fault.ErrDeviceLost)
	wantError(t, d.NewKernel(t.Context(), 1, &scale), fault.ErrDeviceLost)
	d.FreeBuffer(1)
}

func TestLostWhileWaiting(t *testing.T) {
	handle := newGPUDevice(t)
	d := adopt(t, handle)
	results := make(chan error, 1)
	go func() { results <- d.Wait(t.Context()) }()
	runtime.Gosched()
	handle.Call("destroy")
	wantError(t, <-results, fault.ErrDeviceLost)
}
