// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
)

// Of a file, which can seek, only the headers are read.
func ExampleReader_Next() {
	f, err := os.Open("testdata/dlr_4in2out_v2.params")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r, err := params.NewReader(f, params.Options{})
	for err == nil {
		var h file.Header
		if h, err = r.Next(); err == nil {
			fmt.Println(h.Name, h.Type, h.Shape, "at", h.Offset)
		}
	}
	if !errors.Is(err, io.EOF) {
		log.Fatal(err)
	}
	trailing, err := r.Trailing()
	fmt.Println(trailing, "bytes after the last tensor", err)
	// Output:
	// data4 float32 [3] at 132
	// data1 float32 [2] at 192
	// data3 float32 [3] at 248
	// data2 float32 [2] at 308
	// 0 bytes after the last tensor <nil>
}

func ExampleNewReader() {
	f, err := os.Open("testdata/dlr_2in1out_v1.params")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r, err := params.NewReader(f, params.Options{Strict: true})
	if err != nil {
		log.Fatal(err)
	}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		v := make([]float32, h.Size/4)
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			log.Fatal(err)
		}
		fmt.Println(h.Name, v)
	}
	// Output:
	// data1 [0.6105552 0.8802758]
	// data2 [0.5436434 -0.10101857]
}

func ExampleNewWriter() {
	var out strings.Builder
	w, err := params.NewWriter(&out, []file.Header{
		{Name: "weight", Type: dtype.Int8, Shape: []int64{2, 3}},
		{Name: "bias", Type: dtype.Int32},
	}, params.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := binary.Write(w, binary.LittleEndian, []int8{1, -2, 3, -4, 5, -6}); err != nil {
		log.Fatal(err)
	}
	if err := binary.Write(w, binary.LittleEndian, int32(7)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Len(), "bytes")
	// Output: 164 bytes
}
