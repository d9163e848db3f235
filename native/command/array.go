// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/sparse"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

// array is what a .npy file holds.
type array struct {
	path string
	npy.Header
	data   []byte         // little-endian, in the order of the file
	change float64        // the largest relative change of an element by a cast
	sparse *sparse.Matrix // where the values are, of data that are not all elements
}

// readArray reads a file whose header passes a check. With cast its elements become float32.
func (a *app) readArray(ctx context.Context, path string, cast bool, check func(*array) error) (*array, error) {
	f, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	size, err := f.size()
	if err != nil {
		return nil, err
	}
	return a.arrayOf(ctx, path, f, size, cast, check)
}

// arrayOf is readArray of what is open. The size is -1 where it is not known.
func (a *app) arrayOf(ctx context.Context, path string, f io.Reader, size int64, cast bool, check func(*array) error) (*array, error) {
	a.progress.enter("reading", size)
	r, err := npy.NewReader(f, size)
	if err != nil {
		if _, known := formatOf(path, "", ""); known == nil {
			return nil, fmt.Errorf("%w; sublet params get takes an array out of a file of several", inFile(path, err))
		}
		return nil, inFile(path, err)
	}
	x := &array{path: path, Header: r.Header()}
	if err := check(x); err != nil {
		return nil, err
	}
	_, n, _ := x.Type.Bytes(x.Shape)
	if in, ok := f.(*input); ok && size >= mapped && !cast && !x.BigEndian {
		return x, a.mapData(in, x, n)
	}
	var all bytes.Buffer
	if size >= 0 { // the header's claim can be trusted
		all.Grow(int(n))
	}
	c := &castWriter{w: &all, from: x.Type}
	var to io.Writer = &all
	if cast && x.Type != dtype.Float32 {
		to, x.Type = c, dtype.Float32
	}
	if err := a.progress.pour(ctx, to, r, n); err != nil {
		return nil, inFile(path, err)
	}
	x.data, x.change, x.BigEndian = all.Bytes(), c.change, false
	return x, nil
}

// mapped is the size of files whose elements are used where they lie: beyond it they may not fit into memory.
var mapped int64 = 1 << 30

// mapData makes the elements those of the file, which has been read up to them.
func (a *app) mapData(in *input, x *array, n int64) error {
	at, err := in.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	f, err := mapfile.Open(in.Name())
	if err != nil {
		return inFile(x.path, err)
	}
	a.closers = append(a.closers, func() { _ = f.Close() }) // it was only read
	mem, _, err := f.Share(at)
	if err != nil || int64(mem.Size) < n {
		return inFile(x.path, cmp.Or(err, io.ErrUnexpectedEOF)) // it has become shorter
	}
	x.data = mem.Bytes[:n]
	return nil
}

// elements decode a number of each type, which a file holds little-endian.
var elements = map[dtype.Type]func([]byte) any{
	dtype.Bool8: decode[bool], dtype.Bool1: decode[bool],
	dtype.Int8: decode[int8], dtype.Int16: decode[int16], dtype.Int32: decode[int32], dtype.Int64: decode[int64],
	dtype.Uint8: decode[uint8], dtype.Uint16: decode[uint16], dtype.Uint32: decode[uint32], dtype.Uint64: decode[uint64],
	dtype.Float16:  func(b []byte) any { return dtype.HalfFromBits(binary.LittleEndian.Uint16(b)).Float32() },
	dtype.BFloat16: func(b []byte) any { return decode[float32]([]byte{0, 0, b[0], b[1]}) },
	dtype.Float32:  decode[float32], dtype.Float64: decode[float64],
	dtype.Complex64: decode[complex64], dtype.Complex128: decode[complex128],
}

func decode[T any](b []byte) any {
	var v T
	_, _ = binary.Decode(b, binary.LittleEndian, &v) // b has its size
	return v
}

// element returns a number, or the bytes of one of an unknown type.
func element(t dtype.Type, b []byte) any {
	if decode := elements[t]; decode != nil {
		return decode(b[:t.Size()])
	}
	return "0x" + hex.EncodeToString(b)
}

// single returns a number as float32, and as it was.
func single(x any) (float32, float64) {
	switch v := reflect.ValueOf(x); {
	case v.CanInt():
		return float32(v.Int()), float64(v.Int())
	case v.CanUint():
		return float32(v.Uint()), float64(v.Uint())
	case v.CanFloat():
		return float32(v.Float()), v.Float()
	case x == true:
		return 1, 1
	}
	return 0, 0
}

// castWriter writes numbers of another type as float32, of blocks with whole numbers. change becomes the largest relative change of
// one; that of NaN, infinities and zero is 0. A finite number that would become infinite is an error.
type castWriter struct {
	w      io.Writer
	from   dtype.Type
	buf    []byte
	change float64
}

func (c *castWriter) Write(b []byte) (int, error) {
	c.buf = c.buf[:0]
	decode, size := elements[c.from], c.from.Size()
	for i := 0; i < len(b); i += size {
		f, v := single(decode(b[i : i+size]))
		if math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
			return 0, fault.Fail("cast", errOverflow, fmt.Sprintf("%v does not fit float32", v))
		}
		if change := math.Abs(float64(f)-v) / math.Abs(v); change > c.change { // not so for NaN
			c.change = change
		}
		c.buf = binary.LittleEndian.AppendUint32(c.buf, math.Float32bits(f))
	}
	_, err := c.w.Write(c.buf)
	return len(b), err
}

// shown is how many rows and columns are printed of a larger matrix, half at each end.
const shown = 10

// printCells writes what at returns in columns. It asks only for what is shown, in the order of the elements.
func printCells(w io.Writer, rows, cols int, at func(i, j int) (any, error)) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	across := indices(cols)
	for _, i := range indices(rows) {
		for _, j := range across {
			var cell any = "..."
			if i >= 0 && j >= 0 {
				var err error
				if cell, err = at(i, j); err != nil {
					return err
				}
			}
			switch z := cell.(type) {
			case complex64:
				cell = complexText(complex128(z), 64)
			case complex128:
				cell = complexText(z, 128)
			}
			fmt.Fprintf(tw, "%v\t", cell)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// indices returns the numbers below n, or -1 in place of those in the middle that are not shown.
func indices(n int) (list []int) {
	for i := range min(n, shown+1) {
		if n > shown && i == shown/2 {
			list = append(list, -1)
			continue
		}
		if n > shown && i > shown/2 {
			i += n - shown - 1
		}
		list = append(list, i)
	}
	return list
}

// maxNested is how many elements, and how many rows, --json prints at most.
const maxNested = 10_000

// nested returns the rows for JSON, as NumPy's tolist does. JSON has no NaN and no infinities: they are the texts that JavaScript's
// Number and Python's float read.
func nested(rows, cols int, at func(i, j int) any) [][]any {
	all := make([][]any, rows)
	for i := range all {
		all[i] = make([]any, cols)
		for j := range all[i] {
			all[i][j] = jsonNumber(at(i, j))
		}
	}
	return all
}

func jsonNumber(v any) any {
	switch text := fmt.Sprint(v); text {
	case "NaN":
		return text
	case "+Inf", "-Inf":
		return strings.TrimPrefix(text, "+") + "inity"
	}
	switch v := v.(type) {
	case matrix.Half:
		return v.Float32()
	case complex64:
		return []any{jsonNumber(real(v)), jsonNumber(imag(v))}
	case complex128:
		return []any{jsonNumber(real(v)), jsonNumber(imag(v))}
	}
	return v
}
