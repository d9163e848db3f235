// SPDX-License-Identifier: Apache-2.0

// Package file has the types shared by the formats for named tensors: parameter dictionaries (package params), NumPy's archives
// (package npy) and safetensors. Each is read and written as a stream, one tensor after the other, so that no file has to
// fit into memory.
package file

import (
	"io"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Header describes a tensor in a file: elements in C order, little-endian, packed.
type Header struct {
	Name   string // raw bytes, which need not be UTF-8
	Type   dtype.Type
	Shape  []int64 // no dimension: one element
	Offset int64   // of the data from the file's start; -1 where the file holds them compressed
	Size   int64   // of the data, in bytes
}

// Reader reads a file's tensors in the file's order.
type Reader interface {
	// Next goes to the next tensor and skips data of the last one that were not read. It returns io.EOF after the last tensor.
	Next() (Header, error)
	// Read reads the data of the tensor that Next returned. It returns io.EOF at their end.
	io.Reader
}

// Writer writes the tensors whose headers it was made with, in that order.
type Writer interface {
	// Write writes the data of the tensors one after the other.
	io.Writer
	// Close ends the file. It returns an error if data are missing, and does not close the underlying writer.
	Close() error
}

// The errors of the formats.
var (
	ErrFormat    = fault.New("ErrFormat", "malformed file")
	ErrTruncated = fault.New("ErrTruncated", "the file ends early")
	ErrDuplicate = fault.New("ErrDuplicate", "a name occurs twice")
	ErrType      = fault.New("ErrType", "element type that the format does not have")
	ErrTooLarge  = fault.New("ErrTooLarge", "more than the limit allows")
)

// Error says what is wrong with a file, and where.
type Error struct {
	Format string // "params", "npz", ...
	Offset int64  // of the first byte that is wrong
	Detail string
	Err    error // one of the sentinels, or the error of the file's reader
}

// Error reads, for example, "params: byte 41: malformed file: 3 names, 4 tensors".
func (e *Error) Error() string {
	if e == nil {
		return "no error"
	}
	s := e.Format + ": byte " + strconv.FormatInt(e.Offset, 10)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}
