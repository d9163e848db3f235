// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

func ExampleFprint() {
	dev, err := gpu.Open(background, gpu.WithDriver("cpu"))
	if err != nil {
		panic(err)
	}
	m, err := matrix.FromSlice(dev, 2, 3, []float32{1, 2.5, -3, 10, 0, 7})
	if err != nil {
		panic(err)
	}
	fmt.Println(m)
	err = matrix.Fprint(background, os.Stdout, matrix.Scale(2, m))
	fmt.Println(err)
	// Output:
	// 2x3 float32
	//   2  5 -6
	//  20  0 14
	// <nil>
}

func TestFprint(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for want, x := range map[string]matrix.Operand[int32]{
			" 5\n": matrix.Fill[int32](1, 1, 5), "(0x3)\n": matrix.Fill[int32](0, 3, 1),
			"    0    1    2  ... 1997 1998 1999\n":             matrix.Arange[int32](0, 2000, 1),
			"    0\n    1\n    2\n  ...\n 1997\n 1998\n 1999\n": matrix.Transpose[int32](matrix.Arange[int32](0, 2000, 1)),
			"    0    1    2  ...   37   38   39\n   40   41   42  ...   77   78   79\n   80   81   82  ...  117  118  119\n  ...\n" +
				" 1880 1881 1882  ... 1917 1918 1919\n 1920 1921 1922  ... 1957 1958 1959\n 1960 1961 1962  ... 1997 1998 1999\n": matrix.Arange[int32](0, 2000, 1).Reshape(50, 40),
		} {
			var got strings.Builder
			m := must[*matrix.Dense[int32]](t)(matrix.New[int32](dev, 0, 0))
			check(t, m.Assign(x))
			check(t, matrix.Fprint[int32](background, &got, m))
			if got.String() != want {
				t.Errorf("printed %q, want %q", got.String(), want)
			}
			check(t, m.Close())
		}
		isError(t, matrix.Fprint[int32](background, nil, matrix.Fill[int32](1, 1, 5)), buffer.ErrNil)
		isError(t, matrix.Fprint[float32](background, io.Discard, nil), buffer.ErrNil)
		var none matrix.Dense[float32]
		if got := fmt.Sprint(&none, (*dense)(nil)); got != "0x0 float32 0x0 float32" {
			t.Errorf("no matrices are %q", got)
		}
	})
}
