// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

func (a *app) paramsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "params",
		Short: "Look into files of named tensors and convert them",
		Long: `Look into files of named tensors and convert them: parameter dictionaries of TVM and CVM (.params), NumPy's archives
(.npz) and .safetensors. The extension tells which, or --from. Files may be larger than memory. In place of a file, - is
standard input; .params and .safetensors are read from a pipe as they come, .npz only from a file.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.listCommand(), a.getCommand(), a.convertCommand(), a.verifyCommand())
	return c
}

func (a *app) listCommand() *cobra.Command {
	f := archive{app: a}
	var hashes bool
	c := f.command(&cobra.Command{
		Use:   "list FILE",
		Short: "List the tensors of a file",
		Long: `List the tensors of a file: name, element type, shape, the offset of the data in the file (none where they are
compressed or have to be converted) and their bytes. Only headers are read, unless --sha256 wants the data. Arrays of texts
or objects in an archive are left out, which is said on standard error.

With --json an array is printed. A name that is not UTF-8 is in name_base64 as it is.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, _ []string) error { return f.list(ctx, hashes) })
	c.Flags().BoolVar(&hashes, "sha256", false, "add the hash of each tensor's data: row by row, little-endian")
	return c
}

// listed is what --json prints for a tensor.
type listed struct {
	Name       string  `json:"name"`
	NameBase64 string  `json:"name_base64,omitempty"` // where Name is not what the file has
	DType      string  `json:"dtype"`
	Shape      []int64 `json:"shape"`
	Offset     int64   `json:"offset"` // -1: the file does not hold the data as they are
	Nbytes     int64   `json:"nbytes"`
	SHA256     string  `json:"sha256,omitempty"`
}

func newListed(h file.Header) listed {
	l := listed{Name: h.Name, DType: h.Type.String(), Shape: append([]int64{}, h.Shape...), Offset: h.Offset, Nbytes: h.Size}
	if !utf8.ValidString(h.Name) {
		l.Name, l.NameBase64 = strings.ToValidUTF8(h.Name, "\ufffd"), base64.StdEncoding.EncodeToString([]byte(h.Name))
	}
	return l
}

func (f *archive) list(ctx context.Context, hashes bool) error {
	entries, rows := []listed{}, []string{"NAME\tDTYPE\tSHAPE\tOFFSET\tBYTES"}
	for h, err := range f.tensors(ctx) {
		if err != nil && h.Name != "" {
			f.progress.stop()
			fmt.Fprintln(f.err, "sublet: left out:", err)
			continue
		}
		if err != nil {
			return err
		}
		l := newListed(h)
		offset := "-"
		if l.Offset >= 0 {
			offset = strconv.FormatInt(l.Offset, 10)
		}
		row := fmt.Sprintf("%s\t%s\t%s\t%s\t%d", shownName(h.Name), l.DType, shownShape(l.Shape), offset, l.Nbytes)
		if hashes {
			sum := sha256.New()
			if err := f.pour(ctx, sum, h); err != nil {
				return err
			}
			l.SHA256 = hex.EncodeToString(sum.Sum(nil))
			rows[0], row = "NAME\tDTYPE\tSHAPE\tOFFSET\tBYTES\tSHA256", row+"\t"+l.SHA256
		}
		entries, rows = append(entries, l), append(rows, row)
	}
	return f.report(entries, func(w io.Writer) error { return printTable(w, rows) })
}

// shownName quotes a name that would not be read as it is: a file must not write what it likes to a terminal.
func shownName(s string) string {
	if q := strconv.Quote(s); s == "" || strings.ContainsAny(s, " \"") || q != `"`+s+`"` {
		return q
	}
	return s
}

// shownShape writes a shape as "2x3".
func shownShape(shape []int64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", "x")
}

func (a *app) verifyCommand() *cobra.Command {
	f := archive{app: a}
	c := f.command(&cobra.Command{
		Use:   "verify FILE",
		Short: "Check a file of tensors from its first to its last byte",
		Long: `Check a file of tensors from its first to its last byte: every header, that all data are there, and the checksums
of an archive. What is wrong is reported with the offset of its first byte.

Bytes after the last tensor of a .params file are counted, since CVM writes some now and then; the other formats do not
allow any.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, _ []string) error { return f.verify(ctx) })
	c.Flags().BoolVar(&f.strict, "strict", false, "refuse bytes after the last tensor")
	return c
}

// verified is what --json prints for a file that is right.
type verified struct {
	Tensors  int   `json:"tensors"`
	Nbytes   int64 `json:"nbytes"` // of all data
	Trailing int64 `json:"trailing"`
}

func (f *archive) verify(ctx context.Context) error {
	var v verified
	for h, err := range f.tensors(ctx) {
		if err == nil {
			err = f.pour(ctx, io.Discard, h)
		}
		if err != nil {
			return err
		}
		v.Tensors++
		v.Nbytes += h.Size
	}
	var err error
	if v.Trailing, err = f.trailing(); err != nil {
		return err
	}
	return f.report(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "tensors: %d, bytes of data: %d, bytes after the last tensor: %d\n", v.Tensors, v.Nbytes, v.Trailing)
		return err
	})
}

func (a *app) getCommand() *cobra.Command {
	f := archive{app: a}
	var out string
	c := f.command(&cobra.Command{
		Use:   "get FILE NAME",
		Short: "Take one tensor out of a file",
		Long: `Take one tensor out of a file. Without -o it is printed as a matrix, its last dimension across and all others down.
A type that NumPy does not have, such as bfloat16, cannot be written; it can be printed.`,
		Example: "  sublet params get model.params layer1.weight -o weight.npy",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, args []string) error { return f.get(ctx, args[1], out) })
	a.outputFlag(c, &out, ".npy `FILE` to write the tensor to; - is standard output")
	return c
}

func (f *archive) get(ctx context.Context, name, out string) error {
	h, err := f.find(ctx, name)
	if err != nil {
		return err
	}
	if out != "" {
		if err := f.save(ctx, out, h); err != nil {
			return err
		}
	}
	return f.report(newListed(h), func(w io.Writer) error {
		if out == "" {
			if err := f.wrap(f.print(w, h)); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%s: %s %s, %d bytes\n", shownName(name), shownShape(h.Shape), h.Type, h.Size)
		return err
	})
}

// save writes the tensor that the reader is at as a .npy file.
func (f *archive) save(ctx context.Context, path string, h file.Header) error {
	out, err := f.create(path)
	if err != nil {
		return err
	}
	w, err := npy.NewWriter(out, npy.Header{Type: h.Type, Shape: h.Shape})
	if err != nil {
		return fmt.Errorf("tensor %q: %w", h.Name, err)
	}
	if err := f.pour(ctx, w, h); err != nil {
		return err
	}
	return w.Close()
}

// print prints the tensor that the reader is at. It keeps only the elements that are shown.
func (f *archive) print(out io.Writer, h file.Header) error {
	rows, cols := int64(1), int64(1)
	if n := len(h.Shape); n > 0 {
		all, _, _ := h.Type.Bytes(h.Shape)
		cols = h.Shape[n-1]
		rows = all / max(cols, 1)
	}
	b, at := make([]byte, h.Type.Size()), int64(0) // an element, and the number of the one that the reader is at
	return printCells(out, int(rows), int(cols), func(i, j int) (any, error) {
		n := int64(i)*cols + int64(j)
		if _, err := io.CopyN(io.Discard, f.reader, (n-at)*int64(len(b))); err != nil {
			return nil, err
		}
		at = n + 1
		_, err := io.ReadFull(f.reader, b)
		return element(h.Type, b), err
	})
}
