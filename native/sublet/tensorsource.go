// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// tensorInput is what a command is told of the tensors that it reads.
type tensorInput struct {
	path     string
	from     string // the format, in place of the extension
	strict   bool   // no bytes after the last tensor
	lastWins bool   // of those with one name
	twice    bool   // what comes from a pipe is kept for a second pass
}

// flags adds those that every command of tensors has.
func (in *tensorInput) flags(c *cobra.Command) {
	c.Flags().StringVar(&in.from, "from", "", "`FORMAT` of the input, whatever its name: params, npz or safetensors")
	c.Flags().BoolVar(&in.lastWins, "last-wins", false, "of tensors of one name in a .params take the last, which is an error otherwise")
}

// at returns the same for a file.
func (in tensorInput) at(path string) tensorInput {
	in.path = path
	return in
}

// name is what messages say.
func (in tensorInput) name() string {
	if in.path == standard {
		return "standard input"
	}
	return in.path
}

// source is where tensors come from. What is read of it moves the bar.
type source struct {
	file   *os.File
	base   int64    // where the file stood when it was opened
	opened *os.File // to be closed; standard input is not
	p      *progress
	// temp has what was read of a pipe while keep was set.
	temp *os.File
	keep bool
}

// openSource opens a file or takes standard input. size is -1 where nobody knows it.
func (a *app) openSource(in tensorInput, p *progress) (s *source, size int64, err error) {
	s = &source{p: p, file: a.in}
	if in.path != standard {
		if s.opened, err = os.Open(in.path); err != nil {
			return nil, 0, err
		}
		s.file = s.opened
	}
	size = -1
	st, err := s.file.Stat()
	if err == nil && st.Mode().IsRegular() {
		if s.base, err = s.file.Seek(0, io.SeekCurrent); err == nil {
			size = max(st.Size()-s.base, 0)
		}
	} else if err == nil && in.twice {
		s.temp, err = os.CreateTemp("", "sublet-")
		s.keep = true
	}
	if err != nil {
		s.close()
		return nil, 0, err
	}
	return s, size, nil
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.file.Read(b)
	s.p.add(n)
	if s.keep && n > 0 {
		if _, err := s.temp.Write(b[:n]); err != nil {
			return 0, err
		}
	}
	return n, err
}

// ReadAt is Read's counterpart for archives.
func (s *source) ReadAt(b []byte, off int64) (int, error) {
	n, err := s.file.ReadAt(b, s.base+off)
	s.p.add(n)
	return n, err
}

var errOnce = errors.New("what has to be kept cannot be passed over")

// Seek is for readers that pass over data, which a file allows.
func (s *source) Seek(offset int64, whence int) (int64, error) {
	if s.keep {
		return 0, errOnce
	}
	return s.file.Seek(offset, whence)
}

// rewind goes back to where the source began, or to what was kept of it.
func (s *source) rewind() error {
	if s.temp != nil {
		s.file, s.base, s.keep = s.temp, 0, false
	}
	_, err := s.file.Seek(s.base, io.SeekStart)
	return err
}

// close closes what was only read, and removes what was kept.
func (s *source) close() {
	if s.opened != nil {
		_ = s.opened.Close()
	}
	if s.temp != nil {
		_ = s.temp.Close()
		_ = os.Remove(s.temp.Name())
	}
}
