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

func ExampleScan() {
	f, err := os.Open("testdata/dlr_4in2out_v2.params")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	headers, info, err := params.Scan(f, params.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range headers {
		fmt.Println(h.Name, h.Type, h.Shape, "at", h.Offset)
	}
	fmt.Println(info.Size, "bytes, then", info.Trailing)
	// Output:
	// data4 float32 [3] at 132
	// data1 float32 [2] at 192
	// data3 float32 [3] at 248
	// data2 float32 [2] at 308
	// 316 bytes, then 0
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
	headers, _, err := params.Scan(strings.NewReader(out.String()), params.Options{})
	fmt.Println(out.Len(), headers, err)
	// Output: 164 [{weight int8 [2 3] 114 6} {bias int32 [] 160 4}] <nil>
}
