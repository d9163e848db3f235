// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// reads is a layout of n bindings that are only read.
func reads(n int) Layout { return NewLayout(slices.Repeat([]Access{AccessRead}, n)...) }

func bindOne(e Binding) func(*CommandList) {
	return func(l *CommandList) { l.Bind(2, NewLayout(AccessReadWrite), []Binding{e}) }
}

// bindTwo binds two parts of buffer 1, 512 bytes each.
func bindTwo(a, b Access, second uint64) func(*CommandList) {
	return func(l *CommandList) { l.Bind(2, NewLayout(a, b), []Binding{{1, 0, 512}, {1, second, 512}}) }
}

func dispatchOne(k KernelID, s BindingsID, x, y, z uint32) func(*CommandList) {
	return func(l *CommandList) { l.Dispatch(k, s, [3]uint32{x, y, z}, []byte{1}) }
}

// gpu/gputest shows the rules on every driver, but the limits of a real device are too far away to stand just this side
// and just that side of all of them.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(l *CommandList)
		want error
	}{
		{"as many bindings as there may be", func(l *CommandList) { l.Bind(2, reads(4), slices.Repeat([]Binding{{1, 0, 4}}, 4)) }, nil},
		{"one binding more", func(l *CommandList) { l.Bind(2, reads(5), slices.Repeat([]Binding{{1, 0, 4}}, 5)) }, fault.ErrLimit},
		{"the largest binding", bindOne(Binding{1, 0, 2048}), nil},
		{"a larger binding", bindOne(Binding{1, 0, 2052}), fault.ErrLimit},
		{"the end of the buffer", bindOne(Binding{1, 3840, 256}), nil},
		{"beyond the end", bindOne(Binding{1, 3840, 260}), fault.ErrInvalid},
		{"no bytes", bindOne(Binding{1, 0, 0}), fault.ErrInvalid},
		{"half a word", bindOne(Binding{1, 0, 2}), fault.ErrInvalid},
		{"misaligned", bindOne(Binding{1, 128, 4}), fault.ErrInvalid},
		{"a buffer that is not there", bindOne(Binding{3, 0, 4}), fault.ErrClosed},

		{"read twice", bindTwo(AccessRead, AccessRead, 256), nil},
		{"read and written", bindTwo(AccessRead, AccessReadWrite, 256), fault.ErrInvalid},
		{"written and read", bindTwo(AccessReadWrite, AccessRead, 256), fault.ErrInvalid},
		{"read and written apart", bindTwo(AccessRead, AccessReadWrite, 1024), fault.ErrInvalid},
		{"written twice", bindTwo(AccessReadWrite, AccessReadWrite, 256), fault.ErrInvalid},
		{"written side by side", bindTwo(AccessReadWrite, AccessReadWrite, 512), nil},
		{"other bindings between", func(l *CommandList) {
			l.Bind(2, NewLayout(AccessRead, AccessNone, AccessParams, AccessRead, AccessReadWrite),
				[]Binding{{1, 0, 4}, {2, 0, 4}, {1, 512, 4}})
		}, fault.ErrInvalid},

		{"the most groups", dispatchOne(1, 1, 100, 100, 100), nil},
		{"more in x", dispatchOne(1, 1, 101, 1, 1), fault.ErrLimit},
		{"more in y", dispatchOne(1, 1, 1, 101, 1), fault.ErrLimit},
		{"more in z", dispatchOne(1, 1, 1, 1, 101), fault.ErrLimit},
		{"no such kernel", dispatchOne(2, 1, 1, 1, 1), fault.ErrClosed},
		{"no such set", dispatchOne(1, 2, 1, 1, 1), fault.ErrInvalid},
		{"another layout", func(l *CommandList) {
			l.Bind(2, NewLayout(AccessRead, AccessParams), []Binding{{1, 0, 4}})
			dispatchOne(1, 2, 1, 1, 1)(l)
		}, fault.ErrInvalid},
		{"no parameters", func(l *CommandList) { l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil) }, fault.ErrInvalid},

		{"write of less than it says", func(l *CommandList) { l.Write(1, 0, Host{Bytes: make([]byte, 4), Size: 8}) }, fault.ErrInvalid},
		{"write of foreign memory", func(l *CommandList) { l.Write(1, 0, Host{Foreign: 1, Size: 8}) }, nil},
		{"write of negative foreign memory", func(l *CommandList) { l.Write(1, 0, Host{Foreign: 1, Size: -8}) }, fault.ErrInvalid},
		{"write of all there is", func(l *CommandList) { l.Write(2, 0, HostBytes(make([]byte, 1024))) }, nil},
		{"write of more", func(l *CommandList) { l.Write(2, 4, HostBytes(make([]byte, 1024))) }, fault.ErrInvalid},
		{"copy of all there is", func(l *CommandList) { l.Copy(1, 3072, 2, 0, 1024) }, nil},
		{"copy of more", func(l *CommandList) { l.Copy(1, 3076, 2, 0, 1024) }, fault.ErrInvalid},
		{"copy within a buffer", func(l *CommandList) { l.Copy(1, 0, 1, 2048, 4) }, fault.ErrInvalid},
		{"no host data", func(l *CommandList) { l.Write(1, 0, Host{}); l.Data = nil }, fault.ErrInvalid},
	} {
		o := newTestObjects(t)
		var l CommandList
		c.add(&l)
		wantErr(t, c.name, o.Check(&l), c.want)
	}
}

