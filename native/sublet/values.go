// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"reflect"
	"text/tabwriter"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// element returns a number that a file holds little-endian.
func element(t dtype.Type, b []byte) any {
	le := binary.LittleEndian
	float32At := func(i int) float32 { return math.Float32frombits(le.Uint32(b[i:])) }
	float64At := func(i int) float64 { return math.Float64frombits(le.Uint64(b[i:])) }
	switch t {
	case dtype.Bool8, dtype.Bool1:
		return b[0] != 0
	case dtype.Int8:
		return int8(b[0])
	case dtype.Uint8:
		return b[0]
	case dtype.Int16:
		return int16(le.Uint16(b))
	case dtype.Uint16:
		return le.Uint16(b)
	case dtype.Int32:
		return int32(le.Uint32(b))
	case dtype.Uint32:
		return le.Uint32(b)
	case dtype.Int64:
		return int64(le.Uint64(b))
	case dtype.Uint64:
		return le.Uint64(b)
	case dtype.Float16:
		return dtype.HalfFromBits(le.Uint16(b)).Float32()
	case dtype.BFloat16:
		return math.Float32frombits(uint32(le.Uint16(b)) << 16)
	case dtype.Float32:
		return float32At(0)
	case dtype.Float64:
		return float64At(0)
	case dtype.Complex64:
		return complex(float32At(0), float32At(4))
	case dtype.Complex128:
		return complex(float64At(0), float64At(8))
	}
	return "0x" + hex.EncodeToString(b) // the bytes as the file has them
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
	for i := 0; i < len(b); i += c.from.Size() {
		f, v := single(element(c.from, b[i:]))
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

// pour copies data in blocks of whole elements of any type, until the context ends.
func pour(ctx context.Context, dst io.Writer, src io.Reader, size int64) error {
	block := make([]byte, min(size, 1<<20))
	for ; size > 0; size -= int64(len(block)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		block = block[:min(int64(len(block)), size)]
		if _, err := io.ReadFull(src, block); err != nil {
			return err
		}
		if _, err := dst.Write(block); err != nil {
			return err
		}
	}
	return nil
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

// nested returns the rows for JSON, as NumPy's tolist does; nil where there are too many. JSON has no NaN and no infinities: they
// are the texts that JavaScript's Number and Python's float read.
func nested[T matrix.Elem](rows, cols int, values []T) [][]any {
	if max(rows, len(values)) > maxNested {
		return nil
	}
	all := make([][]any, rows)
	for i := range all {
		all[i] = make([]any, cols)
		for j := range all[i] {
			all[i][j] = jsonNumber(values[i*cols+j])
		}
	}
	return all
}

func jsonNumber(v any) any {
	if h, ok := v.(matrix.Half); ok {
		v = h.Float32()
	}
	f, ok := v.(float32)
	switch x := float64(f); {
	case ok && math.IsNaN(x):
		return "NaN"
	case ok && math.IsInf(x, 1):
		return "Infinity"
	case ok && math.IsInf(x, -1):
		return "-Infinity"
	}
	return v
}
