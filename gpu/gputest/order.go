// SPDX-License-Identifier: Apache-2.0

package gputest

import "slices"

var orderCases = []testCase{
	{"OrderWrites", orderWrites},
	{"OrderMixed", orderMixed},
	{"OrderManyParams", orderManyParams},
	{"OrderSameParams", orderSameParams},
	{"OrderParamsInFlight", orderParamsInFlight},
	{"OrderReplay", orderReplay},
	{"OrderChain", orderChain},
	{"OrderChainOfLists", orderChainOfLists},
}

// A dispatch sees the writes before it in the list and not those after it, also of the same buffer.
func orderWrites(r *rig) {
	const n = 128
	x, y, z := r.buffer(4*n), r.buffer(4*n), r.buffer(4*n)
	k := r.kernel(scale)
	toY, toZ := r.bind(scale, r.whole(x), r.whole(y)), r.bind(scale, r.whole(x), r.whole(z))
	r.write(x, 0, pattern(n, 1)...)
	r.dispatch(k, toY, groups(n), 2, 1, n)
	r.write(x, 0, pattern(n, 2)...)
	r.dispatch(k, toZ, groups(n), 2, 1, n)
	r.write(x, 0, pattern(n, 3)...)
	double := func(v uint32) uint32 { return 2*v + 1 }
	r.want(y, each(pattern(n, 1), double))
	r.want(z, each(pattern(n, 2), double))
	r.want(x, pattern(n, 3))
}

// Every kind of command between every other.
func orderMixed(r *rig) {
	const n = 128
	x, y := r.filled(pattern(n, 1)...), r.buffer(4*n)
	k := r.kernel(affine)
	ofX, ofY := r.bind(affine, r.whole(x)), r.bind(affine, r.whole(y))
	wx, wy := pattern(n, 1), make([]uint32, n)
	run := func(v []uint32, mul, add uint32) {
		copy(v, each(v, func(e uint32) uint32 { return e*mul + add }))
	}
	for i := range uint32(40) {
		r.dispatch(k, ofX, groups(n), 3, i, n)
		run(wx, 3, i)
		r.list.Copy(y, 4*uint64(i), x, 0, 4*(n-uint64(i)))
		copy(wy[i:], wx)
		r.dispatch(k, ofY, groups(n), 5, i, n)
		run(wy, 5, i)
		r.list.Clear(x, 4*uint64(i), 16)
		clear(wx[i : i+4])
		r.write(y, 0, i, i+1)
		wy[0], wy[1] = i, i+1
		r.dispatch(k, ofY, groups(n), 7, i, n)
		run(wy, 7, i)
		r.list.Copy(x, 0, y, 4*(n-8), 32)
		copy(wx, wy[n-8:])
		if i%16 == 15 {
			r.submit()
		}
	}
	r.want(x, wx)
	r.want(y, wy)
}

// More parameter blocks in one list than a uniform buffer of 256 KiB holds.
func orderManyParams(r *rig) {
	const n = 70
	id, k := r.filled(pattern(n, 1)...), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	want := pattern(n, 1)
	for i := range uint32(1100) {
		r.dispatch(k, set, groups(n), 2*i+1, i, n)
		want = each(want, func(v uint32) uint32 { return v*(2*i+1) + i })
	}
	if len(r.list.Params) <= 256<<10 {
		r.Fatalf("only %d bytes of parameters", len(r.list.Params))
	}
	r.want(id, want)
}

func orderSameParams(r *rig) {
	const n = 70
	id, k := r.filled(pattern(n, 1)...), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	want := pattern(n, 1)
	for i := range uint32(300) {
		add := i / 10 // the same block ten times
		if i >= 200 {
			add = i % 2 // two that take turns
		}
		r.dispatch(k, set, groups(n), 3, add, n)
		want = each(want, func(v uint32) uint32 { return v*3 + add })
	}
	r.want(id, want)
}

// Lists that follow each other without a wait must not overwrite the parameters of those still running.
func orderParamsInFlight(r *rig) {
	const n = 1 << 14
	id, k := r.filled(pattern(n, 1)...), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	want := pattern(n, 1)
	for i := range uint32(100) {
		for j := range uint32(3) {
			r.dispatch(k, set, groups(n), 2*i+1, j, n)
			want = each(want, func(v uint32) uint32 { return v*(2*i+1) + j })
		}
		r.submit()
	}
	r.want(id, want)
}

// A list belongs to the caller, who may submit it again and again.
func orderReplay(r *rig) {
	const n = 100
	id, k := r.filled(pattern(n, 1)...), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	r.submit()
	r.write(id, 0, 5)
	r.dispatch(k, set, groups(n), 3, 1, n)
	r.dispatch(k, set, groups(n), 5, 2, n)
	before, params := slices.Clone(r.list.Words), slices.Clone(r.list.Params)
	want := pattern(n, 1)
	for range 5 {
		r.check(r.dev.Submit(&r.list))
		want[0] = 5
		want = each(want, func(v uint32) uint32 { return (v*3+1)*5 + 2 })
	}
	if !slices.Equal(before, r.list.Words) || !slices.Equal(params, r.list.Params) || len(r.list.Data) != 1 {
		r.Error("Submit changed the list")
	}
	r.list.Reset()
	r.want(id, want)
}

// chain makes two buffers that feed each other, and what dispatches of them compute.
func chain(r *rig, dispatches int, after func()) {
	const n = 1000
	a, b := r.filled(pattern(n, 1)...), r.buffer(4*n)
	k := r.kernel(step)
	there, back := r.bind(step, r.whole(a), r.whole(b)), r.bind(step, r.whole(b), r.whole(a))
	now := pattern(n, 1)
	for i := range dispatches {
		set := there
		if i%2 == 1 {
			set = back
		}
		r.dispatch(k, set, groups(n))
		after()
		next := make([]uint32, n)
		for j := range next {
			next[j] = now[j]*5 + now[(j+1)%n] + 1
		}
		now = next
	}
	r.want(a, now) // an even number of dispatches ends in a
}

func orderChain(r *rig) { chain(r, 200, func() {}) }

func orderChainOfLists(r *rig) { chain(r, 200, r.submit) }
