// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// Dispatch is one run of a task, with a block at each of its ports. It is the task's until its body returns.
type Dispatch struct {
	g       *Graph
	t       *Task
	w       *worker
	run     *run
	ctx     context.Context // of the run
	epoch   uint64
	life    uint32   // of the device, when the dispatch began
	blocks  []*Block // by port
	origins []*Block // by port: what a clone that is written in place was made of
	moved   []bool   // by port: the block of an input has become an output's
	marks   []mark
	signals []signalChange
	uid     uint64 // of the first input
	iter    int
	first   int
	bound   int
	stride  int

	err     error
	own     bool // err is the task's, not an input's
	again   bool // to be run on another device
	parcels []parcel
	over    atomic.Bool

	waited                 time.Duration
	begun, prepared, ended time.Duration
}

// signalChange is what the body did to an output's signals.
type signalChange struct {
	port int
	to   Signals
}

// execute runs the task. Whatever happens to the goroutine, the dispatch ends in order.
func (d *Dispatch) execute() {
	defer d.finish()
	d.begun = d.g.conf.clock()
	d.prepared = d.begun
	if d.err = d.prepare(); d.err == nil {
		d.prepared = d.g.conf.clock()
		d.attempt()
	}
}

// prepare makes the blocks that no channel brings, and reads those that the graph itself is told something by.
func (d *Dispatch) prepare() error {
	if d.w == nil {
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
	d.first, d.bound, d.stride = 0, 1, 1
	for i, p := range d.t.ports {
		var err error
		switch {
		case p.kind == describedPort && d.blocks[i] == nil:
			d.blocks[i], err = p.describe(d.blocks[p.ofPort.index])
		case p.effect == repeats || p.effect == counts:
			err = d.iterate(p)
		}
		if err != nil {
			return err
		}
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

func (d *Dispatch) iterate(p *Port) error {
	if p.effect == repeats {
		n, err := d.words(p, 1)
		d.bound = n[0]
		return err
	}
	n, err := d.words(p, 3)
	d.first, d.bound, d.stride = n[0], n[1], n[2]
	if err == nil && d.stride <= 0 {
		return fail(d.t.name, gpu.ErrInvalid, p.name, ": a step of ", itoa(d.stride))
	}
	return err
}

// makeOutput finds or makes an output's block.
func (d *Dispatch) makeOutput(i int, p *Port) error {
	if p.inPlacePort != nil {
		return d.takeInput(i, p.inPlacePort.index)
	}
	rows := p.tmpl.rows
	for _, q := range d.t.ports {
		if q.effect != sizes || q.effectOf != p.name {
			continue
		}
		n, err := d.words(q, 1)
		if err != nil {
			return err
		}
		if rows, err = p.tmpl.rowsOf(n[0]); err != nil {
			return err
		}
	}
	if !fits(p.tmpl.sizeOf(1), rows) {
		return fail(d.t.name, ErrTemplate, itoa(rows), " rows for ", p.name)
	}
	d.blocks[i] = p.tmpl.block(rows)
	return nil
}

// takeInput makes an input's block an output's, or a clone of it if others have it, too.
func (d *Dispatch) takeInput(out, in int) error {
	if d.moved == nil {
		d.moved, d.origins = make([]bool, len(d.blocks)), make([]*Block, len(d.blocks))
	}
	b := d.blocks[in]
	if b.refs.Load() > 1 && !b.open.Load() {
		c, err := b.clone()
		if err != nil {
			return err
		}
		d.origins[in], d.blocks[in] = b, c
	} else {
		d.marks = append(d.marks, b.s.mark())
	}
	d.blocks[out], d.moved[in] = d.blocks[in], true
	return nil
}

// attempt calls the body. A panic is an error, as is the end of the goroutine.
func (d *Dispatch) attempt() {
	returned := false
	defer func() {
		switch r := recover(); {
		case r != nil:
			d.err = fail(d.t.name, ErrPanic, describe(r))
		case !returned:
			d.err = fail(d.t.name, ErrPanic, "the task ended its goroutine")
		}
	}()
	for d.iter = d.first; d.iter < d.bound && d.err == nil; d.iter += d.stride {
		if d.err = d.ctx.Err(); d.err == nil {
			d.err = d.t.body.run(d)
		}
	}
	if d.err == nil && d.g.conf.sync && d.w.dev != nil {
		d.err = d.w.dev.Sync(d.ctx)
	}
	returned = true
}

// describe puts what recover returned into words.
func describe(cause any) (text string) {
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

// finish sees to the outputs. Functions of the program's that are called here cannot keep it from ending.
func (d *Dispatch) finish() {
	defer d.settle()
	d.ended = d.g.conf.clock()
	if d.err != nil && d.retry() {
		d.again = true
		return
	}
	gates, signals := make([]bool, len(d.blocks)), make([]Signals, len(d.blocks))
	for i, p := range d.t.ports {
		if p.kind == outputPort {
			signals[i] = d.outSignals(i, p)
			gates[i] = d.err == nil && d.gate(p)
		}
	}
	for i, p := range d.t.ports {
		if p.kind == outputPort && (d.err != nil || gates[i]) {
			d.send(i, p, signals[i])
		}
	}
}

// send hands an output's block on, or one that says why there is none.
func (d *Dispatch) send(i int, p *Port, s Signals) {
	var b *Block
	if d.err != nil {
		b = p.tmpl.failedBlock(d.err)
		s |= Failed
	} else {
		b = d.blocks[i]
	}
	b.signals.Store(uint32(s))
	list := p.out.admit(b)
	if d.err == nil {
		d.blocks[i] = nil // goes on
		if p.inPlacePort != nil {
			d.blocks[p.inPlacePort.index] = nil
		}
	}
	if !p.out.share(b, list) {
		b.Release()
	}
	d.parcels = append(d.parcels, list...)
}

// outSignals are those of the inputs, unless the body said otherwise.
func (d *Dispatch) outSignals(i int, p *Port) Signals {
	for _, c := range d.signals {
		if c.port == i {
			return c.to
		}
	}
	var s Signals
	for _, q := range p.fromPorts {
		s |= d.blocks[q.index].Signals()
	}
	return s &^ (Failed | DevNull)
}

// gate reports whether an output's block may leave.
func (d *Dispatch) gate(p *Port) bool {
	c := p.gatePort
	if c == nil {
		return true
	}
	open := p.gateOpen
	if d.outSignals(c.index, c).Has(EOF) {
		return !open
	}
	n, err := d.words(c, 1)
	if err != nil {
		d.err = err
		return false
	}
	if n[0] != 0 {
		return !open
	}
	return open
}

// retry reports whether the dispatch failed because its device is lost, and another could still run it. Inputs are then
// what they were.
func (d *Dispatch) retry() bool {
	if d.w == nil || d.w.dev == nil || !d.g.ended(d.w.index, d.life) || d.epoch != d.g.epochNow() {
		return false
	}
	ok := true
	for _, m := range d.marks {
		ok = m.restore() && ok
	}
	d.marks = nil
	for i, b := range d.origins {
		if b != nil {
			d.blocks[i].Release()
			d.blocks[i], d.origins[i] = b, nil
		}
	}
	for i, p := range d.t.ports {
		switch {
		case p.kind == outputPort:
			if p.inPlacePort == nil {
				d.blocks[i].Release()
			}
			d.blocks[i] = nil
		case d.blocks[i] != nil && d.blocks[i].s != nil && d.blocks[i].s.lost():
			ok = false
		}
	}
	d.moved, d.signals = nil, nil
	return ok
}

func (g *Graph) epochNow() uint64 {
	g.lock()
	defer g.unlock()
	return g.epoch
}

// release drops all that the dispatch holds, at the next unlock.
func (d *Dispatch) release() {
	for i, b := range d.blocks {
		if d.moved != nil && d.moved[i] {
			continue
		}
		d.g.drop(b)
	}
	for _, b := range d.origins {
		d.g.drop(b)
	}
	d.blocks, d.origins, d.parcels = nil, nil, nil
}
