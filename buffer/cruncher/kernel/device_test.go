// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// TestRanges runs ranges of one dimension: with a base, cut anywhere, empty, and of more workgroups than a dimension holds.
func TestRanges(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, c := range []struct{ local, base, count, size int }{
			{64, 0, 256, 300},
			{64, 0, 1, 300},
			{64, 17, 100, 300},
			{100, 200, 100, 300},
			{7, 5, 290, 300},
			{256, 299, 1, 300},
			{1, 3, 70000, 70010},
			{2, 1, 2*65535 + 3, 2*65535 + 9},
			{64, 10, 0, 300},
		} {
			a := u32s("arr", make([]uint32, c.size)...)
			l := launch{
				source: "fn mark(i: u32) { arr[i] += i + 1u + sublet_total; }",
				kernel: "mark", local: [3]int{c.local}, rng: line(c.base, c.count, 1000), arrays: []*array{a},
			}
			l.run(t, dev)
			want := make([]uint32, c.size)
			for i := c.base; i < c.base+c.count; i++ {
				want[i] = uint32(i) + 1001
			}
			equal(t, "marks", a.words, want)
		}
	})
}

// TestWhere shows what a kernel is told about its range.
func TestWhere(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := u32s("arr", make([]uint32, 16)...)
		l := launch{
			source: "fn where_(i: u32) { if (i == 9u) { arr[0] = sublet_base; arr[1] = sublet_count; arr[2] = sublet_total; } }",
			kernel: "where_", local: [3]int{4}, rng: line(9, 6, 77), arrays: []*array{a},
		}
		l.run(t, dev)
		equal(t, "1-D", a.words[:3], []uint32{9, 6, 77})
		l.source = `fn where_(i: vec3u) {
  if (all(i == vec3<u32>(2u, 3u, 4u))) {
    arr[0] = sublet_base.x; arr[1] = sublet_base.y; arr[2] = sublet_base.z;
    arr[3] = sublet_count.x; arr[4] = sublet_count.y; arr[5] = sublet_count.z;
    arr[6] = sublet_total.x; arr[7] = sublet_total.y; arr[8] = sublet_total.z;
  }
}`
		l.rng = kernel.Range{Base: [3]int{1, 2, 3}, Count: [3]int{2, 3, 5}, Total: [3]int{20, 30, 50}}
		l.run(t, dev)
		equal(t, "3-D", a.words[:9], []uint32{1, 2, 3, 2, 3, 5, 20, 30, 50})
	})
}

// TestGrids runs ranges of two and three dimensions, some of more workgroups than a dimension holds.
func TestGrids(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, c := range []struct{ local, base, count, total [3]int }{
			{[3]int{8, 8}, [3]int{}, [3]int{20, 30}, [3]int{20, 30}},
			{[3]int{5, 3}, [3]int{4, 7}, [3]int{13, 11}, [3]int{20, 30}},
			{[3]int{1, 1}, [3]int{1, 2}, [3]int{300, 260}, [3]int{310, 270}},
			{[3]int{4, 4, 4}, [3]int{}, [3]int{9, 10, 11}, [3]int{9, 10, 11}},
			{[3]int{2, 1, 3}, [3]int{1, 2, 3}, [3]int{7, 5, 4}, [3]int{9, 10, 11}},
			{[3]int{1, 1, 1}, [3]int{1, 0, 2}, [3]int{50, 45, 40}, [3]int{52, 46, 43}},
			{[3]int{16, 16}, [3]int{}, [3]int{0, 30}, [3]int{20, 30}},
		} {
			size := c.total[0] * c.total[1] * max(c.total[2], 1)
			a := u32s("arr", make([]uint32, size)...)
			l := launch{kernel: "mark", local: c.local, arrays: []*array{a}, rng: kernel.Range{Base: c.base, Count: c.count, Total: c.total}}
			if c.total[2] == 0 {
				l.source = "fn mark(i: vec2<u32>) { arr[i.x + i.y * sublet_total.x] += 1u; }"
			} else {
				l.source = "fn mark(i: vec3<u32>) { arr[i.x + sublet_total.x * (i.y + i.z * sublet_total.y)] += 1u; }"
			}
			l.run(t, dev)
			want := make([]uint32, size)
			for z := c.base[2]; z < c.base[2]+max(c.count[2], 1); z++ {
				for y := c.base[1]; y < c.base[1]+c.count[1]; y++ {
					for x := c.base[0]; x < c.base[0]+c.count[0]; x++ {
						want[x+c.total[0]*(y+z*c.total[1])]++
					}
				}
			}
			equal(t, "marks", a.words, want)
		}
	})
}

