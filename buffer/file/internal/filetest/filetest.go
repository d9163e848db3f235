// SPDX-License-Identifier: Apache-2.0

// Package filetest is what the tests of several file formats do alike.
package filetest

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Tensor is a header and its data.
type Tensor struct {
	file.Header
	Data []byte
}

// New makes a tensor to be written.
func New(name string, typ dtype.Type, data []byte, shape ...int64) Tensor {
	return Tensor{file.Header{Name: name, Type: typ, Shape: shape}, data}
}

// Headers returns the tensors' headers.
func Headers(v []Tensor) (h []file.Header) {
	for _, t := range v {
		h = append(h, t.Header)
	}
	return h
}

// Maker makes a writer of a format.
type Maker func(w io.Writer, headers []file.Header) (file.Writer, error)

// Write returns a file of the tensors, whose data are written in parts of chunk bytes.
func Write(t testing.TB, format Maker, v []Tensor, chunk int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := format(&b, Headers(v))
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, one := range v {
		data = append(data, one.Data...)
	}
	for part := range slices.Chunk(data, chunk) {
		if n, err := w.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ReadAll reads a file to its end, or to its first error.
func ReadAll(r file.Reader) (v []Tensor, err error) {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return v, nil
		}
		if err != nil {
			return v, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return v, err
		}
		v = append(v, Tensor{h, data})
	}
}

// Same fails unless the tensors that were read are those that were written, and in the file where their offsets say. A nil
// file does not hold them as they are.
func Same(t testing.TB, got, want []Tensor, whole []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.Name != w.Name || g.Type != w.Type || !slices.Equal(g.Shape, w.Shape) || g.Size != int64(len(w.Data)) || !bytes.Equal(g.Data, w.Data) {
			t.Errorf("%+v, want %+v", g, w)
		}
		if whole != nil && (g.Offset < 8 || !bytes.HasPrefix(whole[g.Offset:], w.Data)) {
			t.Errorf("%s: its data are not at %d", g.Name, g.Offset)
		}
	}
}

// Refuses fails unless a writer refuses the headers before it writes anything.
func Refuses(t testing.TB, format Maker, want error, headers ...file.Header) {
	t.Helper()
	var b bytes.Buffer
	w, err := format(&b, headers)
	if made := reflect.ValueOf(w); !errors.Is(err, want) || b.Len() != 0 || made.IsValid() && !made.IsNil() {
		t.Errorf("%v, %d bytes written, want %v", err, b.Len(), want)
	}
}

// RefusesAll is [Refuses] with headers that are as wrong in a .npz file as in a .safetensors file.
func RefusesAll(t testing.TB, format Maker) {
	t.Helper()
	a := func(typ dtype.Type, shape ...int64) file.Header { return New("a", typ, nil, shape...).Header }
	Refuses(t, format, file.ErrType, a(dtype.Type{Code: dtype.Float32.Code, Bits: 32, Lanes: 2}))
	Refuses(t, format, file.ErrType, a(dtype.Type{}))
	Refuses(t, format, file.ErrFormat, a(dtype.Int8, -1))
	Refuses(t, format, file.ErrFormat, a(dtype.Int8, math.MaxInt64, 2))
	Refuses(t, format, file.ErrTooLarge, a(dtype.Int8, slices.Repeat([]int64{1}, 65)...))
	Refuses(t, format, file.ErrTooLarge, a(dtype.Int8, math.MaxInt64), file.Header{Name: "b", Type: dtype.Int8})
	Refuses(t, format, file.ErrDuplicate, a(dtype.Int8), a(dtype.Int16))
}

// Amounts gives a writer more data than there are and fewer. It returns the file, whose one tensor is the bytes 1, 2, 3.
func Amounts(t testing.TB, format Maker) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := format(&b, []file.Header{{Name: "a", Type: dtype.Uint8, Shape: []int64{3}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write(make([]byte, 4)); n != 0 || !errors.Is(err, file.ErrFormat) {
		t.Errorf("too much: %d, %v", n, err)
	}
	if err := w.Close(); !errors.Is(err, file.ErrTruncated) {
		t.Errorf("too little: %v", err)
	}
	if n, err := w.Write([]byte{1, 2, 3}); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := w.Write(nil); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if _, err := w.Write(nil); !errors.Is(err, fault.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	return b.Bytes()
}
