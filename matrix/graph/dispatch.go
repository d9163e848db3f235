// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Dispatch is one run of a task, with a block at each of its ports. It is valid until the task's body returns.
type Dispatch struct {
	g          *Graph
	t          *Task
	worker     int             // device of the graph, beyond them the host, none if no device is left
	ctx        context.Context // of the run
	epoch      uint64          // of the graph, when the dispatch began
	generation uint32          // of the device, when the dispatch began
	inputs     []*Block        // by port: what came in, with a reference
	blocks     []*Block        // by port: what the body gets; with a reference what the dispatch has made
	written    []*storage      // of inputs that are written in place, as they were at their snapshot
	signals    map[*Port]Signals
	number     uint64 // of the first input
	iteration  int

	err     error
	passed  bool // err is an input's, which the task only passes on
	again   bool // to be run on another device
	parcels []parcel
	over    atomic.Bool
	next    *Dispatch // what its goroutine goes on with

	waited, begun, ended time.Duration
}

// none is the worker of a dispatch for which no device is left.
const none = -1

// where returns the number of the dispatch's device; the number after the last device's is the host's.
func (d *Dispatch) where() int {
	if d.Device() == nil {
		return len(d.g.devices)
	}
	return d.worker
}

// work executes a dispatch and then, one after the other, dispatches that become possible by its end. A new goroutine for each would have
// to grow its stack again.
func (d *Dispatch) work() {
	defer func() {
		if d != nil { // the task has ended the goroutine
			go d.next.work()
		}
	}()
	for d != nil {
		d.execute()
		d, d.next = d.next, nil
	}
}

// execute runs the task. A panic, or a call of runtime.Goexit, becomes the error of the dispatch.
func (d *Dispatch) execute() {
	defer d.finish()
	returned := false
	defer func() {
		if cause := fault.Panic(recover()); !returned {
			d.err = fail(d.t.name, ErrPanic, cmp.Or(cause, "the task ended its goroutine"))
		}
	}()
	d.begun = d.g.conf.clock()
	if d.err = d.prepare(); d.err == nil {
		d.err = d.run()
	}
	returned = true
}

// prepare makes the blocks that no channel brings.
func (d *Dispatch) prepare() (err error) {
	if d.worker == none {
		return fail(d.t.name, gpu.ErrDeviceLost, "no device is left that may run the task")
	}
	d.blocks = make([]*Block, len(d.inputs))
	for i, p := range d.t.ports {
		if !p.isInput() {
			continue
		}
		if d.inputs[i] == nil {
			d.inputs[i] = p.tmpl.block(p.tmpl.rows)
		}
		if err := d.inputs[i].err; err != nil {
			d.passed = true
			return err
		}
		d.blocks[i] = d.inputs[i]
	}
	for i, p := range d.t.ports {
		if p.kind != describedPort {
			continue
		}
		if d.blocks[i], err = FromSlice(p.tmpl, p.describe(d.blocks[p.ofPort.index])); err != nil {
			return err
		}
	}
	for _, p := range d.t.outs {
		if d.blocks[p.index], err = d.output(p); err != nil {
			return err
		}
	}
	return nil
}

// output finds or makes an output's block.
func (d *Dispatch) output(p *Port) (*Block, error) {
	if p.inPlacePort != nil {
		return d.reuse(p.inPlacePort.index)
	}
	rows := p.tmpl.rows
	for _, q := range d.t.ports {
		if q.Sizes != p.name {
			continue
		}
		n, err := d.word(q)
		if err != nil {
			return nil, err
		}
		if rows, err = p.tmpl.rowsOf(d.t.name, n); err != nil {
			return nil, err
		}
	}
	return p.tmpl.block(rows), nil
}

// reuse makes an input's block the output's, or a clone of it if there are other references to the block.
func (d *Dispatch) reuse(in int) (b *Block, err error) {
	if b = d.inputs[in]; b.shared() {
		b, err = b.clone(d.ctx)
	} else {
		b.s.snapshot()
		d.written = append(d.written, b.s)
	}
	if err == nil {
		d.blocks[in] = b
	}
	return b, err
}

// made reports whether the dispatch has made the block at a port, and not got it from an input.
func (d *Dispatch) made(p *Port) bool {
	return d.blocks != nil && !p.isInput() && (p.inPlacePort == nil || d.blocks[p.index] != d.inputs[p.inPlacePort.index])
}

