// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/turn"
)

// DevicePipeline is a chain of stages on one device. Each [DevicePipeline.Feed] brings the stages' inputs up, runs all stages
// and brings outputs back. An output of a stage that is an input of the next one is a transition: it stays on the device.
//
// In parallel mode, the one at first, no stage waits for another: each computes what the one before it computed at the feed before,
// and outputs come back one feed after they were computed, while kernels run. With S stages the results of a feed come S feeds
// later. In serial mode the stages run one after the other and results come with the same feed.
//
// It is DevicePipeline of Cekirdekler's namespace SingleGPUPipeline, file ClPipeline.cs. There inputs have double buffers of their
// own, and results come later still; a queue of WebGPU keeps the data of an upload itself.
type DevicePipeline struct {
	dev    *gpu.Device
	cr     *Cruncher
	batch  *Batch // which does not end
	life   lifetime
	stages []*stage

	mu     turn.Lock
	serial bool
	count  int // of feeds, since the last change
	queued int // stages of this feed that have been
	step   int // and steps of the next one
	feed   *feeding
}

// feeding is a feed that has begun.
type feeding struct {
	stop    context.CancelFunc
	arrays  []*Any // that results come back to
	results []result
	back    chan error // gets the error of their coming
}

// NewDevicePipeline makes a pipeline of stages on a device, which stays the caller's, for kernels of the source. Stages name no devices
// of their own and have no initializers; Blobs of their ranges have no effect. An array is hidden in one stage, or an output of
// one; a transition belongs to two. An output that has no element for each item is [ErrLength], unless its flag WriteAll is set. The
// context is as for [New].
func NewDevicePipeline(ctx context.Context, dev *gpu.Device, wgsl string, stages ...Stage) (*DevicePipeline, error) {
	cr, err := New(ctx, []*gpu.Device{dev}, wgsl)
	if err != nil {
		return nil, err
	}
	p := &DevicePipeline{dev: dev, cr: cr, life: newLifetime(), mu: turn.New()}
	if err := p.build(stages); err != nil {
		_ = p.Close() // the first error says more
		return nil, err
	}
	return p, nil
}

func (p *DevicePipeline) build(stages []Stage) (err error) {
	const op = "NewDevicePipeline"
	if len(stages) == 0 {
		return fail(op, kernel.ErrKernel, "no stage")
	}
	for i := range stages {
		s := &stages[i]
		if len(s.Devices)+len(s.Options)+len(s.Initializers) > 0 || s.WGSL != "" {
			return fail(op, gpu.ErrInvalid, "a stage with devices, a source, options or initializers of its own")
		}
		l := &stage{cr: p.cr}
		if err := l.fill(op, s); err != nil {
			return err
		}
		for k := range l.runs {
			r := &l.runs[k].Range
			r.Blobs = 1 // what is resident or whole does not move by pieces
			for _, q := range slices.Concat(l.inputs, l.outputs) {
				if err := q.checkLength(r); err != nil { // before connect sets the flags with which they move
					return err
				}
			}
		}
		p.stages = append(p.stages, l)
	}
	p.connect()
	if err := p.checkOwners(op); err != nil {
		return err
	}
	p.batch = p.cr.open()
	return nil
}

// connect makes two arrays of each output over its memory, so that one comes back whole while kernels write the other. A transition
// does not come back: the stage that reads it has the same two. Other inputs are the caller's arrays and go up whole.
func (p *DevicePipeline) connect() {
	before := new(stage)
	for _, l := range p.stages {
		for k := range l.in {
			l.in[k], l.out[k] = new(bank), newBank(l.outputs, false)
		}
		for i := range l.outputs {
			f := &l.outputs[i].flags
			f.WriteAll, f.WriteOnly = true, true
		}
		for i := range l.inputs {
			in := &l.inputs[i]
			at := slices.IndexFunc(before.outputs, func(out param) bool { return out.array.body == in.array.body })
			in.flags.Read, in.flags.PartialRead = at < 0, false
			for k, b := range l.in {
				a := in.array
				if at >= 0 {
					a = before.out[k].arrays[at]
				}
				b.arrays = append(b.arrays, a)
			}
			if at >= 0 {
				f := &before.outputs[at].flags
				f.Write, f.WriteAll, f.WriteOnly = false, false, false
			}
		}
		before = l
	}
}

