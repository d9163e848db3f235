// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// operand is a .npy file under the name it has in the expression.
type operand struct {
	name, path string
	rows, cols int
	file       *os.File
	npy        *npy.Reader
}

// openNpy opens a file and checks its header. The elements count as progress when they are read.
func openNpy(path string, p *progress) (*os.File, *npy.Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	size := int64(-1)
	if st.Mode().IsRegular() {
		size = st.Size()
		p.expect(size)
	}
	r, err := npy.NewReader(p.reader(f), size)
	if err != nil {
		_ = f.Close()
		if _, known := formatOf(path, "", ""); known == nil {
			return nil, nil, fmt.Errorf("%s: %w; sublet params get takes an array out of a file of several", path, err)
		}
		return nil, nil, inFile(path, err)
	}
	return f, r, nil
}

// openOperand opens the file of a matrix. The elements are read by [load].
func openOperand(name, path string, p *progress) (*operand, error) {
	f, r, err := openNpy(path, p)
	if err != nil {
		return nil, err
	}
	o := &operand{name: name, path: path, file: f, npy: r}
	if err := o.shape(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return o, nil
}

func (o *operand) shape() error {
	s := o.npy.Header().Shape
	if len(s) > 2 {
		return fault.Fail(o.path, buffer.ErrShape, fmt.Sprintf("an array of %d dimensions is no matrix", len(s)))
	}
	s = append([]int64{1, 1}[len(s):], s...)
	if max(s[0], s[1]) > math.MaxInt {
		return fault.Fail(o.path, buffer.ErrShape, fmt.Sprintf("%d by %d elements are too many", s[0], s[1]))
	}
	o.rows, o.cols = int(s[0]), int(s[1])
	return nil
}

// checkSize keeps a file from being read that no buffer of the device could hold.
func (o *operand) checkSize(t dtype.Type, l driver.Limits) error {
	n := o.npy.Header().Len()
	if uint64(n) > l.MaxBufferSize/uint64(t.Size()) {
		return fault.Fail(o.path, gpu.ErrLimit, fmt.Sprintf("%d elements of %v, the largest buffer has %d bytes", n, t, l.MaxBufferSize))
	}
	return nil
}

// elementType returns the type to compute in, which is that of all operands, or float32 when they are cast to it.
func elementType(operands []*operand, cast bool) (dtype.Type, error) {
	for i, o := range operands {
		switch t := o.npy.Header().Type; {
		case t.Code == dtype.Complex64.Code:
			return t, fault.Fail(o.path, errElem, "the file is ", t.String())
		case cast:
		case t != dtype.Float32 && t != dtype.Float16 && t != dtype.Int32 && t != dtype.Uint32:
			return t, fault.Fail(o.path, errElem, "the file is ", t.String(),
				"; those are float32, float16, int32 and uint32; --cast converts to float32 and reports the largest relative change")
		case i > 0 && t != operands[0].npy.Header().Type:
			return t, fault.Fail(o.path, errMixed, t.String(), ", and ", operands[0].path, " is ", operands[0].npy.Header().Type.String(),
				"; --cast converts all to float32 and reports the largest relative change")
		}
	}
	if cast {
		return dtype.Float32, nil
	}
	return operands[0].npy.Header().Type, nil
}

// load reads the elements and hands them to the device's matrix without a copy: the file's own order stays.
func load[T matrix.Elem](dev *gpu.Device, o *operand, read func(*npy.Reader) ([]T, error)) (*matrix.Dense[T], error) {
	data, err := read(o.npy)
	if err != nil {
		return nil, inFile(o.path, err)
	}
	m, err := matrix.Wrap(dev, o.rows, o.cols, data, matrix.Options{ColMajor: o.npy.Header().Fortran})
	if err != nil {
		return nil, inFile(o.path, err)
	}
	return m, nil
}

// readCast reads elements of any type as float32. change becomes the largest relative change of an element, if that is larger.
func readCast(r *npy.Reader, change *float64) ([]float32, error) {
	switch t := r.Header().Type; t {
	case dtype.Float32:
		return npy.Read[float32](r)
	case dtype.Float16:
		return convert(r, change, func(h matrix.Half) (float32, float64) { return h.Float32(), float64(h.Float32()) })
	case dtype.Float64:
		return convert(r, change, func(v float64) (float32, float64) { return float32(v), v })
	case dtype.Int8:
		return convert(r, change, whole[int8])
	case dtype.Int16:
		return convert(r, change, whole[int16])
	case dtype.Int32:
		return convert(r, change, whole[int32])
	case dtype.Int64:
		return convert(r, change, whole[int64])
	case dtype.Uint16:
		return convert(r, change, whole[uint16])
	case dtype.Uint32:
		return convert(r, change, whole[uint32])
	case dtype.Uint64:
		return convert(r, change, whole[uint64])
	default: // uint8 and bool
		return convert(r, change, whole[uint8])
	}
}

func whole[S int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v S) (float32, float64) {
	return float32(v), float64(v)
}

// changeOf tells by how much v changed when it became f: relative to v, and 0 for NaN, infinities and zero. A finite number that
// became infinite is an error.
func changeOf(f float32, v float64) (change float64, err error) {
	if math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
		return 0, fault.Fail("cast", errOverflow, fmt.Sprintf("%v does not fit float32", v))
	}
	if c := math.Abs(float64(f)-v) / math.Abs(v); c > 0 { // not so for NaN
		return c, nil
	}
	return 0, nil
}

// convert reads elements; f returns one as float32 and as it was.
func convert[S npy.Elem](r *npy.Reader, change *float64, f func(S) (float32, float64)) ([]float32, error) {
	buf := make([]S, min(64<<10, r.Header().Len()))
	var out []float32
	for n := r.Header().Len(); int64(len(out)) < n; {
		part := buf[:min(int64(len(buf)), n-int64(len(out)))]
		if err := npy.ReadInto(r, part); err != nil {
			return nil, err
		}
		for _, v := range part {
			x, was := f(v)
			c, err := changeOf(x, was)
			if err != nil {
				return nil, err
			}
			*change = max(*change, c)
			out = append(out, x)
		}
	}
	return out, nil
}

// closeAll closes files that were only read.
func closeAll(operands []*operand) {
	for _, o := range operands {
		_ = o.file.Close()
	}
}
