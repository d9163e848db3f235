// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

const listWords = 256

// Each of these makes wgpu-native report an error or end the process if it gets that far.
func testRefusedLists(t *testing.T, bench *Bench) {
	d := bench.open(t)
	prepareAxpy(t, d, 1, listWords) // buffers 1 and 2, kernel 1, set 1
	must(t, d.NewKernel(t.Context(), 2, &bump))
	for id := driver.BufferID(10); id < 14; id++ {
		must(t, d.NewBuffer(id, 1024, id == 12 && mappable(d)))
	}
	var l driver.CommandList
	l.Bind(2, bump.Layout, []driver.Binding{{Buffer: 10, Size: 1024}})
	l.Bind(3, bump.Layout, []driver.Binding{{Buffer: 11, Size: 1024}})
	l.Bind(4, bump.Layout, []driver.Binding{{Buffer: 12, Size: 1024}})
	must(t, d.Submit(&l))
	d.FreeBuffer(11)
	if _, err := d.Map(t.Context(), 12, 0, 1024); mappable(d) {
		must(t, err)
	}
	for _, c := range slices.Concat(badTransfers(), badSets, badDispatches(d), badWords) {
		if errors.Is(c.kind, fault.ErrMapped) && !mappable(d) {
			continue
		}
		// A good command before the bad one must not run.
		var l driver.CommandList
		l.Write(10, 0, driver.HostBytes(bytesOf([]uint32{42})))
		c.build(&l)
		refused(t, d, c.name, d.Submit(&l), c.kind)
		want(t, d, 10, []uint32{0})
	}
	refused(t, d, "nil list", d.Submit(nil), fault.ErrInvalid)
}

// badList is a list that is refused.
type badList struct {
	name  string
	kind  error
	build func(l *driver.CommandList)
}

// The lists use these objects: buffers 10 and 13 are fine, 11 is freed, 12 is mapped. Set 2 is fine for kernel 2, 3 names a freed
// buffer, 4 a mapped one. Kernel 1 and set 1 take parameters.

func badTransfers() []badList {
	half := driver.HostBytes(make([]byte, 8))
	half.Size = 16
	return []badList{
		{"write offset", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, 2, driver.HostBytes(make([]byte, 4))) }},
		{"write past the end", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, 1020, driver.HostBytes(make([]byte, 5))) }},
		{"write far away", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, math.MaxUint64-3, driver.HostBytes(make([]byte, 8))) }},
		{"write short memory", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, 0, half) }},
		{"write foreign memory", fault.ErrUnsupported, func(l *driver.CommandList) { l.Write(10, 0, driver.Host{Foreign: 1, Size: 8}) }},
		{"write freed", fault.ErrClosed, func(l *driver.CommandList) { l.Write(11, 0, driver.HostBytes(make([]byte, 4))) }},
		{"write mapped", fault.ErrMapped, func(l *driver.CommandList) { l.Write(12, 0, driver.HostBytes(make([]byte, 4))) }},
		{"write unknown", fault.ErrClosed, func(l *driver.CommandList) { l.Write(math.MaxUint32, 0, driver.HostBytes(nil)) }},
		{"copy within", fault.ErrInvalid, func(l *driver.CommandList) { l.Copy(10, 0, 10, 512, 4) }},
		{"copy unaligned", fault.ErrInvalid, func(l *driver.CommandList) { l.Copy(10, 0, 13, 2, 4) }},
		{"copy past the end", fault.ErrInvalid, func(l *driver.CommandList) { l.Copy(10, 0, 13, 4, 1024) }},
		{"copy freed", fault.ErrClosed, func(l *driver.CommandList) { l.Copy(10, 0, 11, 0, 4) }},
		{"copy mapped", fault.ErrMapped, func(l *driver.CommandList) { l.Copy(10, 0, 12, 0, 4) }},
		{"clear unaligned", fault.ErrInvalid, func(l *driver.CommandList) { l.Clear(10, 0, 3) }},
		{"clear past the end", fault.ErrInvalid, func(l *driver.CommandList) { l.Clear(10, 4, 1024) }},
	}
}

var badSets = []badList{
	{"bind nothing", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(9, bump.Layout, nil) }},
	{"bind size 0", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10}}) }},
	{"bind size 6", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10, Size: 6}}) }},
	{"bind offset 4", fault.ErrInvalid, func(l *driver.CommandList) {
		l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10, Offset: 4, Size: 8}})
	}},
	{"bind past the end", fault.ErrInvalid, func(l *driver.CommandList) {
		l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10, Offset: 256, Size: 1024}})
	}},
	{"bind freed", fault.ErrClosed, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 11, Size: 4}}) }},
	{"bind no buffer", fault.ErrClosed, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Size: 4}}) }},
	{"bind id taken", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(2, bump.Layout, []driver.Binding{{Buffer: 10, Size: 4}}) }},
	{"bind for reading and writing", fault.ErrInvalid, func(l *driver.CommandList) {
		l.Bind(9, driver.NewLayout(driver.AccessRead, driver.AccessReadWrite), []driver.Binding{{Buffer: 10, Size: 256}, {Buffer: 10, Offset: 512, Size: 256}})
	}},
	{"bind with two parameter blocks", fault.ErrInvalid, func(l *driver.CommandList) {
		l.Bind(9, driver.NewLayout(driver.AccessParams, driver.AccessParams), nil)
	}},
	{"unbind unknown", fault.ErrInvalid, func(l *driver.CommandList) { l.Unbind(77) }},
}

func badDispatches(d driver.Device) []badList {
	g, most := groups(listWords), d.Info().Limits.MaxGroups
	block := gputest.PutU32(nil, listWords, 1)
	return []badList{
		{"dispatch too many groups", fault.ErrLimit, func(l *driver.CommandList) { l.Dispatch(2, 2, [3]uint32{most + 1, 1, 1}, nil) }},
		{"dispatch no kernel", fault.ErrClosed, func(l *driver.CommandList) { l.Dispatch(7, 2, g, nil) }},
		{"dispatch no set", fault.ErrInvalid, func(l *driver.CommandList) { l.Dispatch(2, 7, g, nil) }},
		{"dispatch another layout", fault.ErrInvalid, func(l *driver.CommandList) { l.Dispatch(2, 1, g, block) }},
		{"dispatch freed buffer", fault.ErrClosed, func(l *driver.CommandList) { l.Dispatch(2, 3, g, nil) }},
		{"dispatch mapped buffer", fault.ErrMapped, func(l *driver.CommandList) { l.Dispatch(2, 4, g, nil) }},
		{"dispatch without parameters", fault.ErrInvalid, func(l *driver.CommandList) { l.Dispatch(1, 1, g, nil) }},
		{"dispatch with parameters elsewhere", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Dispatch(1, 1, g, block)
			l.Words[len(l.Words)-1] = 256
		}},
	}
}

var badWords = []badList{
	{"no command", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{0} }},
	{"unknown command", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{1<<8 | 200} }},
	{"length 0", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{uint32(driver.OpClear)} }},
	{"length beyond", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{100<<8 | uint32(driver.OpClear)} }},
	{"data beyond", fault.ErrInvalid, func(l *driver.CommandList) {
		l.Write(10, 0, driver.HostBytes(make([]byte, 4)))
		l.Data = nil
	}},
}
