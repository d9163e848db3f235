// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var bindingCases = []testCase{
	{"BindingKinds", bindingKinds},
	{"BindingEight", bindingEight},
	{"BindingWindows", bindingWindows},
	{"BindingTwice", bindingTwice},
	{"BindingReused", bindingReused},
	{"BindingMany", bindingMany},
	{"BindingShared", bindingShared},
	{"BindingRebound", bindingRebound},
	{"BindingOfReusedBuffer", bindingOfReusedBuffer},
	{"BindingOfReusedKernel", bindingOfReusedKernel},
	{"BindingStale", bindingStale},
}

// Parameters first, in the middle, last or absent; gaps in the numbers; bindings that the kernel does not mention.
func bindingKinds(r *rig) {
	const n = 100
	px, py := pattern(n, 1), pattern(n, 2)
	x, y := r.filled(px...), r.filled(py...)
	zip := func(f func(x, y uint32) uint32) {
		for i := range py {
			py[i] = f(px[i], py[i])
		}
	}
	r.dispatch(r.kernel(scale), r.bind(scale, r.whole(x), r.whole(y)), groups(n), 3, 5, n)
	zip(func(x, _ uint32) uint32 { return 3*x + 5 })
	r.want(y, py)
	r.dispatch(r.kernel(blend), r.bind(blend, r.whole(y), r.whole(x)), groups(n), 7, 11, n)
	zip(func(x, y uint32) uint32 { return 7*y + x + 11 })
	r.want(y, py)
	r.dispatch(r.kernel(bump), r.bind(bump, r.whole(y)), groups(n))
	zip(func(_, y uint32) uint32 { return 3*y + 1 })
	r.want(y, py)
	unused := r.filled(13)
	r.dispatch(r.kernel(gap), r.bind(gap, r.whole(y), r.whole(x), r.whole(unused)), groups(n))
	zip(func(x, y uint32) uint32 { return 2*y + x })
	r.want(y, py)
	r.want(x, px)
	r.want(unused, []uint32{13})
}

func bindingEight(r *rig) {
	const n = 100
	k, y := r.kernel(eight), r.buffer(4*n)
	var entries []driver.Binding
	sum := make([]uint32, n)
	for i := range uint32(7) {
		p := pattern(n, i)
		entries = append(entries, r.whole(r.filled(p...)))
		for j, v := range p {
			sum[j] += (i + 1) * v
		}
	}
	r.dispatch(k, r.bind(eight, append(entries, r.whole(y))...), groups(n), 3, 5, n)
	r.want(y, each(sum, func(v uint32) uint32 { return v*3 + 5 }))
	slices.Reverse(entries) // the order of the entries is the order of the bindings
	r.dispatch(k, r.bind(eight, append(entries, r.whole(y))...), groups(n), 1, 0, n)
	clear(sum)
	for i := range uint32(7) {
		for j, v := range pattern(n, i) {
			sum[j] += (7 - i) * v
		}
	}
	r.want(y, sum)
}

// A binding shows a kernel its part of the buffer and nothing else, and the kernel sees how long it is.
func bindingWindows(r *rig) {
	align := r.align()
	n := int(align) // words: four windows
	id, k := r.filled(pattern(n, 1)...), r.kernel(bump)
	want := pattern(n, 1)
	for _, w := range []driver.Binding{
		{Offset: 0, Size: 4},
		{Offset: align, Size: 12},
		{Offset: 2 * align, Size: align},
		{Offset: 3 * align, Size: align - 4},
		{Offset: align, Size: 3 * align},
	} {
		w.Buffer = id
		r.dispatch(k, r.bind(bump, w), groups(n))
		for i := w.Offset / 4; i < (w.Offset+w.Size)/4; i++ {
			want[i] = want[i]*3 + 1
		}
		r.want(id, want)
	}
}

// One buffer twice: read and read with any ranges, or written through ranges that do not meet.
func bindingTwice(r *rig) {
	align := r.align()
	n := int(align)
	p := pattern(n, 1)
	id := r.filled(p...)
	lo, hi := driver.Binding{Buffer: id, Size: align}, driver.Binding{Buffer: id, Offset: 2 * align, Size: align}
	r.dispatch(r.kernel(swap), r.bind(swap, lo, hi), groups(n))
	for i := range n / 4 {
		p[i], p[i+n/2] = p[i+n/2], p[i]
	}
	r.want(id, p)

	y, k := r.buffer(4*align), r.kernel(eight)
	entries := []driver.Binding{r.whole(id), r.whole(id), lo, hi, lo, r.whole(id), r.whole(id), r.whole(y)}
	m := uint32(n / 4) // as far as the short windows go
	r.dispatch(k, r.bind(eight, entries...), groups(n), 1, 0, m)
	want := make([]uint32, n)
	for i := range m {
		want[i] = 24*p[i] + 4*p[i+uint32(n/2)] // the weights of eight
	}
	r.want(y, want)
}

func bindingReused(r *rig) {
	const n = 100
	id, k := r.filled(pattern(n, 1)...), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	want := pattern(n, 1)
	for i := range uint32(10) {
		for j := range uint32(3) {
			r.dispatch(k, set, groups(n), 3, i+j, n)
			want = each(want, func(v uint32) uint32 { return v*3 + i + j })
		}
		r.want(id, want)
	}
}

