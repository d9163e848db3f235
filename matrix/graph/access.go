// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Device returns the device that the task runs on, nil for a task of the host's.
func (d *Dispatch) Device() *gpu.Device {
	if d == nil || d.w == nil {
		return nil
	}
	return d.w.dev
}

// Context ends when the graph is torn down. In calls of Push and Pull by a task it also tells the graph who is calling.
func (d *Dispatch) Context() context.Context {
	if d == nil || d.ctx == nil {
		return context.Background()
	}
	return d.ctx
}

// Task returns the task.
func (d *Dispatch) Task() *Task {
	if d == nil {
		return nil
	}
	return d.t
}

// Iteration returns which call of the body this is; see [SimpleIterator]. It is 0 without an iterator.
func (d *Dispatch) Iteration() int {
	if d == nil {
		return 0
	}
	return d.iter
}

// at finds a port and its block.
func (d *Dispatch) at(op, name string) (*Port, *Block, error) {
	if d == nil || d.t == nil || d.over.Load() {
		return nil, nil, fail(op, ErrState, "the dispatch is over")
	}
	p := d.t.Port(name)
	if p == nil {
		return nil, nil, fail(op, ErrName, d.t.name, " has no port ", name)
	}
	return p, d.blocks[p.index], nil
}

// output is at for calls that write.
func (d *Dispatch) output(op, name string) (*Port, *Block, error) {
	p, b, err := d.at(op, name)
	if err == nil && p.kind != outputPort && !p.written {
		err = fail(op, gpu.ErrReadOnly, name, " is an input")
	}
	return p, b, err
}

// Block returns the block at a port. It is the graph's: to keep it takes a [Block.Retain].
func (d *Dispatch) Block(port string) (*Block, error) {
	_, b, err := d.at("Block", port)
	return b, err
}

// Matrix returns the block at a port as a matrix on the task's device: of its own memory there, for reading, and for an
// output or what one is made in place of, for writing. There is one matrix for each block and device, which each
// dispatch points at the block's memory anew, with the block's rows and columns. It is valid while the body runs.
func (d *Dispatch) Matrix(port string) (*matrix.Any, error) {
	p, b, err := d.at("Matrix", port)
	if err != nil {
		return nil, err
	}
	return d.shell(p, b, ReadWrite)
}

// shell is Matrix. What writes says is what to do with an output.
func (d *Dispatch) shell(p *Port, b *Block, writes Access) (*matrix.Any, error) {
	const op = "Matrix"
	switch {
	case d.w.dev == nil:
		return nil, fail(op, gpu.ErrUnsupported, "a task of the host's has no device")
	case b.t.raw:
		return nil, fail(op, ErrTemplate, p.name, " has bytes")
	case p.kind != outputPort && !p.written:
		writes = Read
	case p.kind == outputPort && p.inPlacePort == nil:
	default:
		writes = ReadWrite
	}
	place := d.w.index + 1
	if err := b.s.acquire(d.ctx, place, writes); err != nil {
		return nil, err
	}
	return b.s.point(d.w.dev, place, b.rows)
}

// point points a side's matrix at its memory.
func (s *storage) point(dev *gpu.Device, place, rows int) (*matrix.Any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, side := s.t, &s.sides[place-1]
	if side.shell == nil {
		m, err := matrix.NewAny(dev, t.dtype, 0, 0)
		if err != nil {
			return nil, err
		}
		side.shell = m
	}
	var opts []matrix.Option
	if t.pitch != t.cols {
		opts = append(opts, matrix.Stride(t.pitch))
	}
	err := side.shell.SetValueFrom(t.planes*rows, t.cols, side.buf, buffer.DontOwnBuffer, opts...)
	return side.shell, err
}

// Buffer returns the memory of the block at a port on the task's device, for kernels of the body's; see [Block.On]. That of an
// output begins with the template's initial value.
func (d *Dispatch) Buffer(port string) (*buffer.Buffer, error) {
	const op = "Buffer"
	p, b, err := d.at(op, port)
	if err != nil {
		return nil, err
	}
	if d.w.dev == nil {
		return nil, fail(op, gpu.ErrUnsupported, "a task of the host's has no device")
	}
	a := Read
	if p.kind == outputPort || p.written {
		a = ReadWrite
	}
	if err := b.s.acquire(d.ctx, d.w.index+1, a); err != nil {
		return nil, err
	}
	return b.s.on(d.w.index + 1), nil
}

// View gives fn the bytes of the block at a port. It waits for a device that has them.
func (d *Dispatch) View(port string, fn func([]byte) error) error {
	_, b, err := d.at("View", port)
	if err != nil {
		return err
	}
	return b.access(d.ctx, "View", Read, fn)
}

// Update gives fn the bytes of an output's block to write.
func (d *Dispatch) Update(port string, fn func([]byte) error) error {
	_, b, err := d.output("Update", port)
	if err != nil {
		return err
	}
	return b.access(d.ctx, "Update", ReadWrite, fn)
}

// Scalar returns the first word of the block at a port.
func (d *Dispatch) Scalar(port string) (uint32, error) {
	p, _, err := d.at("Scalar", port)
	if err != nil {
		return 0, err
	}
	n, err := d.words(p, 1)
	return uint32(n[0]), err
}

// Float returns the first word of the block at a port as a float32.
func (d *Dispatch) Float(port string) (float32, error) {
	n, err := d.Scalar(port)
	return math.Float32frombits(n), err
}

// Signals returns the signals of the block at a port.
func (d *Dispatch) Signals(port string) (Signals, error) {
	_, b, err := d.at("Signals", port)
	return b.Signals(), err
}

// SetSignals says which signals an output's block has, instead of those of the inputs. [DevNull] makes the block go nowhere.
func (d *Dispatch) SetSignals(port string, s Signals) error {
	const op = "SetSignals"
	p, _, err := d.at(op, port)
	if err != nil {
		return err
	}
	if p.kind != outputPort || s&^allSignals != 0 || s.Has(Failed) {
		return fail(op, gpu.ErrInvalid, s.String(), " for ", port)
	}
	for i := range d.signals {
		if d.signals[i].port == p.index {
			d.signals[i].to = s
			return nil
		}
	}
	d.signals = append(d.signals, signalChange{p.index, s})
	return nil
}

// Resize gives an output's block, of a stream of records, another number of rows, before anything is written to it.
func (d *Dispatch) Resize(port string, rows int) error {
	const op = "Resize"
	p, b, err := d.output(op, port)
	if err != nil {
		return err
	}
	if !fits(p.tmpl.planes, rows, p.tmpl.pitch, p.tmpl.elem()) || !p.tmpl.records || p.kind != outputPort || p.inPlacePort != nil {
		return fail(op, ErrTemplate, itoa(rows), " rows for ", port)
	}
	next := p.tmpl.block(rows)
	next.meta = b.Meta()
	d.blocks[p.index] = next
	b.Release()
	return nil
}
