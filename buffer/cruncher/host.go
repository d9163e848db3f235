// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// tell records in an array that elements on this cruncher's devices are newer than the host's and those of other crunchers. Each call does
// this at its end, so that reading the array on the host need not wait for crunchers.
func (cr *Cruncher) tell(r *residency) {
	a := r.array
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.users) > 1 {
		for _, s := range r.values.Newest(a.all(), memory.Newer) {
			a.overtake(s.Region, cr)
		}
	}
	a.compare()
}

// compare updates the record of whether any cruncher has newer elements than the host. The lock is held.
func (a *body) compare() {
	newer := false
	for _, r := range a.users {
		newer = newer || len(r.values.Newest(a.all(), memory.Newer)) > 0
	}
	a.behind.Store(newer)
}

// overtake records that no cruncher but perhaps one has the newest elements any more. The lock is held.
func (a *body) overtake(w memory.Region, by *Cruncher) {
	if !a.behind.Load() {
		return
	}
	for cr, r := range a.users {
		if cr != by {
			r.values.Change(w, memory.Newer, memory.Apart)
		}
	}
	a.compare()
}

// stale lists the crunchers that have newer elements than the host in a range.
func (a *body) stale(w memory.Region) (list []*Cruncher, auto bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for cr, r := range a.users {
		if len(r.values.Newest(w, memory.Newer)) > 0 {
			list = append(list, cr)
		}
	}
	return list, a.flags.AutoFetch
}

// current makes sure that the host has the newest elements of a range.
func (a *Any) current(op string, s span) error {
	if !a.behind.Load() {
		return nil
	}
	list, auto := a.stale(a.bytes(s))
	if len(list) > 0 && !auto {
		return fail(op, ErrStale, "of array ", a.name, ", see Fetch and Flags.AutoFetch")
	}
	for _, cr := range list {
		err := cr.bringHome(context.Background(), op, a)
		if err != nil && !errors.Is(err, gpu.ErrClosed) { // a cruncher that is closed has nothing
			return err
		}
	}
	return nil
}

// replaceable makes sure that elements may be written on the host: that the next call uploads them, or that no device has newer ones,
// which Fetch would write over them.
func (a *Any) replaceable(op string, s span) error {
	if a.host.ReadOnly {
		return fail(op, gpu.ErrReadOnly, "array ", a.name)
	}
	if a.behind.Load() && !a.Flags().goesUp() {
		return a.current(op, s)
	}
	return nil
}

// replaced notes that elements were written on the host.
func (a *Any) replaced(s span) {
	a.change(func(*Flags) {
		a.version++
		a.overtake(a.bytes(s), nil)
	})
}

// Stale reports whether only devices have the newest values of some elements: kernels wrote them in calls whose flags did not bring
// them back.
func (a *Any) Stale() bool { return !a.none() && a.behind.Load() }

// Data returns the elements of the host's side itself, whatever [Any.Stale] says. Call [Any.MarkDirty] after writing to those of a
// tracked array. It is nil of an array that is closed.
func (a *Array[T]) Data() []T {
	if a.any().usable("Data") != nil {
		return nil
	}
	return a.data()
}

func (a *Array[T]) data() []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(a.host.Bytes))), a.n)
}

// At returns an element of the host's side. If a device has a newer value it is [ErrStale], unless [Flags] has AutoFetch.
func (a *Array[T]) At(i int) (v T, err error) {
	if err := a.ranged("At", i); err != nil {
		return v, err
	}
	if err := a.current("At", span{i, i + 1}); err != nil {
		return v, err
	}
	return a.data()[i], nil
}

// Set changes an element of the host's side. If a device has a newer value it is [ErrStale], unless the array goes up, with read or
// partialRead, so that what is set counts, or AutoFetch is on.
func (a *Array[T]) Set(i int, v T) error {
	if err := a.ranged("Set", i); err != nil {
		return err
	}
	s := span{i, i + 1}
	if err := a.replaceable("Set", s); err != nil {
		return err
	}
	a.data()[i] = v
	a.replaced(s)
	return nil
}

func (a *Array[T]) ranged(op string, i int) error {
	if err := a.any().usable(op); err != nil {
		return err
	}
	if i < 0 || i >= a.n {
		return fail(op, ErrRange, "element ", itoa(i), " of ", itoa(a.n))
	}
	return nil
}

// ToArray returns a copy of the elements. Stale ones are as for [Array.At].
func (a *Array[T]) ToArray() ([]T, error) {
	const op = "ToArray"
	if err := a.any().usable(op); err != nil {
		return nil, err
	}
	if err := a.current(op, span{0, a.n}); err != nil {
		return nil, err
	}
	return slices.Clone(a.data()), nil
}

// CopyTo copies the elements to dst from element k on: dst[k+j] = a[j], as many as there are on both sides. That there are
// none is [ErrRange]. Stale ones are as for [Array.At] and, where they are written, [Array.Set].
func (a *Array[T]) CopyTo(dst *Array[T], k int) error {
	return copyElements("CopyTo", dst, k, a, 0)
}

// CopyFrom copies elements of src from element k on: a[j] = src[k+j], as many as there are on both sides. Otherwise it is
// [Array.CopyTo].
func (a *Array[T]) CopyFrom(src *Array[T], k int) error {
	return copyElements("CopyFrom", a, 0, src, k)
}

func copyElements[T Elem](op string, dst *Array[T], to int, src *Array[T], from int) error {
	if err := dst.ranged(op, to); err != nil {
		return err
	}
	if err := src.ranged(op, from); err != nil {
		return err
	}
	n := min(dst.n-to, src.n-from)
	if err := src.current(op, span{from, from + n}); err != nil {
		return err
	}
	s := span{to, to + n}
	if err := dst.replaceable(op, s); err != nil {
		return err
	}
	copy(dst.data()[to:], src.data()[from:])
	dst.replaced(s)
	return nil
}
