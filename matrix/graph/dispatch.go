// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// Dispatch is one run of a task, with a block at each of its ports. It is the task's until its body returns.
type Dispatch struct {
	g          *Graph
	t          *Task
	worker     int             // device of the graph, beyond them the host, none if no device is left
	ctx        context.Context // of the run
	epoch      uint64          // of the graph, when the dispatch began
	generation uint32          // of the device, when the dispatch began
	blocks     []*Block        // by port
	originals  []*Block        // by port: what a clone that is written in place was made of
	moved      []bool          // by port: the block of an input has become an output's
	snapshots  []snapshot      // of blocks that are written in place
	signals    map[*Port]Signals
	uid        uint64 // of the first input
	iteration  int

	err     error
	own     bool // err is the task's, not an input's
	again   bool // to be run on another device
	parcels []parcel
	over    atomic.Bool

	timing
}

// timing is when a dispatch did what, and how long its task had waited.
type timing struct{ waited, begun, prepared, ended time.Duration }

// none is the worker of a dispatch that no device is left for.
const none = -1

// execute runs the task. Whatever happens to the goroutine, the dispatch ends in order.
func (d *Dispatch) execute() {
	defer d.finish()
	d.begun = d.g.conf.clock()
	d.prepared = d.begun
	d.protect(d.prepare)
	if d.err == nil {
		d.own = true
		d.prepared = d.g.conf.clock()
		d.protect(d.run)
	}
}

// protect calls a function that may call the program's. A panic is an error, as is the end of the goroutine.
func (d *Dispatch) protect(f func() error) {
	returned := false
	defer func() {
		switch r := recover(); {
		case r != nil:
			d.own, d.err = true, fail(d.t.name, ErrPanic, panicText(r))
		case !returned:
			d.own, d.err = true, fail(d.t.name, ErrPanic, "the task ended its goroutine")
		}
	}()
	d.err = f()
	returned = true
}

// panicText describes what recover returned.
func panicText(cause any) (text string) {
	defer func() {
		if recover() != nil { // from a method of cause
			text = "panic"
		}
	}()
	switch v := cause.(type) {
	case error:
		return v.Error()
	case interface{ String() string }:
		return v.String()
	case string:
		return v
	}
	return "panic"
}

