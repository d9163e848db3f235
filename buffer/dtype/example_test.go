// SPDX-License-Identifier: Apache-2.0

package dtype_test

import (
	"fmt"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

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
