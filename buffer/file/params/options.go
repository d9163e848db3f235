// SPDX-License-Identifier: Apache-2.0

package params

import (
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Option is a choice of [NewReader], [Scan] or [NewWriter]. One that the call does not know is [fault.ErrInvalid].
type Option func(*options)

type options struct {
	strict, lastWins bool
	readers          bool // some option is for reading only
	size, memory     int64
	boolean          dtype.Type // of every boolean tensor, with asBool
	asBool           bool
}

// defaultMemory holds some 400,000 names.
const defaultMemory = 64 << 20

func (o *options) apply(opts []Option, reading bool) error {
	o.size, o.memory = -1, defaultMemory
	for _, opt := range opts {
		if opt == nil {
			return invalid("an option is nil")
		}
		opt(o)
	}
	switch {
	case o.readers && !reading:
		return invalid("Strict, Size and MemoryLimit are for reading")
	case o.asBool && !isBool(o.boolean):
		return invalid("BoolAs(" + o.boolean.String() + "): want bool or uint1")
	}
	return nil
}

// Strict refuses bytes after the last tensor. It is for reading.
func Strict() Option { return func(o *options) { o.strict, o.readers = true, true } }

// LastWins accepts names that occur more than once: only the last tensor of a name is read or written. Without it they
// are [file.ErrDuplicate]. A writer still takes the data of all.
func LastWins() Option { return func(o *options) { o.lastWins = true } }

// Size says how many bytes the reader holds; nothing beyond them is read. Readers that can seek or have a method Len need
// no such help. A negative number means unknown. It is for reading.
func Size(n int64) Option { return func(o *options) { o.size, o.readers = n, true } }

// MemoryLimit bounds the bytes that names, and with [Scan] headers, may take; more is [file.ErrTooLarge]. It is 64 MiB by
// default. It is for reading.
func MemoryLimit(n int64) Option { return func(o *options) { o.memory, o.readers = n, true } }

// BoolAs gives every boolean tensor the type t: [dtype.Bool8], which TVM uses from version 0.23 on, or [dtype.Bool1],
// which it used before. Both take a byte per element. Without it each keeps its own.
func BoolAs(t dtype.Type) Option { return func(o *options) { o.boolean, o.asBool = t, true } }

// typeOf returns t, or what the options want for it.
func (o *options) typeOf(t dtype.Type) dtype.Type {
	if o.asBool && isBool(t) {
		return o.boolean
	}
	return t
}

func isBool(t dtype.Type) bool { return t == dtype.Bool8 || t == dtype.Bool1 }

func fail(offset int64, err error, detail string) error {
	return &file.Error{Format: "params", Offset: offset, Detail: detail, Err: err}
}

func invalid(why string) error { return fault.Fail("params", fault.ErrInvalid, why) }
