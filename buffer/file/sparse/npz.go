// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// IsNPZ reports whether an archive is a sparse matrix of SciPy's: whether it has a member that names the format. It is false for what is no
// archive.
func IsNPZ(r io.ReaderAt, size int64) bool {
	if r == nil || size < 0 {
		return false
	}
	z, err := zip.NewReader(r, size)
	return err == nil && memberOf(z, "format") != nil
}

func memberOf(z *zip.Reader, name string) *zip.File {
	for _, f := range z.File {
		if f.Name == name+".npy" {
			return f
		}
	}
	return nil
}

// ReadNPZ reads a matrix that SciPy's save_npz wrote: csr, csc or coo, of which duplicates are added up; bsr and dia are
// [file.ErrType]. Values are of any type that numbers have but complex ones. An array of more than 2^27 elements is [file.ErrTooLarge].
func ReadNPZ(r io.ReaderAt, size int64) (*Matrix, error) {
	const op = "ReadNPZ"
	if r == nil || size < 0 {
		return nil, fault.Fail("sparse: "+op, fault.ErrInvalid, "no input")
	}
	format, err := formatOf(r, size)
	if err != nil {
		return nil, err
	}
	lists, err := arrays(r, size)
	if err != nil {
		return nil, err
	}
	for _, name := range [...]string{"shape", "data"} {
		if lists[name] == nil {
			return nil, malformed("npz", file.ErrFormat, "no member "+name)
		}
	}
	shape, err := lists["shape"].whole("shape", maxDim)
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 {
		return nil, malformed("npz", file.ErrFormat, strconv.Itoa(len(shape))+" dimensions")
	}
	m := &Matrix{Rows: int(shape[0]), Cols: int(shape[1]), ByRows: format == "csr", Values: lists["data"].values}
	if format == "coo" {
		return m.coordinates(lists)
	}
	return m.compressed(lists)
}

// formatOf reads the member that names the format, which is a text and no array of numbers.
func formatOf(r io.ReaderAt, size int64) (string, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return "", malformed("npz", file.ErrFormat, err.Error())
	}
	f := memberOf(z, "format")
	if f == nil {
		return "", malformed("npz", file.ErrFormat, "no member format")
	}
	in, err := f.Open()
	if err != nil {
		return "", malformed("npz", file.ErrFormat, err.Error())
	}
	defer func() { _ = in.Close() }() // it was only read
	const most = 4096
	text, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return "", malformed("npz", file.ErrFormat, "member format: "+err.Error())
	}
	const head = 10 // magic, version, length of the header
	if len(text) < head || int(binary.LittleEndian.Uint16(text[8:])) > len(text)-head {
		return "", malformed("npz", file.ErrFormat, "member format is no array")
	}
	name := string(bytes.ReplaceAll(text[head+int(binary.LittleEndian.Uint16(text[8:])):], []byte{0}, nil)) // of one byte a letter, or four
	switch name {
	case "csr", "csc", "coo":
		return name, nil
	case "bsr", "dia":
		return "", malformed("npz", file.ErrType, "SciPy's format "+name+"; csr, csc and coo are read")
	}
	return "", malformed("npz", file.ErrFormat, "format "+strconv.Quote(cut(name)))
}

// list is an array of numbers.
type list struct{ values []float64 }

// whole are numbers from 0 to most, which counts or indices are.
func (l *list) whole(name string, most int) ([]int32, error) {
	out := make([]int32, len(l.values))
	for k, v := range l.values {
		if !(v >= 0 && v <= float64(most)) || v != math.Trunc(v) {
			return nil, malformed("npz", file.ErrFormat, strconv.FormatFloat(v, 'g', -1, 64)+" in member "+name)
		}
		out[k] = int32(v)
	}
	return out, nil
}

