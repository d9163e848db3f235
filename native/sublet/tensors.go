// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
)

// format is a kind of file of named tensors.
type format struct {
	ext  string
	open func(s source, size int64, strict bool) (file.Reader, error)
	make func(w io.Writer, headers []file.Header, texts map[string]string) (file.Writer, error)
	// texts says whether make writes the texts that a file has beside its tensors.
	texts bool
}

var formats = []format{
	{ext: ".params", open: openParams, make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
		return params.NewWriter(w, h)
	}},
	{ext: ".npz", open: openZip, make: func(w io.Writer, h []file.Header, _ map[string]string) (file.Writer, error) {
		return npy.NewZipWriter(w, h)
	}},
	{
		ext:  ".safetensors",
		open: func(s source, _ int64, _ bool) (file.Reader, error) { return safetensors.NewReader(s) },
		make: func(w io.Writer, h []file.Header, texts map[string]string) (file.Writer, error) {
			return safetensors.NewWriter(w, h, safetensors.Metadata(texts))
		},
		texts: true,
	},
}

func openParams(s source, _ int64, strict bool) (file.Reader, error) {
	var opts []params.Option
	if strict {
		opts = append(opts, params.Strict())
	}
	return params.NewReader(s, opts...)
}

func openZip(s source, size int64, _ bool) (file.Reader, error) {
	if size < 0 {
		return nil, errors.New("an archive cannot be read from a pipe or a device")
	}
	return npy.NewZipReader(s, size)
}

// formatOf chooses by the extension.
func formatOf(path string) (*format, error) {
	ext := strings.ToLower(filepath.Ext(path))
	for i := range formats {
		if formats[i].ext == ext {
			return &formats[i], nil
		}
	}
	return nil, usagef("%s: the name has to end with .params, .npz or .safetensors", path)
}

// extensions are those of all formats, for the shell.
func extensions() (names []string) {
	for _, f := range formats {
		names = append(names, f.ext[1:])
	}
	return names
}

// source is an open file. What is read of it moves the bar.
type source struct {
	*os.File
	p *progress
}

func (s source) Read(b []byte) (int, error) {
	n, err := s.File.Read(b)
	s.p.add(n)
	return n, err
}

// ReadAt is Read's counterpart for archives.
func (s source) ReadAt(b []byte, off int64) (int, error) {
	n, err := s.File.ReadAt(b, off)
	s.p.add(n)
	return n, err
}

// archive is an open file of named tensors.
type archive struct {
	path   string
	size   int64 // -1: unknown
	source source
	reader file.Reader
	// pass, if there is one, hears of tensors that cannot be read, such as an archive's arrays of texts, in place of each's caller.
	pass func(error)
}

// openArchive opens a file for one pass over its tensors, which is a stage of the work.
func openArchive(path string, p *progress, stage string, strict bool) (*archive, error) {
	kind, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &archive{path: path, size: -1, source: source{f, p}}
	st, err := f.Stat()
	if err == nil && st.Mode().IsRegular() {
		a.size = st.Size()
	}
	p.enter(stage, a.size)
	if err == nil {
		a.reader, err = kind.open(a.source, a.size, strict)
	}
	if err != nil {
		a.close()
		return nil, a.wrap(err)
	}
	return a, nil
}

// close closes what was only read.
func (a *archive) close() { _ = a.source.Close() }

func (a *archive) wrap(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err // it names the file already
	}
	return fmt.Errorf("%s: %w", a.path, err)
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
			return h, driver.Fail(a.path, matrix.ErrName, strconv.Quote(name))
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
func (a *archive) pour(ctx context.Context, dst io.Writer, h file.Header, buf []byte) error {
	for left := h.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), left)]
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

// newBuffer makes a buffer for pour, of whole elements of any type.
func newBuffer() []byte { return make([]byte, 1<<20) }
