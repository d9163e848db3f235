// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

var dispatchCases = []testCase{
	{"Limits", portableLimits},
	{"DispatchGroups", dispatchGroups},
	{"DispatchNothing", dispatchNothing},
	{"DispatchParams", dispatchParams},
	{"DispatchParamsFull", dispatchParamsFull},
	{"DispatchFloat", dispatchFloat},
	{"DispatchManyLists", dispatchManyLists},
}

// What WebGPU promises everywhere.
func portableLimits(r *rig) {
	l := r.info.Limits
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"MaxBufferSize", l.MaxBufferSize, 256 << 20},
		{"MaxBindingSize", l.MaxBindingSize, 128 << 20},
		{"MaxStorageBuffers", uint64(l.MaxStorageBuffers), 8},
		{"MaxGroups", uint64(l.MaxGroups), 65535},
		{"MaxInvocations", uint64(l.MaxInvocations), 256},
		{"MaxGroupSize x", uint64(l.MaxGroupSize[0]), 256},
		{"MaxGroupSize y", uint64(l.MaxGroupSize[1]), 256},
		{"MaxGroupSize z", uint64(l.MaxGroupSize[2]), 64},
		{"MaxWorkgroupMemory", uint64(l.MaxWorkgroupMemory), 16 << 10},
	} {
		if c.got < c.want {
			r.Errorf("%s is %d, WebGPU promises %d", c.name, c.got, c.want)
		}
	}
	if a := l.BindingOffsetAlign; a > 256 || a&(a-1) != 0 {
		r.Errorf("BindingOffsetAlign is %d, want a power of two up to 256", a)
	}
	if l.MaxBindingSize > l.MaxBufferSize {
		r.Errorf("a binding of %d bytes in a buffer of %d", l.MaxBindingSize, l.MaxBufferSize)
	}
	if r.info.Driver == "" || r.info.Name == "" || r.info.Backend == "" {
		r.Errorf("the device does not say what it is: %+v", r.info)
	}
	if reason := r.dev.LostReason(); reason != "" {
		r.Errorf("a device that is not lost says %q", reason)
	}
}

// Each workgroup of every shape of dispatch runs exactly once and knows where it is.
func dispatchGroups(r *rig) {
	k := r.kernel(grid)
	top := uint32(65535)
	for _, g := range [][3]uint32{
		{1, 1, 1}, {3, 1, 1}, {1, 5, 1}, {1, 1, 7}, {2, 3, 4}, {17, 1, 9}, {top, 1, 1}, {1, top, 1}, {1, 1, top}, {2, 1, top},
	} {
		want := make([]uint32, 0, 2*g[0]*g[1]*g[2]+2)
		for z := range g[2] {
			for y := range g[1] {
				for x := range g[0] {
					want = append(want, 1, x^y<<8^z<<16)
				}
			}
		}
		want = append(want, 0, 0) // nothing runs beyond the end
		id := r.buffer(uint64(4 * len(want)))
		r.dispatch(k, r.bind(grid, r.whole(id)), g)
		r.want(id, want)
	}
}

func dispatchNothing(r *rig) {
	id, k := r.filled(1, 2, 3), r.kernel(bump)
	set := r.bind(bump, r.whole(id))
	for _, g := range [][3]uint32{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {0, 0, 0}, {65535, 65535, 0}} {
		r.dispatch(k, set, g)
	}
	r.want(id, []uint32{1, 2, 3})
}

func dispatchParams(r *rig) {
	const n = 200
	x, y, k := r.filled(pattern(n, 1)...), r.buffer(4*n), r.kernel(scale)
	set := r.bind(scale, r.whole(x), r.whole(y))
	want := make([]uint32, n)
	for _, p := range [][3]uint32{{1, 0, n}, {3, 4, 1}, {math.MaxUint32, 0, 64}, {7, math.MaxUint32, 65}, {2, 2, 0}, {5, 6, math.MaxUint32}} {
		r.dispatch(k, set, groups(n), p[:]...)
		for i, v := range pattern(n, 1)[:min(p[2], n)] {
			want[i] = v*p[0] + p[1]
		}
		r.want(y, want)
	}
}

// A block of the largest size, alone and behind a smaller one.
func dispatchParamsFull(r *rig) {
	const n = driver.MaxParams / 4
	k, other := r.kernel(block), r.kernel(affine)
	id, v := r.buffer(4*n), r.filled(1, 2, 3)
	set, setV := r.bind(block, r.whole(id)), r.bind(affine, r.whole(v))
	for i := range uint32(3) {
		r.dispatch(k, set, groups(n/4), pattern(n, i)...)
		r.want(id, pattern(n, i))
		r.dispatch(other, setV, groups(3), 2, 0, 3)
		r.dispatch(k, set, groups(n/4), pattern(n, i+10)...)
		r.want(id, pattern(n, i+10))
	}
	r.want(v, []uint32{8, 16, 24})
}

func dispatchFloat(r *rig) {
	const n = 100
	var x, y, want []float32
	for i := range n {
		x, y = append(x, float32(i)-50), append(y, float32(i)*0.25)
		want = append(want, float32(1.5*x[i])+y[i]) // exact
	}
	bx, by, k := r.buffer(4*n), r.buffer(4*n), r.kernel(saxpy)
	r.list.Write(bx, 0, driver.HostBytes(PutF32(nil, x...)))
	r.list.Write(by, 0, driver.HostBytes(PutF32(nil, y...)))
	r.list.Dispatch(k, r.bind(saxpy, r.whole(bx), r.whole(by)), groups(n), PutU32(PutF32(nil, 1.5), n))
	r.want(by, words(PutF32(nil, want...)))
}

func dispatchManyLists(r *rig) {
	id, k := r.filled(1, 2, 3), r.kernel(bump)
	set := r.bind(bump, r.whole(id))
	want := []uint32{1, 2, 3}
	for range 500 {
		r.dispatch(k, set, groups(3))
		r.submit()
		want = each(want, func(v uint32) uint32 { return v*3 + 1 })
	}
	r.want(id, want)
}
