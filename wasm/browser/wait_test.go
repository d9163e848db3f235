// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// TestReads has many readbacks under way at once, aligned and not, of one row and of several.
func TestReads(t *testing.T) {
	d := openDevice(t)
	const size = 1 << 16
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	newBuffer(t, d, 1, size)
	submit(t, d, func(l *driver.CommandList) { l.Write(1, 0, driver.HostBytes(data)) })
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			tr := driver.Transfer{Buffer: 1, Offset: uint64(i * 3), HostOffset: i, Width: 1 + i*5, Pitch: 300, Count: 1 + i%4}
			host := make([]byte, tr.HostOffset+tr.Span()+5)
			want := bytes.Clone(host)
			for r := range tr.Count {
				copy(want[tr.HostOffset+r*tr.Pitch:][:tr.Width], data[int(tr.Offset)+r*tr.Pitch:])
			}
			tr.Host = driver.HostBytes(host)
			if err := d.Read(t.Context(), tr); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(host, want) {
				t.Errorf("read %d is wrong", i)
			}
		})
	}
	all.Wait()
	if err := d.Read(t.Context(), driver.Transfer{Buffer: 1, Offset: size}); err != nil {
		t.Errorf("nothing to read: %v", err)
	}
}

func TestContext(t *testing.T) {
	d := openDevice(t)
	newBuffer(t, d, 1, 16)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	host := make([]byte, 16)
	wantError(t, d.Wait(ctx), context.Canceled)
	wantError(t, d.Read(ctx, driver.Transfer{Buffer: 1, Host: driver.HostBytes(host), Width: 16, Count: 1}), context.Canceled)
	wantError(t, d.NewKernel(ctx, 1, &scale), context.Canceled)
	_, err := New().Adapters(ctx)
	wantError(t, err, context.Canceled)
	newKernel(t, d, 1, &scale)
	if err := d.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFaults makes mistakes that only the GPU process finds. They must surface, and once only.
func TestFaults(t *testing.T) {
	d := openDevice(t)
	wide := add
	wide.Source = `@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> z: array<vec4f>;
@compute @workgroup_size(1) fn main() { z[0] += x[0]; }`
	newKernel(t, d, 1, &wide)
	newBuffer(t, d, 1, 16)
	newBuffer(t, d, 2, 16)
	bad := func(l *driver.CommandList) {
		l.Bind(1, add.Layout, []driver.Binding{{Buffer: 1, Size: 4}, {Buffer: 2, Size: 4}})
		l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
		l.Unbind(1)
	}
	submit(t, d, bad)
	wantError(t, d.Wait(t.Context()), fault.ErrInvalid)
	submit(t, d, bad)
	host := make([]byte, 16)
	wantError(t, d.Read(t.Context(), driver.Transfer{Buffer: 2, Host: driver.HostBytes(host), Width: 16, Count: 1}), fault.ErrInvalid)
	for range 2 {
		if err := d.Wait(t.Context()); err != nil {
			t.Fatalf("an error was reported twice: %v", err)
		}
	}
}

func TestNoMemory(t *testing.T) {
	d := openDevice(t)
	var failed error
	for id := driver.BufferID(1); id <= 64 && failed == nil; id++ {
		newBuffer(t, d, id, d.Info().Limits.MaxBufferSize)
		failed = d.Wait(t.Context())
	}
	wantError(t, failed, fault.ErrNoMemory)
	for id := driver.BufferID(1); id <= 64; id++ {
		d.FreeBuffer(id)
	}
	newBuffer(t, d, 1, 16)
	if got := readFloats(t, d, 1, 4); got[3] != 0 {
		t.Errorf("read %v", got)
	}
	wantError(t, d.NewBuffer(2, d.Info().Limits.MaxBufferSize+4, false), fault.ErrLimit)
	wantError(t, d.NewBuffer(2, 16, true), fault.ErrUnsupported)
	_, err := d.Map(t.Context(), 1, 0, 4)
	wantError(t, err, fault.ErrUnsupported)
	wantError(t, d.Unmap(1), fault.ErrInvalid)
}

// TestClose closes a device while others wait for it.
func TestClose(t *testing.T) {
	d := openDevice(t)
	newBuffer(t, d, 1, 1<<20)
	results := make(chan error, 3)
	go func() {
		host := make([]byte, 1<<20)
		results <- d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(host), Width: len(host), Count: 1})
	}()
	go func() { results <- d.Wait(t.Context()) }()
	go func() { results <- d.NewKernel(t.Context(), 1, &scale) }()
	runtime.Gosched() // they wait by now
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for range cap(results) {
		wantError(t, <-results, fault.ErrClosed)
	}
	wantError(t, d.NewBuffer(2, 16, false), fault.ErrClosed)
	wantError(t, d.Submit(&driver.CommandList{}), fault.ErrClosed)
	wantError(t, d.Wait(t.Context()), fault.ErrClosed)
	wantError(t, d.NewKernel(t.Context(), 1, &scale), fault.ErrClosed)
	_, _, err := d.ImportBuffer(3, js.Undefined())
	wantError(t, err, fault.ErrClosed)
	d.FreeBuffer(1)
	d.FreeKernel(1)
	if d.Handle(1) != nil {
		t.Error("a closed device still shows its buffers")
	}
	select {
	case <-d.Lost():
		t.Error("closing is no loss")
	default:
	}
}