func TestKernelRules(t *testing.T) {
	o := newTestObjects(t)
	for _, c := range []struct {
		name string
		id   KernelID
		k    *Kernel
		want error
	}{
		{"nil", 2, nil, fault.ErrInvalid},
		{"taken", 1, &testKernel, fault.ErrInvalid},
		{"no source", 2, &Kernel{Entry: "main"}, fault.ErrInvalid},
		{"no entry point", 2, &Kernel{Source: "-"}, fault.ErrInvalid},
		{"too many bindings", 2, &Kernel{Source: "-", Entry: "main", Layout: reads(5)}, fault.ErrLimit},
		{"as many as there may be", 2, &Kernel{Source: "-", Entry: "main", Layout: reads(4)}, nil},
	} {
		wantErr(t, c.name, o.AddKernel(c.id, c.k), c.want)
	}
	if !o.DropKernel(2) || o.DropKernel(2) {
		t.Error("a kernel can be freed once")
	}
	wantErr(t, "the id again", o.AddKernel(2, &testKernel), nil)
}

func TestBufferRules(t *testing.T) {
	o := newTestObjects(t)
	o.info.Features = 0
	for _, c := range []struct {
		name     string
		id       BufferID
		size     uint64
		mappable bool
		want     error
	}{
		{"taken", 1, 4, false, fault.ErrInvalid},
		{"nothing", 3, 0, false, fault.ErrInvalid},
		{"half a word", 3, 6, false, fault.ErrInvalid},
		{"too large", 3, 4100, false, fault.ErrLimit},
		{"mappable", 3, 4, true, fault.ErrUnsupported},
		{"the largest", 3, 4096, false, nil},
	} {
		wantErr(t, c.name, o.AddBuffer(c.id, c.size, c.mappable, false), c.want)
	}
}

// A binding set names the buffers it was made with, not their ids.
func TestStaleSets(t *testing.T) {
	o := newTestObjects(t)
	var l CommandList
	dispatchOne(1, 1, 1, 1, 1)(&l)
	wantErr(t, "as it was made", o.Check(&l), nil)
	o.DropBuffer(1)
	wantErr(t, "freed", o.Check(&l), fault.ErrClosed)
	wantErr(t, "another buffer", o.AddBuffer(1, 4096, false, false), nil)
	wantErr(t, "replaced", o.Check(&l), fault.ErrClosed)
	l.Reset()
	l.Unbind(1)
	l.Bind(1, testKernel.Layout, []Binding{{1, 0, 4}})
	dispatchOne(1, 1, 1, 1, 1)(&l)
	wantErr(t, "made anew", o.Check(&l), nil)
}
