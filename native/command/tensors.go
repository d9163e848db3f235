// SPDX-License-Identifier: Apache-2.0

package command

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// format is a kind of file of named tensors.
type format struct {
	ext     string
	open    func(f *archive) (file.Reader, error)
	make    func(w io.Writer, headers []file.Header, texts map[string]string) (file.Writer, error)
	texts   bool // make writes the texts that a file has beside its tensors
	doubles bool // open reads names that occur twice, with --last-wins
}

var formats = []format{
	{
		ext: ".params", doubles: true,
		open: func(f *archive) (file.Reader, error) {
			return params.NewReader(f.data, params.Options{Strict: f.strict, LastWins: f.lastWins})
		},
		make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
			return params.NewWriter(w, h, params.Options{})
		},
	},
	{
		ext: ".npz",
		open: func(f *archive) (file.Reader, error) {
			if f.size < 0 {
				return nil, errors.New("an archive has its list of members at its end and cannot be read from a pipe or a device; save it as a file first")
			}
			return npy.NewZipReader(f.data, f.size)
		},
		make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
			return npy.NewZipWriter(w, h, zip.Store)
		},
	},
	{
		ext: ".safetensors", texts: true,
		open: func(f *archive) (file.Reader, error) { return safetensors.NewReader(f.data) },
		make: safetensors.NewWriter,
	},
}

// formatOf chooses by what a flag says, or else by the extension.
func formatOf(path, given, flag string) (*format, error) {
	name := given
	if given == "" {
		name = filepath.Ext(path)
	}
	for i := range formats {
		if strings.EqualFold(strings.TrimPrefix(name, "."), formats[i].ext[1:]) {
			return &formats[i], nil
		}
	}
	if given != "" {
		return nil, cli.Usagef("%s %s: want params, npz or safetensors", flag, given)
	}
	return nil, cli.Usagef("%s: the name has to end with .params, .npz or .safetensors, or %s says which it is", path, flag)
}

// archive is a file of named tensors that a command reads.
type archive struct {
	*app
	path     string
	from     string // the format, in place of the extension
	strict   bool   // no bytes after the last tensor
	lastWins bool   // of those with one name
	twice    bool   // there is a second pass

	data interface { // a part of a file, or a pipe
		io.ReadSeeker
		io.ReaderAt
	}
	size   int64 // -1: unknown
	kind   *format
	reader file.Reader
}

// command completes a command of an archive, its first argument, which is open while the command does its work.
func (f *archive) command(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.Flags().StringVar(&f.from, "from", "", "`FORMAT` of the input, whatever its name: params, npz or safetensors")
	c.Flags().BoolVar(&f.lastWins, "last-wins", false, "of tensors of one name in a .params take the last, which is an error otherwise")
	c.RunE = func(c *cobra.Command, args []string) error {
		f.path = args[0]
		if err := f.open(c.Context()); err != nil {
			return err
		}
		return do(c.Context(), args)
	}
	return c
}

// open opens the file, or takes standard input from where it stands on, for one pass over its tensors, which is a stage of the work.
// For two passes a pipe is copied to a temporary file.
func (f *archive) open(ctx context.Context) (err error) {
	if f.kind, err = formatOf(f.path, f.from, "--from"); err != nil {
		return err
	}
	if f.lastWins && !f.kind.doubles {
		return cli.Usagef("--last-wins is for .params; a %s with a name that occurs twice is malformed", f.kind.ext)
	}
	in := &input{File: f.in, ctx: ctx}
	if f.path != standard {
		if in, err = openInput(ctx, f.path); err != nil {
			return err
		}
		f.closers = append(f.closers, func() { _ = in.Close() }) // it was only read
	}
	st, err := in.Stat()
	if err == nil && !st.Mode().IsRegular() && f.twice {
		if in.File, err = f.keep(ctx, in); err == nil {
			st, err = in.Stat()
		}
	}
	if err != nil {
		return err
	}
	if f.data, f.size = in, -1; st.Mode().IsRegular() {
		base, err := in.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		f.size = max(st.Size()-base, 0)
		f.data = io.NewSectionReader(in, base, f.size)
	}
	return f.begin("reading")
}

// keep copies what comes from a pipe to a temporary file.
func (f *archive) keep(ctx context.Context, pipe io.Reader) (*os.File, error) {
	temp, err := os.CreateTemp("", "sublet-")
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, func() { _ = os.Remove(temp.Name()) }, func() { _ = temp.Close() })
	f.progress.enter("reading", 0)
	for err == nil {
		if _, err = io.CopyN(temp, pipe, 1<<20); err == nil {
			err = ctx.Err()
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = temp.Seek(0, io.SeekStart)
	}
	return temp, err
}

// begin goes to the first tensor, for another pass if there was one.
func (f *archive) begin(stage string) (err error) {
	f.progress.enter(stage, f.size)
	if f.reader != nil {
		_, err = f.data.Seek(0, io.SeekStart)
	}
	if err == nil {
		f.reader, err = f.kind.open(f)
	}
	return f.wrap(err)
}

// wrap says which file an error is about.
func (f *archive) wrap(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*os.PathError](err); ok || errors.Is(err, context.Canceled) {
		return err // it names a file already, or is about none
	}
	name := f.path
	if name == standard {
		name = "standard input"
	}
	if errors.Is(err, file.ErrDuplicate) && f.kind.doubles {
		return fmt.Errorf("%s: %w; --last-wins takes the last one", name, err)
	}
	return inFile(name, err)
}

// tensors goes through the tensors. One that cannot be read, such as an archive's array of texts, comes with its name and an error,
// and others may follow; what is wrong with the file comes without a name and ends it.
func (f *archive) tensors(ctx context.Context) iter.Seq2[file.Header, error] {
	return func(yield func(file.Header, error) bool) {
		for {
			h, err := f.reader.Next()
			switch {
			case ctx.Err() != nil:
				yield(file.Header{}, ctx.Err())
				return
			case errors.Is(err, io.EOF):
				return
			case !yield(h, f.wrap(err)) || err != nil && h.Name == "":
				return
			}
		}
	}
}

// find goes to the tensor of that name. One that cannot be read does not hide others.
func (f *archive) find(ctx context.Context, name string) (file.Header, error) {
	for h, err := range f.tensors(ctx) {
		if h.Name == name || err != nil && h.Name == "" {
			return h, err
		}
	}
	return file.Header{}, f.wrap(fault.Fail("params", matrix.ErrName, strconv.Quote(name)))
}

// texts returns what the file has beside its tensors.
func (f *archive) texts() map[string]string {
	if r, ok := f.reader.(*safetensors.Reader); ok {
		return r.Metadata()
	}
	return nil
}

// trailing counts the bytes after the last tensor, once that was read.
func (f *archive) trailing() (int64, error) {
	r, ok := f.reader.(*params.Reader)
	if !ok {
		return 0, nil // the other formats do not allow any
	}
	n, err := r.Trailing()
	return n, f.wrap(err)
}

// pour copies the data of the tensor that the archive is at.
func (f *archive) pour(ctx context.Context, dst io.Writer, h file.Header) error {
	if err := f.progress.pour(ctx, dst, f.reader, h.Size); err != nil {
		return f.wrap(fmt.Errorf("tensor %q: %w", h.Name, err))
	}
	return nil
}
