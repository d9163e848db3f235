// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"cmp"
	"context"

	"github.com/gogpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// set is a binding set. It has a bind group for each place of parameter blocks that it was dispatched with.
type set struct {
	layout  *layout
	entries []driver.Binding
	buffers []*buffer
	params  *wgpu.Buffer // that the groups refer to
	groups  map[uint32]*wgpu.BindGroup
}

// maxGroups is how many bind groups a set keeps.
const maxGroups = 64

func (s *set) release(d *device) {
	for _, g := range s.groups {
		d.discard(g.Release)
	}
	clear(s.groups)
}

// group returns the bind group of a set for a dispatch with the parameter block at an offset.
func (s *set) group(d *device, offset uint32) (*wgpu.BindGroup, error) {
	if s.params != d.params || len(s.groups) >= maxGroups {
		s.release(d)
		s.params = d.params
	}
	if g := s.groups[offset]; g != nil {
		return g, nil
	}
	entries := make([]wgpu.BindGroupEntry, 0, len(s.entries)+1)
	next := 0
	for i := range driver.MaxBindings {
		switch s.layout.of.At(i) {
		case driver.AccessParams:
			entries = append(entries, wgpu.BindGroupEntry{Binding: uint32(i), Buffer: d.params, Offset: uint64(offset), Size: driver.MaxParams})
		case driver.AccessRead, driver.AccessReadWrite:
			e := s.entries[next]
			entries = append(entries, wgpu.BindGroupEntry{Binding: uint32(i), Buffer: s.buffers[next].Buffer, Offset: e.Offset, Size: e.Size})
			next++
		}
	}
	g, err := d.dev.CreateBindGroup(&wgpu.BindGroupDescriptor{Layout: s.layout.groups, Entries: entries})
	if err == nil {
		s.groups[offset] = g
	}
	return g, err
}

func (d *device) Submit(l *driver.CommandList) (err error) {
	const op = "Submit"
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	if l != nil {
		for _, h := range l.Data {
			if h.Foreign != nil {
				return cmp.Or(d.Usable(name+": "+op), fail(op, fault.ErrUnsupported, "host memory that is not Go's"))
			}
		}
	}
	if err := d.Check(l); err != nil {
		return err
	}
	d.collect()
	r := recorder{d: d, touched: map[*wgpu.Buffer]bool{}}
	if err := cmp.Or(d.stage(l.Params), r.list(l), r.flush()); err != nil {
		return d.lose(op, err)
	}
	return nil
}

// stage has the parameter blocks of a list copied before anything else of it runs.
func (d *device) stage(params []byte) error {
	if len(params) == 0 {
		return nil
	}
	size := uint64(len(params)) + driver.MaxParams // what a dispatch sees begins at a block and may end behind the last
	if d.params == nil || d.params.Size() < size {
		b, err := d.dev.CreateBuffer(&wgpu.BufferDescriptor{Size: max(2*size, 64<<10), Usage: wgpu.BufferUsageUniform | wgpu.BufferUsageCopyDst})
		if err != nil {
			return err
		}
		if d.params != nil {
			d.discard(d.params.Release)
		}
		d.params = b
	}
	return d.dev.Queue().WriteBuffer(d.params, 0, params)
}

// recorder turns a list into submissions. The library puts what is written before the commands of a submission, and no barriers after
// writes, copies and clears.
type recorder struct {
	d       *device
	enc     *wgpu.CommandEncoder
	pass    *wgpu.ComputePassEncoder
	touched map[*wgpu.Buffer]bool // by writes, copies and clears since the last submission
	written bool                  // something was
	kernel  *wgpu.ComputePipeline // of the pass
	group   *wgpu.BindGroup
}

