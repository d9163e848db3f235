// SPDX-License-Identifier: Apache-2.0

package npy_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// TestWriter writes in parts what Write writes at once.
func TestWriter(t *testing.T) {
	h := npy.Header{Type: dtype.Uint16, Shape: []int64{2, 2}}
	var want, got bytes.Buffer
	if err := npy.Write(&want, h, []uint16{0x201, 0x403, 0x605, 0x807}); err != nil {
		t.Fatal(err)
	}
	w, err := npy.NewWriter(&got, h)
	if err != nil {
		t.Fatal(err)
	}
	for p := range slices.Chunk([]byte{1, 2, 3, 4, 5, 6, 7}, 3) {
		if n, err := w.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); !errors.Is(err, file.ErrTruncated) {
		t.Errorf("a byte is missing: %v", err)
	}
	if n, err := w.Write([]byte{8, 9}); n != 0 || !errors.Is(err, file.ErrFormat) {
		t.Errorf("a byte too many: %d, %v", n, err)
	}
	if _, err := w.Write([]byte{8}); err != nil || w.Close() != nil || w.Close() != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%v\n got %q\nwant %q", err, got.Bytes(), want.Bytes())
	}
	if _, err := w.Write(nil); !errors.Is(err, fault.ErrClosed) {
		t.Error(err)
	}
}

func TestWriterRefuses(t *testing.T) {
	var out bytes.Buffer
	h := npy.Header{Type: dtype.Uint16, Shape: []int64{2}}
	for want, h := range map[error]npy.Header{
		fault.ErrInvalid: {Type: dtype.Uint16, BigEndian: true},
		file.ErrType:     {Type: dtype.BFloat16},
		file.ErrFormat:   {Type: dtype.Uint16, Shape: []int64{-1}},
	} {
		if _, err := npy.NewWriter(&out, h); !errors.Is(err, want) || out.Len() != 0 {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := npy.NewWriter(nil, h); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
	full := filetest.ErrBroken
	if _, err := npy.NewWriter(&filetest.Limited{Left: 100, Err: full}, h); !errors.Is(err, full) {
		t.Error(err)
	}
	w, err := npy.NewWriter(&filetest.Limited{Left: 129, Err: full}, h)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write([]byte("1234")); n != 1 || !errors.Is(err, full) || !errors.Is(w.Close(), full) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := w.Write([]byte("234")); n != 0 || !errors.Is(err, full) {
		t.Errorf("%d, %v", n, err)
	}
}