// TestScalars hands over a value of every type, in an order that leaves gaps in the block.
func TestScalars(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := u32s("arr", make([]uint32, 40)...)
		l := launch{kernel: "all_", local: [3]int{1}, rng: line(0, 1, 1), arrays: []*array{a}}
		want := make([]uint32, 40)
		next := uint32(0)
		var body strings.Builder
		for i, typ := range []dtype.Type{
			kernel.U32, kernel.Vec(kernel.F32, 3), kernel.I32, kernel.Vec(kernel.U32, 4), kernel.F32, kernel.Vec(kernel.I32, 2), kernel.Vec(kernel.U32, 3), kernel.Vec(kernel.I32, 3),
			kernel.Vec(kernel.F32, 4), kernel.Vec(kernel.U32, 2), kernel.Vec(kernel.F32, 2), kernel.Vec(kernel.I32, 4),
		} {
			s := scalar{Decl: kernel.Decl{Name: fmt.Sprint("v", i), Type: typ}}
			for lane := range int(typ.Lanes) {
				part := ""
				if typ.Lanes > 1 {
					part = "." + "xyzw"[lane:lane+1]
				}
				want[next] = 0x3f800000 + next // as a float, a number
				s.bits = append(s.bits, want[next])
				fmt.Fprintf(&body, "arr[%d] = bitcast<u32>(%s%s);\n", next, s.Name, part)
				next++
			}
			l.scalars = append(l.scalars, s)
		}
		l.source = "fn all_(i: u32) {\n" + body.String() + "}"
		l.run(t, dev)
		equal(t, "scalars", a.words, want)
	})
}

// TestHelpers: what the kernel uses in functions that it calls is bound, what others use is not, and local names hide arrays.
func TestHelpers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		source := `
const two = 2u; // arr
struct Pair { arr: u32, b: u32 }
var<private> seen: u32;
fn twice(arr: u32) -> u32 { return two * arr; }
fn look(i: u32) -> u32 { return b[i]; }
fn other(i: u32) { nowhere[i] = nothing; } // never compiled
fn main(i: u32) {
  let p = Pair(1u, 2u);
  seen = p.arr;
  for (var arr = 0u; arr < 3u; arr++) { seen += twice(arr); }
  { let arr = look(i); seen += arr; }
  let sum = seen;
  if (sum > 0u) { let arr = arr[i]; seen += arr; }
  arr[i] = seen /* arr[ */ + 1u;
}`
		arr, b := u32s("arr", count(20)...), u32s("b", count(20)...)
		b.ReadOnly = true
		arr.Window, b.Window = true, true
		unused := u32s("unused", 1, 2, 3, 4)
		l := launch{source: source, kernel: "main", local: [3]int{8}, rng: line(2, 10, 20), arrays: []*array{unused, b, arr}}
		if p := l.build(t); len(p.Arrays) != 2 || p.Arrays[0].Name != "b" || p.Arrays[1].Name != "arr" || len(p.Bindings) != 3 {
			t.Fatalf("bound %v", p.Arrays)
		}
		l.run(t, dev)
		want := count(20)
		for i := 2; i < 12; i++ {
			want[i] = uint32(i + i + 1 + 6 + 1)
		}
		equal(t, "arr", arr.words, want)
	})
}

// TestWindows binds arrays from the middle on.
func TestWindows(t *testing.T) {
	const source = `struct Item { a: u32, b: vec2<f32> }
fn part(i: u32) {
  let n = arrayLength(&out) + arrayLength( & ( item )) * 1000u + arrayLength(/* & */ &hits) * 100000u;
  out[ i ] = in_[index[i]] + n;
  item[i].b.y = item [ i + 1u - 1u ].b.x + vec[i].z;
  let at = &hits[i % 4u + 64u];
  atomicAdd(at, 1u);
  atomicMax(&hits[68], i);
}
fn sgn(i: u32) { let j = i32(i); out[j] = 5u; out[ j + 1 ] = in_[out[j] + 60u]; }`
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		window := func(name string, typ dtype.Type, from int, words []uint32) *array {
			return &array{Decl: kernel.Decl{Name: name, Type: typ, Window: true}, from: from, words: words}
		}
		out, in, index := window("out", kernel.U32, 64, make([]uint32, 100)), window("in_", kernel.U32, 64, count(100)), window("index", kernel.U32, 64, make([]uint32, 100))
		for i := range index.words {
			index.words[i] = uint32(164 - i)
		}
		item := window("item", kernel.U8, 256, make([]uint32, 400))
		item.Mode = kernel.Packed
		item.Struct = "Item"
		for i := range 100 {
			item.words[4*i+2] = f32(float32(i))
		}
		vec := window("vec", kernel.Vec(kernel.F32, 3), 256, make([]uint32, 400))
		vec.ReadOnly = true
		for i := range 100 {
			vec.words[4*i+2] = f32(0.5)
		}
		hits := window("hits", kernel.U32, 64, make([]uint32, 100))
		hits.Mode = kernel.Atomic
		l := launch{source: source, kernel: "part", local: [3]int{16}, rng: line(66, 30, 100), arrays: []*array{out, in, index, item, vec, hits}}
		l.run(t, dev)
		want, items, counts := make([]uint32, 100), make([]uint32, 400), make([]uint32, 100)
		for i := range 100 {
			items[4*i+2] = f32(float32(i))
		}
		for i := 66; i < 96; i++ {
			want[i] = uint32(164-i) + 100 + 100*1000 + 100*100000
			items[4*i+3] = f32(float32(i) + 0.5)
			counts[64+i%4]++
		}
		counts[68] = 95
		equal(t, "out", out.words, want)
		equal(t, "item", item.words, items)
		equal(t, "hits", hits.words, counts)
		l.kernel, l.local, l.rng = "sgn", [3]int{1}, line(70, 1, 100)
		l.run(t, dev)
		want[70], want[71] = 5, 65
		equal(t, "signed", out.words, want)
	})
}

