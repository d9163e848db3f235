// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"bytes"
	"context"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

func open(ctx context.Context) (driver.Device, error) {
	list, err := New().Adapters(ctx)
	if err != nil {
		return nil, err
	}
	return list[0].Open(ctx)
}

func TestConformance(t *testing.T) { gputest.Run(t, open) }

// TestAdapter describes the adapter.
func TestAdapter(t *testing.T) {
	d := New()
	list, err := d.Adapters(t.Context())
	must(t, err)
	info := list[0].Info
	if len(list) != 1 || d.Name != "simd" || info.Driver != "simd" || info.Kind != driver.KindCPU || info.Backend != "wasm" || info.Name == "" {
		t.Errorf("%d adapters, %+v", len(list), info)
	}
	if !info.Features.Has(driver.FeatureWGSL|driver.FeatureMappable|driver.FeatureTimestamps) || info.Limits.MaxBufferSize < 1<<29 {
		t.Errorf("%v, %d bytes", info.Features.Names(), info.Limits.MaxBufferSize)
	}
	_, err = d.Adopt(t.Context(), 1)
	want(t, err, fault.ErrUnsupported)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = open(ctx)
	want(t, err, context.Canceled)
}

// TestOddSizes imports buffers where there is Go's memory only.
func TestOddSizes(t *testing.T) {
	d, err := open(t.Context())
	must(t, err)
	defer func() { must(t, d.Close()) }()
	if goMemory {
		gputest.OddSizes(t, d, func(size int) any { return make([]byte, 16)[:size] })
		return
	}
	_, _, err = d.ImportBuffer(1, make([]byte, 16))
	want(t, err, fault.ErrForeign)
}

// TestMemory takes more memory than a device may have.
func TestMemory(t *testing.T) {
	d, err := open(t.Context())
	must(t, err)
	defer func() { must(t, d.Close()) }()
	want(t, d.NewBuffer(1, d.Info().Limits.MaxBufferSize+4, false), fault.ErrLimit)
	const each = 256 << 20
	most := driver.BufferID(d.Info().Limits.MaxBufferSize / each)
	id := driver.BufferID(1)
	for ; id <= most && err == nil; id++ {
		err = d.NewBuffer(id, each, false)
	}
	if err == nil {
		err = d.NewBuffer(id, each, false)
	}
	want(t, err, fault.ErrNoMemory)
	d.FreeBuffer(1)
	must(t, d.NewBuffer(1, each, false))
}

// TestNative runs Go code in place of a module, natively.
func TestNative(t *testing.T) {
	d, err := open(t.Context())
	must(t, err)
	defer func() { must(t, d.Close()) }()
	must(t, d.NewBuffer(1, 64, false))
	k := &driver.Kernel{
		Label: "native", Entry: "main", Layout: testLayout, Bounded: true, Exact: true,
		Source: "@group(0) @binding(0) var<storage, read_write> v: array<u32>; @compute @workgroup_size(16) " +
			"fn main(@builtin(local_invocation_index) i: u32) { v[i] = 0x07070707u; }",
	}
	if !goMemory {
		k.Native = func(_ [3]uint32, _ []byte, storage [][]byte) { copy(storage[0], bytes.Repeat([]byte{7}, 64)) }
		k.Source = "-"
	}
	must(t, d.NewKernel(t.Context(), 1, k))
	var l driver.CommandList
	l.Bind(1, testLayout, []driver.Binding{{Buffer: 1, Size: 64}})
	l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
	must(t, d.Submit(&l))
	for i, v := range words(t, d, 16) {
		if v != 0x07070707 {
			t.Errorf("word %d is %#x", i, v)
		}
	}
}

// TestEndlessTexts has loops that do not end, in all ways.
func TestEndlessTexts(t *testing.T) {
	d := openWith(t, config{turns: 100000, threads: 2, compile: compileKernel})
	must(t, d.NewBuffer(1, 256, false))
	var l driver.CommandList
	l.Bind(1, testLayout, []driver.Binding{{Buffer: 1, Size: 256}})
	must(t, d.Submit(&l))
	for i, body := range []string{
		"loop { if (v[1] == 7u) { break; } }", "for (;;) { v[0]++; if (v[0] == v[1] - 1u && v[1] == 9u) { break; } }",
		"while (v[1] == 0u) { }", "loop { loop { if (v[1] == 0u) { break; } } continuing { break if v[1] == 1u; } }",
		"for (var i = 0u; i < 4000000000u; i++) { v[0] += i; }", "f(); v[0] = 1u;",
		"loop { if (v[1] == 7u) { break; } workgroupBarrier(); }",
	} {
		id := driver.KernelID(i + 1)
		must(t, d.NewKernel(t.Context(), id, &driver.Kernel{Label: body, Entry: "main", Layout: testLayout, Source: `
@group(0) @binding(0) var<storage, read_write> v: array<u32>;
fn f() { while (v[1] == 0u) { v[2]++; } }
@compute @workgroup_size(2) fn main() { ` + body + ` }`}))
		l.Reset()
		l.Number = uint64(i + 1)
		l.Dispatch(id, 1, [3]uint32{3, 1, 1}, nil)
		must(t, d.Submit(&l))
		want(t, d.Wait(t.Context()), fault.ErrLimit)
		want(t, d.Submit(&l), fault.ErrLimit)
	}
}