// references counts the JavaScript values that the Go program holds.
func references(t *testing.T) int {
	program := js.Global().Get("gotestProgram") // the runner's
	if program.IsUndefined() {
		t.Fatal("the page does not show the program")
	}
	for range 3 { // finalizers run a cycle later, on their own goroutine
		runtime.GC()
		runtime.Gosched()
	}
	return program.Get("_values").Length() - program.Get("_idPool").Length()
}

// TestLeaks runs far more submits, readbacks and devices than tests elsewhere, and counts what stays.
func TestLeaks(t *testing.T) {
	d := openDevice(t)
	newBuffer(t, d, 1, 1024)
	newKernel(t, d, 1, &scale)
	submit(t, d, func(l *driver.CommandList) {
		l.Bind(1, scale.Layout, []driver.Binding{{Buffer: 1, Size: 1024}})
	})
	var l driver.CommandList
	work := func(rounds int) {
		for i := range rounds {
			l.Reset()
			l.Bind(2, scale.Layout, []driver.Binding{{Buffer: 1, Size: 512}})
			l.Write(1, 0, driver.HostBytes(floats(1)))
			l.Dispatch(1, 1, [3]uint32{1, 1, 1}, scaleParams(2, 4))
			l.Dispatch(1, 2, [3]uint32{1, 1, 1}, scaleParams(2, 4))
			l.Unbind(2)
			if err := d.Submit(&l); err != nil {
				t.Fatal(err)
			}
			if i%50 == 0 {
				readFloats(t, d, 1, 4)
			}
		}
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work(200)
	before := references(t)
	work(10_000)
	if after := references(t); after > before+20 {
		t.Errorf("10,000 submits left %d JavaScript values behind", after-before)
	}
	tickets.mu.Lock()
	defer tickets.mu.Unlock()
	if n := len(tickets.pending); n > 2 { // for the faults and the loss of the device
		t.Errorf("%d promises are still pending", n)
	}
}

func TestDeviceLeaks(t *testing.T) {
	adapters, err := New().Adapters(t.Context())
	if err != nil || len(adapters) == 0 {
		t.Fatal(adapters, err)
	}
	work := func() {
		d, err := adapters[0].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		newBuffer(t, d, 1, 64)
		readFloats(t, d, 1, 4)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	work()
	before := references(t)
	for range 10 {
		work()
	}
	// What a device settles after it was closed comes with the next turns of the event loop.
	openDevice(t)
	if after := references(t); after > before+60 { // less than one device holds
		t.Errorf("10 devices left %d JavaScript values behind", after-before)
	}
}
