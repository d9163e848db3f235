// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

var mappingCases = []testCase{
	{"MapRoundTrip", mapRoundTrip},
	{"MapZeroed", mapZeroed},
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
		r.refused("mappable buffer", err, driver.ErrUnsupported)
		return 0, false
	}
	r.check(err)
	return id, true
}

func (r *rig) mapped(id driver.BufferID) []byte {
	r.Helper()
	mem, err := r.dev.Map(r.ctx, id)
	r.check(err)
	if uint64(len(mem)) != r.buffers[id-1] || cap(mem) != len(mem) {
		r.Fatalf("mapped %d bytes of %d, capacity %d", len(mem), r.buffers[id-1], cap(mem))
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
	copy(r.mapped(id), driver.PutU32(nil, want...))
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
		copy(mem, driver.PutU32(nil, pattern(n, uint32(i))...))
		if i == 1 { // freed as it is, mapped
			r.check(r.dev.Unmap(id))
		}
		r.dev.FreeBuffer(id)
		r.check(r.dev.NewBuffer(id, 4*n, true))
	}
}

func mapRefused(r *rig) {
	id := r.filled(1)
	r.submit()
	for _, c := range []struct {
		name string
		id   driver.BufferID
		want error
	}{
		{"buffer 0", 0, driver.ErrClosed},
		{"unknown buffer", math.MaxUint32, driver.ErrClosed},
		{"buffer that is not mappable", id, driver.ErrUnsupported},
	} {
		_, err := r.dev.Map(r.ctx, c.id)
		r.refused("Map of a "+c.name, err, c.want)
		r.refused("Unmap of a "+c.name, r.dev.Unmap(c.id), driver.ErrInvalid)
	}
	r.want(id, []uint32{1})
	m, ok := r.mappable(4)
	if !ok {
		return
	}
	r.refused("Unmap of what is not mapped", r.dev.Unmap(m), driver.ErrInvalid)
	r.mapped(m)
	_, err := r.dev.Map(r.ctx, m)
	r.refused("second Map", err, driver.ErrMapped)
	r.check(r.dev.Unmap(m))
	r.refused("second Unmap", r.dev.Unmap(m), driver.ErrInvalid)
	r.dev.FreeBuffer(m)
	_, err = r.dev.Map(r.ctx, m)
	r.refused("Map of a freed buffer", err, driver.ErrClosed)
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
	copy(mem, driver.PutU32(nil, pattern(64, 2)...))
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
		r.submitRefused(c.name, driver.ErrMapped)
		r.want(other, pattern(64, 1))
	}
	r.refused("read", read(r.ctx, r.dev, m, 0, make([]byte, 4)), driver.ErrMapped)
	r.dispatch(k, free, groups(64))
	r.want(other, each(pattern(64, 1), func(v uint32) uint32 { return v*3 + 1 }))
	r.same("mapped memory", words(mem), pattern(64, 2))
	r.check(r.dev.Unmap(m))
	r.dispatch(k, set, groups(64))
	r.want(m, each(pattern(64, 2), func(v uint32) uint32 { return v*3 + 1 }))
}
