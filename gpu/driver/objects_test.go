// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// The rules of Objects are shown to hold on every driver by gpu/gputest; what is here cannot be seen from outside.

func testInfo() AdapterInfo {
	return AdapterInfo{
		Limits: Limits{
			MaxBufferSize: 4096, MaxBindingSize: 2048, MaxStorageBuffers: 4, MaxGroups: 100, BindingOffsetAlign: 256,
		},
		Features: FeatureMappable,
	}
}

var testKernel = Kernel{Source: "-", Entry: "main", Layout: NewLayout(AccessReadWrite, AccessParams)}

// newTestObjects has buffers 1 and 2, kernel 1 and binding set 1 of buffer 1.
func newTestObjects(t testing.TB) *Objects {
	t.Helper()
	o := NewObjects(testInfo())
	for _, err := range []error{
		o.AddBuffer(1, 4096, false, false),
		o.AddBuffer(2, 1024, true, false),
		o.AddKernel(1, &testKernel),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var l CommandList
	l.Bind(1, testKernel.Layout, []Binding{{1, 0, 1024}})
	if err := o.Check(&l); err != nil {
		t.Fatal(err)
	}
	return &o
}

func wantErr(t *testing.T, what string, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: got error %v, want %v", what, err, sentinel)
	}
}

// A list that is refused leaves the binding sets as they were, whatever it did to them before its mistake.
func TestCheckRollsBack(t *testing.T) {
	o := newTestObjects(t)
	live := func() (ids []int) {
		for i, s := range o.sets {
			if s != nil {
				ids = append(ids, i)
			}
		}
		return ids
	}
	entry := []Binding{{1, 256, 1024}}
	changes := map[string]func(l *CommandList){
		"new":            func(l *CommandList) { l.Bind(2, testKernel.Layout, entry) },
		"new far away":   func(l *CommandList) { l.Bind(5000, testKernel.Layout, entry) },
		"forgotten":      func(l *CommandList) { l.Unbind(1) },
		"replaced":       func(l *CommandList) { l.Unbind(1); l.Bind(1, testKernel.Layout, entry) },
		"replaced twice": func(l *CommandList) { l.Unbind(1); l.Bind(1, 0, nil); l.Unbind(1); l.Bind(1, testKernel.Layout, entry) },
		"new and gone":   func(l *CommandList) { l.Bind(2, testKernel.Layout, entry); l.Unbind(2) },
		"replaced, gone": func(l *CommandList) { l.Unbind(1); l.Bind(1, testKernel.Layout, entry); l.Unbind(1) },
		"several together": func(l *CommandList) {
			l.Unbind(1)
			l.Bind(9, 0, nil)
			l.Bind(1, 0, nil)
			l.Unbind(9)
			l.Bind(8, 0, nil)
		},
	}
	before := o.sets[1]
	for name, change := range changes {
		var l CommandList
		change(&l)
		l.Clear(1, 1, 4) // the mistake
		wantErr(t, name, o.Check(&l), fault.ErrInvalid)
		if got := live(); !slices.Equal(got, []int{1}) {
			t.Fatalf("%s: the sets are %v, want 1 alone", name, got)
		}
		if !reflect.DeepEqual(o.sets[1], before) {
			t.Fatalf("%s: set 1 is %+v, want %+v", name, o.sets[1], before)
		}
		if len(o.undo) != 0 {
			t.Fatalf("%s: %d changes are still remembered", name, len(o.undo))
		}
	}
	var l CommandList // what a good list does stays, also when the next one is bad
	l.Bind(2, 0, nil)
	if err := o.Check(&l); err != nil {
		t.Fatal(err)
	}
	l.Reset()
	l.Unbind(3)
	wantErr(t, "unknown set", o.Check(&l), fault.ErrInvalid)
	if got := live(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("the sets are %v, want 1 and 2", got)
	}
}

// A wrong id is refused and does not grow a table.
func TestIDs(t *testing.T) {
	o := newTestObjects(t)
	for _, id := range []uint32{0, maxID, 1 << 31, math.MaxUint32} {
		wantErr(t, "buffer", o.AddBuffer(BufferID(id), 4, false, false), fault.ErrInvalid)
		wantErr(t, "import", o.AddBuffer(BufferID(id), 4, false, true), fault.ErrInvalid)
		wantErr(t, "kernel", o.AddKernel(KernelID(id), &testKernel), fault.ErrInvalid)
		wantErr(t, "Map", o.Map(BufferID(id), 0, 4), fault.ErrClosed)
		wantErr(t, "Unmap", o.Unmap(BufferID(id)), fault.ErrInvalid)
		wantErr(t, "Read", o.CheckRead(Transfer{Buffer: BufferID(id)}), fault.ErrClosed)
		if o.DropBuffer(BufferID(id)) || o.DropKernel(KernelID(id)) || o.BufferSize(BufferID(id)) != 0 {
			t.Errorf("there is something with the id %d", id)
		}
		var l CommandList
		l.Bind(BindingsID(id), 0, nil)
		wantErr(t, "Bind", o.Check(&l), fault.ErrInvalid)
		l.Reset()
		l.Unbind(BindingsID(id))
		wantErr(t, "Unbind", o.Check(&l), fault.ErrInvalid)
	}
	if len(o.buffers) > 64 || len(o.kernels) > 64 || len(o.sets) > 64 {
		t.Errorf("the tables have %d, %d and %d entries", len(o.buffers), len(o.kernels), len(o.sets))
	}
	if err := o.AddBuffer(maxID-1, 4, false, false); err != nil {
		t.Errorf("the largest id: %v", err)
	}
}