// checkOwners refuses arrays that several stages have, but for inputs and transitions.
func (p *DevicePipeline) checkOwners(op string) error {
	owned := map[*body]bool{} // and whether it comes back
	for _, l := range p.stages {
		for _, q := range slices.Concat(l.hidden, l.outputs) {
			if q.array == nil {
				continue
			}
			if _, twice := owned[q.array.body]; twice {
				return fail(op, gpu.ErrInvalid, q.name, " belongs to other stages")
			}
			owned[q.array.body] = q.flags.Write
		}
	}
	for _, l := range p.stages {
		for _, q := range l.inputs {
			if back, any := owned[q.array.body]; any && !back && q.flags.Read {
				return fail(op, gpu.ErrInvalid, q.name, " belongs to other stages")
			}
		}
	}
	return nil
}

// enter runs a method, which needs a feed that has begun, or none.
func (p *DevicePipeline) enter(ctx context.Context, op string, begun bool, run func(ctx context.Context) error) error {
	if p == nil {
		return fail(op, gpu.ErrInvalid, "nil pipeline")
	}
	return p.life.during(ctx, p.mu, op, func(ctx context.Context) error {
		if begun != (p.feed != nil) {
			return fail(op, gpu.ErrInvalid, "FeedBegin or FeedEnd is missing")
		}
		return run(ctx)
	})
}

// Serial chooses serial mode. Data on their way are lost, whatever the mode was, and with a device that was lost and came back, see
// [gpu.Device.Reopen], what it had of arrays that stay there, which begin as zeros: without that, feeds that need it are [ErrStale].
func (p *DevicePipeline) Serial() error { return p.restart("Serial", true) }

// Parallel chooses parallel mode, with the consequences of [DevicePipeline.Serial].
func (p *DevicePipeline) Parallel() error { return p.restart("Parallel", false) }

func (p *DevicePipeline) restart(op string, serial bool) error {
	return p.enter(context.Background(), op, false, func(context.Context) error {
		p.serial = serial
		p.count, p.queued, p.step = 0, 0, 0
		p.cr.mu.lock()
		defer p.cr.mu.unlock()
		p.cr.noteLost()
		_ = p.cr.evictIf((*residency).stale)
		return nil
	})
}

// StopTransmission makes the inputs of stages, counted from 0, stay what they are on the device and their outputs stay there, from
// the next feed on. The data of all other stages are moved again: of all of them where none is named.
func (p *DevicePipeline) StopTransmission(stages ...int) error {
	const op = "StopTransmission"
	return p.enter(context.Background(), op, false, func(context.Context) error {
		for _, s := range stages {
			if s < 0 || s >= len(p.stages) {
				return fail(op, gpu.ErrInvalid, "no such stage")
			}
		}
		for i, l := range p.stages {
			l.stopped = slices.Contains(stages, i)
		}
		return nil
	})
}

// Feed does everything for the data that the input arrays hold now, and reports whether the outputs of the last stage hold
// results. A feed that fails has written no output; the next one goes on where it stopped.
func (p *DevicePipeline) Feed(ctx context.Context) (bool, error) {
	if err := p.FeedBegin(ctx); err != nil {
		return false, err
	}
	return p.FeedEnd(ctx)
}

