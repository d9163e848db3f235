// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var bufferCases = []testCase{
	{"BufferZeroed", bufferZeroed},
	{"BufferReused", bufferReused},
	{"BufferFreedInFlight", bufferFreedInFlight},
	{"BufferMany", bufferMany},
	{"BufferRefused", bufferRefused},
	{"BufferHandle", bufferHandle},
	{"BufferForeign", bufferForeign},
}

func bufferZeroed(r *rig) {
	for _, n := range []int{1, 2, 3, 4, 5, 63, 64, 65, 1025, 1 << 18} {
		r.want(r.buffer(uint64(4*n)), make([]uint32, n))
	}
}

// A driver that recycles memory must not show what was in it.
func bufferReused(r *rig) {
	const n = 1000
	id := r.buffer(4 * n)
	for i := range 5 {
		p := pattern(n, uint32(i))
		r.write(id, 0, p...)
		r.want(id, p)
		r.dev.FreeBuffer(id)
		r.check(r.dev.NewBuffer(id, 4*n, false))
		r.want(id, make([]uint32, n))
	}
	r.dev.FreeBuffer(id)
	r.dev.FreeBuffer(id) // a second time, and one that never was: both do nothing
	r.dev.FreeBuffer(0)
	r.dev.FreeBuffer(math.MaxUint32)
	r.check(r.dev.NewBuffer(id, 8, false)) // the same id with another size
	r.buffers[id-1] = 8
	r.want(id, []uint32{0, 0})
}

func bufferFreedInFlight(r *rig) {
	const n = 1 << 16
	x, y := r.filled(pattern(n, 1)...), r.buffer(4*n)
	k := r.kernel(scale)
	set := r.bind(scale, r.whole(x), r.whole(y))
	r.dispatch(k, set, groups(n), 3, 5, n)
	r.submit()
	r.dev.FreeBuffer(x)
	r.check(r.dev.NewBuffer(x, 4*n, false))
	r.write(x, 0, pattern(n, 2)...)
	r.submit()
	r.want(y, each(pattern(n, 1), func(v uint32) uint32 { return v*3 + 5 }))
	r.want(x, pattern(n, 2))
}

func bufferMany(r *rig) {
	const count = 300
	var ids []driver.BufferID
	for i := range count {
		ids = append(ids, r.filled(pattern(8, uint32(i))...))
	}
	for i := 0; i < count; i += 2 {
		r.submit()
		r.dev.FreeBuffer(ids[i])
		r.check(r.dev.NewBuffer(ids[i], 32, false))
		r.write(ids[i], 0, pattern(8, uint32(i+count))...)
	}
	for i, id := range ids {
		seed := uint32(i)
		if i%2 == 0 {
			seed += count
		}
		r.want(id, pattern(8, seed))
	}
}

func bufferRefused(r *rig) {
	taken := r.filled(1, 2, 3)
	free := r.nextBuffer(4)
	limit := r.info.Limits.MaxBufferSize
	for _, c := range []struct {
		name string
		id   driver.BufferID
		size uint64
		want error
	}{
		{"id 0", 0, 4, fault.ErrInvalid},
		{"id taken", taken, 4, fault.ErrInvalid},
		{"id out of all proportion", math.MaxUint32, 4, fault.ErrInvalid},
		{"id negative as an int32", 1 << 31, 4, fault.ErrInvalid},
		{"size 0", free, 0, fault.ErrInvalid},
		{"size 1", free, 1, fault.ErrInvalid},
		{"size 6", free, 6, fault.ErrInvalid},
		{"size over the limit", free, limit&^3 + 4, fault.ErrLimit},
		{"size huge", free, 1 << 60, fault.ErrLimit},
		{"size out of range", free, math.MaxUint64 - 3, fault.ErrLimit},
	} {
		r.refused(c.name, r.dev.NewBuffer(c.id, c.size, false), c.want)
	}
	if !r.has(driver.FeatureMappable) {
		r.refused("mappable", r.dev.NewBuffer(free, 4, true), fault.ErrUnsupported)
	}
	r.want(taken, []uint32{1, 2, 3})
	r.check(r.dev.NewBuffer(free, 4, false)) // what was refused took no id
	r.want(free, []uint32{0})
}

