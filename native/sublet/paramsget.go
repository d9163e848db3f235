// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

func (a *app) getCommand() *cobra.Command {
	var in tensorInput
	var out string
	c := &cobra.Command{
		Use:   "get FILE NAME",
		Short: "Take one tensor out of a file",
		Long: `Take one tensor out of a file. Without -o it is printed as a matrix, its last dimension across and all others down.
A type that NumPy does not have, such as bfloat16, cannot be written; it can be printed.`,
		Example: "  sublet params get model.params layer1.weight -o weight.npy",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			a.claim(out)
			return a.withArchive(in.at(args[0]), func(f *archive) error { return a.get(c.Context(), f, args[1], out) })
		},
	}
	in.flags(c)
	outputFlag(c, &out, ".npy `FILE` to write the tensor to; - is standard output")
	return c
}

func (a *app) get(ctx context.Context, f *archive, name, out string) error {
	header, err := f.find(ctx, name)
	if err != nil {
		return err
	}
	if out != "" {
		if err := a.save(ctx, f, header, out); err != nil {
			return err
		}
	}
	return a.report(newListed(header), func(w io.Writer) error {
		if out == "" {
			if err := f.print(w, header); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%s: %s %s, %d bytes\n", shownName(name), shownShape(header.Shape), header.Type, header.Size)
		return err
	})
}

// save writes the tensor that the reader is at to a .npy file.
func (a *app) save(ctx context.Context, f *archive, h file.Header, path string) error {
	return a.write(path, func(out io.Writer) error {
		w, err := npy.NewWriter(out, npy.Header{Type: h.Type, Shape: h.Shape})
		if err != nil {
			return fmt.Errorf("tensor %s: %w", strconv.Quote(h.Name), err)
		}
		if err := f.pour(ctx, w, h); err != nil {
			return err
		}
		return w.Close()
	})
}

// print prints the tensor that the reader is at. It keeps only the elements that are shown.
func (a *archive) print(out io.Writer, h file.Header) error {
	rows, cols := 1, 1
	if n := len(h.Shape); n > 0 {
		all, _, _ := h.Type.Bytes(h.Shape)
		cols = int(h.Shape[n-1])
		rows = int(all / max(h.Shape[n-1], 1))
	}
	size := int64(h.Type.Size())
	cells := map[[2]int]any{}
	at := int64(0) // of the next byte
	for i := range ends(rows) {
		for j := range ends(cols) {
			from := (int64(i)*int64(cols) + int64(j)) * size
			if _, err := io.CopyN(io.Discard, a.reader, from-at); err != nil {
				return a.wrap(err)
			}
			b := make([]byte, size)
			if _, err := io.ReadFull(a.reader, b); err != nil {
				return a.wrap(err)
			}
			at = from + size
			cells[[2]int{i, j}] = element(h.Type, b)
		}
	}
	a.source.p.stop()
	return printCells(out, rows, cols, func(i, j int) any { return cells[[2]int{i, j}] })
}

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