func (r *recorder) list(l *driver.CommandList) error {
	if err := r.zero(l); err != nil {
		return err
	}
	for c := range l.All() {
		if err := r.command(l, c); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) command(l *driver.CommandList, c driver.Command) error {
	d, w := r.d, c.Words
	switch c.Op {
	case driver.OpWrite:
		return r.write(d.buffers[driver.BufferID(w[0])], c.U64(1), l.Data[w[3]].Mem())
	case driver.OpCopy:
		return r.copy(d.buffers[driver.BufferID(w[0])], c.U64(1), d.buffers[driver.BufferID(w[3])], c.U64(4), c.U64(6))
	case driver.OpClear:
		return r.clear(d.buffers[driver.BufferID(w[0])], c.U64(1), c.U64(3))
	case driver.OpBind:
		l, err := d.layoutOf(driver.Layout(c.U64(1)))
		if err != nil {
			return err
		}
		s := &set{layout: l, entries: c.Bindings(), groups: map[uint32]*wgpu.BindGroup{}}
		for _, e := range s.entries {
			s.buffers = append(s.buffers, d.buffers[e.Buffer])
		}
		d.sets[driver.BindingsID(w[0])] = s
	case driver.OpUnbind:
		if s := d.sets[driver.BindingsID(w[0])]; s != nil {
			delete(d.sets, driver.BindingsID(w[0]))
			s.release(d)
		}
	case driver.OpDispatch:
		if w[2] > 0 && w[3] > 0 && w[4] > 0 {
			return r.dispatch(d.kernels[driver.KernelID(w[0])], d.sets[driver.BindingsID(w[1])], [3]uint32(w[2:5]), w[5])
		}
	}
	return nil
}

// encoder returns the open encoder, outside of a pass.
func (r *recorder) encoder() (*wgpu.CommandEncoder, error) {
	if err := r.endPass(); err != nil || r.enc != nil {
		return r.enc, err
	}
	var err error
	r.enc, err = r.d.dev.CreateCommandEncoder(nil)
	return r.enc, err
}

func (r *recorder) endPass() error {
	if r.pass == nil {
		return nil
	}
	p := r.pass
	r.pass, r.kernel, r.group = nil, nil, nil
	return p.End()
}

// flush submits what there is.
func (r *recorder) flush() error {
	if err := r.endPass(); err != nil {
		return err
	}
	var list []*wgpu.CommandBuffer
	if r.enc != nil {
		c, err := r.enc.Finish()
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	r.enc = nil
	if list == nil && !r.written {
		return nil
	}
	clear(r.touched)
	r.written = false
	last, err := r.d.dev.Queue().Submit(list...)
	r.d.last = max(r.d.last, last)
	return err
}

// after submits what there is if one of the buffers was touched by it.
func (r *recorder) after(buffers ...*buffer) error {
	for _, b := range buffers {
		if r.touched[b.Buffer] {
			return r.flush()
		}
	}
	return nil
}

func (r *recorder) write(b *buffer, offset uint64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if r.enc != nil || r.touched[b.Buffer] {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.touched[b.Buffer], r.written = true, true
	whole := len(data) &^ 3
	if err := r.d.dev.Queue().WriteBuffer(b.Buffer, offset, data[:whole]); err != nil || whole == len(data) {
		return err
	}
	var rest [4]byte
	copy(rest[:], data[whole:])
	return r.d.dev.Queue().WriteBuffer(b.Buffer, offset+uint64(whole), rest[:])
}

func (r *recorder) copy(dst *buffer, dstOffset uint64, src *buffer, srcOffset, size uint64) error {
	if size == 0 {
		return nil
	}
	if err := r.after(dst, src); err != nil {
		return err
	}
	enc, err := r.encoder()
	if err != nil {
		return err
	}
	if dst.Buffer == src.Buffer {
		return fail("Copy", fault.ErrInvalid, "within one buffer")
	}
	enc.CopyBufferToBuffer(src.Buffer, srcOffset, dst.Buffer, dstOffset, size)
	r.touched[dst.Buffer], r.touched[src.Buffer] = true, true
	return nil
}

func (r *recorder) clear(b *buffer, offset, size uint64) error {
	if size == 0 {
		return nil
	}
	if err := r.after(b); err != nil {
		return err
	}
	enc, err := r.encoder()
	if err != nil {
		return err
	}
	enc.ClearBuffer(b.Buffer, offset, size)
	r.touched[b.Buffer] = true
	return nil
}

func (r *recorder) dispatch(k *wgpu.ComputePipeline, s *set, groups [3]uint32, params uint32) error {
	if !s.layout.of.HasParams() {
		params = 0
	}
	if err := r.after(s.buffers...); err != nil {
		return err
	}
	g, err := s.group(r.d, params)
	if err != nil {
		return err
	}
	if r.pass == nil {
		enc, err := r.encoder()
		if err != nil {
			return err
		}
		if r.pass, err = enc.BeginComputePass(nil); err != nil {
			return err
		}
	}
	if r.kernel != k {
		r.pass.SetPipeline(k)
	}
	if r.kernel != k || r.group != g {
		r.pass.SetBindGroup(0, g, nil)
	}
	r.kernel, r.group = k, g
	r.pass.Dispatch(groups[0], groups[1], groups[2])
	return nil
}

// zero clears the buffers that were made since the last submission, except those that the list begins with filling.
func (r *recorder) zero(l *driver.CommandList) error {
	if len(r.d.fresh) == 0 {
		return nil
	}
	seen := map[*buffer]bool{}
	for c := range l.All() {
		if c.Op != driver.OpWrite { // what follows may use any buffer
			break
		}
		b := r.d.buffers[driver.BufferID(c.Words[0])]
		if !seen[b] && c.U64(1) == 0 && (uint64(l.Data[c.Words[3]].Size)+3)&^3 == b.Size() {
			b.fresh = false
		}
		seen[b] = true
	}
	for _, b := range r.d.fresh {
		if b.fresh {
			if err := r.clear(b, 0, b.Size()); err != nil {
				return err
			}
			b.fresh = false
		}
	}
	clear(r.d.fresh)
	r.d.fresh = r.d.fresh[:0]
	return nil
}

// zero clears the buffers that were made since the last submission.
func (d *device) zero() error {
	if len(d.fresh) == 0 {
		return nil
	}
	r := recorder{d: d, touched: map[*wgpu.Buffer]bool{}}
	if err := cmp.Or(r.zero(&driver.CommandList{}), r.flush()); err != nil {
		return d.lose("NewBuffer", err)
	}
	return nil
}

func (d *device) Wait(ctx context.Context) (err error) {
	const op = "Wait"
	if err := fault.Ended(ctx, name+": "+op); err != nil {
		return cmp.Or(d.Usable(name+": "+op), err)
	}
	if err := d.lock(op); err != nil {
		return err
	}
	last := d.last
	d.mu.Unlock()
	return d.await(ctx, op, func() bool { return d.collect() >= last })
}

// await polls until done, which is called under the lock, returns true.
func (d *device) await(ctx context.Context, op string, done func() bool) error {
	for w := (wait{}); ; w.pause() {
		if finished, err := d.try(op, done); finished || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fail(op, err)
		}
	}
}

func (d *device) try(op string, done func() bool) (finished bool, err error) {
	if err := d.lock(op); err != nil {
		return false, err
	}
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	return done(), nil
}