// Hundreds of sets that differ in one number.
func bindingMany(r *rig) {
	const count = 300
	stride := r.align()
	id, k := r.buffer(count*stride), r.kernel(affine)
	want := make([]uint32, count*stride/4)
	var sets [count]driver.BindingsID
	for i := range sets {
		sets[i] = r.bind(affine, driver.Binding{Buffer: id, Offset: uint64(i) * stride, Size: 8})
	}
	for range 2 {
		for i, set := range sets {
			r.dispatch(k, set, groups(2), 2, uint32(i), 2)
			w := want[uint64(i)*stride/4:]
			w[0], w[1] = 2*w[0]+uint32(i), 2*w[1]+uint32(i)
		}
		r.want(id, want)
	}
}

// Kernels of one layout share binding sets.
func bindingShared(r *rig) {
	const n = 100
	x, y := r.filled(pattern(n, 1)...), r.buffer(4*n)
	a, b := r.kernel(scale), r.kernel(offset)
	set := r.bind(scale, r.whole(x), r.whole(y))
	for range 3 {
		r.dispatch(a, set, groups(n), 3, 5, n)
		r.want(y, each(pattern(n, 1), func(v uint32) uint32 { return v*3 + 5 }))
		r.dispatch(b, set, groups(n), 3, 5, n)
		r.want(y, each(pattern(n, 1), func(v uint32) uint32 { return v + 15 }))
	}
}

// One id stands for one set after the other, also within a list.
func bindingRebound(r *rig) {
	const n = 100
	x, y, k := r.filled(pattern(n, 1)...), r.filled(pattern(n, 2)...), r.kernel(affine)
	wx, wy := pattern(n, 1), pattern(n, 2)
	id := r.bind(affine, r.whole(x))
	for i := range uint32(10) {
		r.dispatch(k, id, groups(n), 3, i, n)
		r.list.Unbind(id)
		r.rebind(id, affine, r.whole(y))
		r.dispatch(k, id, groups(n), 5, i, n)
		r.list.Unbind(id)
		r.rebind(id, affine, r.whole(x))
		wx = each(wx, func(v uint32) uint32 { return v*3 + i })
		wy = each(wy, func(v uint32) uint32 { return v*5 + i })
		if i%3 == 2 {
			r.submit()
		}
	}
	r.want(x, wx)
	r.want(y, wy)
}

// A binding set that looks the same must not be found in a cache when its buffer is another one.
func bindingOfReusedBuffer(r *rig) {
	const n = 100
	id, k := r.buffer(4*n), r.kernel(bump)
	for i := range uint32(5) {
		r.write(id, 0, pattern(n, i)...)
		set := r.bind(bump, r.whole(id))
		r.dispatch(k, set, groups(n))
		r.want(id, each(pattern(n, i), func(v uint32) uint32 { return v*3 + 1 }))
		r.list.Unbind(set)
		r.submit()
		r.sets-- // the same id again
		r.dev.FreeBuffer(id)
		r.check(r.dev.NewBuffer(id, 4*n, false))
	}
}

func bindingOfReusedKernel(r *rig) {
	const n = 100
	x, y := r.filled(pattern(n, 1)...), r.buffer(4*n)
	set := r.bind(scale, r.whole(x), r.whole(y))
	id := r.kernel(scale)
	for range 3 {
		r.dispatch(id, set, groups(n), 3, 5, n)
		r.want(y, each(pattern(n, 1), func(v uint32) uint32 { return v*3 + 5 }))
		r.compileAs(id, offset)
		r.dispatch(id, set, groups(n), 3, 5, n)
		r.want(y, each(pattern(n, 1), func(v uint32) uint32 { return v + 15 }))
		r.compileAs(id, scale)
	}
}

// compileAs replaces a kernel.
func (r *rig) compileAs(id driver.KernelID, p program) {
	r.Helper()
	r.dev.FreeKernel(id)
	k, err := p.kernel()
	r.check(err)
	r.check(r.dev.NewKernel(r.ctx, id, k))
}

// A set whose buffer is gone can be forgotten and its id used again, but not be dispatched, not even when another buffer
// has taken the id.
func bindingStale(r *rig) {
	const n = 64
	x, y, k := r.filled(pattern(n, 1)...), r.filled(pattern(n, 2)...), r.kernel(bump)
	set := r.bind(bump, r.whole(x))
	r.dispatch(k, set, groups(n))
	r.submit()
	r.dev.FreeBuffer(x)
	r.dispatch(k, set, groups(n))
	r.submitRefused("buffer freed", fault.ErrClosed)
	r.check(r.dev.NewBuffer(x, 4*n, false))
	r.dispatch(k, set, groups(n))
	r.submitRefused("buffer replaced", fault.ErrClosed)
	r.want(x, make([]uint32, n))
	r.list.Unbind(set)
	r.rebind(set, bump, r.whole(y))
	r.dispatch(k, set, groups(n))
	r.want(y, each(pattern(n, 2), func(v uint32) uint32 { return v*3 + 1 }))
	r.want(x, make([]uint32, n))
}
