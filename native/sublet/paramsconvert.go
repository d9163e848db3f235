// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

func (a *app) convertCommand() *cobra.Command {
	var cast bool
	c := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Write the tensors of a file to one of another format",
		Long: `Write the tensors of a file, in its order, to one of another format, which the extensions tell. Element types stay as
they are: one that the other format does not have is an error that names the tensor. (TVM's older bool, uint1, is the
bool of the others.) With --cast, float64 becomes float32, and the largest relative change of a number is reported.
The texts that a .safetensors has beside its tensors stay with another one. Where they are lost, and where bytes after the
last tensor of a .params are, that is reported.

The input is read twice, so that it has to be a file.`,
		Example: "  sublet params convert model.npz model.params --cast",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.convert(c.Context(), args[0], args[1], cast)
		},
		ValidArgsFunction: fileArgs,
	}
	c.Flags().BoolVar(&cast, "cast", false, "convert float64 to float32")
	return c
}

// converted is what --json prints for a conversion.
type converted struct {
	Tensors int     `json:"tensors"`
	Nbytes  int64   `json:"nbytes"` // of all data, as written
	Cast    int     `json:"cast"`   // tensors
	Change  float64 `json:"largest_relative_change"`
	// What was left out: texts beside the tensors, and bytes after them.
	Texts    int   `json:"metadata_left_out"`
	Trailing int64 `json:"trailing_left_out"`
}

func (c *converted) text(cast bool) string {
	s := fmt.Sprintf("tensors: %d, bytes of data: %d", c.Tensors, c.Nbytes)
	if cast {
		s += fmt.Sprintf(", cast to float32: %d, largest relative change: %.3g", c.Cast, c.Change)
	}
	if c.Texts > 0 {
		s += fmt.Sprintf(", texts left out: %d", c.Texts)
	}
	if c.Trailing > 0 {
		s += fmt.Sprintf(", bytes after the last tensor left out: %d", c.Trailing)
	}
	return s
}

func (a *app) convert(ctx context.Context, from, to string, cast bool) error {
	kind, err := formatOf(to)
	if err != nil {
		return err
	}
	if st, err := os.Stat(from); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s: only a file can be read twice", from)
	}
	p := newProgress(a.err)
	defer p.stop()
	headers, texts, err := readHeaders(ctx, from, p)
	if err != nil {
		return err
	}
	out, err := createOutput(to)
	if err != nil {
		return err
	}
	defer out.discard()
	w, err := kind.make(out, castHeaders(headers, cast), texts)
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	f, err := openArchive(from, p, "converting", false)
	if err != nil {
		return err
	}
	defer f.close()
	res, err := f.copyTo(ctx, w, headers, cast)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	if err := out.commit(); err != nil {
		return err
	}
	p.stop()
	if !kind.texts {
		res.Texts = len(texts)
	}
	if a.json {
		return writeJSON(a.out, res)
	}
	_, err = fmt.Fprintln(a.out, res.text(cast))
	return err
}

// readHeaders reads the headers of all tensors, and the texts beside them.
func readHeaders(ctx context.Context, path string, p *progress) ([]file.Header, map[string]string, error) {
	f, err := openArchive(path, p, "reading", false)
	if err != nil {
		return nil, nil, err
	}
	defer f.close()
	var headers []file.Header
	err = f.each(ctx, func(h file.Header) error {
		headers = append(headers, h)
		return nil
	})
	return headers, f.texts(), err
}

// castHeaders returns the headers of what is written.
func castHeaders(headers []file.Header, cast bool) []file.Header {
	out := slices.Clone(headers)
	for i := range out {
		out[i].Offset = 0
		if cast && out[i].Type == dtype.Float64 {
			out[i].Type = dtype.Float32
			out[i].Size /= 2
		}
	}
	return out
}

// copyTo writes the data of all tensors, which are those of the headers unless somebody changes the file.
func (a *archive) copyTo(ctx context.Context, w io.Writer, headers []file.Header, cast bool) (*converted, error) {
	res := &converted{}
	buf := newBuffer()
	err := a.each(ctx, func(h file.Header) error {
		if res.Tensors == len(headers) || !sameHeader(h, headers[res.Tensors]) {
			return a.wrap(errChanged)
		}
		res.Tensors++
		if !cast || h.Type != dtype.Float64 {
			res.Nbytes += h.Size
			return a.pour(ctx, w, h, buf)
		}
		n := &narrower{w: w}
		if err := a.pour(ctx, n, h, buf); err != nil {
			if errors.Is(err, errOverflow) {
				return a.wrap(fmt.Errorf("tensor %s: %w", strconv.Quote(h.Name), err))
			}
			return err
		}
		res.Nbytes += h.Size / 2
		res.Cast++
		res.Change = max(res.Change, n.change)
		return nil
	})
	if err == nil && res.Tensors < len(headers) {
		err = a.wrap(errChanged)
	}
	if err == nil {
		res.Trailing, err = a.trailing()
	}
	return res, err
}

var errChanged = errors.New("somebody changed it meanwhile")

func sameHeader(a, b file.Header) bool {
	return a.Name == b.Name && a.Type == b.Type && slices.Equal(a.Shape, b.Shape)
}

// narrower writes float64 as float32, in blocks of whole numbers. It remembers the largest relative change.
type narrower struct {
	w      io.Writer
	buf    []byte
	change float64
}

func (n *narrower) Write(b []byte) (int, error) {
	n.buf = n.buf[:0]
	for i := 0; i < len(b); i += 8 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(b[i:]))
		f, ok := narrow(v)
		if !ok {
			return 0, driver.Fail("cast", errOverflow, fmt.Sprintf("%v does not fit float32", v))
		}
		if c := math.Abs(float64(f)-v) / math.Abs(v); c > n.change { // not so for NaN, infinities and zero
			n.change = c
		}
		n.buf = binary.LittleEndian.AppendUint32(n.buf, math.Float32bits(f))
	}
	_, err := n.w.Write(n.buf)
	return len(b), err
}
