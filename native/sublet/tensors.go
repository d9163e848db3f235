// SPDX-License-Identifier: Apache-2.0

package main

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
)

// format is a kind of file of named tensors.
type format struct {
	ext     string
	open    func(a *archive) (file.Reader, error)
	make    func(w io.Writer, headers []file.Header, texts map[string]string) (file.Writer, error)
	texts   bool // make writes the texts that a file has beside its tensors
	doubles bool // open reads names that occur twice, with --last-wins
}

var formats = []format{
	{
		ext: ".params", doubles: true,
		open: func(a *archive) (file.Reader, error) {
			return params.NewReader(&a.source, params.Options{Strict: a.strict, LastWins: a.lastWins})
		},
		make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
			return params.NewWriter(w, h, params.Options{})
		},
	},
	{
		ext: ".npz",
		open: func(a *archive) (file.Reader, error) {
			if a.size < 0 {
				return nil, errors.New("an archive has its list of members at its end and cannot be read from a pipe or a device; save it as a file first")
			}
			return npy.NewZipReader(&a.source, a.size)
		},
		make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
			return npy.NewZipWriter(w, h, zip.Store)
		},
	},
	{
		ext: ".safetensors", texts: true,
		open: func(a *archive) (file.Reader, error) { return safetensors.NewReader(&a.source) },
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
		return nil, usagef("%s %s: want params, npz or safetensors", flag, given)
	}
	return nil, usagef("%s: the name has to end with .params, .npz or .safetensors, or %s says which it is", path, flag)
}

// source is what tensors are read from. What is read of it moves the bar.
type source struct {
	data interface { // a part of a file, or a pipe
		io.ReadSeeker
		io.ReaderAt
	}
	size     int64 // -1: unknown
	progress *progress
	opened   []*os.File // to be closed; standard input is not
	temp     string     // to be removed
}

// open opens a file or takes standard input, from where it stands on. For two passes a pipe is copied to a temporary file.
func (s *source) open(ctx context.Context, path string, stdin *os.File, twice bool) (err error) {
	f := stdin
	if path != standard {
		if f, err = os.Open(path); err != nil {
			return err
		}
		s.opened = append(s.opened, f)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() && twice {
		if f, err = s.keep(ctx, f); err == nil {
			st, err = f.Stat()
		}
	}
	if s.data, s.size = f, -1; err != nil || !st.Mode().IsRegular() {
		return err
	}
	base, err := f.Seek(0, io.SeekCurrent)
	s.size = max(st.Size()-base, 0)
	s.data = io.NewSectionReader(f, base, s.size)
	return err
}

// keep copies what comes from a pipe to a temporary file.
func (s *source) keep(ctx context.Context, pipe *os.File) (*os.File, error) {
	f, err := os.CreateTemp("", "sublet-")
	if err != nil {
		return nil, err
	}
	s.opened, s.temp = append(s.opened, f), f.Name()
	s.progress.enter("reading", 0)
	for err == nil {
		if _, err = io.CopyN(f, pipe, 1<<20); err == nil {
			err = ctx.Err()
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = f.Seek(0, io.SeekStart)
	}
	return f, err
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.data.Read(b)
	s.progress.add(int64(n))
	return n, err
}

func (s *source) ReadAt(b []byte, off int64) (int, error) {
	n, err := s.data.ReadAt(b, off)
	s.progress.add(int64(n))
	return n, err
}

func (s *source) Seek(offset int64, whence int) (int64, error) { return s.data.Seek(offset, whence) }

// close closes what was only read, and removes what was kept.
func (s *source) close() {
	for _, f := range s.opened {
		_ = f.Close()
	}
	if s.temp != "" {
		_ = os.Remove(s.temp)
	}
}

// archive is a file of named tensors that a command reads.
type archive struct {
	path     string
	from     string // the format, in place of the extension
	strict   bool   // no bytes after the last tensor
	lastWins bool   // of those with one name
	twice    bool   // there is a second pass

	source // once it is open
	kind   *format
	reader file.Reader
}

// flags adds those that every command of tensors has.
func (a *archive) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.from, "from", "", "`FORMAT` of the input, whatever its name: params, npz or safetensors")
	c.Flags().BoolVar(&a.lastWins, "last-wins", false, "of tensors of one name in a .params take the last, which is an error otherwise")
}

