// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

func TestConformance(t *testing.T) { gputest.Run(t, opener(cpu.New())) }

func opener(d driver.Driver) func(context.Context) (driver.Device, error) {
	return func(ctx context.Context) (driver.Device, error) {
		adapters, err := d.Adapters(ctx)
		if err != nil {
			return nil, err
		}
		return adapters[0].Open(ctx)
	}
}

// open makes a device with a budget of memory; 0 is the default.
func open(t *testing.T, memory uint64) driver.Device {
	t.Helper()
	drv := cpu.New()
	if memory > 0 {
		drv = cpu.NewWithin(memory)
	}
	dev, err := opener(drv)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, dev.Close()) })
	return dev
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("got error %v, want %v", err, sentinel)
	}
}

func read(ctx context.Context, dev driver.Device, id driver.BufferID, dst []byte) error {
	return dev.Read(ctx, driver.Transfer{Buffer: id, Host: driver.HostBytes(dst), Width: len(dst), Count: 1})
}

// kernelOf makes kernel 1 of one writable binding, and binding set 1 of buffer 1.
func kernelOf(t *testing.T, dev driver.Device, size uint64, f func(mem []byte)) {
	t.Helper()
	layout := driver.NewLayout(driver.AccessReadWrite)
	must(t, dev.NewKernel(t.Context(), 1, &driver.Kernel{
		Label: "example", Source: "-", Entry: "main", Layout: layout,
		Reference: func(_ [3]uint32, _ []byte, storage [][]byte) { f(storage[0]) },
	}))
	var list driver.CommandList
	list.Bind(1, layout, []driver.Binding{{Buffer: 1, Size: size}})
	must(t, dev.Submit(&list))
}

// launch dispatches the kernel of kernelOf and then fills buffer 1 with sevens.
func launch(dev driver.Device, size int) error {
	var list driver.CommandList
	list.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
	list.Write(1, 0, driver.HostBytes(bytes.Repeat([]byte{7}, size)))
	return dev.Submit(&list)
}

func TestAdapter(t *testing.T) {
	d := cpu.New()
	if d.Name != "cpu" {
		t.Errorf("the driver calls itself %q", d.Name)
	}
	adapters, err := d.Adapters(t.Context())
	must(t, err)
	if len(adapters) != 1 {
		t.Fatalf("got %d adapters, want 1", len(adapters))
	}
	info := adapters[0].Info
	if info.Driver != "cpu" || info.Kind != driver.KindCPU || info.Backend != "go" || !strings.Contains(info.Name, runtime.GOARCH) {
		t.Errorf("wrong description %+v", info)
	}
	if info.Features != driver.FeatureMappable|driver.FeatureTimestamps {
		t.Errorf("got features %v, want mappable and timestamps", info.Features.Names())
	}
	if info.Limits.MaxBufferSize < 1<<30 {
		t.Errorf("a buffer has at most %d bytes", info.Limits.MaxBufferSize)
	}
	for _, handle := range []any{nil, 1, d, []byte{1}} {
		_, err = d.Adopt(t.Context(), handle)
		want(t, err, fault.ErrUnsupported)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = adapters[0].Open(ctx)
	want(t, err, context.Canceled)
}

// No context at all is an error like any other.
func TestNilContext(t *testing.T) {
	var none context.Context
	adapters, err := cpu.New().Adapters(none)
	must(t, err)
	_, err = adapters[0].Open(none)
	want(t, err, fault.ErrInvalid)
	dev := open(t, 0)
	must(t, dev.NewBuffer(1, 4, true))
	want(t, dev.Wait(none), fault.ErrInvalid)
	want(t, read(none, dev, 1, make([]byte, 4)), fault.ErrInvalid)
	want(t, dev.NewKernel(none, 1, nil), fault.ErrInvalid)
	_, err = dev.Map(none, 1, 0, 4)
	want(t, err, fault.ErrInvalid)
}

func TestMemory(t *testing.T) {
	dev := open(t, 1024)
	if got := dev.Info().Limits.MaxBufferSize; got != 1024 {
		t.Errorf("the largest buffer has %d bytes, want 1024", got)
	}
	want(t, dev.NewBuffer(1, 1028, false), fault.ErrLimit)
	must(t, dev.NewBuffer(1, 512, false))
	must(t, dev.NewBuffer(2, 512, true))
	want(t, dev.NewBuffer(3, 4, false), fault.ErrNoMemory)
	_, _, err := dev.ImportBuffer(3, make([]byte, 4096)) // the caller's memory does not count
	must(t, err)
	dev.FreeBuffer(3)
	want(t, dev.NewBuffer(3, 4, false), fault.ErrNoMemory)
	dev.FreeBuffer(2)
	must(t, dev.NewBuffer(3, 4, false))
	want(t, dev.NewBuffer(2, 512, false), fault.ErrNoMemory)
	must(t, dev.NewBuffer(2, 508, false))
}

// Host data is taken over when a list is submitted, so it must fit into memory too, however small the buffer is.
func TestMemoryOfLists(t *testing.T) {
	dev := open(t, 1024)
	must(t, dev.NewBuffer(1, 256, false))
	var list driver.CommandList
	for range 5 {
		list.Write(1, 0, driver.HostBytes(make([]byte, 256)))
	}
	list.Bind(1, 0, nil)
	want(t, dev.Submit(&list), fault.ErrNoMemory)
	list.Reset()
	list.Unbind(1) // nothing of the list took effect
	want(t, dev.Submit(&list), fault.ErrInvalid)
}

func TestImport(t *testing.T) {
	dev := open(t, 0)
	mem := []byte("0123456789abcdef....")
	_, size, err := dev.ImportBuffer(1, mem)
	must(t, err)
	if size != 20 {
		t.Errorf("the import has %d bytes, want 20", size)
	}
	kernelOf(t, dev, 16, func(b []byte) {
		if cap(b) != 16 {
			t.Errorf("the kernel can reach %d bytes of 16", cap(b))
		}
		copy(b, "ABCD")
	})
	must(t, launch(dev, 4))
	var list driver.CommandList
	list.Clear(1, 8, 4)
	must(t, dev.Submit(&list))
	must(t, dev.Wait(t.Context()))
	if got := string(mem); got != "\a\a\a\a4567\x00\x00\x00\x00cdef...." {
		t.Errorf("the caller's memory is %q", got)
	}
	got := make([]byte, 20)
	must(t, read(t.Context(), dev, 1, got))
	if !bytes.Equal(got, mem) {
		t.Errorf("read %q, want %q", got, mem)
	}
	if h, ok := dev.Handle(1).([]byte); !ok || &h[0] != &mem[0] {
		t.Error("the handle is not the caller's memory")
	}
	_, err = dev.Map(t.Context(), 1, 0, 4)
	want(t, err, fault.ErrUnsupported)
	dev.FreeBuffer(1)
	if mem[0] != 7 {
		t.Error("freeing an import touched the caller's memory")
	}
}

func TestImportRefused(t *testing.T) {
	dev := open(t, 0)
	mem := make([]byte, 64)
	for _, c := range []struct {
		name   string
		handle any
		want   error
	}{
		{"nil", nil, fault.ErrForeign},
		{"no bytes", "text", fault.ErrForeign},
		{"other elements", []uint32{1}, fault.ErrForeign},
		{"empty", []byte{}, fault.ErrInvalid},
		{"nil slice", []byte(nil), fault.ErrInvalid},
		{"misaligned", mem[1:], fault.ErrInvalid},
		{"misaligned by 2", mem[2:], fault.ErrInvalid},
	} {
		_, _, err := dev.ImportBuffer(1, c.handle)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.want)
		}
	}
	_, _, err := dev.ImportBuffer(1, mem[4:])
	must(t, err)
}

