// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
)

func Example() {
	src, err := kernel.Parse(`
fn scaled(i: u32) -> f32 { return factor * x[i]; }
fn saxpy(i: u32) { y[i] = scaled(i) + y[i]; }
fn zero(i: u32) { z[i] = 0.0; }`)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := src.Build("saxpy",
		[]kernel.Decl{
			{Name: "x", Type: kernel.F32, ReadOnly: true},
			{Name: "y", Type: kernel.F32},
			{Name: "z", Type: kernel.F32},
			{Name: "factor", Type: kernel.F32, Scalar: true},
		},
		[3]int{64})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(src.Kernels(), "binds")
	for _, a := range p.Arrays {
		fmt.Println(a.Binding, a.Name)
	}
	// Output:
	// [saxpy zero] binds
	// 1 x
	// 2 y
}

func ExampleParse() {
	_, err := kernel.Parse("fn add3(i: u32) {\n  arr[i] = (arr[i] + 3u;\n}")
	fmt.Println(err)
	// Output: kernel: Parse: not a usable kernel: line 3: a "}" without its partner
}
