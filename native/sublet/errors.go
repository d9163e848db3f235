// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// The errors of the command itself.
var (
	errUsage    = fault.New("ErrUsage", "wrong usage")
	errType     = fault.New("ErrType", "not an element type of arrays of kernels")
	errElem     = fault.New("ErrType", "not an element type of matrices")
	errMixed    = fault.New("ErrType", "element types that differ")
	errOverflow = fault.New("ErrOverflow", "value out of range")
)

// usageError keeps the words of the argument parser and adds the sentinel.
type usageError struct{ err error }

func (e *usageError) Error() string   { return e.err.Error() }
func (e *usageError) Unwrap() []error { return []error{e.err, errUsage} }

func usage(err error) error { return &usageError{err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// code returns the name of the sentinel in err's chain, those of the standard library included.
func code(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{fs.ErrNotExist, "ErrNotExist"},
		{fs.ErrPermission, "ErrPermission"},
		{context.Canceled, "Canceled"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return gpu.Code(err)
}

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
	if a.json {
		var f failure
		f.Error.Code, f.Error.Message = code(err), message
		_ = writeJSON(a.out, f) // the line above is all that is left to say
	}
}

// asksJSON finds --json in arguments that could not be parsed as a whole.
func asksJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--json", "--json=true":
			return true
		case "--":
			return false
		}
	}
	return false
}

// report prints the result of a command: as JSON where that was asked for, or by text.
func (a *app) report(result any, text func(io.Writer) error) error {
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
