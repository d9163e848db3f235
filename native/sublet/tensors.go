// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// format is a kind of file of named tensors.
type format struct {
	ext  string
	open func(s *source, size int64, in tensorInput) (file.Reader, error)
	make func(w io.Writer, headers []file.Header, texts map[string]string) (file.Writer, error)
	// texts says whether make writes the texts that a file has beside its tensors.
	texts bool
	// doubles says whether open reads names that occur twice, with --last-wins.
	doubles bool
}

var formats = []format{
	{ext: ".params", doubles: true, open: openParams, make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
		return params.NewWriter(w, h, params.Options{})
	}},
	{ext: ".npz", open: openZip, make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
		return npy.NewZipWriter(w, h, zip.Store)
	}},
	{
		ext:   ".safetensors",
		open:  func(s *source, _ int64, _ tensorInput) (file.Reader, error) { return safetensors.NewReader(s) },
		make:  safetensors.NewWriter,
		texts: true,
	},
}

func openParams(s *source, _ int64, in tensorInput) (file.Reader, error) {
	return params.NewReader(s, params.Options{Strict: in.strict, LastWins: in.lastWins})
}

func openZip(s *source, size int64, _ tensorInput) (file.Reader, error) {
	if size < 0 {
		return nil, errors.New("an archive has its list of members at its end and cannot be read from a pipe or a device; save it as a file first")
	}
	return npy.NewZipReader(s, size)
}

// formatOf chooses by what a flag says, or else by the extension.
func formatOf(path, given, flag string) (*format, error) {
	ext := given
	if given == "" {
		ext = filepath.Ext(path)
	}
	ext = "." + strings.TrimPrefix(strings.ToLower(ext), ".")
	for i := range formats {
		if formats[i].ext == ext {
			return &formats[i], nil
		}
	}
	switch {
	case given != "":
		return nil, usagef("%s %s: want params, npz or safetensors", flag, given)
	case path == standard:
		return nil, usagef("-: say with %s whether it is params, npz or safetensors", flag)
	}
	return nil, usagef("%s: the name has to end with .params, .npz or .safetensors, or %s says which it is", path, flag)
}

// archive is an open file of named tensors.
type archive struct {
	input  tensorInput
	kind   *format
	size   int64 // -1: unknown
	source *source
	reader file.Reader
	buf    []byte // for pour
	// pass, if there is one, hears of tensors that cannot be read, such as an archive's arrays of texts, in place of each's caller.
	pass func(error)
}

// withArchive opens a file for a command, with a bar for its progress.
func (a *app) withArchive(in tensorInput, do func(*archive) error) error {
	p := newProgress(a.err)
	defer p.stop()
	f, err := a.openArchive(in, p, "reading")
	if err != nil {
		return err
	}
	defer f.close()
	return do(f)
}

// openArchive opens a file for one pass over its tensors, which is a stage of the work; [archive.again] begins another.
func (a *app) openArchive(in tensorInput, p *progress, stage string) (*archive, error) {
	kind, err := formatOf(in.path, in.from, "--from")
	if err != nil {
		return nil, err
	}
	if in.lastWins && !kind.doubles {
		return nil, usagef("--last-wins is for .params; a %s with a name that occurs twice is malformed", kind.ext)
	}
	f := &archive{input: in, kind: kind}
	if f.source, f.size, err = a.openSource(in, p); err != nil {
		return nil, err
	}
	if err := f.begin(stage); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin reads what is before the first tensor.
func (a *archive) begin(stage string) (err error) {
	a.source.p.enter(stage, a.size)
	a.reader, err = a.kind.open(a.source, a.size, a.input)
	return a.wrap(err)
}

// again goes back to the first tensor.
func (a *archive) again(stage string) error {
	if err := a.source.rewind(); err != nil {
		return err
	}
	return a.begin(stage)
}

// close closes what was only read.
func (a *archive) close() { a.source.close() }

func (a *archive) wrap(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err // it names the file already
	}
	if errors.Is(err, file.ErrDuplicate) && a.kind.doubles {
		return fmt.Errorf("%s: %w; --last-wins takes the last one", a.input.name(), err)
	}
	return inFile(a.input.name(), err)
}

// each calls do for each tensor. Its errors are those of the file, or do's with the tensor's name.
func (a *archive) each(ctx context.Context, do func(file.Header) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := a.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && a.pass != nil && h.Name != "" {
			a.pass(a.wrap(err))
			continue
		}
		if err != nil {
			return a.wrap(err)
		}
		if err := do(h); err != nil {
			return err
		}
	}
}

// find goes to the tensor of that name. One that cannot be read, such as an archive's array of texts, does not hide others.
func (a *archive) find(ctx context.Context, name string) (file.Header, error) {
	for {
		if err := ctx.Err(); err != nil {
			return file.Header{}, err
		}
		h, err := a.reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return h, fault.Fail(a.input.name(), matrix.ErrName, strconv.Quote(name))
		case err != nil && (h.Name == "" || h.Name == name):
			return h, a.wrap(err)
		case err == nil && h.Name == name:
			return h, nil
		}
	}
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

// pour copies the data of the tensor that the reader is at.
func (a *archive) pour(ctx context.Context, dst io.Writer, h file.Header) error {
	if a.buf == nil {
		a.buf = make([]byte, 1<<20) // whole elements of any type
	}
	for left := h.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := a.buf[:min(int64(len(a.buf)), left)]
		if _, err := io.ReadFull(a.reader, part); err != nil {
			return a.wrap(err)
		}
		if _, err := dst.Write(part); err != nil {
			return err
		}
		left -= int64(len(part))
	}
	return nil
}