// arrays reads the members with numbers.
func arrays(r io.ReaderAt, size int64) (map[string]*list, error) {
	z, err := npy.NewZipReader(r, size)
	if err != nil {
		return nil, err
	}
	lists := map[string]*list{}
	for {
		h, err := z.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lists, nil
		case h.Name == "format":
			continue
		case err != nil:
			return nil, err
		case !slices.Contains([]string{"shape", "data", "indices", "indptr", "row", "col"}, h.Name):
			continue
		case h.Size/int64(h.Type.Size()) > maxDim:
			return nil, malformed("npz", file.ErrTooLarge, "member "+h.Name)
		}
		l := &list{}
		step := h.Type.Size()
		block := make([]byte, step<<12)
		for {
			n, err := io.ReadFull(z, block)
			for at := 0; at+step <= n; at += step {
				v, ok := number(h.Type, block[at:])
				if !ok {
					return nil, malformed("npz", file.ErrType, "member "+h.Name+" of "+h.Type.String())
				}
				l.values = append(l.values, v)
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		lists[h.Name] = l
	}
}

// number is an element of a type.
func number(t dtype.Type, mem []byte) (float64, bool) {
	e := binary.LittleEndian
	switch t {
	case dtype.Float64:
		return math.Float64frombits(e.Uint64(mem)), true
	case dtype.Float32:
		return float64(math.Float32frombits(e.Uint32(mem))), true
	case dtype.Float16:
		return float64(dtype.HalfFromBits(e.Uint16(mem)).Float32()), true
	case dtype.Int64:
		return float64(int64(e.Uint64(mem))), true
	case dtype.Uint64:
		return float64(e.Uint64(mem)), true
	case dtype.Int32:
		return float64(int32(e.Uint32(mem))), true
	case dtype.Uint32:
		return float64(e.Uint32(mem)), true
	case dtype.Int16:
		return float64(int16(e.Uint16(mem))), true
	case dtype.Uint16:
		return float64(e.Uint16(mem)), true
	case dtype.Int8:
		return float64(int8(mem[0])), true
	case dtype.Uint8, dtype.Bool8:
		return float64(mem[0]), true
	}
	return 0, false
}

func (m *Matrix) coordinates(lists map[string]*list) (*Matrix, error) {
	var at [2][]int32
	for i, name := range [...]string{"row", "col"} {
		l := lists[name]
		if l == nil || len(l.values) != len(m.Values) {
			return nil, malformed("npz", file.ErrFormat, "member "+name+" is not there, or has not as many numbers as data")
		}
		var err error
		if at[i], err = l.whole(name, [...]int{m.Rows, m.Cols}[i]-1); err != nil {
			return nil, err
		}
	}
	return fromTriplets(m.Rows, m.Cols, at[0], at[1], m.Values), nil
}

// compressed completes a matrix of csr or csc, whose indices may be in any order and occur twice.
func (m *Matrix) compressed(lists map[string]*list) (*Matrix, error) {
	majors, minors := m.Cols, m.Rows
	if m.ByRows {
		majors, minors = minors, majors
	}
	indices, pointers := lists["indices"], lists["indptr"]
	if indices == nil || pointers == nil || len(pointers.values) != majors+1 || len(indices.values) != len(m.Values) {
		return nil, malformed("npz", file.ErrFormat, "members indices and indptr do not fit data and shape")
	}
	var err error
	if m.Indices, err = indices.whole("indices", minors-1); err != nil {
		return nil, err
	}
	if m.Pointers, err = pointers.whole("indptr", len(m.Values)); err != nil {
		return nil, err
	}
	if m.Pointers[0] != 0 || int(m.Pointers[majors]) != len(m.Values) {
		return nil, malformed("npz", file.ErrFormat, "indptr does not go from 0 to the number of values")
	}
	list := make([]int32, len(m.Values)) // the major of each entry
	for c := range majors {
		if m.Pointers[c+1] < m.Pointers[c] {
			return nil, malformed("npz", file.ErrFormat, "indptr falls")
		}
		for q := m.Pointers[c]; q < m.Pointers[c+1]; q++ {
			list[q] = int32(c)
		}
	}
	if m.check("ReadNPZ") == nil {
		return m, nil
	}
	sorted := fromTriplets(majors, minors, list, m.Indices, m.Values)
	sorted.Rows, sorted.Cols, sorted.ByRows = m.Rows, m.Cols, m.ByRows
	return sorted, nil
}

// WriteNPZ writes the entries of a matrix for SciPy's load_npz, compressed, with values of float32 where all are, else of float64. A
// dense matrix is [fault.ErrInvalid]: it is no sparse one.
func WriteNPZ(w io.Writer, m *Matrix) error {
	const op = "WriteNPZ"
	if w == nil {
		return fault.Fail("sparse: "+op, fault.ErrInvalid, "no output")
	}
	if err := m.check(op); err != nil {
		return err
	}
	if m.Dense != nil {
		return fault.Fail("sparse: "+op, fault.ErrInvalid, "a dense matrix")
	}
	z := zip.NewWriter(w)
	format := "csc"
	if m.ByRows {
		format = "csr"
	}
	put := func(name string, t dtype.Type, shape []int64, data []byte) error {
		f, err := z.Create(name + ".npy")
		if err != nil {
			return err
		}
		out, err := npy.NewWriter(f, npy.Header{Type: t, Shape: shape})
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return errors.Join(err, out.Close())
	}
	of := func(n int) []int64 { return []int64{int64(n)} }
	var shape []byte
	for _, n := range [...]int{m.Rows, m.Cols} {
		shape = binary.LittleEndian.AppendUint64(shape, uint64(n))
	}
	t, values := m.encoded()
	err := errors.Join(put("indices", dtype.Int32, of(len(m.Indices)), words(m.Indices)), put("indptr", dtype.Int32, of(len(m.Pointers)), words(m.Pointers)))
	if err == nil {
		err = putFormat(z, format)
	}
	return errors.Join(err, put("shape", dtype.Int64, of(2), shape), put("data", t, of(len(m.Values)), values), z.Close())
}

func words(list []int32) []byte {
	out := make([]byte, 0, 4*len(list))
	for _, v := range list {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out
}

// encoded are the values' bytes.
func (m *Matrix) encoded() (t dtype.Type, out []byte) {
	t = dtype.Float32
	for _, v := range m.Values {
		if float64(float32(v)) != v && v == v {
			t = dtype.Float64
		}
	}
	for _, v := range m.Values {
		if t == dtype.Float32 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		} else {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	}
	return t, out
}

// putFormat writes the array of one text that says how the matrix is stored.
func putFormat(z *zip.Writer, format string) error {
	f, err := z.Create("format.npy")
	if err != nil {
		return err
	}
	header := "{'descr': '|S3', 'fortran_order': False, 'shape': (), }"
	header += strings.Repeat(" ", 64-(10+len(header)+1)%64) + "\n"
	_, err = io.WriteString(f, "\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), byte(len(header) >> 8)})+header+format)
	return err
}
