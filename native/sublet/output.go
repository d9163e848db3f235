// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
)

// outputFlag adds -o. No name, such as that of a variable that is not set, is a mistake rather than no flag.
func outputFlag(c *cobra.Command, path *string, usage string) {
	c.Flags().FuncP("output", "o", usage, func(s string) error {
		if *path = s; s == "" {
			return errors.New("want the name of a file")
		}
		return nil
	})
}

// standard stands for standard input or output in place of a file's name.
const standard = "-"

// output is a file that appears under its name whole or not at all, or standard output.
type output struct {
	io.Writer
	file *os.File // nil: standard output
	path string
	temp string // "" when the file is written in place: a device or a pipe
}

// claim keeps standard output free for a result that path sends there: what else is printed goes to standard error.
func (a *app) claim(path string) {
	if path == standard && a.data == nil {
		a.data, a.out = a.out, a.err
	}
}

// createOutput opens a file to write before any work is done, so that an unwritable path is an early error. Standard output
// was claimed before.
func (a *app) createOutput(path string) (*output, error) {
	if path == standard {
		if isTerminal(a.data) {
			return nil, usagef("standard output is a terminal, and the result is no text")
		}
		return &output{Writer: a.data}, nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // write through a link rather than replace it
	}
	// A rename could replace what the user may not write.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return &output{f, f, path, ""}, err
		}
		_ = f.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	temp := filepath.Join(filepath.Dir(path), ".sublet-"+strconv.FormatUint(rand.Uint64(), 36))
	f, err = os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		pe.Path = path // the name that the user knows
	}
	return &output{f, f, path, temp}, err
}

// write writes a file.
func (a *app) write(path string, do func(io.Writer) error) error {
	out, err := a.createOutput(path)
	if err != nil {
		return err
	}
	defer out.discard()
	if err := do(out); err != nil {
		return err
	}
	return out.commit()
}

// commit gives the file its name.
func (o *output) commit() error {
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	if err != nil || o.temp == "" {
		return err
	}
	if st, err := os.Stat(o.path); err == nil {
		_ = os.Chmod(o.temp, st.Mode().Perm()) // as the file it replaces; its own mode does as well
	}
	return os.Rename(o.temp, o.path)
}

// discard removes a file that was not committed. After commit it does nothing.
func (o *output) discard() {
	if o.file != nil {
		_ = o.file.Close()
	}
	if o.temp != "" {
		_ = os.Remove(o.temp)
	}
}