func TestImports(t *testing.T) {
	o := newTestObjects(t)
	for _, size := range []uint64{1, 2, 3, 5001, 5002, 5003} {
		wantErr(t, "an odd import", o.AddBuffer(3, size, false, true), fault.ErrInvalid)
	}
	if err := o.AddBuffer(3, 5004, false, true); err != nil { // larger than a buffer may be
		t.Fatal(err)
	}
	if got := o.BufferSize(3); got != 5004 {
		t.Errorf("the import has %d bytes, want 5004", got)
	}
	if err := o.CheckRead(Transfer{Buffer: 3, Offset: 5002, Width: 2, Count: 1, Host: HostBytes(make([]byte, 2))}); err != nil {
		t.Errorf("its last bytes: %v", err)
	}
	wantErr(t, "import of nothing", o.AddBuffer(4, 0, false, true), fault.ErrInvalid)
	var l CommandList
	l.Clear(3, 5004, 4)
	wantErr(t, "a word behind the end", o.Check(&l), fault.ErrInvalid)
}

func TestMappingState(t *testing.T) {
	o := newTestObjects(t)
	wantErr(t, "not mappable", o.Map(1, 0, 4), fault.ErrUnsupported)
	if err := o.Map(2, 0, 4); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "mapped twice", o.Map(2, 0, 4), fault.ErrMapped)
	if err := o.Unmap(2); err != nil {
		t.Fatal(err)
	}
	for _, part := range [][2]uint64{{0, 0}, {0, 6}, {4, 4}, {1024, 4}, {1016, 12}, {8, math.MaxUint64 - 3}, {math.MaxUint64 - 7, 8}} {
		wantErr(t, "no part of it", o.Map(2, part[0], part[1]), fault.ErrInvalid)
	}
	if err := o.Map(2, 1016, 8); err != nil {
		t.Fatal(err)
	}
	if !o.DropBuffer(2) || o.DropBuffer(2) {
		t.Error("a mapped buffer can be freed once")
	}
	if err := o.AddBuffer(2, 64, true, false); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "mapping of the buffer before", o.Unmap(2), fault.ErrInvalid)
}

// Closed wins over lost, and both over every other mistake.
func TestUsable(t *testing.T) {
	o := newTestObjects(t)
	refused := func(sentinel error) {
		t.Helper()
		for what, err := range map[string]error{
			"Usable":    o.Usable("test"),
			"AddBuffer": o.AddBuffer(0, 0, false, false),
			"AddKernel": o.AddKernel(0, nil),
			"Map":       o.Map(0, 0, 4),
			"Unmap":     o.Unmap(0),
			"CheckRead": o.CheckRead(Transfer{}),
			"Check":     o.Check(nil),
		} {
			wantErr(t, what, err, sentinel)
		}
	}
	if err := o.Usable("test"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "nil list", o.Check(nil), fault.ErrInvalid)
	o.SetLost("gone")
	refused(fault.ErrDeviceLost)
	if !o.Close() || o.Close() {
		t.Error("Close does not tell the first call from the second")
	}
	refused(fault.ErrClosed)
}

// A transfer is right only if every byte of it, counted without overflow, is inside the buffer and the host memory.
func FuzzCheckRead(f *testing.F) {
	f.Add(uint64(0), 16, 0, 4, 8, 2)
	f.Add(uint64(1), 7, 3, 1, 3, 2)
	f.Add(uint64(0), 4096, 0, 4, math.MaxInt/2+1, 5)
	f.Add(uint64(math.MaxUint64), -1, math.MaxInt, math.MinInt, -1, math.MaxInt)
	o := newTestObjects(f)
	f.Fuzz(func(t *testing.T, offset uint64, size, hostOffset, width, pitch, count int) {
		host := Host{Bytes: make([]byte, min(max(size, 0), 1<<16)), Size: size}
		tr := Transfer{1, offset, host, hostOffset, width, pitch, count}
		if o.CheckRead(tr) != nil {
			return
		}
		if width == 0 || count == 0 {
			return
		}
		for _, i := range []int{0, count / 2, count - 1} {
			at := i * pitch
			if got := len(host.Bytes[hostOffset+at:][:width]); got != width {
				t.Fatalf("%+v", tr)
			}
			if end := offset + uint64(at+width); end > o.BufferSize(1) {
				t.Fatalf("row %d of %+v ends at %d", i, tr, end)
			}
		}
	})
}

// A kernel has one parameter block at most, so a binding set for two of them could never be used.
func TestOneParameterBlock(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		want   error
	}{
		{NewLayout(AccessParams), nil},
		{NewLayout(AccessNone, AccessParams), nil},
		{NewLayout(AccessParams, AccessParams), fault.ErrInvalid},
		{NewLayout(AccessParams, AccessNone, AccessParams), fault.ErrInvalid},
		{Layout(0b11) | Layout(0b11)<<62, fault.ErrInvalid}, // the first and the last
	} {
		o := newTestObjects(t)
		wantErr(t, "kernel", o.AddKernel(2, &Kernel{Source: "-", Entry: "main", Layout: c.layout}), c.want)
		var l CommandList
		l.Bind(2, c.layout, nil)
		wantErr(t, "binding set", o.Check(&l), c.want)
	}
}
