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
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/file"
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
	var in tensorInput
	var hashes bool
	c := &cobra.Command{
		Use:   "list FILE",
		Short: "List the tensors of a file",
		Long: `List the tensors of a file: name, element type, shape, the offset of the data in the file (none where they are
compressed or have to be converted) and their bytes. Only headers are read, unless --sha256 wants the data. Arrays of texts
or objects in an archive are left out, which is said on standard error.

With --json an array is printed. A name that is not UTF-8 is in name_base64 as it is.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withArchive(in.at(args[0]), func(f *archive) error { return a.list(c.Context(), f, hashes) })
		},
	}
	in.flags(c)
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

func (a *app) list(ctx context.Context, f *archive, hashes bool) error {
	entries := []listed{}
	var headers []file.Header
	var unreadable []error
	f.pass = func(err error) { unreadable = append(unreadable, err) }
	err := f.each(ctx, func(h file.Header) error {
		l := newListed(h)
		if hashes {
			sum := sha256.New()
			if err := f.pour(ctx, sum, h); err != nil {
				return err
			}
			l.SHA256 = hex.EncodeToString(sum.Sum(nil))
		}
		headers = append(headers, h)
		entries = append(entries, l)
		return nil
	})
	if err != nil {
		return err
	}
	f.source.p.stop()
	for _, err := range unreadable {
		fmt.Fprintln(a.err, "sublet: left out:", err)
	}
	return a.report(entries, func(w io.Writer) error { return printList(w, headers, entries) })
}

func printList(out io.Writer, headers []file.Header, entries []listed) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "NAME\tDTYPE\tSHAPE\tOFFSET\tBYTES")
	if len(entries) > 0 && entries[0].SHA256 != "" {
		fmt.Fprint(w, "\tSHA256")
	}
	fmt.Fprintln(w)
	for i, l := range entries {
		offset := "-"
		if l.Offset >= 0 {
			offset = strconv.FormatInt(l.Offset, 10)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d", shownName(headers[i].Name), l.DType, shownShape(l.Shape), offset, l.Nbytes)
		if l.SHA256 != "" {
			fmt.Fprint(w, "\t"+l.SHA256)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
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
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(dims, "x")
}

func (a *app) verifyCommand() *cobra.Command {
	var in tensorInput
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a file of tensors from its first to its last byte",
		Long: `Check a file of tensors from its first to its last byte: every header, that all data are there, and the checksums
of an archive. What is wrong is reported with the offset of its first byte.

Bytes after the last tensor of a .params file are counted, since CVM writes some now and then; the other formats do not
allow any.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withArchive(in.at(args[0]), func(f *archive) error { return a.verify(c.Context(), f) })
		},
	}
	in.flags(c)
	c.Flags().BoolVar(&in.strict, "strict", false, "refuse bytes after the last tensor")
	return c
}

// verified is what --json prints for a file that is right.
type verified struct {
	Tensors  int   `json:"tensors"`
	Nbytes   int64 `json:"nbytes"` // of all data
	Trailing int64 `json:"trailing"`
}

func (a *app) verify(ctx context.Context, f *archive) error {
	var v verified
	err := f.each(ctx, func(h file.Header) error {
		v.Tensors++
		v.Nbytes += h.Size
		return f.pour(ctx, io.Discard, h)
	})
	if err != nil {
		return err
	}
	if v.Trailing, err = f.trailing(); err != nil {
		return err
	}
	f.source.p.stop()
	return a.report(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "tensors: %d, bytes of data: %d, bytes after the last tensor: %d\n", v.Tensors, v.Nbytes, v.Trailing)
		return err
	})
}