// run calls the body, as often as the task's iterator says.
func (d *Dispatch) run() error {
	first, bound, step := 0, 1, 1
	for _, p := range d.t.ports {
		if !p.Iterates {
			continue
		}
		n, err := d.words(p)
		if err != nil {
			return err
		}
		if bound = n[0]; len(n) == 3 {
			first, bound, step = n[0], n[1], n[2]
		}
	}
	if step <= 0 {
		return fail(d.t.name, gpu.ErrInvalid, "a step of ", itoa(step))
	}
	for d.iteration = first; d.iteration < bound; d.iteration += step {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		if err := d.t.body.run(d); err != nil && d.t.body.check != nil { // the error of a function of the program's stays what it is
			return &gpu.OpError{Op: "graph: " + d.t.name, Err: err}
		} else if err != nil {
			return err
		}
	}
	if dev := d.Device(); dev != nil && d.g.conf.Sync {
		return dev.Sync(d.ctx)
	}
	return nil
}

// finish sends the outputs. It ends even if functions of the program that it calls fail.
func (d *Dispatch) finish() {
	defer d.settle()
	d.ended = d.g.conf.clock()
	if d.again = d.err != nil && d.retry(); d.again {
		return
	}
	outs := d.t.outs
	signals, open := make([]Signals, 0, 8), make([]bool, 0, 8)
	for _, p := range outs {
		signals = append(signals, d.outSignals(p))
		open = append(open, d.err == nil && d.gateOpen(p))
	}
	for i, p := range outs {
		var b *Block
		switch {
		case d.err != nil:
			b = p.tmpl.failedBlock(d.err, signals[i])
		case !open[i]:
			continue
		default:
			b = d.blocks[p.index]
			b.signals.Store(uint32(signals[i]))
			if !d.made(p) {
				d.inputs[p.inPlacePort.index] = nil
			}
			d.blocks[p.index] = nil
		}
		d.parcels = p.send(d.ctx, b, d.parcels)
	}
}

// outSignals returns the signals of an output's block: those of the inputs, unless the body set others.
func (d *Dispatch) outSignals(p *Port) (s Signals) {
	if s, ok := d.signals[p]; ok {
		return s
	}
	for _, q := range p.signalPorts {
		s |= d.inputs[q.index].Signals()
	}
	return s &^ (Failed | DevNull)
}

// gateOpen reports whether an output's block may leave.
func (d *Dispatch) gateOpen(p *Port) bool {
	if p.gatePort == nil {
		return true
	}
	set := d.outSignals(p.gatePort)&EOF != 0
	if !set {
		n, err := d.word(p.gatePort)
		if err != nil {
			d.err = err
			return false
		}
		set = n != 0
	}
	return set == (p.OpenedBy != "")
}

// retry reports whether the dispatch failed because its device is lost, and can run again on another one. It restores the inputs for that.
func (d *Dispatch) retry() bool {
	if d.Device() == nil || !d.g.lostSince(d.worker, d.generation) || d.ctx.Err() != nil {
		return false
	}
	for _, s := range d.written {
		s.restore()
	}
	return !slices.ContainsFunc(d.inputs, func(b *Block) bool { return b != nil && b.s != nil && b.s.current() == 0 })
}

// settle ends a dispatch: it delivers the outputs and releases the inputs.
func (d *Dispatch) settle() {
	g, t := d.g, d.t
	g.lock()
	defer g.unlock()
	d.over.Store(true)
	g.inflight--
	t.running = false
	if d.worker != none {
		g.run.free |= 1 << d.worker
	}
	if g.run.ended && g.inflight == 0 {
		g.run.cancel()
	}
	d.record()
	for i, p := range t.ports {
		if d.made(p) {
			g.drop(d.blocks[i])
		}
	}
	current := d.epoch == g.epoch
	if d.again && current {
		t.held = d.inputs
	} else {
		for _, b := range d.inputs {
			g.drop(b)
		}
	}
	for _, p := range d.parcels {
		if current {
			p.deliver()
		} else {
			g.drop(p.b)
		}
	}
	d.inputs, d.blocks, d.parcels, d.signals = nil, nil, nil, nil
	if !current {
		g.dropKernels(t)
	}
	g.update(t)
	g.schedule(d)
	g.quiet.broadcast()
}
