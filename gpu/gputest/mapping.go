// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var mappingCases = []testCase{
	{"MapRoundTrip", mapRoundTrip},
	{"MapZeroed", mapZeroed},
	{"MapParts", mapParts},
	{"MapRefused", mapRefused},
	{"MapExcludes", mapExcludes},
}

// mappable makes a mappable buffer, or reports that the device has none and says so.
func (r *rig) mappable(n int) (driver.BufferID, bool) {
	r.Helper()
	size := uint64(4 * n)
	id := r.nextBuffer(size)
	err := r.dev.NewBuffer(id, size, true)
	if !r.has(driver.FeatureMappable) {
		r.refused("mappable buffer", err, fault.ErrUnsupported)
		return 0, false
	}
	r.check(err)
	return id, true
}

func (r *rig) mapped(id driver.BufferID) []byte {
	r.Helper()
	return r.mappedPart(id, 0, r.buffers[id-1])
}

func (r *rig) mappedPart(id driver.BufferID, offset, size uint64) []byte {
	r.Helper()
	mem, err := r.dev.Map(r.ctx, id, offset, size)
	r.check(err)
	if uint64(len(mem)) != size || cap(mem) != len(mem) {
		r.Fatalf("mapped %d bytes of %d, capacity %d", len(mem), size, cap(mem))
	}
	return mem
}

// The CPU writes, a kernel runs, the CPU reads, in the same memory.
func mapRoundTrip(r *rig) {
	const n = 1000
	id, ok := r.mappable(n)
	if !ok {
		return
	}
	plain, k := r.buffer(4*n), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	want := pattern(n, 1)
	copy(r.mapped(id), PutU32(nil, want...))
	r.check(r.dev.Unmap(id))
	for i := range uint32(5) {
		for range 20 { // Map waits for all of them
			r.dispatch(k, set, groups(n), 3, i, n)
			want = each(want, func(v uint32) uint32 { return v*3 + i })
		}
		r.list.Copy(plain, 0, id, 0, 4*n)
		r.submit()
		mem := r.mapped(id)
		r.same("mapped memory", words(mem), want)
		setWord(mem, n-1, i)
		want[n-1] = i
		r.check(r.dev.Unmap(id))
		r.want(id, want)
	}
	r.list.Clear(id, 0, 4*n)
	r.list.Copy(id, 4, plain, 0, 8)
	r.submit()
	first := words(r.bytes(plain))[:2]
	r.same("mapped memory", words(r.mapped(id))[:4], []uint32{0, first[0], first[1], 0})
	r.check(r.dev.Unmap(id))
}

func mapZeroed(r *rig) {
	const n = 1 << 16
	id, ok := r.mappable(n)
	if !ok {
		return
	}
	for i := range 3 {
		mem := r.mapped(id)
		r.same("new mapped memory", words(mem), make([]uint32, n))
		copy(mem, PutU32(nil, pattern(n, uint32(i))...))
		if i == 1 { // freed as it is, mapped
			r.check(r.dev.Unmap(id))
		}
		r.dev.FreeBuffer(id)
		r.check(r.dev.NewBuffer(id, 4*n, true))
	}
}

// Parts of a buffer are mapped one after the other, in any order and of any size; what was never written is zeros, and
// kernels see it all.
func mapParts(r *rig) {
	const n = 3 << 18
	id, ok := r.mappable(n)
	if !ok {
		return
	}
	want := make([]uint32, n)
	value := uint32(1)
	for _, p := range []struct{ from, to int }{{2, 3}, {1000, 1000 + 1<<18}, {0, 500}, {n - 2, n}, {1 << 19, 1<<19 + 5}, {400, 1100}} {
		mem := r.mappedPart(id, uint64(4*p.from), uint64(4*(p.to-p.from)))
		r.same("a part of mapped memory", words(mem), want[p.from:p.to])
		for i := p.from; i < p.to; i++ {
			want[i] = value
			setWord(mem, i-p.from, value)
			value++
		}
		r.check(r.dev.Unmap(id))
	}
	r.want(id, want)
	k := r.kernel(affine)
	r.dispatch(k, r.bind(affine, r.whole(id)), groups(n), 3, 1, n)
	r.submit()
	want = each(want, func(v uint32) uint32 { return v*3 + 1 })
	r.same("a part of mapped memory", words(r.mappedPart(id, 8, 4)), want[2:3])
	r.check(r.dev.Unmap(id))
	r.same("mapped memory", words(r.mapped(id)), want)
	r.check(r.dev.Unmap(id))
}

