// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"encoding/binary"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Device returns the device that the task runs on, nil for a task of the host.
func (d *Dispatch) Device() *gpu.Device {
	if d == nil || d.g == nil {
		return nil
	}
	return d.g.device(d.worker)
}

// Context ends when the graph is torn down. In calls of Push and Pull by a task it also tells the graph who is calling.
func (d *Dispatch) Context() context.Context {
	if d == nil || d.ctx == nil {
		return context.Background()
	}
	return d.ctx
}

// Iteration returns which call of the body this is; see [PortConfig.Iterates]. It is 0 in other tasks.
func (d *Dispatch) Iteration() int {
	if d == nil {
		return 0
	}
	return d.iteration
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
	if err == nil && !p.writable() {
		err = fail(op, gpu.ErrReadOnly, name, " is an input")
	}
	return p, b, err
}

// writable reports whether the task writes the port's block.
func (p *Port) writable() bool { return p.kind == outputPort || p.written }

// Block returns the block at a port. It is the graph's: to keep it takes a [Block.Retain].
func (d *Dispatch) Block(port string) (*Block, error) {
	_, b, err := d.at("Block", port)
	return b, err
}

// Matrix returns the block at a port of a dispatch as a matrix on the task's device: of its own memory there, to read and, for an
// output or the input that one is made in place of, to write. There is one matrix for each block and device. Each dispatch points
// it at the block's memory anew, with the block's rows and columns. It is valid while the body runs.
func Matrix[T matrix.Elem](d *Dispatch, port string) (*matrix.Dense[T], error) {
	p, b, err := d.at("Matrix", port)
	if err != nil {
		return nil, err
	}
	return matrixAt[T](d, p, b, update)
}

// matrixAt is Matrix. writes is how the caller writes a new output.
func matrixAt[T matrix.Elem](d *Dispatch, p *Port, b *Block, writes access) (*matrix.Dense[T], error) {
	if err := has[T](b.t, "Matrix"); err != nil {
		return nil, err
	}
	if p.kind != outputPort || p.inPlacePort != nil {
		writes = p.access()
	}
	if _, err := d.buffer("Matrix", b, writes); err != nil {
		return nil, err
	}
	return matrixOf[T](b.s, d.worker+1, b.rows)
}

// access returns what bodies want with a port's block.
func (p *Port) access() access {
	if p.writable() {
		return update
	}
	return read
}

// buffer makes a block's memory on the task's device ready.
func (d *Dispatch) buffer(op string, b *Block, a access) (*buffer.Buffer, error) {
	if d.Device() == nil {
		return nil, fail(op, gpu.ErrUnsupported, "a task of the host has no device")
	}
	return b.s.buffer(d.ctx, d.worker+1, a)
}

// Buffer returns the memory of the block at a port on the task's device, for kernels of the body; see [Block.UpdateOn]. That of an
// output begins with the template's initial value.
func (d *Dispatch) Buffer(port string) (*buffer.Buffer, error) {
	const op = "Buffer"
	p, b, err := d.at(op, port)
	if err != nil {
		return nil, err
	}
	return d.buffer(op, b, p.access())
}

// View gives fn the bytes of the block at a port. It waits for a device that has them.
func (d *Dispatch) View(port string, fn func([]byte) error) error {
	_, b, err := d.at("View", port)
	if err != nil {
		return err
	}
	return b.access(d.ctx, "View", read, fn)
}

// Update gives fn the bytes of an output's block to write.
func (d *Dispatch) Update(port string, fn func([]byte) error) error {
	_, b, err := d.output("Update", port)
	if err != nil {
		return err
	}
	return b.access(d.ctx, "Update", update, fn)
}

// words reads n words of a port's block.
func (d *Dispatch) words(p *Port, n int) ([]int, error) {
	out := make([]int, n)
	err := d.blocks[p.index].View(d.ctx, func(mem []byte) error {
		if len(mem) < 4*n {
			return fail(d.t.name, ErrTemplate, p.name, " has fewer words than ", itoa(n))
		}
		for i := range out {
			out[i] = int(int32(binary.LittleEndian.Uint32(mem[4*i:])))
		}
		return nil
	})
	return out, err
}

// word reads the first word of a port's block.
func (d *Dispatch) word(p *Port) (int, error) {
	n, err := d.words(p, 1)
	return n[0], err
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
	if d.signals == nil {
		d.signals = map[*Port]Signals{}
	}
	d.signals[p] = s
	return nil
}

// Resize gives an output's block, of a stream of records, another number of rows, before anything is written to it.
func (d *Dispatch) Resize(port string, rows int) error {
	const op = "Resize"
	p, b, err := d.output(op, port)
	if err != nil {
		return err
	}
	if !fits(p.tmpl.Planes, rows, p.tmpl.Pitch, p.tmpl.elem()) || !p.tmpl.Records || p.kind != outputPort || p.inPlacePort != nil {
		return fail(op, ErrTemplate, itoa(rows), " rows for ", port)
	}
	b.resize(rows)
	return nil
}
