// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

func FuzzNpy(f *testing.F) {
	f.Add([]byte(asNumPy), true)
	f.Add([]byte(npyFile(2, "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 1, 1)}", "\x00\x01")), false)
	f.Add([]byte(npyFile(1, "{\"shape\": (), 'descr': '>i8', 'fortran_order': False}", "12345678")), true)
	f.Add([]byte("\x93NUMPY\x01\x00\x01\x00{"), false)
	f.Fuzz(func(t *testing.T, data []byte, sized bool) {
		size := int64(-1)
		if sized {
			size = int64(len(data))
		}
		r, err := npy.NewReader(bytes.NewReader(data), size)
		typed(t, err, len(data))
		if err != nil {
			return
		}
		switch r.Header().Type.Size() {
		case 1:
			fuzzElements[uint8](t, r, sized, len(data))
		case 2:
			fuzzElements[uint16](t, r, sized, len(data))
		case 4:
			fuzzElements[uint32](t, r, sized, len(data))
		case 8:
			fuzzElements[uint64](t, r, sized, len(data))
		case 16:
			typed(t, second(io.Copy(io.Discard, r)), len(data))
		default:
			t.Fatalf("header %+v", r.Header())
		}
	})
}

func fuzzElements[T npy.Elem](t *testing.T, r *npy.Reader, sized bool, size int) {
	v, err := npy.Read[T](r)
	typed(t, err, size)
	if err != nil {
		if sized {
			t.Fatalf("header %+v was accepted, then: %v", r.Header(), err)
		}
		return
	}
	if h := r.Header(); h.Type.Code != dtype.Complex64.Code { // a complex number's parts are turned one by one, T as a whole
		roundTrip(t, h, v)
	}
}

// FuzzNpz writes again what it could read, and reads the same.
func FuzzNpz(f *testing.F) {
	// Small ones: the fuzzer takes minutes to find the smallest form of large ones.
	f.Add(raw(f, zip.Store))
	f.Add(raw(f, zip.Deflate, "a", npyFile(1, "{'descr':'<f4','fortran_order':False,'shape':()}", "1234")))
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := npy.NewZipReader(bytes.NewReader(data), int64(len(data)))
		typed(t, err, len(data))
		if err != nil {
			return
		}
		var read []tensor
		for h, err := z.Next(); !errors.Is(err, io.EOF); h, err = z.Next() {
			typed(t, err, len(data))
			if err != nil {
				continue
			}
			b, err := io.ReadAll(io.LimitReader(z, 1<<20))
			typed(t, err, len(data))
			if err == nil && int64(len(b)) == h.Size {
				read = append(read, tensor{Header: h, Data: b})
			} else if err == nil && h.Size < 1<<20 {
				t.Fatalf("%+v: %d bytes", h, len(b))
			}
		}
		if _, err := npy.NewZipWriter(io.Discard, filetest.Headers(read), zip.Store); err != nil {
			typed(t, err, 0) // a name that leads out of a folder
			return
		}
		whole := writeZip(t, read, 1<<10, zip.Store)
		again, err := filetest.ReadAll(openZip(t, whole))
		if err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, again, read, whole)
	})
}
