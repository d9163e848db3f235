// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"archive/zip"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// count is an input and an output that always says so many bytes.
type count int

func (c count) Read([]byte) (int, error)          { return int(c), nil }
func (c count) ReadAt([]byte, int64) (int, error) { return int(c), nil }
func (c count) Write([]byte) (int, error)         { return int(c), nil }

// TestBrokenReaders gives every reader inputs that break their contract, from the first byte on and after a good file: an
// error, never a panic or a wait without end.
func TestBrokenReaders(t *testing.T) {
	const empty = "\x02\x00\x00\x00\x00\x00\x00\x00{}"
	const array = "\x93NUMPY\x01\x00\x37\x00{'descr': '>i4', 'fortran_order': True, 'shape': (2,)}\n"
	for n, want := range map[count]error{0: io.ErrNoProgress, -1: fault.ErrInvalid, math.MinInt: fault.ErrInvalid, 1 << 40: fault.ErrInvalid} {
		after := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s), n) }
		read := func(r file.Reader, err error) error {
			if err == nil {
				_, err = r.Next()
			}
			return err
		}
		_, ofArray := npy.NewReader(n, -1)
		r, inArray := npy.NewReader(after(array), -1)
		if inArray == nil {
			_, inArray = npy.Read[int32](r)
		}
		for what, err := range map[string]error{
			"npy":                   ofArray,
			"npy, elements":         inArray,
			"safetensors":           second(safetensors.NewReader(n)),
			"safetensors, its end":  read(safetensors.NewReader(after(empty))),
			"params":                second(params.NewReader(n, params.Options{})),
			"params, in the middle": read(params.NewReader(after("\xb7\x9c"), params.Options{})),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s, %d: %v, want %v", what, n, err, want)
			}
		}
		if _, err := npy.NewZipReader(n, 1000); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("npz, %d: %v", n, err)
		}
	}
}

// TestBrokenWriters gives every writer outputs that write less than they are given and do not say why.
func TestBrokenWriters(t *testing.T) {
	headers := []file.Header{{Name: "a", Type: dtype.Int8, Shape: []int64{1}}}
	for _, n := range []count{0, 1, -1, math.MinInt} {
		packed := second(npy.NewZipWriter(n, headers, zip.Deflate))
		if w, err := npy.NewZipWriter(n, headers, zip.Store); err == nil {
			if _, packed = w.Write([]byte{1}); packed == nil {
				packed = w.Close()
			}
		}
		for what, err := range map[string]error{
			"npy":              npy.Write(n, npy.Header{Type: dtype.Int8}, []int8{1}),
			"npy, as a stream": second(npy.NewWriter(n, npy.Header{Type: dtype.Int8})),
			"npz":              packed,
			"safetensors":      second(safetensors.NewWriter(n, headers, nil)),
			"params":           second(params.NewWriter(n, headers, params.Options{})),
		} {
			if !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s, %d: %v", what, n, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
