// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// A .npy file, written and read again.
func Example() {
	var f bytes.Buffer
	h := npy.Header{Type: dtype.Float32, Shape: []int64{2, 3}}
	if err := npy.Write(&f, h, []float32{1, 2, 3, 4, 5, 6}); err != nil {
		log.Fatal(err)
	}
	r, err := npy.NewReader(&f, int64(f.Len()))
	if err != nil {
		log.Fatal(err)
	}
	values, err := npy.Read[float32](r)
	fmt.Println(r.Header().Type, r.Header().Shape, values, err)

	_, err = npy.NewReader(bytes.NewReader([]byte("PK\x03\x04")), 4) // an archive: NewZipReader reads those
	fmt.Println(errors.Is(err, file.ErrFormat))
	// Output:
	// float32 [2 3] [1 2 3 4 5 6] <nil>
	// true
}

// An .npz archive, array by array.
func ExampleNewZipReader() {
	var f bytes.Buffer
	w, err := npy.NewZipWriter(&f, []file.Header{
		{Name: "labels", Type: dtype.Uint8, Shape: []int64{4}},
		{Name: "rate", Type: dtype.Float64},
	}, zip.Store)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Write([]byte{0, 1, 1, 0 /* and */, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	r, err := npy.NewZipReader(bytes.NewReader(f.Bytes()), int64(f.Len()))
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
		data := make([]byte, h.Size)
		if _, err := io.ReadFull(r, data); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %v %d %d\n", h.Name, h.Type, h.Shape, data)
	}
	// Output:
	// labels uint8 [4] [0 1 1 0]
	// rate float64 [] [0 0 0 0 0 0 224 63]
}