// A platform's buffer that comes back under a second id is the same memory and is freed once.
func bufferHandle(r *rig) {
	p := pattern(64, 1)
	id := r.filled(p...)
	r.submit()
	if h := r.dev.Handle(math.MaxUint32); h != nil {
		r.Errorf("an unknown buffer has the handle %v", h)
	}
	handle := r.dev.Handle(id)
	if handle == nil {
		return // there is no such object on this platform
	}
	twice := r.nextBuffer(256)
	_, _, err := r.dev.ImportBuffer(id, handle)
	r.refused("id taken", err, fault.ErrInvalid)
	free := r.nextBuffer(256)
	for _, next := range []driver.BufferID{twice, free} { // the second time it is known
		known, size, err := r.dev.ImportBuffer(next, handle)
		r.check(err)
		if known != twice || size != 256 {
			r.Errorf("imported as %d with %d bytes, want %d with 256", known, size, twice)
		}
	}
	r.check(r.dev.NewBuffer(free, 4, false)) // the id is still free
	r.want(twice, p)
	k := r.kernel(bump)
	set := r.bind(bump, r.whole(twice))
	r.dispatch(k, set, groups(64))
	r.want(id, each(p, func(v uint32) uint32 { return v*3 + 1 }))
	r.dev.FreeBuffer(twice)
	third := r.nextBuffer(256)
	if known, _, err := r.dev.ImportBuffer(third, handle); known != third || err != nil {
		r.Errorf("imported as %d after it was freed, %v", known, err)
	}
	r.write(id, 0, pattern(64, 2)...)
	r.want(id, pattern(64, 2))
	r.dispatch(k, set, groups(64))
	r.submitRefused("dispatch on the freed import", fault.ErrClosed)
	r.refused("destroying the driver's own", r.dev.DestroyBuffer(handle), fault.ErrInvalid)
	r.want(id, pattern(64, 2))
	r.dev.FreeBuffer(id)
	for _, h := range []any{nil, 0, "buffer", struct{}{}, new(int), []int{1}} {
		if err := r.dev.DestroyBuffer(h); !errors.Is(err, fault.ErrUnsupported) && !errors.Is(err, fault.ErrForeign) {
			r.Errorf("destroying %v: %v", h, err)
		}
	}
}

// OddSizes imports buffers that create makes on the device's platform. Those whose size is no multiple of 4 are refused at once, with the
// reason, and leave the id free.
func OddSizes(t *testing.T, dev driver.Device, create func(size int) any) {
	t.Helper()
	for _, size := range []int{1, 2, 3, 5, 6, 10, 14, 15} {
		_, _, err := dev.ImportBuffer(1, create(size))
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "size of "+strconv.Itoa(size)+" is not a positive multiple of 4") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	known, size, err := dev.ImportBuffer(1, create(12))
	if known != 1 || size != 12 || err != nil {
		t.Fatalf("a buffer of 12 bytes is %d with %d bytes, %v", known, size, err)
	}
	last := make([]byte, 2)
	if err := read(t.Context(), dev, 1, 10, last); err != nil {
		t.Errorf("its last bytes: %v", err)
	}
	dev.FreeBuffer(1)
}

func bufferForeign(r *rig) {
	id := r.nextBuffer(4)
	for _, h := range []any{nil, 0, "buffer", struct{}{}, new(int), []int{1}} {
		_, _, err := r.dev.ImportBuffer(id, h)
		r.refused("ImportBuffer", err, fault.ErrForeign, fault.ErrUnsupported)
	}
	r.check(r.dev.NewBuffer(id, 4, false)) // the id is still free
	foreign := driver.Host{Foreign: struct{ int }{1}, Size: 4}
	r.list.Write(id, 0, foreign)
	r.refused("Write", r.dev.Submit(&r.list), fault.ErrForeign, fault.ErrUnsupported, fault.ErrInvalid)
	r.list.Reset()
	err := r.dev.Read(r.ctx, driver.Transfer{Buffer: id, Host: foreign, Width: 4, Count: 1})
	r.refused("Read", err, fault.ErrForeign, fault.ErrUnsupported, fault.ErrInvalid)
	r.want(id, []uint32{0})
}
