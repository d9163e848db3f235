// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// The errors of the command itself.
var (
	errType     = fault.New("ErrType", "not an element type of arrays of kernels")
	errElem     = fault.New("ErrType", "not an element type of matrices")
	errMixed    = fault.New("ErrType", "element types that differ")
	errOverflow = fault.New("ErrOverflow", "value out of range")
)

func inFile(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

// failure is what --json prints for an error.
type failure struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// fail reports err: one line on standard error and, where JSON was asked for, an object on standard output.
func (a *app) fail(err error) {
	message := cli.OneLine(err.Error())
	fmt.Fprintln(a.err, "sublet: "+message)
	if !a.json {
		return
	}
	var f failure
	f.Error.Message, f.Error.Code = message, fault.Code(err)
	for known, name := range map[error]string{
		fs.ErrNotExist: "ErrNotExist", fs.ErrPermission: "ErrPermission", context.Canceled: "Canceled",
	} {
		if errors.Is(err, known) {
			f.Error.Code = name
		}
	}
	_ = writeJSON(a.out, f) // the line above is all that is left to say
}

// report ends a command: its outputs get their names, and its result is printed, as JSON where that was asked for, or by text.
func (a *app) report(result any, text func(io.Writer) error) error {
	a.progress.stop()
	for _, out := range a.outputs {
		if err := out.commit(); err != nil {
			return err
		}
	}
	if a.json {
		return writeJSON(a.out, result)
	}
	return text(a.out)
}

// writeJSON writes one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows of cells that tabs separate, in columns.
func printTable(out io.Writer, rows []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}
