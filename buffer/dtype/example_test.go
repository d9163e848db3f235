// SPDX-License-Identifier: Apache-2.0

package dtype_test

import (
	"fmt"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

func ExampleHalfSlice() {
	bits := []uint16{0x3c00, 0x4000}
	h := dtype.HalfSlice(bits)
	fmt.Println(h, h[0].Float32()+h[1].Float32())
	h[0] = dtype.ToHalf(-0.5)
	fmt.Printf("%#04x\n", bits) // of the same memory
	// Output:
	// [1 2] 3
	// [0xb800 0x4000]
}

func ExampleParse() {
	for _, name := range []string{"float32", "bfloat16", "uint1"} {
		t, ok := dtype.Parse(name)
		fmt.Println(t, t.Size(), ok)
	}
	_, ok := dtype.Parse("number")
	fmt.Println(ok)
	// Output:
	// float32 4 true
	// bfloat16 2 true
	// uint1 1 true
	// false
}