func TestOddSize(t *testing.T) {
	gputest.OddSizes(t, open(t, 0), func(size int) any { return make([]byte, 16)[:size] })
}

// References may look at their memory as any element type.
func TestAlignment(t *testing.T) {
	dev := open(t, 0)
	for i := range driver.BufferID(64) {
		must(t, dev.NewBuffer(i+1, 4*uint64(i+1), false))
		h, ok := dev.Handle(i + 1).([]byte)
		if !ok || len(h) != 4*int(i+1) || cap(h) != len(h) {
			t.Fatalf("buffer %d: %d bytes, capacity %d", i+1, len(h), cap(h))
		}
		if at := address(h); at%8 != 0 {
			t.Errorf("buffer %d begins at %#x", i+1, at)
		}
	}
}

// A dispatch without workgroups does not bother the reference, which need not be prepared for it.
func TestNoGroups(t *testing.T) {
	dev := open(t, 0)
	must(t, dev.NewBuffer(1, 16, false))
	kernelOf(t, dev, 16, func([]byte) { t.Error("the kernel ran") })
	var list driver.CommandList
	for _, groups := range [][3]uint32{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}} {
		list.Dispatch(1, 1, groups, nil)
	}
	must(t, dev.Submit(&list))
	must(t, dev.Wait(t.Context()))
}

// A kernel that is told more parameters than the largest block holds gets the block.
func TestParams(t *testing.T) {
	dev := open(t, 0)
	var got [][]byte
	layout := driver.NewLayout(driver.AccessParams)
	must(t, dev.NewKernel(t.Context(), 1, &driver.Kernel{
		Source: "-", Entry: "main", Layout: layout,
		Reference: func(_ [3]uint32, params []byte, _ [][]byte) { got = append(got, params) },
	}))
	must(t, dev.NewKernel(t.Context(), 2, &driver.Kernel{
		Source: "-", Entry: "main",
		Reference: func(_ [3]uint32, params []byte, _ [][]byte) { got = append(got, params) },
	}))
	var list driver.CommandList
	list.Bind(1, layout, nil)
	list.Bind(2, 0, nil)
	list.Dispatch(1, 1, [3]uint32{1, 1, 1}, bytes.Repeat([]byte{1}, 2000))
	list.Dispatch(1, 1, [3]uint32{1, 1, 1}, []byte{2})
	list.Dispatch(2, 2, [3]uint32{1, 1, 1}, []byte{3})
	must(t, dev.Submit(&list))
	must(t, dev.Wait(t.Context()))
	if len(got) != 3 {
		t.Fatalf("%d kernels ran, want 3", len(got))
	}
	if len(got[0]) != driver.MaxParams || cap(got[0]) != driver.MaxParams || got[0][0] != 1 {
		t.Errorf("the first block has %d bytes", len(got[0]))
	}
	if got[1][0] != 2 || cap(got[1]) > driver.MaxParams {
		t.Errorf("the second block begins with %d", got[1][0])
	}
	if got[2] != nil {
		t.Errorf("a kernel without parameters got %v", got[2])
	}
}
