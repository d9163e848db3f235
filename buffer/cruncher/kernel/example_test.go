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
		[]kernel.Decl{{Name: "x", Type: kernel.F32, ReadOnly: true}, {Name: "y", Type: kernel.F32}, {Name: "z", Type: kernel.F32}},
		[]kernel.Scalar{{Name: "factor", Type: kernel.F32}},
		[3]int{64})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(src.Kernels(), "binds")
	for _, a := range p.Arrays {
		fmt.Println(a.Binding, a.Name)
	}
	block := make([]byte, p.ParamBytes)
	groups, err := p.PutRange(block, kernel.Range{Base: [3]int{1000}, Count: [3]int{300}, Total: [3]int{2000}})
	fmt.Println(groups, err)
	// Output:
	// [saxpy zero] binds
	// 1 x
	// 2 y
	// [5 1 1] <nil>
}

func ExampleParse() {
	_, err := kernel.Parse("fn add3(i: u32) {\n  arr[i] = (arr[i] + 3u;\n}")
	fmt.Println(err)
	// Output: kernel: Parse: not a usable kernel: line 3: a "}" without its partner
}