// FeedBegin begins a feed and returns while the device is at work. The inputs have been copied. [DevicePipeline.FeedEnd] ends it.
func (p *DevicePipeline) FeedBegin(ctx context.Context) error {
	const op = "FeedBegin"
	return p.enter(ctx, op, false, func(ctx context.Context) error {
		for _, l := range p.stages {
			all := &group{list: slices.Concat(l.inputs, l.hidden, l.outputs)}
			if _, err := gather([]Param{all}); err != nil { // one is closed
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var f *feeding
		if !p.serial { // ahead of the kernels, so that they need not be waited for
			f = p.read()
		}
		err := p.enqueue(ctx)
		switch {
		case err == nil && f == nil:
			f = p.read()
		case err != nil && f != nil:
			_ = f.end() // the first error says more
			f = nil
		}
		p.feed = f
		return err
	})
}

// end stops what comes back and waits for it.
func (f *feeding) end() error {
	f.stop()
	return <-f.back
}

// enqueue queues the stages that have data.
func (p *DevicePipeline) enqueue(ctx context.Context) error {
	now, before := p.turns()
	for _, l := range p.stages {
		for _, in := range l.inputs {
			if in.flags.Read && p.queued == 0 {
				in.array.MarkDirty()
			}
		}
	}
	for ; p.queued < len(p.stages); p.queued++ {
		if !p.serial && p.queued > p.count {
			continue
		}
		for l := p.stages[p.queued]; p.step < len(l.runs); p.step++ {
			s := &l.runs[p.step]
			if err := p.batch.Compute(ctx, p.queued, s.Kernels, s.Range, l.group(l.in[before], l.out[now])); err != nil {
				return err
			}
		}
		p.step = 0
	}
	return p.dev.FlushContext(ctx)
}

// turns tells which of two arrays the kernels of this feed write, and which they wrote at the feed before: in serial mode only one is
// used.
func (p *DevicePipeline) turns() (now, before int) {
	if p.serial {
		return 0, 0
	}
	return p.count % 2, (p.count + 1) % 2
}

// read brings outputs back on a goroutine: what was computed at the feed before, in serial mode at this one.
func (p *DevicePipeline) read() *feeding {
	f := &feeding{back: make(chan error, 1)}
	ctx, stop := context.WithCancel(p.life.ctx)
	f.stop = stop
	_, before := p.turns()
	var list []*residency
	p.cr.mu.lock()
	for i, l := range p.stages {
		if l.stopped || !p.serial && i >= p.count {
			continue
		}
		for k, q := range l.outputs {
			if r := p.cr.arrays[l.out[before].arrays[k].body]; r != nil && q.flags.Write {
				list, f.arrays = append(list, r), append(f.arrays, q.array)
			}
		}
	}
	var err error
	f.results, err = newest("Feed", list, memory.Pending)
	var reads []func() error // of what is there now: calls that are queued meanwhile may give it up
	for i := range f.results {
		r := &f.results[i]
		r.mem = make([]byte, r.Width)
		from, what := r.Replica.Mem, r.Replica.Transfer(r.Region, gpu.HostBytes(r.mem), 0)
		reads = append(reads, func() error { return from.Read(ctx, what) })
	}
	p.cr.mu.unlock()
	go func() {
		for _, read := range reads {
			if err == nil {
				err = read()
			}
		}
		f.back <- err
	}()
	return f
}

// FeedEnd ends a feed: it returns when the device has done everything. It reports whether the outputs of the last stage hold
// results. If it fails no output was written, and the next feed goes on where this one stopped.
func (p *DevicePipeline) FeedEnd(ctx context.Context) (came bool, err error) {
	err = p.enter(ctx, "FeedEnd", true, func(ctx context.Context) error {
		f := p.feed
		p.feed = nil
		defer f.stop()
		defer context.AfterFunc(ctx, f.stop)()
		err := <-f.back
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = p.dev.Sync(ctx)
		}
		if err == nil {
			err = p.cr.land(ctx, f.results)
		}
		if err != nil {
			return err
		}
		for _, a := range f.arrays {
			a.MarkDirty() // for other crunchers
		}
		came = !p.stages[len(p.stages)-1].stopped && (p.serial || p.count >= len(p.stages))
		p.count++
		p.queued = 0
		return nil
	})
	return came, err
}

// Close stops what is under way and gives the device memory of the arrays back. The arrays and the device stay. Later calls do
// nothing.
func (p *DevicePipeline) Close() error {
	if p == nil || p.cr == nil {
		return nil
	}
	p.life.end()
	_ = p.mu.Take(context.Background()) // what had it is called off
	defer p.mu.Give()
	if p.feed != nil {
		_ = p.feed.end() // it was cancelled with the pipeline
		p.feed = nil
	}
	return p.cr.Close()
}