// prepare makes the blocks that no channel brings.
func (d *Dispatch) prepare() error {
	if d.worker == none {
		d.own = true
		return fail(d.t.name, gpu.ErrDeviceLost, "no device is left that may run the task")
	}
	for i, p := range d.t.ports {
		if p.kind != inputPort {
			continue
		}
		if d.blocks[i] == nil {
			d.blocks[i] = p.tmpl.block(p.tmpl.rows)
		}
		if err := d.blocks[i].err; err != nil {
			return err
		}
	}
	d.own = true
	for i, p := range d.t.ports {
		if p.kind != describedPort || d.blocks[i] != nil {
			continue
		}
		b, err := FromSlice(p.tmpl, p.describe(d.blocks[p.ofPort.index]))
		if err != nil {
			return err
		}
		d.blocks[i] = b
	}
	for i, p := range d.t.ports {
		if p.kind == outputPort && d.blocks[i] == nil {
			if err := d.makeOutput(i, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeOutput finds or makes an output's block.
func (d *Dispatch) makeOutput(i int, p *Port) error {
	if p.inPlacePort != nil {
		return d.reuseInput(i, p.inPlacePort.index)
	}
	rows := p.tmpl.rows
	for _, q := range d.t.ports {
		if q.Sizes != p.name {
			continue
		}
		n, err := d.word(q)
		if err != nil {
			return err
		}
		if rows, err = p.tmpl.rowsOf(n); err != nil {
			return err
		}
	}
	if !fits(p.tmpl.sizeOf(1), rows) {
		return fail(d.t.name, ErrTemplate, itoa(rows), " rows for ", p.name)
	}
	d.blocks[i] = p.tmpl.block(rows)
	return nil
}

// reuseInput makes an input's block an output's, or a clone of the block if somebody else has it, too.
func (d *Dispatch) reuseInput(out, in int) error {
	if d.moved == nil {
		d.moved, d.originals = make([]bool, len(d.blocks)), make([]*Block, len(d.blocks))
	}
	b := d.blocks[in]
	if b.shared() {
		c, err := b.clone()
		if err != nil {
			return err
		}
		d.originals[in], d.blocks[in] = b, c
	} else {
		d.snapshots = append(d.snapshots, b.s.snapshot())
	}
	d.blocks[out], d.moved[in] = d.blocks[in], true
	return nil
}

// run calls the body, as often as the task's iterator says.
func (d *Dispatch) run() error {
	first, bound, step := 0, 1, 1
	for _, p := range d.t.ports {
		if !p.Iterates {
			continue
		}
		general := d.blocks[p.index].Size() >= 12
		n, err := d.words(p, map[bool]int{false: 1, true: 3}[general])
		if err != nil {
			return err
		}
		if bound = n[0]; general {
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
		if err := d.t.body.run(d); err != nil {
			return err
		}
	}
	if dev := d.Device(); dev != nil && d.g.conf.sync {
		return dev.Sync(d.ctx)
	}
	return nil
}

// finish sends the outputs. Functions of the program that are called here cannot keep it from ending.
func (d *Dispatch) finish() {
	defer d.settle()
	d.ended = d.g.conf.clock()
	if d.err != nil && d.retry() {
		d.again = true
		return
	}
	var open []*Port
	signals := make([]Signals, len(d.blocks))
	for i, p := range d.t.ports {
		if p.kind == outputPort {
			signals[i] = d.outSignals(p)
			if d.err == nil && d.gateOpen(p) {
				open = append(open, p)
			}
		}
	}
	if d.err != nil {
		for i, p := range d.t.ports {
			if p.kind == outputPort {
				d.send(p, p.tmpl.failedBlock(d.err, signals[i]))
			}
		}
		return
	}
	for _, p := range open {
		b := d.blocks[p.index]
		b.signals.Store(uint32(signals[p.index]))
		d.blocks[p.index] = nil
		if p.inPlacePort != nil {
			d.blocks[p.inPlacePort.index] = nil
		}
		d.send(p, b)
	}
}

// send hands a block to the channels of an output, with the caller's reference.
func (d *Dispatch) send(p *Port, b *Block) {
	list := p.out.admit(b)
	if !p.out.share(b, list) {
		b.Release()
	}
	d.parcels = append(d.parcels, list...)
}

// outSignals returns the signals of an output's block: those of the inputs, unless the body set others.
func (d *Dispatch) outSignals(p *Port) Signals {
	if s, ok := d.signals[p]; ok {
		return s
	}
	var s Signals
	for _, q := range p.fromPorts {
		s |= d.blocks[q.index].Signals()
	}
	return s &^ (Failed | DevNull)
}

// gateOpen reports whether an output's block may leave.
func (d *Dispatch) gateOpen(p *Port) bool {
	c := p.gatePort
	if c == nil {
		return true
	}
	set := d.outSignals(c).Has(EOF)
	if !set {
		n, err := d.word(c)
		if err != nil {
			d.err = err
			return false
		}
		set = n != 0
	}
	return set == (p.OpenedBy != "")
}

// retry reports whether the dispatch failed because its device is lost, and another one could still run it. Inputs are then
// what they were.
func (d *Dispatch) retry() bool {
	if d.Device() == nil || !d.g.lostSince(d.worker, d.generation) || d.g.tornDownSince(d.epoch) {
		return false
	}
	ok := true
	for _, m := range d.snapshots {
		ok = m.restore() && ok
	}
	for i, b := range d.originals {
		if b != nil {
			d.blocks[i].Release()
			d.blocks[i] = b
		}
	}
	for i, p := range d.t.ports {
		switch b := d.blocks[i]; {
		case p.kind == outputPort:
			if p.inPlacePort == nil {
				b.Release()
			}
			d.blocks[i] = nil
		case b != nil && b.s != nil && b.s.isLost():
			ok = false
		}
	}
	d.snapshots, d.originals, d.moved, d.signals = nil, nil, nil, nil
	return ok
}

func (g *Graph) tornDownSince(epoch uint64) bool {
	g.lock()
	defer g.unlock()
	return g.epoch != epoch
}

// settle ends a dispatch: what it made goes where it belongs, and what it used is released.
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
	switch {
	case d.epoch != g.epoch:
		for _, p := range d.parcels {
			g.drop(p.b)
		}
		d.release()
		g.dropKernels(t)
	case d.again:
		d.again = false
		d.over.Store(false)
		t.held = d
	default:
		deliver(d.parcels)
		d.release()
	}
	g.update(t)
	g.schedule()
	g.quiet.broadcast()
}

// release drops all that the dispatch has.
func (d *Dispatch) release() {
	for i, b := range d.blocks {
		if d.moved == nil || !d.moved[i] {
			d.g.drop(b)
		}
	}
	for _, b := range d.originals {
		d.g.drop(b)
	}
	d.blocks, d.originals, d.parcels = nil, nil, nil
}
