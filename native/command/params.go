// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/dtype"
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
