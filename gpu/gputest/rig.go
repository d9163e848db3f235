// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// rig is what a case works with: a device, a command list, and ids that it gives out from 1 on. Its methods end the
// test on errors.
type rig struct {
	reporter
	ctx  context.Context // of this round
	dev  driver.Device
	info driver.AdapterInfo
	open opener
	list driver.CommandList

	buffers []uint64 // sizes, by id - 1
	kernels driver.KernelID
	sets    driver.BindingsID
	bound   map[driver.BindingsID]bool // what the device has
}

func newRig(ctx context.Context, t reporter, dev driver.Device, open opener) *rig {
	return &rig{reporter: t, ctx: ctx, dev: dev, info: dev.Info(), open: open, bound: map[driver.BindingsID]bool{}}
}

// second returns a rig with a device of its own.
func (r *rig) second() *rig {
	r.Helper()
	return newRig(r.ctx, r.reporter, newDevice(r.ctx, r.reporter, r.open), r.open)
}

func (r *rig) release() {
	r.list.Reset()
	for id := range r.bound {
		r.list.Unbind(id)
	}
	if err := r.dev.Submit(&r.list); err != nil {
		r.Errorf("unbinding at the end: %v", err)
	}
	for id := range r.kernels {
		r.dev.FreeKernel(id + 1)
	}
	for i := range r.buffers {
		r.dev.FreeBuffer(driver.BufferID(i + 1))
	}
}

// healthy shows that the device still computes.
func (r *rig) healthy() {
	r.Helper()
	b := r.filled(1, 2, 3, 4)
	k := r.kernel(affine)
	r.dispatch(k, r.bind(affine, r.whole(b)), groups(1), 10, 7, 4)
	r.want(b, []uint32{17, 27, 37, 47})
	select {
	case <-r.dev.Lost():
		r.Fatalf("the device was lost: %s", r.dev.LostReason())
	default:
	}
}

// check ends the test where there is an error.
func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// refused wants err to be one of the sentinels.
func (r *rig) refused(what string, err error, sentinels ...error) {
	r.Helper()
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return
		}
	}
	r.Errorf("%s: got error %v, want %v", what, err, sentinels)
}

// buffer makes a buffer.
func (r *rig) buffer(size uint64) driver.BufferID {
	r.Helper()
	id := r.nextBuffer(size)
	r.check(r.dev.NewBuffer(id, size, false))
	return id
}

// nextBuffer gives out an id without making a buffer.
func (r *rig) nextBuffer(size uint64) driver.BufferID {
	r.buffers = append(r.buffers, size)
	return driver.BufferID(len(r.buffers))
}

// filled makes a buffer of these words. They are written when the list is submitted.
func (r *rig) filled(words ...uint32) driver.BufferID {
	r.Helper()
	id := r.buffer(uint64(4 * len(words)))
	r.write(id, 0, words...)
	return id
}

// write adds a write to the list. offset is in bytes.
func (r *rig) write(id driver.BufferID, offset uint64, words ...uint32) {
	r.list.Write(id, offset, driver.HostBytes(PutU32(nil, words...)))
}

func (r *rig) kernel(p program) driver.KernelID {
	r.Helper()
	k, err := p.kernel()
	r.check(err)
	r.kernels++
	r.check(r.dev.NewKernel(r.ctx, r.kernels, k))
	return r.kernels
}

// bind adds a new binding set to the list.
func (r *rig) bind(p program, entries ...driver.Binding) driver.BindingsID {
	r.sets++
	r.rebind(r.sets, p, entries...)
	return r.sets
}

// rebind adds the definition of a free id to the list.
func (r *rig) rebind(id driver.BindingsID, p program, entries ...driver.Binding) {
	r.list.Bind(id, p.layout, entries)
}

// whole binds all of a buffer.
func (r *rig) whole(id driver.BufferID) driver.Binding {
	return driver.Binding{Buffer: id, Size: r.buffers[id-1]}
}

// dispatch adds a dispatch to the list.
func (r *rig) dispatch(k driver.KernelID, set driver.BindingsID, groups [3]uint32, params ...uint32) {
	r.list.Dispatch(k, set, groups, PutU32(nil, params...))
}

// submit hands the list over and empties it.
func (r *rig) submit() {
	r.Helper()
	r.check(r.dev.Submit(&r.list))
	for c := range r.list.All() {
		switch c.Op {
		case driver.OpBind:
			r.bound[driver.BindingsID(c.Words[0])] = true
		case driver.OpUnbind:
			delete(r.bound, driver.BindingsID(c.Words[0]))
		}
	}
	r.list.Reset()
}

// submitRefused hands over a list that must be refused, and empties it.
func (r *rig) submitRefused(what string, sentinel error) {
	r.Helper()
	r.refused(what, r.dev.Submit(&r.list), sentinel)
	r.list.Reset()
}

// bytes submits what is in the list and reads a whole buffer.
func (r *rig) bytes(id driver.BufferID) []byte {
	r.Helper()
	if len(r.list.Words) > 0 {
		r.submit()
	}
	b := make([]byte, r.buffers[id-1])
	r.check(read(r.ctx, r.dev, id, 0, b))
	return b
}

// want compares the content of a buffer.
func (r *rig) want(id driver.BufferID, want []uint32) {
	r.Helper()
	r.same("buffer", words(r.bytes(id)), want)
}

func (r *rig) same(what string, got, want []uint32) {
	r.Helper()
	if len(got) != len(want) {
		r.Errorf("%s: got %d words, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			r.Errorf("%s: word %d of %d is %#x, want %#x", what, i, len(got), got[i], want[i])
			return
		}
	}
}

func (r *rig) has(f driver.Features) bool { return r.info.Features.Has(f) }

// align is a binding offset that every device takes.
func (r *rig) align() uint64 { return max(256, uint64(r.info.Limits.BindingOffsetAlign)) }

// read fills dst from a buffer.
func read(ctx context.Context, dev driver.Device, id driver.BufferID, offset uint64, dst []byte) error {
	return dev.Read(ctx, driver.Transfer{
		Buffer: id, Offset: offset, Host: driver.HostBytes(dst), Width: len(dst), Count: 1,
	})
}

// groups is how many workgroups of 64 invocations cover n elements.
func groups(n int) [3]uint32 { return [3]uint32{uint32((n + 63) / 64), 1, 1} }

// pattern is n words that differ between seeds and places.
func pattern(n int, seed uint32) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = (uint32(i)+1)*2654435761 ^ seed*0x9e3779b9
	}
	return p
}

// each returns f of every element.
func each(v []uint32, f func(uint32) uint32) []uint32 {
	w := make([]uint32, len(v))
	for i, x := range v {
		w[i] = f(x)
	}
	return w
}

func words(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = word(b, i)
	}
	return w
}

func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

func setWord(b []byte, i int, v uint32) { binary.LittleEndian.PutUint32(b[4*i:], v) }

// PutU32 appends numbers to a parameter block in the byte order of the devices.
func PutU32(b []byte, v ...uint32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// PutF32 appends the bits of numbers.
func PutF32(b []byte, v ...float32) []byte {
	for _, x := range v {
		b = PutU32(b, math.Float32bits(x))
	}
	return b
}
