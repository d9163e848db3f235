// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"archive/zip"
	"bytes"
	"io"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// sparse is a file that keeps everything but what was written out of zeros.
type sparse struct {
	zeros  []byte
	pieces []piece
	size   int64
}

type piece struct {
	at   int64
	data []byte // nil: zeros
	size int64
}

func (s *sparse) Write(p []byte) (int, error) {
	one := piece{s.size, nil, int64(len(p))}
	if len(p) > 0 && &p[0] != &s.zeros[0] {
		one.data = bytes.Clone(p)
	}
	s.pieces = append(s.pieces, one)
	s.size += one.size
	return len(p), nil
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for _, one := range s.pieces {
		if from := max(off, one.at); one.data != nil && from < one.at+one.size && off+int64(len(p)) > one.at {
			copy(p[from-off:], one.data[from-one.at:])
		}
	}
	n := int(min(int64(len(p)), s.size-off))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Arrays of over 4 GiB need the archive's larger fields, and what follows them stays aligned.
func TestZip64(t *testing.T) {
	const size = 1<<32 + 1<<20
	s := &sparse{zeros: make([]byte, 1<<24)}
	w, err := npy.NewZipWriter(s, []file.Header{{Name: "large", Type: dtype.Uint8, Shape: []int64{size}}, {Name: "small", Type: dtype.Uint8, Shape: []int64{4}}}, zip.Store)
	if err != nil {
		t.Fatal(err)
	}
	for left := int64(size); left > 0; {
		n, err := w.Write(s.zeros[:min(left, int64(len(s.zeros)))])
		if err != nil {
			t.Fatal(err)
		}
		left -= int64(n)
	}
	if _, err := w.Write([]byte("1234")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := npy.NewZipReader(s, s.size)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := z.Next(); err != nil || h.Size != size || h.Offset%64 != 0 {
		t.Errorf("%+v, %v", h, err)
	}
	h, err := z.Next()
	got, e := io.ReadAll(z)
	if err != nil || e != nil || string(got) != "1234" || h.Offset <= size || h.Offset%64 != 0 {
		t.Errorf("%+v, %q, %v, %v", h, got, err, e)
	}
}