// with opens the file for a command, with a bar for its progress.
func (a *archive) with(ctx context.Context, app *app, path string, do func() error) error {
	a.path, a.progress = path, newProgress(app.err)
	defer a.progress.stop()
	defer a.close()
	if err := a.open(ctx, app.in); err != nil {
		return err
	}
	return do()
}

// open opens the file for one pass over its tensors, which is a stage of the work.
func (a *archive) open(ctx context.Context, stdin *os.File) (err error) {
	if a.kind, err = formatOf(a.path, a.from, "--from"); err != nil {
		return err
	}
	if a.lastWins && !a.kind.doubles {
		return usagef("--last-wins is for .params; a %s with a name that occurs twice is malformed", a.kind.ext)
	}
	if err := a.source.open(ctx, a.path, stdin, a.twice); err != nil {
		return err
	}
	return a.begin("reading")
}

// begin reads what is before the first tensor.
func (a *archive) begin(stage string) (err error) {
	a.progress.enter(stage, a.size)
	a.reader, err = a.kind.open(a)
	return a.wrap(err)
}

// again goes back to the first tensor.
func (a *archive) again(stage string) error {
	if _, err := a.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return a.begin(stage)
}

// wrap says which file an error is about.
func (a *archive) wrap(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err // it names the file already
	}
	name := a.path
	if name == standard {
		name = "standard input"
	}
	if errors.Is(err, file.ErrDuplicate) && a.kind.doubles {
		return fmt.Errorf("%s: %w; --last-wins takes the last one", name, err)
	}
	return inFile(name, err)
}

// tensors goes through the tensors. One that cannot be read, such as an archive's array of texts, comes with its name and an error,
// and others may follow; what is wrong with the file comes without a name and ends it.
func (a *archive) tensors(ctx context.Context) iter.Seq2[file.Header, error] {
	return func(yield func(file.Header, error) bool) {
		for {
			h, err := a.reader.Next()
			switch {
			case ctx.Err() != nil:
				yield(file.Header{}, ctx.Err())
				return
			case errors.Is(err, io.EOF):
				return
			case !yield(h, a.wrap(err)) || err != nil && h.Name == "":
				return
			}
		}
	}
}

// find goes to the tensor of that name. One that cannot be read does not hide others.
func (a *archive) find(ctx context.Context, name string) (file.Header, error) {
	for h, err := range a.tensors(ctx) {
		if h.Name == name || err != nil && h.Name == "" {
			return h, err
		}
	}
	return file.Header{}, a.wrap(fault.Fail("params", matrix.ErrName, strconv.Quote(name)))
}

// texts returns what the file has beside its tensors.
func (a *archive) texts() map[string]string {
	if r, ok := a.reader.(*safetensors.Reader); ok {
		return r.Metadata()
	}
	return nil
}

// trailing counts the bytes after the last tensor, once that was read.
func (a *archive) trailing() (int64, error) {
	r, ok := a.reader.(*params.Reader)
	if !ok {
		return 0, nil // the other formats do not allow any
	}
	n, err := r.Trailing()
	return n, a.wrap(err)
}

// current reads the tensor that the archive is at.
func (a *archive) current() io.Reader { return currentTensor{a} }

type currentTensor struct{ a *archive }

func (c currentTensor) Read(b []byte) (int, error) {
	n, err := c.a.reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.a.wrap(err)
	}
	return n, err
}

// pour copies the data of the tensor that the archive is at.
func (a *archive) pour(ctx context.Context, dst io.Writer, h file.Header) error {
	return pour(ctx, dst, a.current(), h.Size)
}
