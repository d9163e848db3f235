// SPDX-License-Identifier: Apache-2.0

package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
)

// A file of two tensors, written and read again as streams.
func Example() {
	headers := []file.Header{
		{Name: "weight", Type: dtype.Float16, Shape: []int64{1, 2}},
		{Name: "bias", Type: dtype.Uint8, Shape: []int64{3}}, // larger elements first, as the reference implementation writes them
	}
	var f bytes.Buffer
	w, err := safetensors.NewWriter(&f, headers, map[string]string{"format": "pt"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Write([]byte{0, 0x3c, 0, 0x40 /* and */, 7, 8, 9}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	r, err := safetensors.NewReader(&f)
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
		data, err := io.ReadAll(r)
		fmt.Printf("%s %v %d %d %v\n", h.Name, h.Type, h.Shape, data, err)
	}
	// Output:
	// weight float16 [1 2] [0 60 0 64] <nil>
	// bias uint8 [3] [7 8 9] <nil>
}
