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

// Context returns a context that ends when the graph is torn down. A task that calls Push or Pull should pass it, so that the graph
// recognises the caller.
func (d *Dispatch) Context() context.Context {
	if d == nil || d.ctx == nil {
		return context.Background()
	}
	return d.ctx
}

// Iteration returns the number of this call of the body, from 0 on; see [PortConfig.Iterates]. It is 0 in other tasks.
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

// Block returns the block at a port. The graph owns it: call [Block.Retain] to keep it. Bodies write the blocks of outputs only,
func (d *Dispatch) Block(port string) (*Block, error) {
	_, b, err := d.at("Block", port)
	return b, err
}

// View gives fn the bytes of the block at a port. It waits for a device that has them.
func (d *Dispatch) View(port string, fn func([]byte) error) error {
	_, b, err := d.at("View", port)
	if err != nil {
		return err
	}
	return b.View(d.ctx, fn)
}

// Update gives fn the bytes of an output's block to write.
func (d *Dispatch) Update(port string, fn func([]byte) error) error {
	const op = "Update"
	p, b, err := d.at(op, port)
	if err != nil {
		return err
	}
	if !p.writable() {
		return fail(op, gpu.ErrReadOnly, port, " is an input")
	}
	return b.Update(d.ctx, fn)
}

// SetSignals sets the signals of an output's block, instead of those of the inputs. With [DevNull] the block is dropped.
func (d *Dispatch) SetSignals(port string, s Signals) error {
	const op = "SetSignals"
	p, _, err := d.at(op, port)
	if err != nil {
		return err
	}
	if p.kind != outputPort || !s.settable() {
		return fail(op, gpu.ErrInvalid, s.name(), " for ", port)
	}
	if d.signals == nil {
		d.signals = map[*Port]Signals{}
	}
	d.signals[p] = s
	return nil
}

// Matrix returns the block at a port of a dispatch as a matrix in the block's memory on the task's device. An output, or an input with an
// output in its place, may be written. There is one matrix for each block and device, which each dispatch sets to the block's memory, rows
// and columns. It is valid while the body runs.
func Matrix[T matrix.Elem](d *Dispatch, port string) (*matrix.Dense[T], error) {
	p, b, err := d.at("Matrix", port)
	if err != nil {
		return nil, err
	}
	return matrixAt[T](d, b, p.intent())
}

func matrixAt[T matrix.Elem](d *Dispatch, b *Block, in buffer.Intent) (*matrix.Dense[T], error) {
	const op = "Matrix"
	if err := has[T](b.t, op); err != nil {
		return nil, err
	}
	if d.Device() == nil {
		return nil, fail(op, gpu.ErrUnsupported, "a task of the host has no device")
	}
	buf, err := b.s.acquire(d.ctx, d.worker, in)
	if err != nil {
		return nil, err
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	t, r := b.t, &b.s.replicas[d.worker]
	m, ok := r.matrix.(*matrix.Dense[T])
	if !ok {
		if m, err = matrix.New[T](d.Device(), 0, 0); err != nil {
			return nil, err
		}
		r.matrix = m
	}
	return m, m.SetValueFrom(t.Planes*b.rows, t.cols, buf, buffer.DontOwnBuffer, matrix.Options{Stride: t.Pitch})
}

// intent returns whether bodies read, change or replace a port's block.
func (p *Port) intent() buffer.Intent {
	if p.writable() {
		return buffer.Writes
	}
	return buffer.Reads
}

// words reads the first words of a port's block: one at least, three at most.
func (d *Dispatch) words(p *Port) (out []int, err error) {
	err = d.blocks[p.index].View(d.ctx, func(mem []byte) error {
		for ; len(mem) >= 4 && len(out) < 3; mem = mem[4:] {
			out = append(out, int(int32(binary.LittleEndian.Uint32(mem))))
		}
		if len(out) == 0 {
			return fail(d.t.name, ErrTemplate, p.name, " has no word")
		}
		return nil
	})
	return out, err
}

// word reads the first word of a port's block.
func (d *Dispatch) word(p *Port) (int, error) {
	n, err := d.words(p)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}