// TestVectors computes with arrays of every type that WGSL has.
func TestVectors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for i := range uint16(12) {
			typ := kernel.Vec([]dtype.Type{kernel.F32, kernel.I32, kernel.U32}[i/4], i%4+1)
			unit := []int{1, 2, 4, 4}[i%4]
			for _, window := range []bool{false, true} {
				a := &array{Decl: kernel.Decl{Name: "x", Type: typ, Window: window}, words: make([]uint32, 80*unit)}
				l := launch{
					source: "fn double(i: u32) { x[i] = x[i] + x[i]; }", kernel: "double", local: [3]int{8},
					rng: line(65, 10, 80), arrays: []*array{a},
				}
				if window {
					a.from = 64 * unit
				}
				want := make([]uint32, len(a.words))
				lanes := int(typ.Lanes)
				for i := range a.words {
					used := i/unit >= 65 && i/unit < 75 && i%unit < lanes
					a.words[i] = uint32(i)
					want[i] = uint32(i)
					if typ.Code == dtype.Float32.Code {
						a.words[i], want[i] = f32(float32(i)), f32(float32(i))
					}
					switch {
					case used && typ.Code == dtype.Float32.Code:
						want[i] = f32(float32(2 * i))
					case used:
						want[i] = uint32(2 * i)
					}
				}
				l.run(t, dev)
				for i := range want { // the fourth number of a vector of three is nobody's
					if unit == 4 && lanes == 3 && i%4 == 3 {
						want[i] = a.words[i]
					}
				}
				equal(t, typ.String(), a.words, want)
			}
		}
	})
}

// TestComplete runs a module of the user's own, over a part of a range.
func TestComplete(t *testing.T) {
	const source = `
alias Words = array<u32>;
struct P { sublet_base: u32, pad0: u32, k: vec2<f32>, sublet_groups: u32, sublet_count: u32, sublet_off_y: u32, sublet_len_y: u32, sublet_total: u32 }
const SIZE = 4;
@group(0) @binding(3) var<storage, read_write> y: Words;
@group(0) @binding(0) var<storage, read> x: Words;
@group(0) @binding(1) var<uniform> p: P;
@group(0) @binding(1) var<storage, read> other: array<f32>;
fn helper(i: u32) { y[i - p.sublet_off_y] = x[i] * u32(p.k.y) + p.sublet_len_y + p.sublet_total; }
@compute @workgroup_size(SIZE)
fn scale(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let n = (g.x + g.y * p.sublet_groups) * 4u + l;
  if (n < p.sublet_count) { helper(p.sublet_base + n); }
}
@compute @workgroup_size(1, 1)
fn plain(@builtin(global_invocation_id) i: vec3<u32>) { y[i.x + 4u * i.y] += u32(other[0]); }
`
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 4*65535 + 90
		x, y := u32s("x", count(n)...), u32s("y", make([]uint32, n)...)
		x.ReadOnly, y.Window, y.from = true, true, 64
		l := launch{
			source: source, kernel: "scale", rng: line(70, n-75, n), arrays: []*array{y, x},
			scalars: []scalar{{kernel.Decl{Name: "k", Type: kernel.Vec(kernel.F32, 2)}, []uint32{f32(1), f32(3)}}},
		}
		p := l.build(t)
		if want := []driver.Access{driver.AccessRead, driver.AccessParams, 0, driver.AccessReadWrite}; !slices.Equal(p.Bindings, want) || p.Local != [3]int{4, 1, 1} {
			t.Fatalf("bindings %v, local %v", p.Bindings, p.Local)
		}
		l.run(t, dev)
		want := make([]uint32, n)
		for i := 70; i < n-5; i++ {
			want[i] = uint32(3*i + n + n)
		}
		equal(t, "y", y.words, want)

		y = u32s("y", 1, 2, 3, 4, 5, 6, 7, 8)
		other := &array{Decl: kernel.Decl{Name: "other", Type: kernel.F32}, words: []uint32{f32(5)}}
		l = launch{source: source, kernel: "plain", rng: kernel.Range{Count: [3]int{3, 2}, Total: [3]int{3, 2}}, arrays: []*array{y, other}}
		l.run(t, dev)
		equal(t, "y", y.words, []uint32{6, 7, 8, 4, 10, 11, 12, 8})
	})
}
