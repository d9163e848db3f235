// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// output is a file that appears under its name whole or not at all.
type output struct {
	*os.File
	path string
	temp string // "" when the file is written in place: a device or a pipe
}

// createOutput opens a file to write before any work is done, so that an unwritable path is an early error.
func createOutput(path string) (*output, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // write through a link rather than replace it
	}
	st, err := os.Stat(path)
	if err == nil {
		// A rename could replace what the user may not write.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			return &output{f, path, ""}, nil
		}
		_ = f.Close()
	}
	temp := filepath.Join(filepath.Dir(path), ".sublet-"+strconv.FormatUint(rand.Uint64(), 36))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			pe.Path = path // the name that the user knows
		}
		return nil, err
	}
	return &output{f, path, temp}, nil
}

// commit gives the file its name.
func (o *output) commit() error {
	if err := o.Close(); err != nil {
		return err
	}
	if o.temp == "" {
		return nil
	}
	if st, err := os.Stat(o.path); err == nil {
		_ = os.Chmod(o.temp, st.Mode().Perm()) // as the file it replaces; its own mode does as well
	}
	return os.Rename(o.temp, o.path)
}

// discard removes a file that was not committed. After commit it does nothing.
func (o *output) discard() {
	_ = o.Close()
	if o.temp != "" {
		_ = os.Remove(o.temp)
	}
}