func mapRefused(r *rig) {
	id := r.filled(1)
	r.submit()
	for _, c := range []struct {
		name string
		id   driver.BufferID
		want error
	}{
		{"buffer 0", 0, fault.ErrClosed},
		{"unknown buffer", math.MaxUint32, fault.ErrClosed},
		{"buffer that is not mappable", id, fault.ErrUnsupported},
	} {
		_, err := r.dev.Map(r.ctx, c.id, 0, 4)
		r.refused("Map of a "+c.name, err, c.want)
		r.refused("Unmap of a "+c.name, r.dev.Unmap(c.id), fault.ErrInvalid)
	}
	r.want(id, []uint32{1})
	m, ok := r.mappable(4)
	if !ok {
		return
	}
	for _, part := range [][2]uint64{{0, 0}, {0, 2}, {4, 4}, {8, 12}, {16, 4}, {24, 4}, {0, math.MaxUint64 - 3}, {math.MaxUint64 - 7, 8}} {
		_, err := r.dev.Map(r.ctx, m, part[0], part[1])
		r.refused("Map of a part that is not one", err, fault.ErrInvalid)
	}
	r.refused("Unmap of what is not mapped", r.dev.Unmap(m), fault.ErrInvalid)
	r.mapped(m)
	_, err := r.dev.Map(r.ctx, m, 0, 4)
	r.refused("second Map", err, fault.ErrMapped)
	r.check(r.dev.Unmap(m))
	r.refused("second Unmap", r.dev.Unmap(m), fault.ErrInvalid)
	r.dev.FreeBuffer(m)
	_, err = r.dev.Map(r.ctx, m, 0, 4)
	r.refused("Map of a freed buffer", err, fault.ErrClosed)
}

// While the CPU has a buffer, nothing that names it runs, and nothing else is held up.
func mapExcludes(r *rig) {
	m, ok := r.mappable(64)
	if !ok {
		return
	}
	other := r.filled(pattern(64, 1)...)
	k := r.kernel(bump)
	set, free := r.bind(bump, r.whole(m)), r.bind(bump, r.whole(other))
	r.submit()
	mem := r.mapped(m)
	copy(mem, PutU32(nil, pattern(64, 2)...))
	for _, c := range []struct {
		name string
		add  func()
	}{
		{"write", func() { r.write(m, 0, 1) }},
		{"clear", func() { r.list.Clear(m, 0, 4) }},
		{"copy to", func() { r.list.Copy(m, 0, other, 0, 4) }},
		{"copy from", func() { r.list.Copy(other, 0, m, 0, 4) }},
		{"bind", func() { r.rebind(r.sets+1, bump, r.whole(m)) }},
		{"dispatch", func() { r.dispatch(k, set, groups(64)) }},
	} {
		r.list.Clear(other, 0, 256)
		c.add()
		r.submitRefused(c.name, fault.ErrMapped)
		r.want(other, pattern(64, 1))
	}
	r.refused("read", read(r.ctx, r.dev, m, 0, make([]byte, 4)), fault.ErrMapped)
	r.dispatch(k, free, groups(64))
	r.want(other, each(pattern(64, 1), func(v uint32) uint32 { return v*3 + 1 }))
	r.same("mapped memory", words(mem), pattern(64, 2))
	r.check(r.dev.Unmap(m))
	r.dispatch(k, set, groups(64))
	r.want(m, each(pattern(64, 2), func(v uint32) uint32 { return v*3 + 1 }))
}
