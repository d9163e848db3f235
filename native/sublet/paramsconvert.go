// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
)

func (a *app) convertCommand() *cobra.Command {
	f := archive{app: a, twice: true}
	var format string
	var cast bool
	c := f.command(&cobra.Command{
		Use:   "convert IN OUT",
		Short: "Write the tensors of a file to one of another format",
		Long: `Write the tensors of a file, in its order, to one of another format, which the extensions or --from and --to tell.
Element types stay as they are: one that the other format does not have is an error that names the tensor. (TVM's older
bool, uint1, is the bool of the others.) With --cast, float64 becomes float32, and the largest relative change of a number
is reported. The texts that a .safetensors has beside its tensors stay with another one. Where they are lost, and where
bytes after the last tensor of a .params are, that is reported.

The input is read twice; what comes from a pipe is kept in a temporary file meanwhile. The output - is standard output;
then the report goes to standard error.`,
		Example: `  sublet params convert model.npz model.params --cast
  zcat model.params.gz | sublet params convert - model.safetensors --from params`,
		Args:   cobra.ExactArgs(2),
		PreRun: func(_ *cobra.Command, args []string) { a.claim(args[1]) },
	}, func(ctx context.Context, args []string) error {
		kind, err := formatOf(args[1], format, "--to")
		if err != nil {
			return err
		}
		return f.convert(ctx, args[1], kind, cast)
	})
	c.Flags().StringVar(&format, "to", "", "`FORMAT` of the output, whatever its name: params, npz or safetensors")
	c.Flags().BoolVar(&cast, "cast", false, "convert float64 to float32, and report the largest relative change")
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

func (f *archive) convert(ctx context.Context, path string, kind *format, cast bool) error {
	headers, trailing, err := f.headers(ctx, cast)
	if err != nil {
		return err
	}
	texts := f.texts()
	out, err := f.create(path)
	if err != nil {
		return err
	}
	w, err := kind.make(out, headers, texts)
	if err != nil {
		return inFile(path, err)
	}
	if err := f.begin("converting"); err != nil {
		return err
	}
	res, err := f.copyTo(ctx, w, headers, cast)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return inFile(path, err)
	}
	if res.Trailing = trailing; !kind.texts {
		res.Texts = len(texts)
	}
	return f.report(res, func(w io.Writer) error {
		line := fmt.Sprintf("tensors: %d, bytes of data: %d", res.Tensors, res.Nbytes)
		if cast {
			line += fmt.Sprintf(", cast to float32: %d, largest relative change: %.3g", res.Cast, res.Change)
		}
		if res.Texts > 0 {
			line += fmt.Sprintf(", texts left out: %d", res.Texts)
		}
		if trailing > 0 {
			line += fmt.Sprintf(", bytes after the last tensor left out: %d", trailing)
		}
		_, err := fmt.Fprintln(w, line)
		return err
	})
}

// headers reads the headers of all tensors, as they are written, and counts the bytes after them.
func (f *archive) headers(ctx context.Context, cast bool) (headers []file.Header, trailing int64, err error) {
	for h, err := range f.tensors(ctx) {
		if err != nil {
			return nil, 0, err
		}
		headers = append(headers, written(h, cast))
	}
	trailing, err = f.trailing()
	return headers, trailing, err
}

// written returns the header under which a tensor is written.
func written(h file.Header, cast bool) file.Header {
	h.Offset = 0
	if cast && h.Type == dtype.Float64 {
		h.Type, h.Size = dtype.Float32, h.Size/2
	}
	return h
}

// copyTo writes the data of all tensors, which are those of the headers unless somebody changes the file.
func (f *archive) copyTo(ctx context.Context, w io.Writer, headers []file.Header, cast bool) (*converted, error) {
	res := &converted{}
	for h, err := range f.tensors(ctx) {
		if err != nil {
			return nil, err
		}
		as := written(h, cast)
		if res.Tensors == len(headers) || !sameHeader(as, headers[res.Tensors]) {
			return nil, f.wrap(errChanged)
		}
		to, c := w, &castWriter{w: w, from: h.Type}
		if as.Type != h.Type {
			to = c
			res.Cast++
		}
		if err := f.pour(ctx, to, h); err != nil {
			return nil, err
		}
		res.Nbytes += as.Size
		res.Change = max(res.Change, c.change)
		res.Tensors++
	}
	if res.Tensors < len(headers) {
		return nil, f.wrap(errChanged)
	}
	return res, nil
}

var errChanged = errors.New("somebody changed it meanwhile")

func sameHeader(a, b file.Header) bool {
	return a.Name == b.Name && a.Type == b.Type && slices.Equal(a.Shape, b.Shape)
}
