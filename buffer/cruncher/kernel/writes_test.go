// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
)

// TestWritten looks for what kernels may write in statements.
func TestWritten(t *testing.T) {
	arrays := []kernel.Decl{
		{Name: "a", Type: kernel.U32},
		{Name: "s", Type: kernel.U8, Mode: kernel.Packed, Struct: "S"},
		{Name: "n", Type: kernel.U8, Mode: kernel.Atomic},
		{Name: "w", Type: kernel.I32, Mode: kernel.Atomic},
	}
	const rest = `
struct S { x: u32, v: vec2<u32> }
fn put(p: ptr<storage, array<u32>, read_write>, i: u32) { (*p)[i] = 1u; }
fn inner(i: u32) { a[i] = 2u; }
fn outer(i: u32) { inner(i); }
`
	for _, c := range []struct {
		statement, array string
		want             bool
	}{
		{"a[i] = 1u;", "a", true},
		{"a[a[i]] = 1u;", "a", true},
		{"let x = a[i] == 1u;", "a", false},
		{"let x = a[i] <= 1u || a[i] >= 2u || a[i] != 3u;", "a", false},
		{"a[i] += 1u;", "a", true},
		{"a[i] <<= 1u;", "a", true},
		{"a[i] >>= 1u;", "a", true},
		{"a[i] ^= 1u;", "a", true},
		{"a[i]++;", "a", true},
		{"a[i]--;", "a", true},
		{"(a[i]) = 1u;", "a", true},
		{"((a))[i] = 1u;", "a", true},
		{"if (a[i] == 1u) { }", "a", false},
		{"var x = (a[i]); x = 1u;", "a", false},
		{"var x = max(a[i], 1u); x += a[i];", "a", false},
		{"let x = i & a[i];", "a", false},
		{"let x = 7u & a[i];", "a", false},
		{"let x = (i) & a[i];", "a", false},
		{"let x = i > 1u && a[i] > 1u;", "a", false},
		{"let p = &a; (*p)[i] = 1u;", "a", true},
		{"let p = &(a[i]); *p = 1u;", "a", true},
		{"let x = arrayLength(&a);", "a", false},
		{"put(&a, i);", "a", true},
		{"outer(i);", "a", true},
		{"var a = array<u32, 1>(); a[0] = i;", "a", false}, // not the array
		{"s[i].x = 1u;", "s", true},
		{"s[i].v[1] = 1u;", "s", true},
		{"s[i].v.y = 1u;", "s", true},
		{"let x = s[i].v.y;", "s", false},
		{"sublet_store_n(i, 1u);", "n", true},
		{"let x = sublet_load_n(i);", "n", false},
		{"atomicAdd(&w[i], 1);", "w", true},
		{"let x = atomicLoad(&w[i]);", "w", false},
		{"let x = atomicLoad(&(w[i]));", "w", false},
		{"atomicStore(&w[i], atomicLoad(&w[i]) + 1);", "w", true},
	} {
		s, err := kernel.Parse("fn k(i: u32) { " + c.statement + " }" + rest)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Build("k", arrays, [3]int{})
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		got := false
		for _, a := range p.Arrays {
			got = got || a.Name == c.array && a.Written
		}
		if got != c.want {
			t.Errorf("%s: got %v, want %v", c.statement, got, c.want)
		}
	}
}

// TestWrittenByNamesake has a function of the user's go by the name of one of WGSL's that only reads.
func TestWrittenByNamesake(t *testing.T) {
	s, err := kernel.Parse(`
@group(0) @binding(0) var<storage, read_write> w: array<atomic<i32>>;
fn atomicLoad(p: ptr<storage, atomic<i32>, read_write>) { atomicStore(p, 1); }
@compute @workgroup_size(64) fn k(@builtin(global_invocation_id) id: vec3<u32>) { atomicLoad(&w[id.x]); }`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Build("k", []kernel.Decl{{Name: "w", Type: kernel.I32, Mode: kernel.Atomic}}, [3]int{})
	if err != nil || !p.Arrays[0].Written {
		t.Errorf("not written, %v", err)
	}
}

// TestWrittenModule has the access of a complete module's bindings say so, too.
func TestWrittenModule(t *testing.T) {
	s, err := kernel.Parse(`
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> z: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x] + z[id.x]; }`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Build("main", []kernel.Decl{{Name: "x", Type: kernel.U32}, {Name: "y", Type: kernel.U32}, {Name: "z", Type: kernel.U32}}, [3]int{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} {
		if a := p.Arrays[i]; a.Written != want {
			t.Errorf("%s: got %v, want %v", a.Name, a.Written, want)
		}
	}
}
