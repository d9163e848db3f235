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
	f := archive{twice: true}
	var to conversion
	c := &cobra.Command{
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
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			to.path = args[1]
			a.claim(to.path)
			kind, err := formatOf(to.path, to.format, "--to")
			if err != nil {
				return err
			}
			return f.with(c.Context(), a, args[0], func() error { return a.convert(c.Context(), &f, kind, to) })
		},
	}
	f.flags(c)
	c.Flags().StringVar(&to.format, "to", "", "`FORMAT` of the output, whatever its name: params, npz or safetensors")
	c.Flags().BoolVar(&to.cast, "cast", false, "convert float64 to float32, and report the largest relative change")
	return c
}

// conversion is what is to become of a file of tensors.
type conversion struct {
	path, format string
	cast         bool
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

func (a *app) convert(ctx context.Context, f *archive, kind *format, to conversion) error {
	headers, trailing, err := f.headers(ctx)
	if err != nil {
		return err
	}
	texts := f.texts()
	var res *converted
	err = a.write(to.path, func(out io.Writer) error {
		w, err := kind.make(out, castHeaders(headers, to.cast), texts)
		if err != nil {
			return inFile(to.path, err)
		}
		if err := f.again("converting"); err != nil {
			return err
		}
		if res, err = f.copyTo(ctx, w, headers, to.cast); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return inFile(to.path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.progress.stop()
	if res.Trailing = trailing; !kind.texts {
		res.Texts = len(texts)
	}
	return a.report(res, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, res.text(to.cast))
		return err
	})
}

// headers reads the headers of all tensors, and counts the bytes after them.
func (a *archive) headers(ctx context.Context) (headers []file.Header, trailing int64, err error) {
	for h, err := range a.tensors(ctx) {
		if err != nil {
			return nil, 0, err
		}
		headers = append(headers, h)
	}
	trailing, err = a.trailing()
	return headers, trailing, err
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
	for h, err := range a.tensors(ctx) {
		if err != nil {
			return nil, err
		}
		if res.Tensors == len(headers) || !sameHeader(h, headers[res.Tensors]) {
			return nil, a.wrap(errChanged)
		}
		res.Tensors++
		if !cast || h.Type != dtype.Float64 {
			res.Nbytes += h.Size
			err = a.pour(ctx, w, h)
		} else {
			c := &castWriter{w: w, from: h.Type}
			if err = a.pour(ctx, c, h); errors.Is(err, errOverflow) {
				err = a.wrap(fmt.Errorf("tensor %q: %w", h.Name, err))
			}
			res.Nbytes += h.Size / 2
			res.Cast++
			res.Change = max(res.Change, c.change)
		}
		if err != nil {
			return nil, err
		}
	}
	if res.Tensors < len(headers) {
		return nil, a.wrap(errChanged)
	}
	return res, nil
}

var errChanged = errors.New("somebody changed it meanwhile")

func sameHeader(a, b file.Header) bool {
	return a.Name == b.Name && a.Type == b.Type && slices.Equal(a.Shape, b.Shape)
}
