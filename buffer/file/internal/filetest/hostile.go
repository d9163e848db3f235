// SPDX-License-Identifier: Apache-2.0

package filetest

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/file"
)

// Typed wants nil or an error that says what and where, within a file of so many bytes.
func Typed(t testing.TB, err error, size int) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*file.Error](err)
	if !ok || e.Offset < 0 || e.Offset > int64(size) {
		t.Fatalf("%#v", err)
	}
	if !slices.ContainsFunc([]error{file.ErrFormat, file.ErrTruncated, file.ErrDuplicate, file.ErrType, file.ErrTooLarge}, func(want error) bool { return errors.Is(err, want) }) {
		t.Fatalf("%#v", err)
	}
}

// Allocated returns how many bytes of memory f takes: none in programs for the race detector, which take more.
func Allocated(f func()) uint64 {
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		f()
		return 0
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Frugal fails if f takes 16 MiB, which no small file may make a reader do.
func Frugal(t testing.TB, f func()) {
	t.Helper()
	if n := Allocated(f); n > 16<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

// Prefixes are the beginnings of a file, from none of it to all but a byte.
func Prefixes(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for n := range data {
			if !yield(data[:n:n]) {
				return
			}
		}
	}
}

// Flips are copies of a file in which one byte differs: by each bit, by several of them, or in that it is zero.
func Flips(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range data {
			for _, mask := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 0xff, 0x55, data[i]} {
				b := bytes.Clone(data)
				b[i] ^= mask
				if !yield(b) {
					return
				}
			}
		}
	}
}

// Damaged are the [Prefixes] and [Flips] of a file.
func Damaged(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, all := range []iter.Seq[[]byte]{Prefixes(data), Flips(data)} {
			for b := range all {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// ErrBroken is what inputs and outputs fail with that are meant to fail.
var ErrBroken = errors.New("disk on fire")

// Limited is an output that takes so many bytes and then fails, with Err or by claiming less.
type Limited struct {
	Left int
	Err  error
}

// Write is an io.Writer's but for a missing error.
func (l *Limited) Write(b []byte) (int, error) {
	n := min(l.Left, len(b))
	l.Left -= n
	if n < len(b) {
		return n, l.Err
	}
	return n, nil
}

// WantError wants a format's error of a kind at an offset.
func WantError(t testing.TB, format string, err, kind error, offset int64) {
	t.Helper()
	e, ok := errors.AsType[*file.Error](err)
	if !ok || !errors.Is(err, kind) || e.Offset != offset || e.Format != format {
		t.Errorf("got %v, want %v at byte %d", err, kind, offset)
	}
}

// BrokenOutputs writes a file, which has so many bytes, to outputs that fail at each of them. The error says where and stays.
func BrokenOutputs(t testing.TB, name string, format Maker, v []Tensor, size int) {
	t.Helper()
	for at := range size {
		for _, c := range []struct{ give, want error }{{ErrBroken, ErrBroken}, {nil, io.ErrShortWrite}} {
			w, err := format(&Limited{at, c.give}, Headers(v))
			made := err == nil
			for _, one := range v {
				if err == nil {
					_, err = w.Write(one.Data)
				}
			}
			if made && err == nil {
				err = w.Close() // which writes what comes after the data
			}
			WantError(t, name, err, c.want, int64(at))
			if made {
				_, err = w.Write([]byte("x"))
				WantError(t, name, err, c.want, int64(at))
				WantError(t, name, w.Close(), c.want, int64(at))
			}
		}
	}
}
