// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

var check = devtest.Check

func must[T any](t testing.TB) func(T, error) T { return devtest.Must[T](t) }

// openDevices opens devices of the best adapter, several times the same.
func openDevices(t testing.TB, n int, opts ...gpu.Option) []*gpu.Device {
	t.Helper()
	var list []*gpu.Device
	for range n {
		d := must[*gpu.Device](t)(gpu.Open(t.Context(), opts...))
		t.Cleanup(func() { check(t, d.Close()) })
		list = append(list, d)
	}
	return list
}

func newCruncher(t testing.TB, n int, wgsl string, opts ...cruncher.Option) *cruncher.Cruncher {
	t.Helper()
	cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), openDevices(t, n), wgsl, opts...))
	t.Cleanup(func() { check(t, cr.Close()) })
	return cr
}

// TestStream is the example of Cekirdekler's wiki: 1,000 bytes go up and 1,000 come back in all, whatever the number of devices;
// without sharing each gets everything.
func TestStream(t *testing.T) {
	const source = `fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }`
	for n := 1; n <= 4; n++ {
		for _, partial := range []bool{true, false} {
			cr := newCruncher(t, n, source)
			a := must[*cruncher.Array[uint8]](t)(cruncher.NewArray[uint8]("arr", 1000))
			for i := range a.Len() {
				check(t, a.Set(i, 55))
			}
			edit(a).PartialRead(partial)
			check(t, a.Compute(t.Context(), cr, 1, "add3stream", cruncher.Range{Global: 1000, Local: 100}))
			for i, v := range a.Data() {
				if v != 58 {
					t.Fatalf("%d devices: element %d is %d", n, i, v)
				}
			}
			want := cruncher.Traffic{Up: 1000, Down: 1000}
			if !partial {
				want.Up *= int64(n)
			}
			if got := cr.Traffic(); got != want {
				t.Errorf("%d devices: %+v, want %+v", n, got, want)
			}
			check(t, a.Close())
		}
	}
}

// TestWriteAll gets a result of 30 MB from two work items.
func TestWriteAll(t *testing.T) {
	const source = `fn fill(i: u32) {
		let half = arrayLength(&out) / 2u;
		for (var k = 0u; k < 60000u; k++) { out[i * half + k * 62u] = 7u + i; }
	}`
	for n := 1; n <= 2; n++ {
		cr := newCruncher(t, n, source)
		out := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("out", 7_500_000))
		edit(out).Read(false).WriteAll(true)
		check(t, out.Compute(t.Context(), cr, 1, "fill", cruncher.Range{Global: 2, Local: 1}))
		for _, k := range []int{0, 59999} {
			if a, b := out.Data()[k*62], out.Data()[3_750_000+k*62]; a != 7 || b != 8 {
				t.Errorf("%d devices: %d, %d", n, a, b)
			}
		}
		if got := cr.Traffic(); got.Up != 0 || got.Down != 30_000_000 {
			t.Errorf("%d devices: %+v", n, got)
		}
	}
}

func TestMistakes(t *testing.T) {
	cr := newCruncher(t, 2, `fn one(i: u32) { a[i] = a[i] + 1.0; }
fn bad(i: u32) { a[i] = oops; }
fn two(i: vec2<u32>) { a[i.x] = f32(i.y); }`)
	a := must[*cruncher.Array[float32]](t)(cruncher.NewArray[float32]("a", 100))
	ctx := t.Context()
	closed := must[*cruncher.Array[float32]](t)(cruncher.NewArray[float32]("a", 100))
	check(t, closed.Close())
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"no device", func() error { _, err := cruncher.New(t.Context(), nil, "fn f(i: u32) {}"); return err }(), cruncher.ErrDevices},
		{"too short", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 101}), cruncher.ErrLength},
		{"too short with its offset", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 100, Offset: 1}), cruncher.ErrLength},
		{"no multiple", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 100, Local: 64, Strict: true}), cruncher.ErrRange},
		{"too small", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 64, Local: 64, Strict: true}), cruncher.ErrRange},
		{"negative", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: -1}), cruncher.ErrRange},
		{"huge", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 1 << 40}), cruncher.ErrRange},
		{"local", a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 100, Local: 1 << 20}), gpu.ErrLimit},
		{"dimensions", a.Compute(ctx, cr, 1, "two", cruncher.Range{Global: 10}), cruncher.ErrRange},
		{"does not compile", a.Compute(ctx, cr, 1, "bad", cruncher.Range{Global: 10}), gpu.ErrCompile},
		{"closed array", closed.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 10}), gpu.ErrClosed},
		{"twice", cr.Compute(ctx, 1, "one", cruncher.Range{Global: 10}, a, a), cruncher.ErrName},
		{"nil parameter", cr.Compute(ctx, 1, "one", cruncher.Range{Global: 10}, nil), gpu.ErrInvalid},
		{"no kernel", a.Compute(ctx, cr, 1, " ", cruncher.Range{Global: 10}), kernel.ErrKernel},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
	check(t, a.Compute(ctx, cr, 1, "one", cruncher.Range{Global: 100})) // nothing of that is remembered
	if v := a.Data()[99]; v != 1 {
		t.Errorf("after the mistakes: %v", v)
	}
}
